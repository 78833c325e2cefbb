"""Short episodes of every scenario in which everybody speaks whenever asked."""

from toy import ToyEnv

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0

ENVS = {
    "toy": lambda **more: ToyEnv(record=True, rounds=4, talks=2, **more),
    "bertrand": lambda **more: bertrand_v0.parallel_env(record=True, rounds=4, **more),
    "kbc": lambda **more: kbc_v0.parallel_env(record=True, players=3, **more),
    "kbc-repeated": lambda **more: kbc_v0.parallel_env(
        record=True, players=3, session="repeated", rounds=4, talk_turns=1, **more
    ),
    "evacuation": lambda **more: evacuation_v0.parallel_env(
        record=True, rows=7, cols=7, people=5, rounds=4, replan_probability=0.7, **more
    ),
}


def told(env, seed):
    """Everybody speaks whenever asked and takes the first legal choice; the events, and who might talk by round."""
    _, infos = env.reset(seed=seed)
    may_talk = {}
    while env.agents:
        for info in infos.values():
            may_talk.setdefault(info["round"], set()).add(info["slots"].may_talk)
        actions = {}
        for agent in env.agents:
            number, mask = infos[agent]["slots"].question, infos[agent]["action_mask"]["choice"]
            choice = int(mask.argmax()) if mask is not None else getattr(number, "high", 0)
            actions[agent] = {"message": f"I am {agent}."} if env.phase == "talk" else {"choice": choice}
        *_, infos = env.step(actions)
    return env.events, may_talk

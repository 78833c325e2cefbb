"""Talk that ends with a round, in every scenario."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


def of_round(events, last):
    return [event for event in events if event["type"] != "start" and event["round"] <= last]


@pytest.mark.parametrize("name", ENVS)
@given(until=st.integers(1, 5), seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_up_to_that_round_nothing_changes_and_then_nobody_speaks(name, until, seed):
    usual, _ = told(ENVS[name](), seed)
    events, may_talk = told(ENVS[name](talk_until=until), seed)
    last = max(event["round"] for event in events)
    # The last event of a round with talk may be that of the round's end, which the next one's beginning follows.
    assert of_round(events, until) == of_round(usual, until)
    spoken = {event["round"] for event in events if event["type"] == "message"}
    assert spoken
    assert max(spoken) <= until
    assert all(known == {round_ <= until} for round_, known in may_talk.items())
    if until >= last:
        assert events[1:] == usual[1:]


def test_what_was_said_in_a_contest_is_still_known():
    env = kbc_v0.parallel_env(players=2, talk_until=1)
    _, infos = env.reset(seed=0)
    while env.agents:
        last = infos["player_0"]["slots"]
        *_, infos = env.step({a: {"message": "22", "choice": 1} for a in env.agents})
    assert (last.turns, len(last.heard)) == (0, 2)


def test_firms_hear_nothing_of_earlier_rounds():
    env = bertrand_v0.parallel_env(talk_until=1, rounds=2)
    _, infos = env.reset(seed=0)
    while env.agents:
        last = infos["firm_0"]["slots"]
        *_, infos = env.step({a: {"message": "Hello.", "choice": 2.0} for a in env.agents})
    assert (last.round, last.said, last.exchanges) == (2, (), 0)

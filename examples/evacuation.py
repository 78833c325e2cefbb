"""A hundred people leave a room, all by the nearest exit or all with an eye on the crowd.

python examples/evacuation.py
"""

import llm_coop_envs
from llm_coop_envs.evacuation.metrics import episode_metrics
from llm_coop_envs.policies import play, scripted


def main() -> None:
    """Count who has left by which round, in the published room with the published positions of seed 4."""
    for policy in ("evacuation/nearest_exit", "evacuation/crowd_aware"):
        env = llm_coop_envs.evacuation_v0.parallel_env(talk=False, record=True)
        play(env, scripted.make(policy), seed=4)
        measures = episode_metrics(env.events)
        exits = ", ".join(f"{name} {measures[f'escaped_{name}']}" for name in ("left", "bottom", "right"))
        out = ", ".join(f"{measures[f'escaped_round_{r}']} by round {r}" for r in (10, 20, 30, 40))
        print(f"{policy} (scripted): {out}; by exit: {exits}")


if __name__ == "__main__":
    main()

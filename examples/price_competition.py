"""Two firms set prices for 200 rounds, once as best replies and once with proposals that they keep.

python examples/price_competition.py
"""

import llm_coop_envs
from llm_coop_envs.bertrand.metrics import episode_metrics
from llm_coop_envs.policies import play, scripted


def main() -> None:
    """Compare the last prices with the Nash and the joint-profit price."""
    for policy, talk in (("bertrand/best_reply", False), ("bertrand/price_matching", True)):
        env = llm_coop_envs.bertrand_v0.parallel_env(preset="team_up", talk=talk, rounds=200, record=True)
        play(env, scripted.make(policy), seed=0)
        measures = episode_metrics(env.events)
        print(
            f"{policy} (scripted): last prices {measures['mean_price_last']:.2f} "
            f"(Nash {measures['nash_price']:.2f}, joint profit {measures['joint_price']:.2f}), "
            f"profit gain {measures['profit_gain_last']:.2f}"
        )


if __name__ == "__main__":
    main()

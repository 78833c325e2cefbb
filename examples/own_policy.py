"""A policy of your own against a shipped one: it follows the rival up, and answers a cut with a deeper one.

python examples/own_policy.py
"""

import llm_coop_envs
from llm_coop_envs.bertrand.metrics import round_rows
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.policies import Action, Request, ScriptedPolicy, play, scripted


class TemperedMatcher(ScriptedPolicy):
    """Asks a little more than the rival did, or a little less if the rival has just gone down."""

    def decide(self, request: Request) -> Action:
        """One price, from what this firm may know; `request.observation["text"]` says the same in words."""
        slots: BertrandSlots = request.info["slots"]
        if len(slots.history) < 2:
            return {"choice": 5.0}
        before, last = slots.history[-2].rival_prices[0], slots.history[-1].rival_prices[0]
        return {"choice": last - 0.5 if last < before - 0.2 else last + 0.1}


def main() -> None:
    """Play fifty rounds and show every tenth."""
    env = llm_coop_envs.bertrand_v0.parallel_env(preset="team_up", talk=False, rounds=50, record=True)
    seats = {"firm_0": TemperedMatcher(), "firm_1": scripted.make("bertrand/tit_for_tat")}
    profits = play(env, seats, seed=0)
    for row in round_rows(env.events)[::10]:
        print(f"round {row['round']:2d}: own policy {row['price_0']:.2f}, tit-for-tat {row['price_1']:.2f}")
    print("profits:", {agent: round(profit) for agent, profit in profits.items()})


if __name__ == "__main__":
    main()

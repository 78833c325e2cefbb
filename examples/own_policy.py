"""A policy of your own against a shipped one: it raises the price in small steps up to its limit.

python examples/own_policy.py
"""

import llm_coop_envs
from llm_coop_envs.bertrand.metrics import round_rows
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.policies import Action, Request, ScriptedPolicy, play, scripted


class Leader(ScriptedPolicy):
    """Sets a slightly higher price than the rival's last one, up to a limit.

    Args:
        limit: the highest price that it sets.
    """

    def __init__(self, limit: float = 7.5) -> None:
        self.limit = limit

    def decide(self, request: Request) -> Action:
        """Choose a price from what this firm may know; `request.observation["text"]` holds the same in words."""
        slots: BertrandSlots = request.info["slots"]
        if not slots.history:
            return {"choice": 5.0}
        return {"choice": min(slots.history[-1].rival_prices[0] + 0.1, self.limit)}


def main() -> None:
    """Play fifty rounds and print every tenth."""
    env = llm_coop_envs.bertrand_v0.parallel_env(preset="team_up", talk=False, rounds=50, record=True)
    seats = {"firm_0": Leader(), "firm_1": scripted.make("bertrand/best_reply")}
    profits = play(env, seats, seed=0)
    for row in round_rows(env.events)[::10]:
        print(f"round {row['round']:2d}: own policy {row['price_0']:.2f}, best reply {row['price_1']:.2f}")
    print("profits:", {agent: round(profit) for agent, profit in profits.items()})


if __name__ == "__main__":
    main()

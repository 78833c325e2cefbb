"""Two scripted policies."""

from fishery.rules import sustainable_yield
from llm_coop_envs.policies import Action, Request, ScriptedPolicy


class Sharing(ScriptedPolicy):
    """Lands an equal part of the stock above half the capacity, at which the stock grows most.

    Args:
        part: the share of that part to land, 0 to 1.
    """

    def __init__(self, part: float = 1.0) -> None:
        self.part = part

    def decide(self, request: Request) -> Action:
        """Land a part, and say which catch would last."""
        stock, rules = request.info["slots"].stock, request.info["slots"].rules
        lasting = sustainable_yield(rules.growth, rules.capacity) / rules.fishers
        fair = self.part * max(0.0, stock - rules.capacity / 2) / rules.fishers
        return {"choice": int(min(fair, rules.limit)), "message": f"{lasting:.3g} tons each in every season will last."}


class Greedy(ScriptedPolicy):
    """Lands as much as its boat holds, and says nothing."""

    def decide(self, request: Request) -> Action:
        """Land all that can be landed."""
        return {"choice": request.info["slots"].rules.limit, "message": ""}


POLICIES = {"sharing": Sharing, "greedy": Greedy}

"""What a learner may be rewarded with besides profit."""

from __future__ import annotations

from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.scenario import Event


def consumer_surplus(settings: BertrandSettings, event: Event) -> float:
    """The consumer surplus of a settled round, in money."""
    firms = [i for i, price in enumerate(event["prices"]) if price is not None]
    prices, demand = ([event[name][i] for i in firms] for name in ("prices", "demand"))
    return settings.market.restrict_to(firms).consumer_surplus(prices, demand)


REWARDS = {"consumer_surplus": consumer_surplus}

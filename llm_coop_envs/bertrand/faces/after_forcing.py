"""Forcing a firm to another price: which price, in which markets, and the rounds that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llm_coop_envs.bertrand.deviation import Floats
from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.equilibrium import best_reply
from llm_coop_envs.bertrand.paths import EXACT
from llm_coop_envs.bertrand.rules import nearest
from llm_coop_envs.bertrand.settings import IN_TURN, BertrandSettings
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.treatments.presence import STAYS, leaving_rounds

TARGETS = ("best_reply", "nash", "joint", "lowest", "highest")


@dataclass(frozen=True, eq=False)
class PricePath:
    """Some rounds of the same firms: of those that are left, since the last one left.

    Attributes:
        prices: (rounds, firms).
        profits: (rounds, firms).
        earlier: how many rounds before them had more firms.
    """

    prices: Floats
    profits: Floats
    earlier: int = 0

    @classmethod
    def of(cls, events: Sequence[Event]) -> PricePath:
        """The rounds among recorded events."""
        rounds = [event for event in events if event["type"] == "round"]
        prices, profits = (np.array([one[name] for one in rounds], dtype=np.float64) for name in ("prices", "profits"))
        if not np.isnan(prices).any():
            return cls(prices, profits)
        missing = np.isnan(prices)
        same = (missing == missing[-1]).all(axis=1)
        rows = np.ix_(same, ~missing[-1])
        return cls(prices[rows], profits[rows], int((~same).sum()))


def market_of(game: Branching) -> BertrandEnv:
    """The environment of a price competition.

    Raises:
        SettingsError: as of `check_measurable`.
    """
    env = game.env
    assert isinstance(env, BertrandEnv)
    check_measurable(env.settings)
    return env


def check_measurable(settings: BertrandSettings) -> None:
    """Require rivals, an episode that prices held together do not end, and firms that can be forced in any round.

    Raises:
        SettingsError: one of these is missing.
    """
    if settings.moves == IN_TURN:
        raise SettingsError("moves", IN_TURN, "deviations are forced in any round; leave 'after' out or 'moves'")
    window = settings.collusion_window
    if window:
        raise SettingsError("collusion_window", window, "prices held together would end the episode; set it to 0")
    if settings.firms == 1:
        raise SettingsError("firms", 1, "there are no rivals to answer a deviation; take 2 firms or more")
    without = leaving_rounds(settings, [f"{BertrandEnv.role}_{i}" for i in range(settings.firms)])
    if without is not None and ((without == STAYS).sum() < 2 or (without[without < STAYS] > settings.rounds).any()):
        why = "2 firms or more must be left in the last round, and stay after it, to answer deviations"
        raise SettingsError("changes", "present", why)


def deviation_choice(env: BertrandEnv, prices: Floats, firm: int, to: str | float) -> int | float:
    """The choice a deviation goes to: an index on a grid, else a price.

    Args:
        env: the environment.
        prices: (firms,) what would be asked in this round.
        firm: who deviates, by its place among the firms in the market.
        to: see `deviations`.

    Raises:
        SettingsError: there is no such target, or the price is not within the range.
    """
    settings, market, marks = env.settings, env.market, env.marks
    seat = env.firms[firm]
    grid = settings.grids[seat] if settings.prices == "grid" else None
    low, high = (grid[0], grid[-1]) if grid else (settings.floors[seat], settings.cap)
    if to == "best_reply":
        asked = prices.tolist()
        if grid is None:
            return float(np.clip(best_reply(market, firm, asked), low, high))
        earned = [market.profits([*asked[:firm], price, *asked[firm + 1 :]])[firm] for price in grid]
        return int(np.argmax(earned))
    named = {"nash": marks.nash[firm], "joint": marks.joint[firm], "lowest": low, "highest": high}
    price = named.get(to) if isinstance(to, str) else float(to)
    if price is None:
        raise SettingsError("to", to, f"must be a price or one of {', '.join(TARGETS)}")
    if not low - EXACT <= price <= high + EXACT:
        raise SettingsError("to", to, f"firm {firm}'s prices go from {low:g} to {high:g}")
    return nearest(grid, price) if grid else price

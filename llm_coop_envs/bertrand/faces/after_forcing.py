"""Forcing a firm to another price: the choice of the price, the settings that allow it, and the rounds played."""

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
    """Rounds of the firms that are in the market at the end, from the last departure on, at prices that they chose.

    Attributes:
        prices: (rounds, firms).
        profits: (rounds, firms).
        earlier: how many rounds were played before, with more firms or at prices that were laid down.
    """

    prices: Floats
    profits: Floats
    earlier: int = 0

    @classmethod
    def from_events(cls, events: Sequence[Event]) -> PricePath:
        """Read the rounds among recorded events."""
        every = [event for event in events if event["type"] == "round"]
        rounds = [event for event in every if not event["forced"]] or every
        prices, profits = (
            np.array([event[name] for event in rounds], dtype=np.float64) for name in ("prices", "profits")
        )
        if not np.isnan(prices).any():
            return cls(prices, profits, len(every) - len(rounds))
        missing = np.isnan(prices)
        same = (missing == missing[-1]).all(axis=1)
        rows = np.ix_(same, ~missing[-1])
        return cls(prices[rows], profits[rows], len(every) - int(same.sum()))


def market_of(game: Branching) -> BertrandEnv:
    """The environment of a branching game of price competition.

    Raises:
        SettingsError: as of `check_measurable`.
    """
    env = game.env
    assert isinstance(env, BertrandEnv)
    check_measurable(env.settings)
    return env


def check_measurable(settings: BertrandSettings) -> None:
    """Require settings under which deviations can be measured.

    There must be rivals, episodes must not end because prices are held together, and every firm must name a price in
    every round.

    Raises:
        SettingsError: one of these does not hold.
    """
    if settings.moves == IN_TURN:
        raise SettingsError("moves", IN_TURN, "deviations are forced in any round; leave 'after' out or 'moves'")
    window = settings.collusion_window
    if window:
        raise SettingsError("collusion_window", window, "prices held together would end the episode; set it to 0")
    if settings.firms == 1:
        raise SettingsError("firms", 1, "there are no rivals to answer a deviation; take 2 firms or more")
    without = leaving_rounds(settings, [f"{BertrandEnv.role}_{i}" for i in range(settings.firms)])  # pyright: ignore[reportArgumentType]
    if without is not None and ((without == STAYS).sum() < 2 or (without[without < STAYS] > settings.rounds).any()):
        reason = "2 firms or more must be left in the last round, and stay after it, to answer deviations"
        raise SettingsError("changes", "present", reason)


def deviation_choice(env: BertrandEnv, prices: Floats, firm: int, to: str | float) -> int | float:
    """The choice to which a deviating firm is forced: an index on a grid, else a price.

    Of equally good best replies on a grid the lowest price is taken.

    Args:
        env: the environment.
        prices: (firms,) the prices that would be asked in this round.
        firm: the deviating firm, by its index in `env.firms`.
        to: a target or a price, as in `after.deviations`.

    Raises:
        SettingsError: there is no such target, or the price is not within the range.
    """
    settings, market, equilibria = env.settings, env.market, env.equilibria
    seat = env.firms[firm]
    grid = settings.grids[seat] if settings.prices == "grid" else None
    low, high = (grid[0], grid[-1]) if grid else (settings.floors[seat], settings.cap)
    if to == "best_reply":
        usual_prices = prices.tolist()
        if grid is None:
            return float(np.clip(best_reply(market, firm, usual_prices), low, high))
        earned = [market.profits([*usual_prices[:firm], price, *usual_prices[firm + 1 :]])[firm] for price in grid]
        return int(np.argmax(earned))
    named = {"nash": equilibria.nash[firm], "joint": equilibria.joint[firm], "lowest": low, "highest": high}
    price = named.get(to) if isinstance(to, str) else float(to)
    if price is None:
        raise SettingsError("to", to, f"must be a price or one of {', '.join(TARGETS)}")
    if not low - EXACT <= price <= high + EXACT:
        raise SettingsError("to", to, f"firm {firm}'s prices go from {low:g} to {high:g}")
    return nearest(grid, price) if grid else price

"""Which firms sell in which round of an episode, and what follows from it for its numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.rules import Floats, Rivalry, normalised_profits, positions
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import Bin, PastRow
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.treatments.presence import STAYS

AnyRow = TypeVar("AnyRow", PastRow, Bin)
Rivalries = dict[tuple[int, ...], Rivalry]


def rivalries(settings: BertrandSettings, without: NDArray[np.int64] | None, names: Sequence[str]) -> Rivalries:
    """What holds among the firms that ever sell beside each other, by these firms; all of them come first.

    Args:
        settings: the market.
        without: the first round without each firm, `STAYS` for those who stay; `None` if nobody leaves.
        names: the firms' names.

    Raises:
        SettingsError: some that are left have no Nash or joint-profit prices.
    """
    everybody = tuple(range(settings.firms))
    found = {everybody: settings.among(everybody)}
    for turn in [] if without is None else np.unique(without[without < STAYS]).tolist():
        firms: tuple[int, ...] = tuple(np.flatnonzero(without > turn).tolist())
        try:
            found[firms] = settings.among(firms)
        except SettingsError as error:
            who = ", ".join([names[i] for i in firms])
            raise SettingsError("changes", error.value, f"with {who} alone from round {turn} on: {error}") from error
    return found


def value_ranges(those: Rivalries, floors: Sequence[float], caps: Sequence[float]) -> tuple[Floats, Floats, Floats]:
    """Each firm's lowest and highest place of a price, and largest gain: demand falls in the own price.

    Before there are prices, 0 stands in for them.
    """
    n = len(floors)
    low, high, gain = np.zeros(n), np.zeros(n), np.zeros(n)
    for one in those.values():
        firms = list(one.firms)
        lowest, highest = ([ends[i] for i in firms] for ends in (floors, caps))
        low[firms] = np.minimum(positions(lowest, one.marks), low[firms])
        high[firms] = np.maximum(positions(highest, one.marks), high[firms])
        most = np.empty(len(firms))
        for i in range(len(firms)):
            best, worst = list(highest), list(lowest)
            best[i], worst[i] = lowest[i], highest[i]
            sold = max(abs(one.market.demand(best)[i]), abs(one.market.demand(worst)[i]))
            # One unit more than the product: truncation and rounding stay inside.
            most[i] = 1.0 + sold * max(abs(p - one.market.cost[i]) for p in (lowest[i], highest[i]))
        for ends in (most, -most):
            gain[firms] = np.maximum(gain[firms], np.abs(normalised_profits(ends, one.marks)))
    return low, high, gain


def movers(without: NDArray[np.int64], rounds: int) -> list[int]:
    """Whose turn it is in each round where firms move in turn: the next one's of those in the market."""
    found, last = [], -1
    for number in range(1, rounds + 1):
        there = np.flatnonzero(without > number).tolist()
        last = next((i for i in there if i > last), there[0])
        found.append(last)
    return found


def spread(values: Sequence[float], firms: Sequence[int], count: int) -> tuple[float, ...]:
    """Values of some firms as those of all `count` firms, NaN for the others."""
    if len(firms) == count:
        return tuple(values)
    found = [math.nan] * count
    for i, value in zip(firms, values, strict=True):
        found[i] = value
    return tuple(found)


def plain(values: Sequence[float]) -> list[float | None]:
    """Values of firms as JSON data: nothing for a firm that is not there."""
    return [None if value != value else value for value in values]


def of_those(row: AnyRow, there: Sequence[bool]) -> AnyRow:
    """A row with the prices of those rivals alone."""
    return row._replace(rival_prices=tuple(itertools.compress(row.rival_prices, there)))

"""The sets of firms that sell beside each other in an episode, and their turns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.rules import Rivalry
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.treatments.presence import STAYS

Rivalries = dict[tuple[int, ...], Rivalry]


def rivalries(settings: BertrandSettings, without: NDArray[np.int64] | None, names: Sequence[str]) -> Rivalries:
    """Solve the market of every set of firms that ever sell beside each other.

    Args:
        settings: the market.
        without: the first round without each firm, `STAYS` for those who stay; `None` if nobody leaves.
        names: the firms' names.

    Returns:
        The rivalries by the indices of their firms; that of all firms comes first.

    Raises:
        SettingsError: the firms that remain have no Nash or joint-profit prices.
    """
    everybody = tuple(range(settings.firms))
    by_firms = {everybody: settings.rivalry_among(everybody)}
    for departure_round in [] if without is None else np.unique(without[without < STAYS]).tolist():
        firms: tuple[int, ...] = tuple(np.flatnonzero(without > departure_round).tolist())
        try:
            by_firms[firms] = settings.rivalry_among(firms)
        except SettingsError as error:
            remaining_names = ", ".join([names[i] for i in firms])
            raise SettingsError(
                "changes", error.value, f"with {remaining_names} alone from round {departure_round} on: {error}"
            ) from error
    return by_firms


def turn_order(without: NDArray[np.int64], rounds: int) -> list[int]:
    """Whose turn it is in each round of alternating moves: the next firm's, in index order, that is still present.

    With firms 0, 1, 2 and firm 1 gone from round 5 on, the turns are 0, 1, 2, 0, 2, 0, 2, ...

    Args:
        without: (firms,) the first round without each firm.
        rounds: the number of rounds.
    """
    turns, last = [], -1
    for number in range(1, rounds + 1):
        present = np.flatnonzero(without > number).tolist()
        last = next((i for i in present if i > last), present[0])
        turns.append(last)
    return turns


def fill_absent(values: Sequence[float], firms: Sequence[int], count: int) -> tuple[float, ...]:
    """Values of some firms as values of all `count` firms, NaN for the others."""
    if len(firms) == count:
        return tuple(values)
    filled = [math.nan] * count
    for i, value in zip(firms, values, strict=True):
        filled[i] = value
    return tuple(filled)

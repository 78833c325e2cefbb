"""Settling rounds in the market of the firms that are present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.history import others
from llm_coop_envs.bertrand.rivalries import Rivalries, fill_absent
from llm_coop_envs.bertrand.rules import Rivalry, RoundOutcome, outcome
from llm_coop_envs.mechanisms.matching import Groups

BY_FIRM = ("prices", "demand", "profits", "positions", "gains")
"""The fields of `RoundOutcome` that hold one value per firm."""

# Settled grid rounds are remembered, because the few price combinations of a grid come back all the time.
# The bound limits the memory they take.
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class SettledRound:
    """A settled combination of prices.

    Attributes:
        outcome: what it brought; NaN for firms that have left.
        rewards: (firms,) float64.
        features: (firms, firms + 2) float32, the feature rows that follow from it.
    """

    outcome: RoundOutcome
    rewards: NDArray[np.float64]
    features: NDArray[np.float32]


class Settlement:
    """Settles rounds among the firms that sell now.

    Args:
        rivalries: the markets of all sets of firms that ever sell beside each other; that of all firms comes first.
        grids: each firm's price grid; empty with continuous prices.
        normalised: whether rewards are normalised profits instead of profits.
        group: the market of a group, where firms sell in groups; `None` where all sell to the same customers.

    Attributes:
        rivalries: as given.
        rivalry: the firms that sell now, with their market and equilibria.
    """

    def __init__(
        self,
        rivalries: Rivalries,
        grids: Sequence[Sequence[float]],
        *,
        normalised: bool,
        group: Rivalry | None = None,
    ) -> None:
        self.rivalries = rivalries
        self._group = group
        self.rivalry: Rivalry = next(iter(rivalries.values()))
        self._n_firms = len(self.rivalry.firms)
        self._grids = grids
        self._normalised = normalised
        self._remembered: dict[tuple[int, ...], SettledRound] = {}

    @property
    def is_complete(self) -> bool:
        """Whether all firms are still in the market."""
        return len(self.rivalry.firms) == self._n_firms

    @property
    def has_groups(self) -> bool:
        """Whether firms sell in groups."""
        return self._group is not None

    def open_market(self, firms: Sequence[int]) -> None:
        """Let these firms, and no others, sell from now on."""
        self.rivalry = self.rivalries[tuple(firms)]

    def settle_indices(self, indices: tuple[int, ...]) -> SettledRound:
        """Settle a round of grid indices, one for each firm present; a combination settled before is remembered.

        Firms leave in one order only, so that the number of indices says which firms they belong to.
        """
        settled = self._remembered.get(indices)
        if settled is None:
            settled = self.settle(tuple(self._grids[i][k] for i, k in zip(self.rivalry.firms, indices, strict=True)))
            if len(self._remembered) < _REMEMBERED:
                self._remembered[indices] = settled
        return settled

    def settle(self, prices: tuple[float, ...]) -> SettledRound:
        """Settle a round in which the firms present ask these prices, one each."""
        rivalry, n = self.rivalry, self._n_firms
        result = outcome(rivalry.market, rivalry.equilibria, rivalry.band, prices)
        if not self.is_complete:
            values = {name: fill_absent(getattr(result, name), rivalry.firms, n) for name in BY_FIRM}
            result = RoundOutcome(**values, together=result.together)
        return self._settled(result, [others(result.positions, i) for i in range(n)])

    def settle_groups(self, prices: Sequence[float], groups: Groups) -> SettledRound:
        """Settle a round in which firms sell in these groups."""
        rivalry = self._group
        assert rivalry is not None, "firms sell in groups"
        order = np.argsort(np.concatenate(groups))  # back to the order of firms
        results = [
            outcome(rivalry.market, rivalry.equilibria, rivalry.band, [prices[i] for i in group]) for group in groups
        ]
        joined = {name: [value for result in results for value in getattr(result, name)] for name in BY_FIRM}
        values = {name: tuple(column[k] for k in order) for name, column in joined.items()}
        rivals = [others(result.positions, place) for result in results for place in range(len(result.prices))]
        result = RoundOutcome(**values, together=rivalry.band.holds(values["positions"]))
        return self._settled(result, [rivals[k] for k in order])

    def _settled(self, result: RoundOutcome, rivals: Sequence[tuple[float, ...]]) -> SettledRound:
        """The rewards of a round, and the features of firms that see these positions of their rivals."""
        positions, gains = result.positions, result.gains
        rows = [(1.0, positions[i], *rivals[i], gains[i]) for i in range(self._n_firms)]
        rewards = np.array(gains if self._normalised else result.profits)
        features = np.array(rows, dtype=np.float32)
        if not self.is_complete:
            rewards, features = np.nan_to_num(rewards), np.nan_to_num(features)
        return SettledRound(result, rewards, features)

    def settle_recorded(self, prices: Sequence[float | None], groups: Groups) -> SettledRound:
        """Settle a recorded round anew, in the market of the firms that asked a price in it (`None`: had left)."""
        if self._group is not None:
            return self.settle_groups([price for price in prices if price is not None], groups)
        current = self.rivalry
        self.open_market([i for i, price in enumerate(prices) if price is not None])
        settled = self.settle(tuple(price for price in prices if price is not None))
        self.rivalry = current
        return settled

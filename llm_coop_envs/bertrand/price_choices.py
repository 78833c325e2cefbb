"""The prices that each firm may ask: grids or ranges, price caps ordered by a regulator, and unusable choices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.rules import nearest
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.interface.actions import Indices


class PriceChoices:
    """The prices that the firms may ask in the current round.

    Args:
        settings: the market.

    Attributes:
        grids: each firm's price grid; empty with continuous prices.
        floors: each firm's lowest price.
        highest: each firm's highest price without a regulator.
        caps: each firm's highest price now.
        offers: each firm's (index, price) pairs now; empty with continuous prices.
        questions: what each firm is asked now.
    """

    def __init__(self, settings: BertrandSettings) -> None:
        self.grids = settings.grids if settings.prices == "grid" else ()
        self.floors, self.highest = settings.floors, (settings.cap,) * settings.firms
        if self.grids:
            self.floors = tuple(grid[0] for grid in self.grids)
            self.highest = tuple(grid[-1] for grid in self.grids)
        self._costs = settings.market.cost
        self._uncapped_questions = settings.price_questions
        self._uncapped_offers = tuple(question.listed for question in self._uncapped_questions)
        self.set_cap(None)

    def set_cap(self, cap: float | None) -> None:
        """Put a regulator's price cap into force, or lift it (`None`).

        A firm keeps its lowest price even if the cap is below it: with the grid 1.4, 1.6, 1.8 and the cap 1.2 the firm
        asks 1.4.
        """
        self._is_capped = cap is not None
        self.caps, self.offers, self.questions = self.highest, self._uncapped_offers, self._uncapped_questions
        if cap is None:
            return
        self.caps = tuple(max(min(high, cap), low) for high, low in zip(self.highest, self.floors, strict=True))
        self.offers = tuple(
            tuple(offer for offer in offers if offer[1] <= high)
            for offers, high in zip(self._uncapped_offers, self.caps, strict=True)
        )
        self.questions = tuple(
            replace(question, high=high, listed=offers)
            for question, high, offers in zip(self._uncapped_questions, self.caps, self.offers, strict=True)
        )

    def draw(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Draw one price per firm, uniformly from its grid or range without a regulator."""
        if self.grids:
            indices = rng.integers(len(self.grids[0]), size=len(self.grids)).tolist()
            return tuple(grid[k] for grid, k in zip(self.grids, indices, strict=True))
        return tuple(rng.uniform(self.floors, self.highest).tolist())

    def legal_indices(self) -> NDArray[np.int8] | None:
        """(firms, grid points) 1 for grid prices under the regulator's cap; `None` where no index is forbidden."""
        if not self._is_capped or not self.grids:
            return None
        legal = np.zeros((len(self.grids), len(self.grids[0])), dtype=np.int8)
        for i, offers in enumerate(self.offers):
            legal[i, : len(offers)] = 1
        return legal

    def choice_nearest_to(self, firm: int, price: float) -> Any:
        """The legal choice closest to a price: a grid index, or the price moved into the range."""
        price = max(min(price, self.caps[firm]), self.floors[firm])
        return nearest([offer for _, offer in self.offers[firm]], price) if self.grids else price

    def indices_near_cost(self, firms: Indices) -> NDArray[np.int64]:
        """The legal grid index whose price is nearest to each firm's cost, in place of unusable choices."""
        return np.array(
            [nearest([price for _, price in self.offers[i]], self._costs[i]) for i in firms.tolist()], dtype=np.int64
        )

    def clean_prices(
        self, firms: Indices, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Replace unusable continuous prices.

        A price outside the range becomes the nearest end of it. NaN and infinities become the firm's cost, as in the
        authors' code of Wu et al. (2024): with cost 2 and the range 0 to 14, -1 gives 0, 20 gives 14, NaN gives 2.

        Args:
            firms: (n,) indices of the firms on turn.
            values: (n,) the prices they chose.

        Returns:
            (n,) usable prices, and (n,) whether each was replaced.
        """
        prices, is_replaced = values.tolist(), [False] * len(firms)
        for k, i in enumerate(firms.tolist()):
            value, floor, cap = prices[k], self.floors[i], self.caps[i]
            if not floor <= value <= cap:
                replacement = value if abs(value) < np.inf else self._costs[i]
                prices[k], is_replaced[k] = min(max(replacement, floor), cap), True
        return np.array(prices), np.array(is_replaced)

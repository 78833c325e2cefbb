"""What firms are told of the market beyond their own business, where `known` says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.demand import Market
from llm_coop_envs.bertrand.settings import DEMAND, RIVAL_COSTS, ROUNDS, BertrandSettings
from llm_coop_envs.bertrand.slots import DemandRule

_OF_DEMAND = {"logit": ("outside", "mu", "scale"), "linear": ("beta", "d")}


class Told:
    """What firms are told, as slots and as features.

    Args:
        settings: the game.
        market: the market of all firms.

    Attributes:
        names: the names of the features, of all that some firm is told at some time; empty if nobody is told anything.
    """

    def __init__(self, settings: BertrandSettings, market: Market) -> None:
        self._settings, self._market = settings, market
        known = {fact for facts in settings.reach("known") for fact in facts}
        rivals = range(1, settings.firms)
        of_demand = ("own_quality", *(f"rival_quality_{k}" for k in rivals), *_OF_DEMAND[settings.demand])
        columns = {
            RIVAL_COSTS: tuple(f"rival_cost_{k}" for k in rivals),
            DEMAND: of_demand,
            ROUNDS: ("rounds_left",),
        }
        columns = {fact: names for fact, names in columns.items() if fact in known}
        self.names = tuple(name for names in columns.values() for name in names)
        self._facts = np.array([fact for fact, names in columns.items() for _ in names])
        self._values = np.array([self._row(columns, i) for i in range(settings.firms)], dtype=np.float32)

    def _row(self, columns: dict[str, tuple[str, ...]], index: int) -> list[float]:
        """A firm's features if it is told everything; money is in units of `price_unit`."""
        settings, unit = self._settings, self._settings.price_unit
        cost, quality = ([value / unit for value in values] for values in (self._market.cost, self._market.quality))
        values = {
            RIVAL_COSTS: np.delete(cost, index).tolist(),
            DEMAND: [quality[index], *np.delete(quality, index).tolist()]
            + [float(getattr(settings, name)) for name in _OF_DEMAND[settings.demand]],
            ROUNDS: [1.0],
        }
        return [value for fact in columns for value in values[fact]]

    @property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The lowest and highest values of the features; what is not told is 0."""
        nothing = np.zeros(len(self.names), dtype=np.float32)
        return np.minimum(nothing, self._values.min(axis=0)), np.maximum(nothing, self._values.max(axis=0))

    def features(
        self, known: Sequence[Sequence[str]], left: float, is_present: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        """The features of all firms.

        Args:
            known: what each firm is told now.
            left: the share of the rounds that are left.
            is_present: (firms,) whether each is still in the market; of who has left nothing is told.
        """
        rows: NDArray[np.float32] = self._values.copy()
        rows[:, self._facts == ROUNDS] = left
        for i, facts in enumerate(known):
            rows[i, ~np.isin(self._facts, facts)] = 0.0
            for k, rival in enumerate(np.delete(np.arange(len(rows)), i), 1):
                if not is_present[rival]:
                    rows[i, [name in (f"rival_cost_{k}", f"rival_quality_{k}") for name in self.names]] = 0.0
        return rows

    def slots(self, index: int, rivals: Sequence[int], known: Sequence[str]) -> dict[str, Any]:
        """A firm's slots.

        Args:
            index: the firm.
            rivals: the other firms in the market.
            known: what it is told.
        """
        settings, market, unit = self._settings, self._market, self._settings.price_unit
        slots: dict[str, Any] = {}
        if RIVAL_COSTS in known:
            slots["rival_costs"] = tuple(market.cost[i] for i in rivals)
        if ROUNDS in known:
            slots["last_round"] = settings.rounds
        if DEMAND in known:
            money = {name: getattr(settings, name) * unit for name in ("outside", "mu", "beta", "d")}
            slots["demand_rule"] = DemandRule(
                **money,
                kind=settings.demand,
                scale=settings.scale,
                clamps=settings.clamp_demand,
                own_quality=market.quality[index],
                rival_qualities=tuple(market.quality[i] for i in rivals),
            )
        return slots

"""The environment: seasons of fishing, and talk after each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fishery.rules import catches, regrown
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.channels import everyone
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.slots import Heard, Slots


@dataclass(frozen=True, kw_only=True)
class FisherySettings(ScenarioSettings):
    """Settings of the fishery.

    Attributes:
        fishers: how many fish.
        capacity: the largest stock, in tons; also the first one.
        growth: the growth rate r of the stock, per season.
        limit: the most one boat can land in a season, in whole tons.
        collapse: below this stock, in tons, nothing grows back and the episode ends.
        seasons: after how many seasons the episode ends.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"pair": {"fishers": 2, "limit": 50}}
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "fishers": (2, 10_000),
        "capacity": (1, 1e9),
        "growth": (0, 3),
        "limit": (1, 10_000),
        "collapse": (0, 1e9),
        "seasons": (1, 10_000),
    }

    fishers: int = 5
    capacity: float = 100.0
    growth: float = 0.8
    limit: int = 20
    collapse: float = 5.0
    seasons: int = 12


@dataclass(frozen=True, kw_only=True)
class FisherySlots(Slots):
    """What one fisher may know.

    Attributes:
        rules: the settings; everybody knows them.
        season: the season, from 1.
        stock: tons of fish in the water now.
        landed: what everybody landed in the last season, (name, tons); empty before the first.
        history: (season, stock before it, own catch) of the seasons so far.
        heard: what was said after the last season, own words included.
    """

    rules: FisherySettings
    season: int
    stock: float
    landed: tuple[tuple[str, float], ...]
    history: tuple[tuple[int, float, float], ...]
    heard: tuple[Heard, ...]

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """The stock before each season so far."""
        return {"stock": [(season, stock) for season, stock, _ in self.history]}


class FisheryEnv(ScenarioEnv):
    """Everyone takes fish from one stock, and what is left grows.

    Phases: `act`, in which all name at once how many tons they want to land, then `talk`, in which each speaks once and
    everyone hears everything.

    Choice: Discrete, whole tons from 0 to `limit`. A missing or illegal one counts as 0, flagged.

    Reward: the tons that were landed; 0 in talk steps.

    Features (float32): `stock` / capacity, `season` / seasons.

    Events: `round` for each season: `stock` before it, `wanted`, `catches`, `left` (after growth).
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "fishery_v0", "render_fps": 2}
    settings_type = FisherySettings
    slots_type = FisherySlots
    role = "fisher"
    home = Path(__file__).parent
    kept = ("stock", "history")

    def _setup(self) -> None:
        self.n_players = self.settings.fishers
        self.feature_names = ("stock", "season")
        self._feature_bounds = (0.0, 1.0)

    def _choice_space(self) -> spaces.Discrete:
        return spaces.Discrete(self.settings.limit + 1)

    def _begin(self, options: Mapping[str, Any]) -> None:
        self.stock = float(self.settings.capacity)
        self.history: list[list[Any]] = []

    def _next_stage(self) -> Stage | Over:
        if self.stock < self.settings.collapse:
            return Over("the stock collapsed")
        if self.round == self.settings.seasons:
            return Over("all seasons played", truncated=True)
        if self.settings.talk and self.round and self.phase != TALK:
            self.conversation.forget()
            # A generator of its own: what else the game may draw is the same with talk and without.
            return self._talk_stage([self.nature("order").permutation(self.n_players).tolist()], everyone())
        self.round += 1
        return Stage("act", [self._everyone])

    def _apply(self, phase: str, who: NDArray[np.intp], choices: NDArray[Any]) -> None:
        stock, landed = self.stock, catches(choices, self.stock)
        self.stock = regrown(stock - landed.sum(), self.settings.growth, self.settings.capacity)
        self.history = [*self.history, [self.round, stock, landed.tolist()]]
        self._rewards += landed
        if self.record:
            self.emit("round", stock=stock, wanted=choices.tolist(), catches=landed.tolist(), left=self.stock)

    def _features(self) -> NDArray[np.float32]:
        row = [self.stock / self.settings.capacity, self.round / self.settings.seasons]
        return np.tile(np.array(row, dtype=np.float32), (self.n_players, 1))

    def _slots(self, index: int, common: dict[str, Any]) -> FisherySlots:
        return FisherySlots(
            rules=self.settings,
            season=self.round,
            stock=self.stock,
            landed=tuple(zip(self.possible_agents, self.history[-1][2], strict=False)) if self.history else (),
            history=tuple((season, stock, landed[index]) for season, stock, landed in self.history),
            heard=self._heard(index, own=True),
            **common,
        )

"""A trained Q table in any seat of the price competition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.tables import QTable
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.bertrand.rules import nearest
from llm_coop_envs.bertrand.scenario import SCENARIO
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action, ScriptedPolicy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError

SAME = 1e-3
"""How far Nash and joint-profit price may lie from those of the market the table was learned in, as a share of the
distance between them."""


class QTablePolicy(ScriptedPolicy):
    """Plays a Q table greedily, each seat the strategy of the firm with the same number; it learns nothing.

    It is silent in talk and does not listen. On a grid the grid must be the table's; where prices are continuous it
    asks prices of its own grid and takes each price it sees for the nearest one on it. Rounds that are missing at the
    beginning are taken to have been like the earliest one known; if none is known, play begins in the state in which
    learning ended.
    """

    def __init__(self, table: QTable) -> None:
        self.table = table
        self._game = table.game

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: the table was learned in another market, or cannot see far enough back.
        """
        super().begin(episode)
        settings, game = episode.settings, self._game
        if not isinstance(settings, BertrandSettings):
            raise SettingsError("policy", "q_learning", f"plays {SCENARIO.name}, not {episode.scenario}")
        check_all_stay(settings)
        if settings.firms != game.firms:
            why = f"the Q table was learned by {game.firms} firms; train one for as many as play here"
            raise SettingsError("firms", settings.firms, why)
        marks = settings.marks
        gap = np.array(game.marks.joint) - np.array(game.marks.nash)
        pairs = (("Nash", marks.nash, game.marks.nash), ("joint-profit", marks.joint, game.marks.joint))
        for kind, here, there in pairs:
            if np.any(np.abs(np.array(here) - np.array(there)) > SAME * gap):
                shown = ", ".join(f"{price:g}" for price in there)
                why = f"the Q table was learned in a market whose {kind} prices are {shown}; take one of this market"
                raise SettingsError("policy", "q_learning", why)
        if settings.prices == "grid" and not (
            settings.grid_points == game.points and np.allclose(settings.grids, game.prices, rtol=1e-9, atol=0.0)
        ):
            grid = f"its own grid of {game.points} prices from {game.prices[0][0]:g}"
            raise SettingsError("grid_points", settings.grid_points, f"the Q table needs {grid}; match the settings")
        check_shown(settings, game.memory, f"the Q table needs to see {game.memory} past rounds")
        self._grid = settings.prices == "grid"

    def get_state(self) -> dict[str, Any]:
        """Nothing: all it goes by is what it is shown."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Nothing to put back."""

    def decide(self, request: Request) -> Action:
        """The greedy price in the state the firm is in."""
        slots: BertrandSlots = request.info["slots"]
        if slots.phase == TALK:
            return {"message": ""}
        me = self.episode.agents.index(slots.me)
        index = int(self.table.strategies[me, self.state(slots, me)])
        return {"choice": index if self._grid else float(self._game.prices[me, index])}

    def state(self, slots: BertrandSlots, me: int) -> int:
        """The state a firm is in, by what it knows."""
        return state_of(self._game, slots, me, self.table.last_state)


def check_shown(settings: BertrandSettings, rounds: int, why: str) -> None:
    """Require that firms are shown so many past rounds throughout.

    Raises:
        SettingsError: they are not.
    """
    for name in ("history_window", "memory"):
        least = min((most for most in settings.reach(name) if most is not None), default=rounds)
        if least < rounds:
            raise SettingsError(name, least, f"{why}; set it to {rounds} or more")


def check_all_stay(settings: ScenarioSettings) -> None:
    """Require that no firm leaves the market.

    Raises:
        SettingsError: one does.
    """
    if False in settings.reach("present"):
        raise SettingsError(
            "changes", "present", "what was learned goes by the prices of all firms; let all of them stay"
        )


def state_of(game: Game, slots: BertrandSlots, me: int, first: int) -> int:
    """The state a firm is in, by what it knows; `first` if it knows nothing.

    Raises:
        SettingsError: it is not shown its rivals' prices.
    """
    if not game.memory:
        return 0
    if len(slots.seen) < game.firms - 1:
        raise SettingsError("information", "own", "what was learned goes by all firms' last prices; set it to 'all'")
    past: list[tuple[float, ...]] = [(row.price, *row.rival_prices) for row in slots.history[-game.memory :]]
    if slots.prior and len(past) < game.memory:
        past.insert(0, slots.prior)
    if not past:
        return first
    past = [past[0]] * (game.memory - len(past)) + past
    state = 0
    for own, *rivals in reversed(past):
        asked = [*rivals[:me], own, *rivals[me:]]
        places = [nearest(grid, price) for grid, price in zip(game.prices.tolist(), asked, strict=True)]
        state = state * game.actions + int(game.action(places))
    return state

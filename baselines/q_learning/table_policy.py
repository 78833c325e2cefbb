"""The policy that plays a trained Q table in price competition."""

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
"""Tolerance for the Nash and joint-profit prices of the market a table plays in, compared with the market it was
learned in, as a share of the distance between the two prices."""


class QTablePolicy(ScriptedPolicy):
    """Plays a Q table greedily, each seat the strategy of the firm with the same number; it learns nothing.

    It is silent in talk and does not listen. On a grid, the grid must be the table's. Where prices are continuous, it
    asks prices of its own grid and rounds each observed price to that grid. In the first rounds, missing past rounds
    are filled with the earliest known one; if none is known, play begins in the state in which learning ended.
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
            reason = f"the Q table was learned by {game.firms} firms; train one for as many as play here"
            raise SettingsError("firms", settings.firms, reason)
        equilibria = settings.equilibria
        gap = np.array(game.equilibria.joint) - np.array(game.equilibria.nash)
        pairs = (
            ("Nash", equilibria.nash, game.equilibria.nash),
            ("joint-profit", equilibria.joint, game.equilibria.joint),
        )
        for kind, prices, learned_prices in pairs:
            if np.any(np.abs(np.array(prices) - np.array(learned_prices)) > SAME * gap):
                listed = ", ".join(f"{price:g}" for price in learned_prices)
                reason = (
                    f"the Q table was learned in a market whose {kind} prices are {listed}; take one of this market"
                )
                raise SettingsError("policy", "q_learning", reason)
        if settings.prices == "grid" and not (
            settings.grid_points == game.points and np.allclose(settings.grids, game.prices, rtol=1e-9, atol=0.0)
        ):
            grid = f"its own grid of {game.points} prices from {game.prices[0][0]:g}"
            raise SettingsError("grid_points", settings.grid_points, f"the Q table needs {grid}; match the settings")
        check_shown(settings, game.memory, f"the Q table needs to see {game.memory} past rounds")
        self._grid = settings.prices == "grid"

    def get_state(self) -> dict[str, Any]:
        """Return an empty state: decisions depend on observations only."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Do nothing: there is no state."""

    def decide(self, request: Request) -> Action:
        """Ask the greedy price of the firm's state."""
        slots: BertrandSlots = request.info["slots"]
        if slots.phase == TALK:
            return {"message": ""}
        me = self.episode.agents.index(slots.me)
        index = int(self.table.strategies[me, self.state(slots, me)])
        return {"choice": index if self._grid else float(self._game.prices[me, index])}

    def state(self, slots: BertrandSlots, me: int) -> int:
        """The firm's state, from the rounds it observes."""
        return state_of(self._game, slots, me, self.table.last_state)


def check_shown(settings: BertrandSettings, rounds: int, reason: str) -> None:
    """Check that firms observe at least `rounds` past rounds, in every round.

    Raises:
        SettingsError: they observe fewer; `reason` begins the message.
    """
    for name in ("history_window", "memory"):
        shortest = min((reach for reach in settings.reach(name) if reach is not None), default=rounds)
        if shortest < rounds:
            raise SettingsError(name, shortest, f"{reason}; set it to {rounds} or more")


def check_all_stay(settings: ScenarioSettings) -> None:
    """Check that no firm leaves the market.

    Raises:
        SettingsError: a firm leaves.
    """
    if False in settings.reach("present"):
        raise SettingsError(
            "changes", "present", "what was learned goes by the prices of all firms; let all of them stay"
        )


def state_of(game: Game, slots: BertrandSlots, me: int, first: int) -> int:
    """The state of firm `me`, from the rounds it observes; `first` if it observes none.

    Raises:
        SettingsError: it does not observe its rivals' prices.
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
        prices = [*rivals[:me], own, *rivals[me:]]
        indices = [nearest(grid, price) for grid, price in zip(game.prices.tolist(), prices, strict=True)]
        state = state * game.actions + int(game.action(indices))
    return state

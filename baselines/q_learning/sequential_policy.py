"""The policy of firms that set prices in turn: it learns before each episode of a study (Klein 2021), then plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sequential import SequentialRun, SequentialSettings, run_sequential
from llm_coop_envs.baselines.q_learning.table_policy import check_all_stay, check_shown
from llm_coop_envs.bertrand.rules import nearest, profit_gain
from llm_coop_envs.bertrand.settings import IN_TURN, BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.base_policy import Action, ScriptedPolicy, stand_aside
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError


class SequentialPolicy(ScriptedPolicy):
    """Plays the greedy reply to the rival's price, without exploring or learning.

    Args:
        options: fields of `SequentialSettings` except `intervals`, which follows from the grid.

    Raises:
        SettingsError: an impossible option.
        MissingExtra: the compiler is not installed.
    """

    _learned: SequentialRun

    def __init__(self, options: Mapping[str, Any]) -> None:
        import llm_coop_envs.baselines.q_learning.learn.compiled  # noqa: F401  # raises without the compiler

        if "intervals" in options:
            raise SettingsError("intervals", options["intervals"], "is said by the condition's grid; leave it out")
        self._plan = SequentialSettings.from_json(options)

    def learn(self, settings: ScenarioSettings, seed: int, number: int) -> Row:
        """Learn run `number` of a seed.

        Returns:
            `learned_periods`; `learned_gain` (Delta of the last periods' profits, exploration included);
            `learned_regret` (how much more a best reply would earn, as a share, mean over firms); whether both firms
            reply best (`learned_equilibrium`), and whether play ends in an Edgeworth cycle (`learned_edgeworth`).

        Raises:
            SettingsError: firms do not move in turn, or not on a grid, or they are not two equal ones.
        """
        if not isinstance(settings, BertrandSettings) or settings.moves != IN_TURN or settings.prices != "grid":
            raise SettingsError("policy", f"q_learning:{IN_TURN}", "needs moves='alternating' and prices='grid'")
        delta = self._plan.delta
        game = Game.tabulate(settings.market, settings.equilibria, settings.grids, 1, (delta,) * settings.firms)
        table = game.profits.reshape(*[game.points] * game.firms, game.firms)
        if game.firms != 2 or not np.array_equal(table[..., 0], table[..., 1].T):
            raise SettingsError("firms", settings.firms, "must be two with the same costs, goods and prices")
        self._game, self._learned = game, run_sequential(self._plan, seed, number, game)
        self._replies = self._learned.q.argmax(axis=2)
        return {
            "learned_periods": self._plan.periods,
            "learned_gain": float(profit_gain(self._learned.profits, game.equilibria)),
            "learned_regret": float(1.0 / self._learned.optimality.mean() - 1.0),
            "learned_equilibrium": self._learned.equilibrium,
            "learned_edgeworth": self._learned.edgeworth,
        }

    def get_state(self) -> dict[str, Any]:
        """Return an empty state: nothing is learned during the episode."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Do nothing: there is no state."""

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: nothing was learned, or the rival's price is not observed.
        """
        if not hasattr(self, "_replies"):
            raise SettingsError("policy", f"q_learning:{IN_TURN}", "learns in studies only, before each episode")
        settings: Any = episode.settings
        if "own" in settings.reach("information"):
            raise SettingsError("information", "own", "it replies to the rival's last price; set it to 'all'")
        check_shown(settings, 1, "it replies to the rival's last price")
        check_all_stay(settings)
        super().begin(episode)

    def decide(self, request: Request) -> Action:
        """Reply to the rival's price; silent in talk."""
        slots: BertrandSlots = request.info["slots"]
        if (aside := stand_aside(slots)) is not None:
            return aside
        rival = slots.history[-1].rival_prices[0] if slots.history else slots.prior[1]
        me = self.episode.agents.index(slots.me)
        return {"choice": int(self._replies[me, nearest(self._game.prices[me].tolist(), rival)])}

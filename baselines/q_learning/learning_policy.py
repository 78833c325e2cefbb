"""The policy that learns a Q table before each episode of a study, and then plays it or goes on learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.tables import QTable
from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.table_policy import RATES, QTablePolicy, check_learns, check_rates
from llm_coop_envs.baselines.stored import check_options
from llm_coop_envs.bertrand.price_measures import WINDOW, together, window_reached
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError


class LearningPolicy(QTablePolicy):
    """Learns in the episode's market until it converges, and then plays as `QTablePolicy`.

    Args:
        options: fields of `QLearningSettings` except the market; `goes_on`: whether it goes on learning and exploring
            while it plays, with the rates at which it stopped, or with those of a mapping of `rate` and `exploration`
            (default: false); `window_round`: whether `learned_window_round` is measured (default: true). For the
            latter, learning is played a second time with a record of every period, which takes several times as long.

    Raises:
        SettingsError: an impossible option.
        MissingExtra: the compiler is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        import llm_coop_envs.baselines.q_learning.learn.compiled  # noqa: F401  # raises without the compiler

        if "market" in options:
            raise SettingsError("market", options["market"], "is the one that the condition plays; leave it out")
        self._options = dict(options)
        self._goes_on = self._options.pop("goes_on", False)
        self._window_round = self._options.pop("window_round", True)
        plan = QLearningSettings.from_json(self._options)
        if isinstance(self._goes_on, Mapping):
            check_options(self._goes_on, RATES)
            check_rates(plan, **self._goes_on)
        elif not isinstance(self._goes_on, bool):
            raise SettingsError("goes_on", self._goes_on, "must be true, false, or a mapping of rate and exploration")
        elif self._goes_on:
            check_learns(plan, "goes_on", True)
        if not isinstance(self._window_round, bool):
            raise SettingsError("window_round", self._window_round, "must be true or false")

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: nothing was learned, because the policy does not play in a study.
        """
        if not hasattr(self, "table"):
            raise SettingsError("policy", "q_learning", "learns in studies; name a trained table: q_learning:calvano")
        super().begin(episode)

    @property
    def learns(self) -> bool:
        """Whether it goes on learning in play."""
        return self._goes_on is True or super().learns

    def rates(self, me: int, slots: BertrandSlots) -> tuple[float, float]:
        """The rates that it was given, or those at which it stopped learning."""
        if self._goes_on is not True:
            return super().rates(me, slots)
        plan, period = self.table.settings, self.table.periods + slots.round - 1
        return plan.spread("alpha")[me], float(np.exp(-plan.spread("beta")[me] * period))

    def learn(self, settings: ScenarioSettings, seed: int, number: int) -> Row:
        """Learn session `number` of a seed, the same session as in a run of sessions.

        Returns:
            `learned_periods` (the window of convergence included); `learned_lasting_from`, the period in which
            strategies stopped changing if prices are held together in their limit cycle, `None` if they are not or
            strategies changed until `max_periods`; and `learned_window_round`, the period that completes the first 200
            in a row with prices held together, exploration included; `None` if there is none or it is not measured.

        Raises:
            SettingsError: Q-learners cannot learn in this market.
        """
        if not isinstance(settings, BertrandSettings):
            raise SettingsError("policy", "q_learning", "plays price competition only")
        plan = QLearningSettings.from_json({**self._options, "market": settings})
        game = plan.game()
        session = run_session(plan, seed, number, game=game)
        rates = self._goes_on if isinstance(self._goes_on, Mapping) else {}
        super().__init__(QTable.from_session(plan, seed, session), **rates)
        prices = game.price_of(game.choices(np.arange(game.actions)))
        is_held = together(prices, game.equilibria, settings.band)
        window_round = None
        if self._window_round:
            # The fast loop keeps no record; the general one plays the same periods again.
            again = run_session(plan, seed, number, game=game, trace=session.periods, loop="general")
            window_round = window_reached(is_held[game.action(again.trace)], WINDOW)
        last = together(self.table.cycle.prices, game.equilibria, settings.band).all()
        return {
            "learned_periods": session.periods,
            "learned_lasting_from": session.periods - plan.window if session.converged and last else None,
            "learned_window_round": window_round,
        }

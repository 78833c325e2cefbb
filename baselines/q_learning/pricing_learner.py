"""Base class of custom learners in price competition, which learn before each episode and then play.

    class Mine(PricingLearner):
        def prepare(self, game): ...
        def choose(self, firm, state, period, rng): ...
        def update(self, firm, state, price, profit, after, rng): ...
        def mix(self, firm): ...

`module:Mine` then plays in studies, and beside Q-learning in `collusion_comparison`. `examples/learners` has four. A
learner with its own loop (compiled, perhaps) overrides `train`.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.mixed import MixedPlay
from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints
from llm_coop_envs.baselines.q_learning.table_policy import check_all_stay, past_period, state_of
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.bertrand.price_measures import WINDOW, together, window_reached
from llm_coop_envs.bertrand.scenario import SCENARIO
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.base_policy import Action, ScriptedPolicy, stand_aside
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError

#: What a learner holds that no further learning changes.
_FIXED = frozenset({"episode", "_game", "_trained", "_learned"})


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of learning.

    Attributes:
        mixes: (firms, states, m) the probabilities with which each firm asks its prices in each state; states are
            numbered as in `Game`.
        last_state: the state in which play continues.
        trace: (periods, firms) the price indices asked while learning; (0, firms) if they were not recorded.
    """

    mixes: Floats
    last_state: int
    trace: Ints


class PricingLearner(ScriptedPolicy):
    """One learner per firm; they price against each other for `periods` periods, and then play.

    Attributes:
        memory: number of past rounds in a state.
        delta: the discount factor by which learned play is evaluated.
        periods: number of learning periods.
        goes_on: whether it goes on learning while it plays, by `choose` and `update`, in each episode from what it had
            learned before on; otherwise it plays the mix that it learned.
    """

    memory: int = 1
    delta: float = 0.95
    periods: int = 100_000
    goes_on: bool = False

    @abstractmethod
    def prepare(self, game: Game) -> None:
        """Start learning a game from scratch."""

    @abstractmethod
    def choose(self, firm: int, state: int, period: int, rng: np.random.Generator) -> int:
        """Choose the index of the price that a firm asks in a period (from 0) of learning."""

    @abstractmethod
    def update(self, firm: int, state: int, price: int, profit: float, after: int, rng: np.random.Generator) -> None:
        """Learn from a period: the price asked in `state`, the profit, and the state `after` it."""

    @abstractmethod
    def mix(self, firm: int) -> Floats:
        """(states, m) the probabilities with which a firm asks its prices; one 1 per row for a pure strategy."""

    def train(self, game: Game, rng: np.random.Generator) -> Trained:
        """Learn; by default period by period, with `choose` and `update`."""
        self.prepare(game)
        state = int(rng.integers(game.states))
        firms = range(game.firms)
        trace = np.empty((self.periods, game.firms), dtype=np.int64)
        # The same as `Game.action` and `Game.next_state`, in plain numbers, because arrays would cost more.
        older, weights = game.states // game.actions, [game.points ** (game.firms - 1 - i) for i in firms]
        profits = game.profits.tolist()
        for period in range(self.periods):
            prices = [self.choose(i, state, period, rng) for i in firms]
            action = sum(price * weight for price, weight in zip(prices, weights, strict=True))
            next_state = action * older + state // game.actions if game.memory else 0
            for i in firms:
                self.update(i, state, prices[i], profits[action][i], next_state, rng)
            trace[period], state = prices, next_state
        return Trained(np.array([self.mix(i) for i in firms]), state, trace)

    def learn(self, settings: ScenarioSettings, seed: int, number: int) -> Row:
        """Learn for episode `number` of a study's seed.

        Returns:
            `learned_periods`; `learned_window_round`, the period that completes the first 200 in a row with prices
            held together; and expectations over the learned mixes: `learned_gain` (Delta of expected profits),
            `learned_price`, `learned_answer` (the rivals' price change after a deviation to the static best reply),
            `learned_unprofitable` (the share of firms for which it does not pay), `learned_regret` (how much more a
            best reply would earn, as a share, mean over firms).

        Raises:
            SettingsError: the settings are no market with a grid of prices.
        """
        if not isinstance(settings, BertrandSettings):
            raise SettingsError("policy", type(self).__name__, f"plays {SCENARIO.name} only")
        if settings.prices != "grid":
            raise SettingsError("prices", settings.prices, "learners need a grid of prices; set prices='grid'")
        check_all_stay(settings)
        delta = (self.delta,) * settings.firms
        self._game = game = Game.tabulate(settings.market, settings.equilibria, settings.grids, self.memory, delta)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        self._trained = trained = self.train(game, rng)
        self._learned = self.get_state()
        if trained.mixes.shape != (game.firms, game.states, game.points) or not np.allclose(
            trained.mixes.sum(axis=2), 1.0
        ):
            reason = f"must give probabilities of {game.points} prices in {game.states} states for {game.firms} firms"
            raise SettingsError("mixes", trained.mixes.shape, reason)
        play = MixedPlay.follow(game, trained.mixes, trained.last_state)
        row: Row = {
            "learned_periods": self.periods,
            "learned_lasting_from": None,
            "learned_window_round": None,
            "learned_gain": play.gain,
            "learned_price": float(play.prices.mean()),
            "learned_regret": float(np.mean([play.regret(i) for i in range(game.firms)])),
        }
        if len(trained.trace):
            prices = game.price_of(trained.trace)
            row["learned_window_round"] = window_reached(together(prices, game.equilibria, settings.band), WINDOW)
        if game.firms > 1:
            answers = summarise([[play.response(i) for i in range(game.firms)]])
            row |= {"learned_answer": answers.change, "learned_unprofitable": answers.unprofitable}
        return row

    def get_state(self) -> dict[str, Any]:
        """Return what it knows, where it goes on learning; nothing otherwise."""
        if not self.goes_on:
            return {}
        return {name: copy.deepcopy(value) for name, value in vars(self).items() if name not in _FIXED}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what it knew then."""
        vars(self).update(copy.deepcopy(dict(state)))

    def begin(self, episode: Episode) -> None:
        """Start an episode, with what was learned before it.

        Raises:
            SettingsError: nothing was learned.
        """
        if not hasattr(self, "_trained"):
            raise SettingsError("policy", type(self).__name__, "learns in studies only, before each episode")
        super().begin(episode)
        self.set_state(self._learned)
        self._asked: dict[int, int] = {}

    def decide(self, request: Request) -> Action:
        """Draw a price from the mix of the firm's state, or learn from the last round and choose; silent in talk."""
        slots: BertrandSlots = request.info["slots"]
        if (aside := stand_aside(slots)) is not None:
            return aside
        me = self.episode.agents.index(slots.me)
        state = state_of(self._game, slots, me, self._trained.last_state)
        rng = self.episode.rng
        if not self.goes_on:
            return {"choice": int(rng.choice(self._game.points, p=self._trained.mixes[me, state]))}
        if (past := past_period(self._game, slots, me, self._asked)) is not None:
            earlier, price, profit = past
            self.update(me, earlier, price, profit, state, rng)
        self._asked[me] = state
        return {"choice": int(self.choose(me, state, self.periods + slots.round - 1, rng))}

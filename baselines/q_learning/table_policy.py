"""The policy that plays a trained Q table in price competition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.tables import QTable
from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.rules import nearest
from llm_coop_envs.bertrand.scenario import SCENARIO
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.base_policy import Action, ScriptedPolicy, stand_aside
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError

#: The options that say how what was learned is learned further in play.
RATES = ("rate", "exploration")
SAME = 1e-3
"""Tolerance for the Nash and joint-profit prices of the market a table plays in, compared with the market it was
learned in, as a share of the distance between the two prices."""


class QTablePolicy(ScriptedPolicy):
    """Plays a Q table greedily, each seat the strategy of the firm with the same number.

    With a learning rate above 0 it goes on learning in play, from the table on in each episode: before it asks a price,
    it learns from the last round, and sometimes it explores.

    It is silent in talk and does not listen. On a grid, the grid must be the table's. Where prices are continuous, it
    asks prices of its own grid and rounds each observed price to that grid. In the first rounds, missing past rounds
    are filled with the earliest known one; if none is known, play begins in the state in which learning ended.

    Args:
        table: what was learned before.
        rate: the learning rate in play, 0 for none.
        exploration: the chance of a price drawn at random, where it learns.

    Raises:
        SettingsError: a number is no share, or the table cannot be learned further.
    """

    def __init__(self, table: QTable, *, rate: float = 0.0, exploration: float = 0.0) -> None:
        self.table = table
        self._game = table.game
        check_rates(table.settings, rate=rate, exploration=exploration)
        self._rate, self._exploration = float(rate), float(exploration)

    @property
    def learns(self) -> bool:
        """Whether it goes on learning in play."""
        return self._rate > 0

    def rates(self, me: int, slots: BertrandSlots) -> tuple[float, float]:
        """The learning rate and the chance of a random price of a firm in a round."""
        return self._rate, self._exploration

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
        self._q, self._asked = self.table.q.copy() if self.learns else None, {}

    _q: Floats | None
    _asked: dict[int, int]

    def get_state(self) -> dict[str, Any]:
        """What was learned during the episode; nothing where decisions depend on observations only."""
        return {} if self._q is None else {"q": self._q.copy(), "asked": dict(self._asked)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what was learned during the episode."""
        if state:
            self._q, self._asked = state["q"].copy(), dict(state["asked"])

    def decide(self, request: Request) -> Action:
        """Ask the greedy price of the firm's state. Where it learns, first learn, and sometimes explore."""
        slots: BertrandSlots = request.info["slots"]
        if (aside := stand_aside(slots)) is not None:
            return aside
        me = self.episode.agents.index(slots.me)
        state = self.state(slots, me)
        index = int(self.table.strategies[me, state]) if self._q is None else self._learn(self._q[me], me, slots, state)
        return {"choice": index if self._grid else float(self._game.prices[me, index])}

    def _learn(self, q: Floats, me: int, slots: BertrandSlots, state: int) -> int:
        """Learn from the last round, and return the price to ask in a state."""
        rate, exploration = self.rates(me, slots)
        if (past := past_period(self._game, slots, me, self._asked)) is not None:
            earlier, price, profit = past
            target = profit + self.table.settings.spread("delta")[me] * q[state].max()
            q[earlier, price] += rate * (target - q[earlier, price])
        self._asked[me] = state
        if self.episode.rng.random() < exploration:
            return int(self.episode.rng.integers(q.shape[1]))
        return int(q[state].argmax())

    def state(self, slots: BertrandSlots, me: int) -> int:
        """The firm's state, from the rounds it observes."""
        return state_of(self._game, slots, me, self.table.last_state)


def check_rates(settings: QLearningSettings, *, rate: Any = 0.0, exploration: Any = 0.0) -> None:
    """Check the rates at which what was learned with these settings is learned further in play.

    Raises:
        SettingsError: a number is no share, or what was learned cannot be learned further.
    """
    for name, value in zip(RATES, (rate, exploration), strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise SettingsError(name, value, "must be a share, from 0 to 1")
    if exploration and not rate:
        raise SettingsError("exploration", exploration, "means nothing without a rate; give both, or leave it out")
    if rate:
        check_learns(settings, "rate", rate)


def check_learns(settings: QLearningSettings, option: str, value: object) -> None:
    """Check that what was learned can be learned further, one state at a time.

    Raises:
        SettingsError: it was learned in another way; the error names the option that asks for it.
    """
    if settings.exploration != "epsilon" or settings.updates != "asynchronous" or not settings.memory:
        raise SettingsError(option, value, "is there for epsilon-greedy, asynchronous learners with a memory")


def past_period(game: Game, slots: BertrandSlots, me: int, asked: Mapping[int, int]) -> tuple[int, int, float] | None:
    """The state in which firm `me` asked its last price, the price's number, and the profit; `None` before the first.

    The price is the one that counted in the market, which may differ from the one that the firm asked.
    """
    if me not in asked or not slots.history:
        return None
    last = slots.history[-1]
    return asked[me], nearest(game.prices[me].tolist(), last.price), last.profit


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
    """Check that no firm leaves the market, and that all sell in one.

    Raises:
        SettingsError: a firm leaves, or they sell in groups.
    """
    if settings.group_size:
        raise SettingsError("group_size", settings.group_size, "what was learned goes by the prices of all firms")
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

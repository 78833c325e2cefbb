"""Tabular Q-learning of the evacuation: all people learn from and into one shared table.

A decision is followed to the same person's next decision of its kind. Its value moves towards the rewards in between
plus the value of the best next choice, and towards the rewards alone if the person got out. The reward is the
environment's own, by default -1 for each round that a person begins inside, so that the value of a choice is minus the
number of rounds still to be spent inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.tabular.learner import FIRST_CURVE_SEED, TablePlayer, TabularLearner
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import RunError
from llm_coop_envs.evacuation.env import EXIT, EvacuationEnv
from llm_coop_envs.evacuation.faces.tiles import EvacuationTiles, Indices, Rows, TileTable
from llm_coop_envs.evacuation.scripted import NearestExit
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.interface.hooks import Event
from llm_coop_envs.policies import play
from llm_coop_envs.storage.arrays import Arrays

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class EvacuationLearning(TabularSettings):
    """Settings of learners of the evacuation, who share one table.

    Attributes:
        explore_exit, explore_exit_end: share of random choices of an exit, in the first and in the last episode.
        explore_move, explore_move_end: the same for moves.
    """

    scenario: ClassVar[str] = "evacuation"
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = dict.fromkeys(
        ("explore_exit", "explore_exit_end", "explore_move", "explore_move_end"), (0, 1)
    )

    preset: str = "no_talk"
    episodes: int = 600
    step_size_end: float = 0.005
    discount: float = 1.0
    curve_every: int = 30
    curve_seeds: int = 10
    explore_exit: float = 0.2
    explore_exit_end: float = 0.02
    explore_move: float = 0.1
    explore_move_end: float = 0.0

    def __post_init__(self) -> None:
        """Check every field, and that the room is possible."""
        super().__post_init__()
        EvacuationSettings.build(**self.environment_arguments())


class EvacuationTables:
    """The tables for exits and moves of one room, and the best choices they know."""

    def __init__(self, settings: EvacuationSettings) -> None:
        self.tiles = EvacuationTiles(settings)
        self.exits = TileTable(self.tiles.exit_size)
        self.moves = TileTable(self.tiles.move_size)

    def arrays(self) -> Arrays:
        """The learned weights."""
        return {"exits": self.exits.weights, "moves": self.moves.weights}

    def load(self, arrays: Arrays) -> None:
        """Take over learned weights.

        Raises:
            RunError: they were learned in a room with other exits.
        """
        for name, table in (("exits", self.exits), ("moves", self.moves)):
            if name not in arrays or arrays[name].shape != table.weights.shape:
                raise RunError(
                    "the table was learned in a room with other exits; use a room with as many exits and exit cells, "
                    "or train a table there"
                )
            table.weights = arrays[name].astype(np.float64)

    def exit_values(self, rows: Rows) -> tuple[Indices, Values]:
        """Entries (n, exits, tilings) and values (n, exits) of all exits for rows of features (n, features)."""
        entries = self.tiles.exit_entries(rows)
        return entries, self.exits.values(entries)

    def move_values(self, rows: Rows, legal: NDArray[np.int8]) -> tuple[Indices, Values]:
        """Entries (n, 9, tilings) and values (n, 9) of all moves; -inf where `legal` (n, 9) is 0."""
        entries = self.tiles.move_entries(rows)
        return entries, np.where(legal > 0, self.moves.values(entries), -np.inf)


class EvacuationTablePlayer(TablePlayer):
    """Heads for the best known exit and makes the best known moves."""

    scenario = "evacuation"

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            RunError: the table was learned in a room with other exits.
            SettingsError: another scenario is played.
        """
        super().begin(episode)
        self._tables = EvacuationTables(cast(EvacuationSettings, episode.settings))
        self._tables.load(self.arrays)

    async def act(self, requests: Sequence[Request]) -> list[Action]:
        """Answer all requests, which are of the same phase."""
        question = requests[0].info["slots"].asked
        if question == "talk":
            return [{"message": ""} for _ in requests]
        rows = np.stack([request.observation["observation"] for request in requests])
        if question == "exit":
            choices = self._tables.exit_values(rows)[1].argmax(axis=1)
        else:
            exits = self._tables.tiles.exits
            legal = np.stack([request.info["action_mask"]["choice"] for request in requests])[:, exits:]
            choices = exits + self._tables.move_values(rows, legal)[1].argmax(axis=1)
        return [{"choice": choice} for choice in choices.tolist()]


@dataclass
class _Decisions:
    """One kind of decision while an episode is learned from.

    Attributes:
        table: the weights that decide.
        last_entries: (people, tilings) the entries of each person's last choice; -1 before the first one.
        rewards: (people,) the sum of each person's rewards since then.
        entries, errors: what is to be learned at the end of the round.
    """

    table: TileTable
    last_entries: Indices
    rewards: Values
    entries: list[Indices] = field(default_factory=list)
    errors: list[Values] = field(default_factory=list)

    def evaluate(self, people: Indices, next_values: Values | float) -> None:
        """Note how far the last choices of some people were from what followed.

        Args:
            people: (n,) who comes to the next decision, or is done.
            next_values: (n,) the discounted values of their next decisions; 0 for people who are done.
        """
        has_chosen = self.last_entries[people, 0] >= 0
        choosers = people[has_chosen]
        if len(choosers):
            entries = self.last_entries[choosers]
            targets = self.rewards[choosers] + np.broadcast_to(next_values, people.shape)[has_chosen]
            self.entries.append(entries)
            self.errors.append(targets - self.table.values(entries))

    def choose(self, people: Indices, entries: Indices) -> None:
        """Remember the entries (n, tilings) of choices just made."""
        self.last_entries[people] = entries
        self.rewards[people] = 0.0

    def learn(self, step_size: float) -> None:
        """Move the table by all noted errors."""
        if self.entries:
            self.table.learn(np.concatenate(self.entries), np.concatenate(self.errors), step_size)
            self.entries.clear()
            self.errors.clear()


class EvacuationLearner(TabularLearner):
    """Learns the weights of `tables`."""

    settings_type = EvacuationLearning
    player = EvacuationTablePlayer
    curve_measure = "mean_round", "mean round in which people were out"
    title = "Evacuation, {}: Q-learners with a shared table"

    def __init__(self, learning: EvacuationLearning, seed: int) -> None:
        super().__init__(learning, seed)
        self._env = EvacuationEnv(**learning.environment_arguments())
        self._recorded_env = EvacuationEnv(**learning.environment_arguments(), record=True)
        self.tables = EvacuationTables(self._env.settings)

    def arrays(self) -> Arrays:
        """The learned weights."""
        return self.tables.arrays()

    def load(self, arrays: Arrays) -> None:
        """Continue from learned weights."""
        self.tables.load(arrays)

    def train(self, episode: int) -> float:
        """Play one episode and learn from it. Returns the mean sum of rewards."""
        env, learning = self._env, self.learning
        seed, rng = self.draws(episode)
        env.begin(seed=seed)
        rates = learning.rates(episode)
        tiles = self.tables.tiles
        exits = self._begin_decisions(self.tables.exits, tiles.exit_tilings)
        moves = self._begin_decisions(self.tables.moves, tiles.move_tilings)
        total = np.zeros(env.n_players)
        round_ = env.round
        while not env.over:
            if env.round != round_:
                round_ = env.round
                exits.learn(rates["step_size"])
                moves.learn(rates["step_size"])
            choices = np.zeros(env.n_players, dtype=np.int64)
            if env.phase == EXIT:
                choices[env.on_turn] = self._decide_exits(exits, rates["explore_exit"], rng)
            elif env.phase != TALK:
                choices[env.on_turn] = tiles.exits + self._decide_moves(moves, rates["explore_move"], rng)
            was_inside = env.alive
            env.advance(choices)
            rewards = env.rewards
            total += rewards
            exits.rewards += rewards
            moves.rewards += rewards
            done = np.flatnonzero(was_inside & (~env.alive | env.over))
            exits.evaluate(done, 0.0)
            moves.evaluate(done, 0.0)
        exits.learn(rates["step_size"])
        moves.learn(rates["step_size"])
        return float(total.mean())

    def greedy(self, seed: int) -> dict[str, float]:
        """Play an episode without exploration and measure it: `mean_round`."""
        return {"mean_round": greedy_episode(self._recorded_env, self.tables, seed)}

    def reference(self) -> tuple[str, float]:
        """The mean round of the scripted nearest-exit rule, on the seeds of the learning curve."""
        env, rule, mean_rounds = self._recorded_env, NearestExit(), []
        for k in range(self.learning.curve_seeds):
            play(env, rule, seed=FIRST_CURVE_SEED + k)
            mean_rounds.append(mean_round(env.events))
        return "scripted nearest_exit", float(np.mean(mean_rounds))

    def _begin_decisions(self, table: TileTable, tilings: int) -> _Decisions:
        people = self._env.n_players
        return _Decisions(table, np.full((people, tilings), -1, dtype=np.int64), np.zeros(people))

    def _decide_exits(self, decisions: _Decisions, explore: float, rng: np.random.Generator) -> Indices:
        """Exits (n,) of the people on turn, some of them random; notes what their last choices led to."""
        people = self._env.on_turn
        entries, values = self.tables.exit_values(self._env.features()[people])
        decisions.evaluate(people, self.learning.discount * values.max(axis=1))
        choices: Indices = values.argmax(axis=1)
        is_random = rng.random(len(people)) < explore
        choices[is_random] = rng.integers(self.tables.tiles.exits, size=int(is_random.sum()))
        decisions.choose(people, entries[np.arange(len(people)), choices])
        return choices

    def _decide_moves(self, decisions: _Decisions, explore: float, rng: np.random.Generator) -> Indices:
        """Moves (n,) of the people on turn, some of them random; notes what their last choices led to."""
        people = self._env.on_turn
        legal = _legal_moves(self._env, self.tables.tiles.exits)
        entries, values = self.tables.move_values(self._env.features()[people], legal)
        decisions.evaluate(people, self.learning.discount * values.max(axis=1))
        choices: Indices = values.argmax(axis=1)
        is_random = rng.random(len(people)) < explore
        # The largest of as many draws as there are legal moves.
        draws = rng.random((int(is_random.sum()), legal.shape[1]))
        choices[is_random] = np.where(legal[is_random] > 0, draws, -1.0).argmax(axis=1)
        decisions.choose(people, entries[np.arange(len(people)), choices])
        return choices


def greedy_episode(env: EvacuationEnv, tables: EvacuationTables, seed: int) -> float:
    """Play an episode without exploration in an environment made with `record=True`. Returns its `mean_round`."""
    env.begin(seed=seed)
    exits = tables.tiles.exits
    while not env.over:
        choices = np.zeros(env.n_players, dtype=np.int64)
        people = env.on_turn
        if env.phase == EXIT:
            choices[people] = tables.exit_values(env.features()[people])[1].argmax(axis=1)
        elif env.phase != TALK:
            values = tables.move_values(env.features()[people], _legal_moves(env, exits))[1]
            choices[people] = exits + values.argmax(axis=1)
        env.advance(choices)
    return mean_round(env.events)


def mean_round(events: Sequence[Event]) -> float:
    """The mean round in which people were out. People who never got out count as one round after the last."""
    start = events[0]
    limit = start["settings"]["rounds"]
    out = np.full(len(start["agents"]), limit + 1.0)
    for event in events:
        if event["type"] == "round":
            for person, _ in event["escaped"]:
                # Whoever is taken off the floor after the last round left in it, as the measures count.
                out[person] = min(event["round"], limit)
    return float(out.mean())


def _legal_moves(env: EvacuationEnv, exits: int) -> NDArray[np.int8]:
    """(n, 9) which moves of the people on turn are legal."""
    legal = env.masks()
    if legal is None:
        raise RuntimeError("the evacuation has masks in every phase of choices")
    return legal[env.on_turn, exits:]

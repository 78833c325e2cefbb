"""Q-learning in the evacuation: everybody learns by itself, from and into one shared table.

A decision is followed to the same person's next decision of its kind: its value moves towards the rewards in between
plus the value of the best choice then, and towards the rewards alone if the person got out. The reward is the
environment's own, by default -1 for each round a person begins inside, so that the value of a choice is minus the
rounds still to be spent inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs import evacuation_v0
from llm_coop_envs.baselines.tabular.evacuation_tiles import EvacuationTiles, Indices, Rows, TileTable
from llm_coop_envs.baselines.tabular.learner import FIRST_CURVE_SEED, TabularLearner
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.evacuation.env import EXIT, EvacuationEnv
from llm_coop_envs.evacuation.room import MOVES
from llm_coop_envs.evacuation.scripted import NearestExit
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.interface.hooks import Event
from llm_coop_envs.policies import play
from llm_coop_envs.storage.arrays import Arrays


@dataclass(frozen=True, kw_only=True)
class EvacuationLearning(TabularSettings):
    """Learners of the evacuation: everybody adds to and decides from the same table.

    Attributes:
        explore_exit, explore_exit_end: share of choices of an exit that are random, in the first and last episode.
        explore_move, explore_move_end: the same of moves.
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
        """Check every field."""
        super().__post_init__()
        # An impossible room is refused here, before anything starts.
        EvacuationSettings.build(**self.given())


class EvacuationTables:
    """The tables for exits and moves of an evacuation, and the best choices they know."""

    def __init__(self, settings: EvacuationSettings) -> None:
        self.tiles = EvacuationTiles(settings)
        self.exits = TileTable(self.tiles.exit_size)
        self.moves = TileTable(self.tiles.move_size)

    def arrays(self) -> Arrays:
        """What has been learned."""
        return {"exits": self.exits.weights, "moves": self.moves.weights}

    def load(self, arrays: Arrays) -> None:
        """Take over what has been learned.

        Raises:
            RunError: it was learned in a room with other exits.
        """
        for name, table in (("exits", self.exits), ("moves", self.moves)):
            if name not in arrays or arrays[name].shape != table.weights.shape:
                raise RunError(
                    "the table was learned in a room with other exits; use a room with as many exits and exit cells, "
                    "or train a table there"
                )
            table.weights = arrays[name].astype(np.float64)

    def best_exits(self, rows: Rows) -> NDArray[np.int64]:
        """The best exit for each row of features."""
        return _best(self.exits.values(self.tiles.of_exits(rows)))

    def best_moves(self, rows: Rows, legal: NDArray[np.int8]) -> NDArray[np.int64]:
        """The best legal move for each row of features; `legal` is (n, 9)."""
        return _best(_allowed(self.moves.values(self.tiles.of_moves(rows)), legal))


@dataclass
class _Trace:
    """One kind of decision as it is being learned: what is pending per person, and what is to be learned."""

    table: TileTable
    last: Indices
    reward: NDArray[np.float64]
    entries: list[Indices] = field(default_factory=list)
    errors: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, who: NDArray[Any], following: NDArray[np.float64] | None) -> None:
        """Those who had decided before learn what it led to: the value of what follows, or `None` for the end."""
        had = self.last[who, 0] >= 0
        known = who[had]
        if len(known):
            worth = 0.0 if following is None else following[had]
            self.entries.append(self.last[known])
            self.errors.append(self.reward[known] + worth - self.table.values(self.last[known]))

    def decided(self, who: NDArray[Any], entries: Indices) -> None:
        """Remember the choices just made."""
        self.last[who] = entries
        self.reward[who] = 0.0

    def learn(self, step_size: float) -> None:
        """Move the table by all that was added."""
        if self.entries:
            self.table.learn(np.concatenate(self.entries), np.concatenate(self.errors), step_size)
            self.entries.clear()
            self.errors.clear()


class EvacuationLearner(TabularLearner):
    """Learns from episode to episode; see `TabularLearner`."""

    settings_type = EvacuationLearning
    shown = "mean_round", "mean round in which people were out"
    title = "Evacuation, {}: Q-learners with a shared table"

    def __init__(self, learning: EvacuationLearning, seed: int) -> None:
        super().__init__(learning, seed)
        self._env: EvacuationEnv = evacuation_v0.parallel_env(**learning.given())
        self._watched: EvacuationEnv = evacuation_v0.parallel_env(**learning.given(), record=True)
        self.tables = EvacuationTables(self._env.settings)

    def arrays(self) -> Arrays:
        """What has been learned."""
        return self.tables.arrays()

    def load(self, arrays: Arrays) -> None:
        """Continue from what was learned."""
        self.tables.load(arrays)

    def train(self, episode: int) -> float:
        """Play one episode and learn from it."""
        env, learning = self._env, self.learning
        seed, rng = self.draws(episode)
        env.begin(seed=seed)
        step_size = learning.falling("step_size", "step_size_end", episode)
        rate_exit = learning.falling("explore_exit", "explore_exit_end", episode)
        rate_move = learning.falling("explore_move", "explore_move_end", episode)
        exits, moves = self._trace(self.tables.exits), self._trace(self.tables.moves)
        total = np.zeros(env.n_players)
        round_ = env.round
        while not env.over:
            if env.round != round_:
                round_ = env.round
                exits.learn(step_size)
                moves.learn(step_size)
            choices = np.zeros(env.n_players, dtype=np.int64)
            if env.phase == EXIT:
                choices[env.on_turn] = self._learn_exits(exits, rate_exit, rng)
            elif env.phase != TALK:
                choices[env.on_turn] = self._learn_moves(moves, rate_move, rng)
            inside = env.alive
            env.advance(choices)
            rewards = env.rewards
            total += rewards
            exits.reward += rewards
            moves.reward += rewards
            out = np.flatnonzero(inside & (~env.alive | env.over))
            if len(out):
                exits.add(out, None)
                moves.add(out, None)
        exits.learn(step_size)
        moves.learn(step_size)
        return float(total.mean())

    def greedy(self, seed: int) -> dict[str, float]:
        """Play an episode with the best known choices; its measures."""
        return {"mean_round": greedy_episode(self._watched, self.tables, seed)}

    def reference(self) -> tuple[str, float]:
        """What the curve is to be seen beside: the nearest-exit rule on the same seeds."""
        rule, found = NearestExit(), []
        for k in range(self.learning.curve_seeds):
            play(self._watched, rule, seed=FIRST_CURVE_SEED + k)
            found.append(mean_round(self._watched.events))
        return "scripted nearest_exit", float(np.mean(found))

    @staticmethod
    def player(arrays: Arrays, name: str) -> Policy:
        """A policy that plays what was learned."""
        return EvacuationTablePlayer(arrays, name)

    def _trace(self, table: TileTable) -> _Trace:
        people = self._env.n_players
        tilings = self.tables.tiles.exit_tilings if table is self.tables.exits else self.tables.tiles.move_tilings
        return _Trace(table, np.full((people, tilings), -1, dtype=np.int64), np.zeros(people))

    def _learn_exits(self, trace: _Trace, rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
        env, who = self._env, self._env.on_turn
        entries = self.tables.tiles.of_exits(env.features()[who])
        values = trace.table.values(entries)
        choices = _best(values)
        trace.add(who, self.learning.discount * values.max(axis=1))
        random = rng.random(len(who)) < rate
        choices[random] = rng.integers(self.tables.tiles.exits, size=int(random.sum()))
        trace.decided(who, entries[np.arange(len(who)), choices])
        return choices

    def _learn_moves(self, trace: _Trace, rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
        env, who = self._env, self._env.on_turn
        exits = self.tables.tiles.exits
        entries = self.tables.tiles.of_moves(env.features()[who])
        legal = _legal_moves(env, exits)
        values = _allowed(trace.table.values(entries), legal)
        choices = _best(values)
        trace.add(who, self.learning.discount * values.max(axis=1))
        random = np.flatnonzero(rng.random(len(who)) < rate)
        if len(random):
            drawn = rng.random((len(random), len(MOVES)))
            choices[random] = np.where(legal[random] > 0, drawn, -1.0).argmax(axis=1)
        trace.decided(who, entries[np.arange(len(who)), choices])
        return exits + choices


def greedy_episode(env: EvacuationEnv, tables: EvacuationTables, seed: int) -> float:
    """Play an episode with the best known choices, in an environment made with `record=True`; as `mean_round`."""
    env.begin(seed=seed)
    exits = tables.tiles.exits
    while not env.over:
        choices = np.zeros(env.n_players, dtype=np.int64)
        who = env.on_turn
        if env.phase == EXIT:
            choices[who] = tables.best_exits(env.features()[who])
        elif env.phase != TALK:
            choices[who] = exits + tables.best_moves(env.features()[who], _legal_moves(env, exits))
        env.advance(choices)
    return mean_round(env.events)


def mean_round(events: Sequence[Event]) -> float:
    """The mean over all people of the round in which they were out; one after the last for those who never were."""
    start = events[0]
    out = np.full(len(start["agents"]), start["settings"]["rounds"] + 1.0)
    for event in events:
        if event["type"] == "round":
            for person, _ in event["escaped"]:
                out[person] = event["round"]
    return float(out.mean())


def _best(values: NDArray[np.float64]) -> NDArray[np.int64]:
    best: NDArray[np.int64] = values.argmax(axis=1)
    return best


def _legal_moves(env: EvacuationEnv, exits: int) -> NDArray[np.int8]:
    legal = env.masks()
    if legal is None:
        raise RuntimeError("the evacuation has masks in every phase of choices")
    return legal[env.on_turn, exits:]


def _allowed(values: NDArray[np.float64], legal: NDArray[np.int8]) -> NDArray[np.float64]:
    return np.where(legal > 0, values, -np.inf)


class EvacuationTablePlayer(Policy):
    """Heads for the best known exit and makes the best known moves."""

    waits = False

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._arrays = arrays
        self._name = name

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            RunError: the room has other exits than the one that was learned in.
            SettingsError: another scenario is played.
        """
        super().begin(episode)
        if not isinstance(episode.settings, EvacuationSettings):
            raise SettingsError("policy", f"tabular:{self._name}", f"plays evacuation, not {episode.scenario}")
        self._known = EvacuationTables(episode.settings)
        self._known.load(self._arrays)

    async def act(self, requests: Sequence[Request]) -> list[Action]:
        """Answer all requests, which are of the same phase."""
        asked = requests[0].info["slots"].asked
        if asked == "talk":
            return [{"message": ""} for _ in requests]
        rows = np.stack([request.observation["observation"] for request in requests])
        if asked == "exit":
            choices = self._known.best_exits(rows)
        else:
            exits = self._known.tiles.exits
            legal = np.stack([request.info["action_mask"]["choice"] for request in requests])[:, exits:]
            choices = exits + self._known.best_moves(rows, legal)
        return [{"choice": choice} for choice in choices.tolist()]

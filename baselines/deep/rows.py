"""Several copies of an environment as one batch of rows, for learners that share one network between all players.

Row `copy * players + player` is one player of one copy. Where the scenario can be stepped in batches, all copies are;
else the environments are played one by one through their array view, with the same results. Rows show the columns of
the numeric view (`wrappers.NumericView`). A batch of fixed size needs three more rules:

* An episode that ends is followed by the next one at once: a row then shows the first observation of the new episode,
  and `Step.last` holds the one the old episode ended with.
* A player who leaves while others go on ends its row's episode then. Until the copy's next episode the row is vacant:
  it shows zeros, earns nothing, may only choose 0, which is ignored, and is marked in `Step.vacant`. A vacant row
  ends once more with its copy's episode, so that nothing learned of the vacant time reaches into the next episode.
* Talk steps, in which nobody has anything to choose, are played silently in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.deep.choices import POINTS, Choices
from llm_coop_envs.baselines.learning import scenario_name
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import known_scenario
from llm_coop_envs.errors import MissingExtra, ResetNeeded, SettingsError
from llm_coop_envs.util.checks import require_int
from llm_coop_envs.util.draws import episode_seed
from llm_coop_envs.util.references import load
from llm_coop_envs.wrappers.batch import BatchEnv
from llm_coop_envs.wrappers.numeric import numeric_names, numeric_rows


@dataclass(frozen=True, slots=True)
class Step:
    """The results of one step, by row.

    Attributes:
        rewards: unscaled rewards.
        done: whether the row's episode ended.
        truncated: whether the episode was cut by a clock (a part of `done`).
        vacant: whether the row's player had left before this step.
        last: the last observations of the episodes that ended; zeros elsewhere.
        returns: the sum of the rewards of the episode so far, including this step.
        lengths: the number of steps of the episode in which the player was present.
    """

    rewards: NDArray[np.float64]
    done: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    vacant: NDArray[np.bool_]
    last: NDArray[np.float32]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]


def batch_of(game: ScenarioEnv, copies: int) -> BatchEnv | None:
    """Copies of a game that are stepped together; `None` where its scenario or its settings allow none."""
    scenario = known_scenario(scenario_name(game))
    if scenario is None or scenario.batch is None or type(game) is not scenario.env_class:
        return None
    make: Any = load(scenario.batch)
    try:
        batch: BatchEnv = make(game, copies)
    except (SettingsError, MissingExtra):
        return None
    return batch


class SharedRows:
    """The batch of rows; see the module.

    `make` is called once per copy that is played by itself. The e-th episode of copy k is played with
    `episode_seed(seed, k, e)`. With `points=None` rows choose numbers from -1 to 1 (`Choices`).

    Attributes:
        copies: how many environments there are.
        names: the columns of observations.
        observations: (rows, columns) the current observations.
        masks: (rows, choices) which choices are legal now.

    Raises:
        SettingsError: `copies` or `seed` is not possible, or the game has a regulator.
    """

    def __init__(self, make: Callable[[], ScenarioEnv], *, copies: int, seed: int, points: int | None = POINTS) -> None:
        require_int("copies", copies, 1)
        self._make, self.copies = make, copies
        first = make()
        if first.regulator is not None:
            raise SettingsError("regulator", "on", "all rows choose alike; train without a regulator")
        self.names = numeric_names(first)
        self.choices = Choices(first, points)
        self.players = first.n_players
        self.width = len(self.names)
        self.n_rows = copies * self.players
        low, high = (np.broadcast_to(bound, (len(first.feature_names),)) for bound in first.feature_bounds)
        flags = self.width - len(low)
        # Vacant rows show zeros, which must lie within the bounds too.
        self.low = np.minimum(np.concatenate([low, np.zeros(flags)]), 0).astype(np.float32)
        self.high = np.maximum(np.concatenate([high, np.ones(flags)]), 0).astype(np.float32)
        self.observations = np.zeros((self.n_rows, self.width), dtype=np.float32)
        self.masks = np.zeros((self.n_rows, self.choices.n), dtype=np.bool_)
        self._returns = np.zeros(self.n_rows)
        self._lengths = np.zeros(self.n_rows, dtype=np.int64)
        self._silence = np.zeros(self.players, dtype=np.int64)
        self._begun = False
        self.games = [first]
        self._batch = batch_of(first, copies)
        if self._batch is None:
            self._play_one_by_one()
        self.seed(seed)

    def _play_one_by_one(self) -> None:
        """Play the copies one by one from now on."""
        self._batch = None
        self.games += [self._make() for _ in range(self.copies - len(self.games))]

    def seed(self, seed: int) -> None:
        """Set the seed, and count episodes from 0 at the next `reset`.

        Raises:
            SettingsError: the seed is no integer, 0 or more.
        """
        # stable-baselines3 draws seeds with NumPy.
        self._seed = require_int("seed", int(seed) if isinstance(seed, np.integer) else seed, 0)
        self._episodes = [0] * self.copies
        self._is_seeded_anew = True

    def reset(self) -> NDArray[np.float32]:
        """Begin the next episode of every copy; returns the observations."""
        if self._batch is not None:
            self._batch.reset(self._seed if self._is_seeded_anew else None)
            self._returns[:] = self._lengths[:] = 0
            self._show_batch(self._batch)
        for copy in range(len(self.games) if self._batch is None else 0):
            self._begin(copy)
        self._begun, self._is_seeded_anew = True, False
        seen: NDArray[np.float32] = self.observations.copy()
        return seen

    def step(self, outputs: NDArray[Any]) -> Step:
        """Play one step of every copy.

        Args:
            outputs: one choice per row, numbered as a network's outputs. Those of vacant rows and of players off turn
                are ignored; the environment replaces illegal ones.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._begun:
            raise ResetNeeded("the rows were not begun; call reset() first")
        chosen = np.asarray(outputs).reshape(self.copies, self.players)
        if self._batch is not None:
            return self._step_batch(self._batch, self.choices.values(chosen))
        rewards = np.zeros(self.n_rows)
        done = np.zeros(self.n_rows, dtype=np.bool_)
        truncated = np.zeros(self.n_rows, dtype=np.bool_)
        vacant = np.zeros(self.n_rows, dtype=np.bool_)
        last = np.zeros((self.n_rows, self.width), dtype=np.float32)
        # Finished copies begin anew below, so the results of their episode are taken first.
        returns, lengths = self._returns, self._lengths
        for copy, game in enumerate(self.games):
            rows = self._rows(copy)
            present = game.alive
            outputs = self.choices.values(chosen[copy], game.phase)
            playing = present
            while True:
                game.advance(outputs)
                rewards[rows] += game.rewards
                still = game.alive
                ended = playing & (~still | game.over)
                if ended.any():
                    last[rows][ended] = numeric_rows(game)[ended]
                    done[rows] |= ended
                playing = still
                if game.over or game.phase != TALK:
                    break
                # Talk steps have no choices, so they are played silently.
                outputs = self._silence
            vacant[rows] = ~present
            returns[rows] += rewards[rows]
            lengths[rows] += present
            if game.over:
                done[rows] = True
                truncated[rows] = game.alive & game.truncated
            else:
                self._show(copy)
        step = Step(rewards, done, truncated, vacant, last, returns.copy(), lengths.copy())
        for copy, game in enumerate(self.games):
            if game.over:
                self._begin(copy)
        return step

    def get_state(self) -> dict[str, Any]:
        """Everything needed to continue from here, as JSON data.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._begun:
            raise ResetNeeded("the rows were not begun; call reset() first")
        return {
            "seed": self._seed,
            "episodes": list(self._episodes),
            "returns": self._returns.tolist(),
            "lengths": self._lengths.tolist(),
            "copies": self.copies,
            **(
                {"games": [game.get_state() for game in self.games]}
                if self._batch is None
                else {"batch": self._batch.get_state()}
            ),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of `get_state`.

        Raises:
            SnapshotError: the state belongs to another environment.
            SettingsError: the state has another number of copies.
        """
        copies = state["copies"] if "batch" in state else len(state["games"])
        if copies != self.copies:
            raise SettingsError("copies", self.copies, f"the saved state has {copies} copies")
        if self._batch is not None and "batch" in state:
            self._batch.set_state(state["batch"])
            self._show_batch(self._batch)
        else:
            # It was saved by a version that did not step this scenario in batches.
            self._play_one_by_one()
            for game, saved in zip(self.games, state["games"], strict=True):
                game.set_state(saved)
        self._seed = state["seed"]
        self._episodes = list(state["episodes"])
        self._returns = np.array(state["returns"])
        self._lengths = np.array(state["lengths"], dtype=np.int64)
        self._begun, self._is_seeded_anew = True, False
        for copy in range(len(self.games) if self._batch is None else 0):
            self._show(copy)

    # Copies that are stepped together.

    def _step_batch(self, batch: BatchEnv, choices: NDArray[Any]) -> Step:
        present = batch.present.reshape(-1)
        _, rewards, terminations, truncations, infos = batch.step(choices)
        ended = infos.get("ended", np.zeros(0, dtype=np.intp))
        done = terminations | truncations
        last = np.where(done[:, :, None], batch.observations, np.float32(0))
        if len(ended):
            last[ended] = infos["final_observations"]
            done[ended] = True
        self._returns += rewards.reshape(-1)
        self._lengths += present
        returns, lengths = self._returns.copy(), self._lengths.copy()
        for totals in (self._returns, self._lengths):
            totals.reshape(done.shape)[ended] = 0
        self._show_batch(batch)
        return Step(
            rewards.reshape(-1),
            done.reshape(-1),
            truncations.reshape(-1),
            ~present,
            last.reshape(self.n_rows, -1),
            returns,
            lengths,
        )

    def _show_batch(self, batch: BatchEnv) -> None:
        present = batch.present
        seen = batch.observations if present.all() else np.where(present[:, :, None], batch.observations, np.float32(0))
        self.observations = seen.reshape(self.n_rows, -1)
        masks, turn = batch.masks(), batch.turn.reshape(-1).astype(np.bool_)
        if masks is None:
            self.masks = np.repeat(turn[:, None], self.choices.n, axis=1)
            self.masks[:, 0] = True
        else:
            self.masks = masks.reshape(self.n_rows, -1).astype(np.bool_)

    # Copies that are played one by one.

    def _rows(self, copy: int) -> slice:
        return slice(copy * self.players, (copy + 1) * self.players)

    def _begin(self, copy: int) -> None:
        game, rows = self.games[copy], self._rows(copy)
        self._returns[rows] = 0.0
        self._lengths[rows] = 0
        game.begin(episode_seed(self._seed, copy, self._episodes[copy]))
        self._episodes[copy] += 1
        while not game.over and game.phase == TALK:
            game.advance(self._silence)
        if game.over:
            raise SettingsError("max_cycles", game.cycles, "the episode ends before anybody is asked to choose")
        self._show(copy)

    def _show(self, copy: int) -> None:
        game, rows = self.games[copy], self._rows(copy)
        alive = game.alive
        turn = game.turn.astype(np.bool_)
        seen = numeric_rows(game)
        seen[~alive] = 0.0
        self.observations[rows] = seen
        self.masks[rows] = self.choices.masks(game.phase, game.masks(), turn)

"""Copies of one environment that are stepped together, as arrays.

    batch = bertrand_v0.batch_env(1000, preset="calvano")      # any scenario's module that has a batch_env
    observations, infos = batch.reset(seed=0)                  # (copies, agents, features)
    observations, rewards, terminations, truncations, infos = batch.step(actions)     # (copies, agents)

Every copy plays as the environment alone would, bit for bit: the episode that copy `c` plays now is that of
`parallel_env` after `reset(seed=batch.episode_seed(c))` with the same choices. `NumericView` shows the same features.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError, SnapshotError
from llm_coop_envs.util.checks import require_int
from llm_coop_envs.util.draws import episode_seed
from llm_coop_envs.util.many_streams import episode_seeds
from llm_coop_envs.util.opening import DAMAGED
from llm_coop_envs.util.packing import pack_value, unpack_value
from llm_coop_envs.wrappers.numeric import numeric_names

Rows = NDArray[np.float32]
Flags = NDArray[np.bool_]
Copies = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Played:
    """One step of all copies.

    Attributes:
        rewards: (copies, agents).
        illegal: (copies, agents) whether an agent's choice could not be used and was replaced.
        terminations: (copies, agents) whether an agent's game is over.
        truncations: (copies, agents) whether a clock ended it.
        over: (copies,) whether the copy's episode has ended.
    """

    rewards: NDArray[np.float64]
    illegal: Flags
    terminations: Flags
    truncations: Flags
    over: Flags


class BatchEnv(ABC):
    """Copies of one environment, stepped together.

    An episode that ends is followed by the next one in the same step: the observations are then the first of the new
    episode, and the infos hold `ended`, the copies of which that is true, and `final_observations`, (ended, agents,
    features), what the old episodes ended with. `infos["illegal_choice"]`, (copies, agents), says whose choice was
    replaced. Arrays that are returned are never written to again.

    Args:
        env: the environment; a batch of it plays no talk, and nothing else that asks a language model.
        copies: how many play side by side.

    Attributes:
        env: the environment that says what there is to see and to choose; it is not played.
        copies: how many play.
        agents: the agents' names, in the order of the arrays.
        feature_names: what the columns of observations are.
        observation_space: the space of one agent's observation.
        action_space: the space of one agent's choice.
        observations: (copies, agents, features) what is seen now.
        ends_with: the index of an agent whose departure ends a copy's episode; `None`: it is played to its end.

    Raises:
        SettingsError: the settings ask for something that cannot be played in a batch.
    """

    #: Settings that a batch cannot play, each with the value that switches it off.
    off: ClassVar[Mapping[str, Any]] = {
        "regulator": None,
        "mechanism": None,
        "group_size": 0,
        "changes": (),
        "listeners": (),
        "observation_noise": 0.0,
    }
    #: The attributes that a state keeps.
    kept: ClassVar[tuple[str, ...]] = ()

    def __init__(self, env: ScenarioEnv, copies: int) -> None:
        self.copies = require_int("copies", copies, 1)
        self._refuse(env)
        self.env = env
        self.agents = tuple(env.possible_agents)
        self.feature_names = numeric_names(env)
        low, high = (np.broadcast_to(bound, (len(env.feature_names),)) for bound in env.feature_bounds)
        flags = len(self.feature_names) - len(low)  # turn and phases, where there is more than one phase
        low, high = np.append(low, np.zeros(flags)), np.append(high, np.ones(flags))
        self.observation_space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        self.action_space: spaces.Space[Any] = copy.deepcopy(env.choice_space)
        self._shape = (copies, len(self.agents))
        self._everyone: Copies = np.arange(copies)
        self.observations: Rows = np.zeros((*self._shape, len(self.feature_names)), dtype=np.float32)
        self._seed: int | list[int] | None = None
        self._episodes = np.full(copies, -1, dtype=np.int64)
        self.ends_with: int | None = None

    def _refuse(self, env: ScenarioEnv) -> None:
        """Refuse what a batch cannot play, by the name of the setting."""
        settings = env.settings
        asked = {name: getattr(settings, name) for name, off in self.off.items() if getattr(settings, name) != off}
        if settings.ever_talks:
            asked = {"talk": True}
        if env.record:
            asked["record"] = True
        for name, value in asked.items():
            instead = f"say {name}={self.off.get(name, False)!r}, or play copies of parallel_env one by one"
            raise SettingsError(name, value, f"cannot be played in a batch; {instead}")

    # What a scenario fills in.

    @abstractmethod
    def _begin(self, copies: Copies) -> None:
        """Begin a new episode in some copies: their rows of `observations`, and of whatever else is kept."""

    @abstractmethod
    def _play(self, choices: NDArray[Any]) -> Played:
        """Play one step of all copies, and make a new array of `observations`."""

    @abstractmethod
    def _state(self) -> NDArray[np.float64]:
        """The state of every copy, (copies, size), without phases, turns and presence."""

    def masks(self) -> NDArray[np.int8] | None:
        """Which choices are legal now, (copies, agents, choices) of 0 and 1, read-only; `None` where they are numbers.

        An agent that is not on turn has one legal choice, which is ignored.
        """
        if not isinstance(self.action_space, spaces.Discrete):
            return None
        return np.broadcast_to(np.ones(1, dtype=np.int8), (*self._shape, int(self.action_space.n)))

    @property
    def turn(self) -> NDArray[np.int8]:
        """(copies, agents) 1 for each agent whose choice counts in the step to come, else 0."""
        return np.ones(self._shape, dtype=np.int8)

    @property
    def present(self) -> Flags:
        """(copies, agents) whether each agent is still in the copy's game.

        In the step in which somebody leaves, its observation is its last one. From then on its observations and
        rewards are 0 until the copy's next episode, and its choices are ignored.
        """
        return np.ones(self._shape, dtype=np.bool_)

    # What is played.

    def episode_seed(self, copy: int) -> int:
        """The seed of the episode that a copy plays now: `parallel_env` plays the same after `reset(seed=...)`.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        seed, episode = self.require_begun(), int(self._episodes[copy])
        if isinstance(seed, int):
            return episode_seed(seed, copy, episode)
        return seed[copy] if episode == 0 else episode_seed(seed[copy], 0, episode)

    def _episode_seeds(self, copies: Copies) -> NDArray[np.uint64]:
        """The seeds of the episodes that some copies play now."""
        if isinstance(self._seed, int):
            return episode_seeds(self._seed, copies, self._episodes[copies])
        return np.array([self.episode_seed(copy) for copy in copies.tolist()], dtype=np.uint64)

    def require_begun(self) -> int | list[int]:
        """The seed of the batch.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if self._seed is None:
            raise ResetNeeded("the batch was not begun; call reset() first")
        return self._seed

    def reset(self, seed: int | Sequence[int] | None = None) -> tuple[Rows, dict[str, Any]]:
        """Begin a new episode in every copy.

        Args:
            seed: one for the batch, from which those of all episodes follow; or one for the first episode of each
                copy, from which those of its later ones follow. `None` goes on with the next episodes; if there were
                none, the seed is drawn.

        Raises:
            SettingsError: it is no integer of 0 or more, nor one for each copy.
        """
        if seed is not None or self._seed is None:
            self._seed = self._read_seed(seed)
            self._episodes[:] = -1
        self._episodes += 1
        self.observations = self.observations.copy()
        self._begin(self._everyone)
        return self.observations, {"illegal_choice": np.zeros(self._shape, dtype=np.bool_)}

    def _read_seed(self, seed: int | Sequence[int] | None) -> int | list[int]:
        if seed is None:
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        if isinstance(seed, int | np.integer):
            return require_int("seed", int(seed), 0)
        if isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray):
            raise SettingsError("seed", seed, "must be a whole number, or one for each copy")
        seeds = [require_int("seed", own, 0, 2**64 - 1) for own in np.asarray(seed, dtype=object).tolist()]
        if len(seeds) != self.copies:
            raise SettingsError("seed", len(seeds), f"is a number of seeds; give one, or {self.copies}")
        return seeds

    def step(
        self, actions: NDArray[Any] | Sequence[Sequence[float]]
    ) -> tuple[Rows, NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Play one step of every copy.

        Args:
            actions: (copies, agents) choices. One that is illegal is replaced as in the environment.

        Returns:
            Observations, rewards, terminations, truncations and infos.

        Raises:
            ResetNeeded: before the first `reset`.
            ActionError: they have another shape, or are no numbers of the right kind.
        """
        self.require_begun()
        played = self._play(self._read(actions))
        infos: dict[str, Any] = {"illegal_choice": played.illegal}
        over = played.over if self.ends_with is None else played.over | played.terminations[:, self.ends_with]
        if over.any():
            ended = np.flatnonzero(over)
            infos |= {"ended": ended, "final_observations": self.observations[ended]}
            self._episodes[ended] += 1
            self._begin(ended)
        return self.observations, played.rewards, played.terminations, played.truncations, infos

    def _read(self, actions: NDArray[Any] | Sequence[Sequence[float]]) -> NDArray[Any]:
        try:
            choices = np.asarray(actions)
        except ValueError as error:
            raise ActionError(f"actions have no shape; a batch takes {self._shape}, copies by agents") from error
        if choices.shape == (*self._shape, 1):
            choices = choices[..., 0]
        if choices.shape != self._shape:
            raise ActionError(f"actions have the shape {choices.shape}; a batch takes {self._shape}, copies by agents")
        if isinstance(self.action_space, spaces.Discrete):
            if choices.dtype.kind not in "iu":
                raise ActionError(f"actions are {choices.dtype}; choices from a list are integers")
            return choices.astype(np.int64, copy=False)
        if choices.dtype.kind not in "iuf":
            raise ActionError(f"actions are {choices.dtype}; these choices are numbers")
        return choices.astype(np.float64, copy=False)

    # Where it stands.

    def state(self) -> NDArray[np.float64]:
        """The global state of every copy, (copies, size): see the environment's `state_space`.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        self.require_begun()
        return np.concatenate([self._phase_flags(), self.turn, self.present, self._state()], axis=1, dtype=np.float64)

    def _phase_flags(self) -> NDArray[np.int8]:
        """(copies, phases) 1 for the phase that each copy is in."""
        return np.ones((self.copies, 1), dtype=np.int8)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as JSON data.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        self.require_begun()
        return {name: pack_value(getattr(self, name)) for name in self._all_kept}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of `get_state`.

        Raises:
            SnapshotError: it is that of another batch, or is damaged.
        """
        for name, value in self._read_state(state).items():
            setattr(self, name, value)

    def _read_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes that a state keeps.

        Raises:
            SnapshotError: it is that of another batch, or is damaged.
        """
        if not isinstance(state, Mapping) or not state.keys() >= set(self._all_kept):
            raise SnapshotError(f"the state is none of a batch; it has {', '.join(self._all_kept)}")
        try:
            values = {name: unpack_value(state[name]) for name in self._all_kept}
            if values["_seed"] is None:
                raise ValueError("it has no seed")
            values["_seed"] = self._read_seed(values["_seed"])
        except DAMAGED as error:
            raise SnapshotError(f"the state is damaged ({error})") from error
        for name in values.keys() - {"_seed"}:
            current, value = getattr(self, name), values[name]
            if not isinstance(value, np.ndarray) or (value.dtype, value.shape) != (current.dtype, current.shape):
                raise SnapshotError("the state belongs to another batch: it has other copies, agents or features")
        return values

    @property
    def _all_kept(self) -> tuple[str, ...]:
        return ("_seed", "_episodes", "observations", *self.kept)

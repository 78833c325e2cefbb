"""The numeric view: what RL libraries see."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils import AECEnv, BaseParallelWrapper
from pettingzoo.utils.conversions import parallel_to_aec_wrapper

from llm_coop_envs.core.array_env import ArrayEnv
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.treatments.regulator import SEAT

Numeric = Any


def numeric_names(game: ArrayEnv) -> tuple[str, ...]:
    """The names of the columns of `numeric_rows`: the features; `turn` and one column per phase if there are more."""
    phases = game.phases if len(game.phases) > 1 else ()
    return (*game.feature_names, *(("turn", *(f"phase_{phase}" for phase in phases)) if phases else ()))


def numeric_rows(game: ArrayEnv) -> NDArray[np.float32]:
    """What each player sees in numbers now, (players, columns); a fresh array."""
    rows = game.features()
    if len(game.phases) == 1:
        return rows
    width = rows.shape[1]
    wide = np.zeros((game.n_players, width + 1 + len(game.phases)), dtype=np.float32)
    wide[:, :width] = rows
    wide[game.on_turn[game.on_turn < game.n_players], width] = 1
    wide[:, width + 1 + game.phases.index(game.phase)] = 1
    return wide


class NumericView(BaseParallelWrapper[str, Any, Any]):
    """Box observations, Discrete or Box actions, constant numeric infos; no string is ever built.

    The observation holds the scenario's features (`feature_names`). Where an environment has more than one phase,
    `turn` and one column per phase (`phase_talk`, ...) follow. With talk on, the view says nothing: it sends no
    message and hears none.

    Listed choices are a Discrete action, and the info is `{"action_mask": int8 array}`; off turn the mask leaves one
    choice. A number from a range (continuous prices, real numbers) is a Box action of shape (1,) and float32, from -1
    for the lowest number to 1 for the highest; the info is empty.

    Args:
        env: the environment itself, not a wrapped one: this view talks to its array side.
        mask_in_obs: make observations `{"observation": Box, "action_mask": Box}` and infos empty, for libraries that
            look for masks there (MaskablePPO's buffers, PettingZoo's `TerminateIllegalWrapper`, RLlib's examples).
        normalised: whether numbers from a range are shown as -1 to 1, as policy-gradient learners expect; else in the
            scenario's own units, as float64.

    Raises:
        SettingsError: a mask is wanted of continuous choices, their range has no ends, or `env` is not one of this
            package's environments.
    """

    def __init__(self, env: ScenarioEnv, *, mask_in_obs: bool = False, normalised: bool = True) -> None:
        if not isinstance(env, ScenarioEnv):
            why = "NumericView goes directly around parallel_env(); put other wrappers around the view"
            raise SettingsError("env", type(env).__name__, why)
        space = env.choice_space
        self._range: tuple[float, float] | None = None
        if isinstance(space, spaces.Box):
            if mask_in_obs:
                raise SettingsError("mask_in_obs", mask_in_obs, "continuous choices have no mask; leave it out")
            if normalised:
                if not space.is_bounded():
                    raise SettingsError("normalised", normalised, "the numbers have no ends; say normalised=False")
                self._range = float(space.low[0]), float(space.high[0])
                space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        super().__init__(env)
        self.mask_in_obs = mask_in_obs
        self._game = env
        self._choice_space = space
        self.feature_names = numeric_names(env)
        width = len(env.feature_names)
        low, high = (np.broadcast_to(bound, (width,)) for bound in env.feature_bounds)
        extra = len(self.feature_names) - width
        self._low = np.concatenate([low, np.zeros(extra)]).astype(np.float32)
        self._high = np.concatenate([high, np.ones(extra)]).astype(np.float32)
        self._observation_spaces: dict[str, spaces.Space[Any]] = {}
        self._action_spaces: dict[str, spaces.Discrete | spaces.Box] = {}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """A Box, or a Dict of two Boxes with `mask_in_obs`; always the same object."""
        space = self._observation_spaces.get(agent)
        if space is None:
            self._game.action_space(agent)
            low, high = self._low, self._high
            if agent == SEAT and self._game.regulator is not None:
                extra = np.zeros(1 + len(self._game.phases), dtype=np.float32)
                low, high = (np.append(end, extra + k) for k, end in enumerate(self._game.regulator_bounds()))
            space = spaces.Box(low, high, dtype=np.float32)
            choices = self.action_space(agent)
            if self.mask_in_obs and isinstance(choices, spaces.Discrete):
                mask = spaces.Box(0, 1, (int(choices.n),), np.int8)
                space = spaces.Dict({"observation": space, "action_mask": mask})
            self._observation_spaces[agent] = space
        return space

    def action_space(self, agent: str) -> spaces.Discrete | spaces.Box:
        """The choices; always the same object."""
        space = self._action_spaces.get(agent)
        if space is None:
            own: Any = self._game.action_space(agent)["choice"]
            space = self._action_spaces[agent] = copy.deepcopy(own if agent == SEAT else self._choice_space)
        return space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        """Start a new episode, see the environment's `reset`."""
        self._game.begin(seed, options)
        return self._views(self._game.possible_agents, None)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Numeric], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: a choice for every player on turn; where there is none, the scenario's fallback is played.

        Raises:
            ResetNeeded: before the first `reset`.
            ActionError: an action for somebody who does not exist.
        """
        game = self._game
        names = game.agents
        if not names:
            if game.cycles == 0:
                raise ResetNeeded("step() was called before reset(); call reset() first")
            return {}, {}, {}, {}, {}
        everyone = len(names) == len(game.possible_agents)
        present = game.live
        choices = self._read(actions, names)
        if not everyone:
            values = np.zeros(len(game.possible_agents), dtype=choices.dtype)
            values[present] = choices
            choices = values
        game.advance(choices)
        observations, infos = self._views(names, None if everyone else present)
        return observations, *game.outcomes(present), infos

    def choice(self, action: Any, agent: str = "") -> float | int:
        """What the environment's own `step` takes for an action; no legal choice for what is none."""
        choice = self._game.read_choice(action, agent)
        if self._range is None or agent == SEAT:
            return choice
        low, high = self._range
        share = (choice + 1) / 2
        return low * (1 - share) + high * share  # exactly the ends for -1 and 1

    def aec(self) -> AECEnv[str, Any, Any]:
        """The view agent by agent, in the form that PettingZoo's `TerminateIllegalWrapper` takes.

        What `parallel_to_aec` makes looks the same, but that wrapper ends games in `unwrapped`, which would be the
        parallel environment.
        """
        return _NumericAEC(self)

    def _read(self, actions: Mapping[str, Any], names: list[str]) -> NDArray[Any]:
        if isinstance(self._choice_space, spaces.Discrete):
            try:
                given = np.array([actions[name] for name in names])
            except (KeyError, TypeError, ValueError):
                given = np.empty(0)
            if given.dtype.kind in "iu" and given.ndim == 1 and len(actions) == len(names):
                return given.astype(np.int64, copy=False)
        if not isinstance(actions, Mapping):
            raise ActionError(f"actions must be a dict from agent name to choice, not {type(actions).__name__}")
        for name in actions:
            self._game.action_space(name)
        return np.array([self.choice(actions.get(name), name) for name in names])

    def _views(
        self, names: list[str], present: NDArray[np.intp] | None
    ) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        game = self._game
        if game.regulator is not None:
            return self._regulated_views(names)
        rows, masks = numeric_rows(game), game.masks()
        if present is not None:
            rows = rows[present]
        if masks is None:
            return dict(zip(names, rows, strict=True)), {name: {} for name in names}
        # Fancy indexing copies; without it the masks' constant rows would be shared between steps.
        masks = masks.copy() if present is None else masks[present]
        seen = zip(names, rows, masks, strict=True)
        if self.mask_in_obs:
            observations = {name: {"observation": row, "action_mask": mask} for name, row, mask in seen}
            return observations, {name: {} for name in names}
        return dict(zip(names, rows, strict=True)), {name: {"action_mask": mask} for name, _, mask in seen}

    def _regulated_views(self, names: list[str]) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        """The same where the last seat is a regulator's, who sees other numbers and has other choices."""
        game = self._game
        assert game.regulator is not None, "asked only where there is one"
        rows, masks = numeric_rows(game), game.masks()
        own = np.zeros(1 + len(game.phases), dtype=np.float32)
        own[0] = game.regulator.index in game.on_turn
        own[1 + game.phases.index(game.phase)] = 1
        observations: dict[str, Numeric] = {}
        infos: dict[str, dict[str, Any]] = {}
        for name in names:
            i = game.possible_agents.index(name)
            mine = i == game.regulator.index
            row = np.append(game.regulator_features(), own) if mine else rows[i]
            mask = game.regulator_mask() if mine else None if masks is None else masks[i].copy()
            told = {} if mask is None else {"action_mask": mask}
            in_obs = self.mask_in_obs and mask is not None
            observations[name] = {"observation": row, **told} if in_obs else row
            infos[name] = {} if in_obs else told
        return observations, infos


class _NumericAEC(parallel_to_aec_wrapper[str, Any, Any]):
    @property
    def unwrapped(self) -> Any:
        return self

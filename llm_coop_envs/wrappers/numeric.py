"""The numeric view: what RL libraries see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils import BaseParallelWrapper

from llm_coop_envs.core.array_env import ArrayEnv
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError

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
    wide[game.on_turn, width] = 1
    wide[:, width + 1 + game.phases.index(game.phase)] = 1
    return wide


class NumericView(BaseParallelWrapper[str, Any, Any]):
    """Box observations, Discrete actions, constant numeric infos; no string is ever built.

    The observation holds the scenario's features (`feature_names`). Where an environment has more than one phase,
    `turn` and one column per phase (`phase_talk`, ...) follow. With talk on, the view says nothing: it sends no
    message and hears none. The info is `{"action_mask": int8 array}`; off turn the mask leaves one choice.

    Args:
        env: the environment itself, not a wrapped one: this view talks to its array side.
        mask_in_obs: make observations `{"observation": Box, "action_mask": Box}` and infos empty, for libraries that
            look for masks there.

    Raises:
        SettingsError: the choices are continuous, or `env` is not one of this package's environments.
    """

    def __init__(self, env: ScenarioEnv, *, mask_in_obs: bool = False) -> None:
        if not isinstance(env, ScenarioEnv):
            why = "NumericView goes directly around parallel_env(); put other wrappers around the view"
            raise SettingsError("env", type(env).__name__, why)
        space = env.choice_space
        if not isinstance(space, spaces.Discrete):
            why = "NumericView needs discrete choices; choose them in the settings (a price grid, whole numbers)"
            raise SettingsError("env", env.metadata["name"], why)
        super().__init__(env)
        self.mask_in_obs = mask_in_obs
        self._game = env
        self._n_choices = int(space.n)
        self.feature_names = numeric_names(env)
        width = len(env.feature_names)
        low, high = (np.broadcast_to(bound, (width,)) for bound in env.feature_bounds)
        extra = len(self.feature_names) - width
        self._low = np.concatenate([low, np.zeros(extra)]).astype(np.float32)
        self._high = np.concatenate([high, np.ones(extra)]).astype(np.float32)
        self._observation_spaces: dict[str, spaces.Space[Any]] = {}
        self._action_spaces: dict[str, spaces.Discrete] = {}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """A Box, or a Dict of two Boxes with `mask_in_obs`; always the same object."""
        space = self._observation_spaces.get(agent)
        if space is None:
            self._game.action_space(agent)
            space = spaces.Box(self._low, self._high, dtype=np.float32)
            if self.mask_in_obs:
                mask = spaces.Box(0, 1, (self._n_choices,), np.int8)
                space = spaces.Dict({"observation": space, "action_mask": mask})
            self._observation_spaces[agent] = space
        return space

    def action_space(self, agent: str) -> spaces.Discrete:
        """The choices; always the same object."""
        space = self._action_spaces.get(agent)
        if space is None:
            self._game.action_space(agent)
            space = self._action_spaces[agent] = spaces.Discrete(self._n_choices)
        return space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        """Start a new episode, see the environment's `reset`."""
        self._game.begin(seed, options)
        return self._views(self._game.possible_agents, None)

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, Numeric], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step; `actions` holds a choice for every player on turn, else the scenario's fallback is played.

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
        everyone = len(names) == game.n_players
        present = game.live
        choices = self._read(actions, names)
        if not everyone:
            values = np.full(game.n_players, -1, dtype=np.int64)
            values[present] = choices
            choices = values
        game.advance(choices)
        observations, infos = self._views(names, None if everyone else present)
        return observations, *game.outcomes(present), infos

    def _read(self, actions: Mapping[str, int], names: list[str]) -> NDArray[np.int64]:
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
        return np.array([self._game.read_choice(actions.get(name)) for name in names], dtype=np.int64)

    def _views(
        self, names: list[str], present: NDArray[np.intp] | None
    ) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        game = self._game
        rows = numeric_rows(game)
        masks = game.masks()
        if masks is None:
            raise AssertionError("the constructor made sure that choices are discrete")
        # Fancy indexing copies; without it the masks' constant rows would be shared between steps.
        rows, masks = (rows, masks.copy()) if present is None else (rows[present], masks[present])
        seen = zip(names, rows, masks, strict=True)
        if self.mask_in_obs:
            observations = {name: {"observation": row, "action_mask": mask} for name, row, mask in seen}
            return observations, {name: {} for name in names}
        return dict(zip(names, rows, strict=True)), {name: {"action_mask": mask} for name, _, mask in seen}

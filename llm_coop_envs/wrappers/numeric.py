"""The numeric view, for RL libraries."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils import AECEnv, BaseParallelWrapper
from pettingzoo.utils.conversions import parallel_to_aec_wrapper

from llm_coop_envs.core.array_env import TALK, ArrayEnv
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.interface.move_spaces import flat_width, from_flat
from llm_coop_envs.interface.question import ILLEGAL
from llm_coop_envs.treatments.regulator import SEAT

Numeric = Any


def numeric_names(game: ArrayEnv) -> tuple[str, ...]:
    """The names of the columns of `numeric_rows`: the features, and with several phases `turn` and one per phase."""
    phases = game.phases if len(game.phases) > 1 else ()
    return (*game.feature_names, *(("turn", *(f"phase_{phase}" for phase in phases)) if phases else ()))


def numeric_rows(game: ArrayEnv) -> NDArray[np.float32]:
    """The present observation of each player in numbers, (players, columns); a new array."""
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
    """An environment with Box observations, Discrete or Box actions and numeric infos; it never builds any text.

    The observation holds the scenario's features (`feature_names`). Where an environment has more than one phase,
    `turn` and one column per phase (`phase_talk`, ...) follow. With talk on, the view sends no messages and observes
    none.

    Listed choices are a Discrete action, and the info is `{"action_mask": int8 array}`; the mask of a player who is not
    on turn allows one choice. A number from a range (continuous prices, real numbers) is a Box action of shape (1,) and
    float32, from -1 for the lowest number to 1 for the highest; the info is empty. Where phases have questions of their
    own (`_moves`), the action is a Discrete as large as the largest of them if all are lists, with masks as always.
    Else it is a Box from -1 to 1 as wide as the widest, of which each phase reads as many numbers as
    `interface.move_spaces` says.

    Args:
        env: the environment itself, not a wrapped one: this view talks to its array side.
        mask_in_obs: make observations `{"observation": Box, "action_mask": Box}` and infos empty, for libraries that
            look for masks there (MaskablePPO's buffers, PettingZoo's `TerminateIllegalWrapper`, RLlib's examples).
        masks: whether there are masks; without them all infos are empty, for libraries that cannot use the arrays in
            them (AgileRL), and an illegal choice is replaced by the scenario's fallback.
        normalised: whether choices from a range are scaled to -1 to 1, as policy-gradient learners expect; else they
            are float64 in the scenario's own units.

    Raises:
        SettingsError: `mask_in_obs` with continuous choices or without masks, `normalised` with an unbounded range,
            words are a move, or `env` is not one of this package's environments.
    """

    def __init__(
        self, env: ScenarioEnv, *, mask_in_obs: bool = False, masks: bool = True, normalised: bool = True
    ) -> None:
        if not isinstance(env, ScenarioEnv):
            reason = "NumericView goes directly around parallel_env(); put other wrappers around the view"
            raise SettingsError("env", type(env).__name__, reason)
        space = _flat_space(env) if env.questions else env.choice_space
        if env.questions and not normalised:
            raise SettingsError(
                "normalised", normalised, "moves of several kinds are numbers from -1 to 1; leave it out"
            )
        self._range: tuple[float, float] | None = None
        if isinstance(space, spaces.Box):
            if mask_in_obs:
                raise SettingsError("mask_in_obs", mask_in_obs, "continuous choices have no mask; leave it out")
            if normalised and not env.questions:
                if not space.is_bounded():
                    raise SettingsError("normalised", normalised, "the numbers have no ends; say normalised=False")
                self._range = float(space.low[0]), float(space.high[0])
                space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        if mask_in_obs and not masks:
            raise SettingsError("mask_in_obs", mask_in_obs, "there are none with masks=False; leave one of them out")
        super().__init__(env)
        self.mask_in_obs = mask_in_obs
        self._has_masks = masks
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

    def __repr__(self) -> str:
        """The view and its environment."""
        return f"NumericView of {self._game!r}"

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
        """The space of an agent's choices; always the same object."""
        space = self._action_spaces.get(agent)
        if space is None:
            self._game.action_space(agent)  # raises if there is no such agent
            is_regulator = agent == SEAT and self._game.regulator is not None
            agent_space: Any = self._game.action_space(agent)["choice"] if is_regulator else self._choice_space
            space = self._action_spaces[agent] = copy.deepcopy(agent_space)
        return space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        """Start a new episode; see the environment's `reset`."""
        self._game.begin(seed, options)
        return self._views(self._game.possible_agents, None)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Numeric], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: a choice for every player on turn; the scenario's fallback replaces a missing one.

        Raises:
            ResetNeeded: before the first `reset`.
            ActionError: an action for an agent that does not exist.
        """
        game = self._game
        names = game.agents
        if not names:
            if game.cycles == 0:
                raise ResetNeeded("step() was called before reset(); call reset() first")
            return {}, {}, {}, {}, {}
        is_complete = len(names) == len(game.possible_agents)
        present = game.live
        choices = self._read(actions, names)
        if not is_complete:
            values = game.blank_choices() if game.questions else np.zeros(len(game.possible_agents), choices.dtype)
            values[present] = choices
            choices = values
        game.advance(choices)
        observations, infos = self._views(names, None if is_complete else present)
        return observations, *game.outcomes(present), infos

    def choice(self, action: Any, agent: str = "") -> Any:
        """Convert an action into a choice for the environment's own `step`.

        An action that is not in the action space becomes an illegal choice.
        """
        game = self._game
        if game.questions and isinstance(self._choice_space, spaces.Box) and agent != SEAT:
            return self._of_point(action, agent)
        choice = game.read_choice(action, agent)
        if self._range is None or agent == SEAT:
            return choice
        low, high = self._range
        share = (choice + 1) / 2
        return low * (1 - share) + high * share  # exactly the ends for -1 and 1

    def _of_point(self, action: Any, agent: str) -> Any:
        """The choice that a point of the Box stands for in this phase."""
        game, point = self._game, np.asarray(action, dtype=np.float64)
        index = game.possible_agents.index(agent)
        if game.phase == TALK or index not in game.on_turn or point.shape != self._choice_space.shape:
            return game.read_choice(None, agent)
        if not np.isfinite(point).all():
            return ILLEGAL
        question = game.question_for(index)
        return from_flat(question, point, game.widest_question(index))

    def aec(self) -> AECEnv[str, Any, Any]:
        """The view as an AEC environment to which PettingZoo's `TerminateIllegalWrapper` can be applied.

        That wrapper ends games in `unwrapped`, which is the parallel environment if `parallel_to_aec` is used instead.
        """
        return _NumericAEC(self)

    def _read(self, actions: Mapping[str, Any], names: list[str]) -> NDArray[Any]:
        if isinstance(self._choice_space, spaces.Discrete) and not self._game.questions:
            try:
                choices = np.array([actions[name] for name in names])
            except (KeyError, TypeError, ValueError):
                choices = np.empty(0)
            if choices.dtype.kind in "iu" and choices.ndim == 1 and len(actions) == len(names):
                return choices.astype(np.int64, copy=False)
        if not isinstance(actions, Mapping):
            raise ActionError(f"actions must be a dict from agent name to choice, not {type(actions).__name__}")
        for name in actions:
            self._game.action_space(name)
        read = [self.choice(actions.get(name), name) for name in names]
        if not self._game.questions:
            return np.array(read)
        return np.fromiter(read, dtype=self._game.blank_choices().dtype, count=len(names))

    def masks(self) -> NDArray[np.int8] | None:
        """Legal choices, (players, choices), as wide as the action space; `None` where that is a Box."""
        masks = self._game.masks()
        if not self._game.questions or masks is None:
            return masks
        if not isinstance(self._choice_space, spaces.Discrete):
            return None
        wide = np.zeros((len(masks), int(self._choice_space.n)), dtype=np.int8)
        wide[:, : masks.shape[1]] = masks
        return wide

    def _views(
        self, names: list[str], present: NDArray[np.intp] | None
    ) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        game = self._game
        if game.regulator is not None:
            return self._regulated_views(names)
        rows, masks = numeric_rows(game), self.masks()
        if present is not None:
            rows = rows[present]
        if masks is None or not self._has_masks:
            return dict(zip(names, rows, strict=True)), {name: {} for name in names}
        # Fancy indexing copies; without it the masks' constant rows would be shared between steps.
        masks = masks.copy() if present is None else masks[present]
        seen = zip(names, rows, masks, strict=True)
        if self.mask_in_obs:
            observations = {name: {"observation": row, "action_mask": mask} for name, row, mask in seen}
            return observations, {name: {} for name in names}
        return dict(zip(names, rows, strict=True)), {name: {"action_mask": mask} for name, _, mask in seen}

    def _regulated_views(self, names: list[str]) -> tuple[dict[str, Numeric], dict[str, dict[str, Any]]]:
        """The views with a regulator in the last seat, which has other features and choices than the players."""
        game = self._game
        assert game.regulator is not None, "called only with a regulator"
        rows, masks = numeric_rows(game), self.masks()
        turn_and_phase = np.zeros(1 + len(game.phases), dtype=np.float32)
        turn_and_phase[0] = game.regulator.index in game.on_turn
        turn_and_phase[1 + game.phases.index(game.phase)] = 1
        observations: dict[str, Numeric] = {}
        infos: dict[str, dict[str, Any]] = {}
        for name in names:
            index = game.possible_agents.index(name)
            is_regulator = index == game.regulator.index
            row = np.append(game.regulator_features(), turn_and_phase) if is_regulator else rows[index]
            mask = game.regulator_mask() if is_regulator else None if masks is None else masks[index].copy()
            mask_entry = {} if mask is None or not self._has_masks else {"action_mask": mask}
            in_obs = self.mask_in_obs and mask is not None
            observations[name] = {"observation": row, **mask_entry} if in_obs else row
            infos[name] = {} if in_obs else mask_entry
        return observations, infos


def _flat_space(env: ScenarioEnv) -> spaces.Discrete | spaces.Box:
    """One space for the moves of all phases: a list as long as the longest, or a Box as wide as the widest.

    Raises:
        SettingsError: words are a move, or numbers have no ends.
    """
    choices = env.choice_space
    by_phase = dict(choices) if isinstance(choices, spaces.Dict) and set(choices) <= set(env.phases) else {"": choices}
    lists = [int(space.n) for space in by_phase.values() if isinstance(space, spaces.Discrete) and space.start == 0]
    if len(lists) == len(by_phase):
        return spaces.Discrete(max(lists))
    widths = [flat_width(question) for by_role in env.questions.values() for question in by_role.values()]
    others = [space for phase, space in by_phase.items() if phase not in env.questions and phase]
    widths += [int(space.n) if isinstance(space, spaces.Discrete) else 1 for space in others]
    return spaces.Box(-1.0, 1.0, (max(widths),), np.float32)


class _NumericAEC(parallel_to_aec_wrapper[str, Any, Any]):
    @property
    def unwrapped(self) -> Any:
        return self

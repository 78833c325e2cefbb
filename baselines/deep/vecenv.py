"""The rows as an environment of stable-baselines3: one network learns from all players of all copies.

Unlike the numeric view in SuperSuit, it takes seeds (`seed=` of the algorithm), distinguishes time-outs from true ends
(`TimeLimit.truncated`, with the `terminal_observation` to bootstrap from), passes masks to MaskablePPO, and lets
players leave.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.baselines.deep.choices import POINTS
from llm_coop_envs.baselines.deep.rows import SharedRows, Step
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import MissingExtra, SettingsError

try:
    from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtra("SharedVecEnv", "sb3") from error


class SharedVecEnv(VecEnv):
    """A vectorised environment in which every row is one player of one copy; see `rows`.

    The infos of rows whose player has left hold `"vacant": True`. At an episode's end they hold
    `"terminal_observation"`, `"TimeLimit.truncated"` and `"episode"` (`r` the unscaled return, `l` the steps, `t` the
    seconds), except for vacant rows.

    Args:
        make: makes one environment; called once per copy.
        copies: number of environments that run side by side.
        seed: seed of all episodes.
        reward_scale: factor on rewards.
        potential: the name of a column and a factor: with p = factor * column, `discount * p` after a step minus p
            before it is added to the (scaled) reward. At a true end p counts as 0. Such shaping leaves the best
            policies the same (Ng, Harada and Russell 1999).
        discount: the learner's discount factor, for the potential.
        points: how many choices stand for a range of numbers; `None`: one, a number from -1 to 1.
    """

    reset_infos: list[dict[str, Any]]

    def __init__(
        self,
        make: Callable[[], ScenarioEnv],
        *,
        copies: int = 8,
        seed: int = 0,
        reward_scale: float = 1.0,
        potential: tuple[str, float] | None = None,
        discount: float = 1.0,
        points: int | None = POINTS,
    ) -> None:
        self.rows = SharedRows(make, copies=copies, seed=seed, points=points)
        self.reward_scale = reward_scale
        self._column: int | None = None
        self._factor = 0.0
        if potential is not None:
            name, self._factor = potential
            if name not in self.rows.names:
                raise SettingsError("potential", name, "is no column of this environment's observations")
            self._column = self.rows.names.index(name)
        self._discount = discount
        self._outputs: NDArray[Any] = np.zeros(self.rows.n_rows, dtype=np.int64)
        self._started = time.time()
        # The constructor of stable-baselines3 reads it and warns if it is missing.
        self.render_mode = None
        super().__init__(
            self.rows.n_rows,
            spaces.Box(self.rows.low, self.rows.high, dtype=np.float32),
            self.rows.choices.space,
        )

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed all episodes from the next `reset` on; `None` leaves the seed as it is."""
        if seed is not None:
            self.rows.seed(seed)
        return [seed] * self.num_envs

    def reset(self) -> NDArray[np.float32]:
        """Begin the next episode of every copy."""
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return self.rows.reset()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the choices for `step_wait`."""
        self._outputs = np.asarray(actions)

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the step."""
        old_potential = self._potential(self.rows.observations)
        step = self.rows.step(self._outputs)
        now, ended = self._potential(self.rows.observations), self._potential(step.last) * step.truncated
        new_potential = np.where(step.done, ended, now)
        rewards = step.rewards * self.reward_scale + self._discount * new_potential - old_potential
        return self.rows.observations.copy(), rewards.astype(np.float32), step.done, self._infos(step)

    def _potential(self, observations: NDArray[np.float32]) -> NDArray[np.float64] | float:
        if self._column is None:
            return 0.0
        return self._factor * observations[:, self._column].astype(np.float64)

    def _infos(self, step: Step) -> list[dict[str, Any]]:
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(step.vacant).tolist():
            infos[row]["vacant"] = True
        elapsed = round(time.time() - self._started, 6)
        for row in np.flatnonzero(step.done & ~step.vacant).tolist():
            infos[row] = {
                "terminal_observation": step.last[row],
                "TimeLimit.truncated": bool(step.truncated[row]),
                "episode": {"r": float(step.returns[row]), "l": int(step.lengths[row]), "t": elapsed},
            }
        return infos

    def action_masks(self) -> NDArray[np.bool_]:
        """(rows, choices) which choices are legal now."""
        masks: NDArray[np.bool_] = self.rows.masks.copy()
        return masks

    def close(self) -> None:
        """Close the environments."""
        for game in self.rows.games:
            game.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Get an attribute of this class, repeated for each of the rows `indices`.

        Raises:
            AttributeError: there is no such attribute.
        """
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of this class.

        Raises:
            AttributeError: `indices` are set, but rows have no attributes of their own.
        """
        if indices is not None:
            raise AttributeError("rows of SharedVecEnv have no attributes of their own; leave out indices")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call `action_masks`, the only method of rows, for the rows `indices`.

        Raises:
            AttributeError: another method is called.
        """
        if method_name != "action_masks" or method_args or method_kwargs:
            raise AttributeError(f"rows of SharedVecEnv have no method {method_name!r}, only action_masks()")
        masks = self.action_masks()
        return [masks[row] for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return false for every row: nothing is wrapped, but infos hold `"episode"` as with a monitor."""
        return [False] * len(list(self._get_indices(indices)))

"""Buffers that leave out rows without a decision: those off turn, and those whose player has left.

Such rows are stepped too, because a batch has a fixed size, but their choices have no effect: they would only make
batches longer and advantages smaller. Returns and advantages are computed over all steps before rows are left out, so
that all consequences of a choice count.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import MissingExtra

try:
    from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.buffers import ReplayBuffer  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtra("training", "sb3") from error

_PARTS = ("observations", "actions", "values", "log_probs", "advantages", "returns", "action_masks")


class DecidedRolloutBuffer(MaskableRolloutBuffer):
    """A rollout buffer of MaskablePPO whose batches contain only rows with more than one legal choice."""

    generator_ready: bool

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Yield mini-batches in random order."""
        if not self.full:
            raise AssertionError("the rollout is not complete")
        if not self.generator_ready:
            for part in _PARTS:
                setattr(self, part, self.swap_and_flatten(getattr(self, part)))
            self.generator_ready = True
        decided = np.flatnonzero(self.action_masks.sum(axis=1) > 1)
        if not len(decided):
            return
        order = np.random.permutation(decided)
        # A small remainder joins the other batches: advantages are normalised per batch, and one row has no spread.
        size = batch_size or len(order)
        pieces = max(1, round(len(order) / size))
        for batch in np.array_split(order, pieces):
            yield self._get_samples(batch)


class PresentReplayBuffer(ReplayBuffer):
    """A replay buffer of DQN that leaves out rows whose player had left."""

    pos: int
    full: bool

    def __init__(self, buffer_size: int, *args: Any, n_envs: int = 1, **kwargs: Any) -> None:
        # Players leave, so transitions are stored one by one instead of row by row.
        super().__init__(buffer_size, *args, n_envs=1, **kwargs)

    def add(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Add one step of all rows."""
        present = [row for row, info in enumerate(infos) if "vacant" not in info][-self.buffer_size :]
        slots = (self.pos + np.arange(len(present))) % self.buffer_size
        self.observations[slots, 0] = obs[present]
        self.next_observations[slots, 0] = next_obs[present]
        self.actions[slots, 0] = np.asarray(action)[present].reshape(len(present), self.action_dim)
        self.rewards[slots, 0] = reward[present]
        self.dones[slots, 0] = done[present]
        self.timeouts[slots, 0] = [infos[row].get("TimeLimit.truncated", False) for row in present]
        self.full = self.full or self.pos + len(present) >= self.buffer_size
        self.pos = (self.pos + len(present)) % self.buffer_size

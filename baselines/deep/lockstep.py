"""Independent learners, one per seat, in the same environments: they share no weights, buffers or gradients.

Each is a learner of stable-baselines3 with its own environment, which shows it the rows of its seat. All learners step
together. Each runs in a thread, but only one at a time and always in the same order. So they draw from the random
streams that stable-baselines3 shares between them in the same order every time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.deep.vecenv import SharedVecEnv


class _Stopped(BaseException):
    """Another seat's learner failed."""


class Lockstep:
    """Lets the learners of all seats run in turn; the first seat's learner runs in the calling thread."""

    def __init__(self, env: SharedVecEnv) -> None:
        self.env = env
        self.outputs: NDArray[Any] = np.zeros(env.num_envs, dtype=env.action_space.dtype)
        self.seen: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self.result: Any = None
        self.seats = [SeatVecEnv(self, seat) for seat in range(env.rows.players)]
        self._turns = [threading.Semaphore(0) for _ in self.seats]
        self._failed: BaseException | None = None

    def wait(self, seat: int) -> None:
        """Let the other seats run until each of them waits too."""
        self._turns[(seat + 1) % len(self._turns)].release()
        self._turns[seat].acquire()
        if self._failed is not None:
            raise _Stopped

    def run(self, learners: Sequence[Callable[[], None]]) -> None:
        """Run every seat's learner to its end, and raise the first error of any of them."""

        def play(seat: int) -> None:
            try:
                if seat:
                    self._turns[seat].acquire()
                if self._failed is None:
                    learners[seat]()
            except BaseException as error:
                if self._failed is None:
                    self._failed = error
                for turn in self._turns:
                    turn.release()
            finally:
                self._turns[(seat + 1) % len(self._turns)].release()

        threads = [threading.Thread(target=play, args=(seat,), daemon=True) for seat in range(1, len(learners))]
        for thread in threads:
            thread.start()
        play(0)
        for thread in threads:
            thread.join()
        if self._failed is not None:
            raise self._failed


class SeatVecEnv(SharedVecEnv):
    """One seat of all copies; made by `Lockstep`."""

    def __init__(self, lockstep: Lockstep, seat: int) -> None:
        whole = lockstep.env
        self.rows = whole.rows
        self._lockstep, self._seat = lockstep, seat
        self._mine = slice(seat, None, whole.rows.players)
        self.render_mode = None
        super(SharedVecEnv, self).__init__(whole.rows.copies, whole.observation_space, whole.action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Do nothing: all seats play the same episodes, seeded when the environments were made."""
        return [None] * self.num_envs

    def reset(self) -> NDArray[np.float32]:
        """Begin the next episode of every copy, which the first seat does for all."""
        if not self._seat:
            self._lockstep.seen = self._lockstep.env.reset()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return self._own(self._lockstep.seen)

    def _own(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows of this seat, side by side in memory.

        torch sums rows that are apart in another order. A training that continues from a checkpoint, whose rows are
        side by side, would end with other last digits.
        """
        return np.ascontiguousarray(rows[self._mine])

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the choices of this seat."""
        self._lockstep.outputs[self._mine] = actions.reshape(-1)

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the step once every seat has chosen."""
        self._lockstep.wait(self._seat)
        if not self._seat:
            self._lockstep.result = self._lockstep.env.step(self._lockstep.outputs)
        observations, rewards, done, infos = self._lockstep.result
        return self._own(observations), self._own(rewards), self._own(done), infos[self._mine]

    def wait(self) -> None:
        """Wait until every seat has got as far as this one."""
        self._lockstep.wait(self._seat)

    def run(self, learners: Sequence[Callable[[], None]]) -> None:
        """See `Lockstep.run`."""
        self._lockstep.run(learners)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal choices of this seat in every copy."""
        return super().action_masks()[self._mine]

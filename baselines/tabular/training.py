"""Train a tabular learner in a run folder, with checkpoints and a learning curve.

The run folder (`storage.folder`) holds `checkpoint.npz`, the learning curve `curve.parquet` and `curve.png`, and the
result `table.npz`. Every episode draws from its own generator, derived from the seed and the episode's number, so an
interrupted training ends with the same bytes as one without interruption.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import ClassVar

import numpy as np

from llm_coop_envs.baselines.tabular.curve import Row, write_curve
from llm_coop_envs.baselines.tabular.learner import TabularLearner, learner_of
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.baselines.tabular.store import TABLE, StoredTable, load, save
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.style import need_matplotlib
from llm_coop_envs.storage.arrays import Arrays
from llm_coop_envs.storage.folder import RunFolder
from llm_coop_envs.storage.parquet import need_arrow
from llm_coop_envs.util.checks import require_int
from llm_coop_envs.util.interrupts import on_interrupt
from llm_coop_envs.util.paths import StrPath

CHECKPOINT = "checkpoint.npz"
_CURVE = "curve"

Report = Callable[[int, Row | None], None]


@dataclass(kw_only=True)
class TabularFolder(RunFolder):
    """The folder of a training; its manifest holds scenario, seed, settings and, at the end, the curve's reference."""

    kind: ClassVar[str] = "tabular"


@dataclass
class _Progress:
    """Progress of a training: episodes played, the curve so far, and mean sums of rewards since its last point."""

    done: int = 0
    rows: list[Row] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class Stopped(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; its checkpoint is kept."""

    def __init__(self, episodes: int) -> None:
        super().__init__(f"stopped after {episodes} episodes")
        self.episodes = episodes


def train(learning: TabularSettings, seed: int, folder: StrPath, report: Report | None = None) -> StoredTable:
    """Train a learner, or continue the training in the folder.

    Args:
        learning: the learner's settings.
        seed: seed of the training, 0 or more.
        folder: the run folder, made if it does not exist.
        report: called after each episode with the number of episodes played and the curve's new point, if any.

    Raises:
        MissingExtra: pyarrow or matplotlib (extra `study`) is not installed.
        RunError: the folder holds another run, another process writes there, or it cannot be read or written.
        SettingsError: the seed is impossible.
        Stopped: Ctrl-C was pressed.
    """
    need_arrow()
    need_matplotlib()
    require_int("seed", seed, 0)
    folder = Path(folder)
    store = TabularFolder.make(folder, {"scenario": learning.scenario, "seed": seed, **learning.to_json()})
    with store.lock():
        if not store.complete:
            learner = learner_of(learning.scenario)(learning, seed)
            progress = _restore(learner, folder)
            with store.session(), interruptible() as stop_requested:
                _learn(learner, progress, stop_requested, folder, report)
                reference = learner.reference()
                write_curve(progress.rows, learner, reference, folder)
                # Single precision is enough for playing.
                arrays = {k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in learner.arrays().items()}
                save(_stored(learner, progress.done, arrays), folder / TABLE)
                store.write(reference=list(reference))
    return load(folder / TABLE)


def _learn(
    learner: TabularLearner,
    progress: _Progress,
    stop_requested: Callable[[], bool],
    folder: Path,
    report: Report | None,
) -> None:
    learning, rows, rewards = learner.learning, progress.rows, progress.rewards
    if not rows:
        rows.append({"episode": 0, "reward": None, **learner.point()})
    while progress.done < learning.episodes:
        rewards.append(learner.train(progress.done))
        progress.done = done = progress.done + 1
        row: Row | None = None
        if done % learning.curve_every == 0 or done == learning.episodes:
            row = {"episode": done, "reward": float(np.mean(rewards)), **learner.point()}
            rewards.clear()
            rows.append(row)
        if report is not None:
            report(done, row)
        stop = stop_requested() and done < learning.episodes
        if row is not None or stop:
            _write_checkpoint(learner, progress, folder)
        if stop:
            raise Stopped(done)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Record the first Ctrl-C instead of stopping; yields whether it was pressed. A second Ctrl-C stops at once."""
    stop_request = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if stop_request.is_set():
            raise KeyboardInterrupt
        stop_request.set()

    with on_interrupt(note):
        yield stop_request.is_set


def _write_checkpoint(learner: TabularLearner, progress: _Progress, folder: Path) -> None:
    curve = json.dumps({"rows": progress.rows, "rewards": progress.rewards}).encode()
    arrays = {**learner.arrays(), _CURVE: np.frombuffer(curve, dtype=np.uint8)}
    save(_stored(learner, progress.done, arrays), folder / CHECKPOINT)


def _stored(learner: TabularLearner, episodes: int, arrays: Arrays) -> StoredTable:
    return StoredTable(learning=learner.learning, seed=learner.seed, episodes=episodes, arrays=arrays)


def _restore(learner: TabularLearner, folder: Path) -> _Progress:
    path = folder / CHECKPOINT
    if not path.exists():
        return _Progress()
    try:
        checkpoint = load(path)
        curve = json.loads(checkpoint.arrays.pop(_CURVE).tobytes())
        learner.load(checkpoint.arrays)
        return _Progress(done=checkpoint.episodes, rows=list(curve["rows"]), rewards=list(curve["rewards"]))
    except (KeyError, TypeError, ValueError, RunError) as error:
        raise RunError(f"{path} is damaged; delete it to begin anew") from error

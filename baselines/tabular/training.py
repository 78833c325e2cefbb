"""Learning from beginning to end, in a folder: continued after an interruption, with a learning curve.

In the run folder (`storage.folder`) `checkpoint.npz` holds how far it got, `curve.parquet` and `curve.png` show how it
went, `table.npz` is the result. Every episode draws from a generator of its own that follows from the seed and the
episode's number, so an interruption changes nothing.
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

CHECKPOINT = "checkpoint.npz"
_CURVE = "curve"

Report = Callable[[int, Row | None], None]


@dataclass(kw_only=True)
class TabularFolder(RunFolder):
    """The folder of a learner; its manifest holds scenario, seed and settings, in the end the curve's reference too."""

    kind: ClassVar[str] = "tabular"


@dataclass
class _Reached:
    """How far learning got: episodes played, the curve so far, mean sums of rewards since its last point."""

    done: int = 0
    rows: list[Row] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed; what was learned so far is kept."""

    def __init__(self, episodes: int) -> None:
        super().__init__(f"stopped after {episodes} episodes")
        self.episodes = episodes


def train(learning: TabularSettings, seed: int, folder: Path, report: Report | None = None) -> StoredTable:
    """Learn, going on with what is already in the folder.

    Args:
        learning: what and how.
        seed: 0 or more.
        folder: made if it is not there.
        report: called with the number of episodes played after each one, and the new point of the curve, if any.

    Raises:
        MissingExtra: pyarrow or matplotlib (extra `study`) is not installed.
        RunError: the folder holds another run, another process writes there, or it cannot be read or written.
        SettingsError: an impossible seed.
        Stopped: Ctrl-C was pressed.
    """
    need_arrow()
    need_matplotlib()
    require_int("seed", seed, 0)
    store = TabularFolder.make(folder, {"scenario": learning.scenario, "seed": seed, **learning.to_json()})
    with store.lock():
        if not store.complete:
            learner = learner_of(learning.scenario)(learning, seed)
            progress = _restore(learner, folder)
            with store.session(), interruptible() as asked:
                _learn(learner, progress, asked, folder, report)
                reference = learner.reference()
                write_curve(progress.rows, learner, reference, folder)
                # Single precision is enough to play with.
                kept = {k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in learner.arrays().items()}
                save(_stored(learner, progress.done, kept), folder / TABLE)
                store.write(reference=list(reference))
    return load(folder / TABLE)


def _learn(
    learner: TabularLearner, progress: _Reached, asked: Callable[[], bool], folder: Path, report: Report | None
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
        stop = asked() and done < learning.episodes
        if row is not None or stop:
            _write_checkpoint(learner, progress, folder)
        if stop:
            raise Stopped(done)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a wish to stop; gives what tells whether it was expressed. The second one stops."""
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    with on_interrupt(note):
        yield asked.is_set


def _write_checkpoint(learner: TabularLearner, progress: _Reached, folder: Path) -> None:
    curve = json.dumps({"rows": progress.rows, "rewards": progress.rewards}).encode()
    arrays = {**learner.arrays(), _CURVE: np.frombuffer(curve, dtype=np.uint8)}
    save(_stored(learner, progress.done, arrays), folder / CHECKPOINT)


def _stored(learner: TabularLearner, episodes: int, arrays: Arrays) -> StoredTable:
    return StoredTable(learning=learner.learning, seed=learner.seed, episodes=episodes, arrays=arrays)


def _restore(learner: TabularLearner, folder: Path) -> _Reached:
    path = folder / CHECKPOINT
    if not path.exists():
        return _Reached()
    try:
        found = load(path)
        curve = json.loads(found.arrays.pop(_CURVE).tobytes())
        learner.load(found.arrays)
        return _Reached(done=found.episodes, rows=list(curve["rows"]), rewards=list(curve["rewards"]))
    except (KeyError, TypeError, ValueError, RunError) as error:
        raise RunError(f"{path} is damaged; delete it to begin anew") from error

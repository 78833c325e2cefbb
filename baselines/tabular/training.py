"""Learning from beginning to end, in a folder: continued after an interruption, with a learning curve.

A run is a folder. `run.json` says what is learned, `checkpoint.npz` holds how far it got, `curve.parquet` and
`curve.png` show the way, `table.npz` is the result. Every episode draws from a generator of its own that follows from
the seed and the episode's number, so an interruption changes nothing.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.tabular.curve import Row, check_writers, write_curve
from llm_coop_envs.baselines.tabular.evacuation import EvacuationLearner
from llm_coop_envs.baselines.tabular.kbc import KBCLearner
from llm_coop_envs.baselines.tabular.settings import EvacuationLearning, KBCLearning, Learning, check_seed
from llm_coop_envs.baselines.tabular.store import StoredTable, load, save
from llm_coop_envs.errors import RunError

PLAN, CHECKPOINT, TABLE = "run.json", "checkpoint.npz", "table.npz"
_WAY = "way"

Report = Callable[[int, Row | None], None]


class Learner(Protocol):
    """What the training loop needs of a learner."""

    def train(self, episode: int) -> float:
        """Play and learn from one episode; the mean sum of rewards."""
        ...

    def point(self) -> dict[str, float]:
        """Measures of play without exploration now."""
        ...

    def reference(self) -> tuple[str, float]:
        """What the curve is to be seen beside: its name, and its value."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has been learned."""
        ...

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Continue from what was learned."""
        ...


def make_learner(learning: Learning, seed: int) -> Learner:
    """The learner that these settings describe."""
    if isinstance(learning, KBCLearning):
        return KBCLearner(learning, seed)
    if isinstance(learning, EvacuationLearning):
        return EvacuationLearner(learning, seed)
    raise TypeError(f"{type(learning).__name__} are no settings of a tabular learner")


@dataclass
class Progress:
    """How far learning got.

    Attributes:
        done: episodes played.
        rows: points of the learning curve so far.
        rewards: mean sums of rewards of the episodes since the last point.
    """

    done: int = 0
    rows: list[Row] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class Stopped(Exception):
    """Ctrl-C was pressed; what was learned so far is kept."""

    def __init__(self, episodes: int) -> None:
        super().__init__(f"stopped after {episodes} episodes")
        self.episodes = episodes


def train(learning: Learning, seed: int, folder: Path, report: Report | None = None) -> StoredTable:
    """Learn, going on with what is already in the folder.

    Args:
        learning: the settings.
        seed: the seed.
        folder: where; made if it is not there.
        report: called with the number of episodes played after each one, and the new point of the curve, if any.

    Returns:
        The result.

    Raises:
        MissingExtra: pyarrow or matplotlib (extra `study`) is not installed.
        RunError: the folder holds another run, or cannot be read or written.
        SettingsError: an impossible seed.
        Stopped: Ctrl-C was pressed.
    """
    check_writers()
    check_seed(seed)
    _check_plan(learning, seed, folder)
    if (folder / TABLE).exists():
        return load(folder / TABLE)
    learner = make_learner(learning, seed)
    progress = _restore(learner, folder)
    rows, rewards = progress.rows, progress.rewards
    if not rows:
        rows.append({"episode": 0, "reward": None, **learner.point()})
    with interruptible() as asked:
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
                _write_checkpoint(learner, learning, seed, progress, folder)
            if stop:
                raise Stopped(done)
    write_curve(rows, learning, seed, learner.reference(), folder)
    result = StoredTable(learning=learning, seed=seed, episodes=progress.done, arrays=_compact(learner.arrays()))
    save(result, folder / TABLE)
    return result


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a wish to stop; gives what tells whether it was expressed. The second one stops."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _compact(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays in single precision: enough to play with."""
    return {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in arrays.items()}


def _write_checkpoint(learner: Learner, learning: Learning, seed: int, progress: Progress, folder: Path) -> None:
    way = json.dumps({"rows": progress.rows, "rewards": progress.rewards}).encode()
    arrays = {**learner.arrays(), _WAY: np.frombuffer(way, dtype=np.uint8)}
    save(StoredTable(learning=learning, seed=seed, episodes=progress.done, arrays=arrays), folder / CHECKPOINT)


def _restore(learner: Learner, folder: Path) -> Progress:
    """Go back to the last checkpoint, if there is one."""
    path = folder / CHECKPOINT
    if not path.exists():
        return Progress()
    try:
        found = load(path)
        way = json.loads(found.arrays.pop(_WAY).tobytes())
        learner.load(found.arrays)
        return Progress(done=found.episodes, rows=list(way["rows"]), rewards=list(way["rewards"]))
    except (KeyError, TypeError, ValueError, RunError) as error:
        raise RunError(f"{path} is damaged; delete it to begin anew") from error


def _check_plan(learning: Learning, seed: int, folder: Path) -> None:
    """Make the folder, or see that it holds the same plan."""
    path = folder / PLAN
    wanted = {"scenario": learning.scenario, "seed": seed, **learning.to_json()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
            return
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"the folder {folder} cannot be used ({error}); name another one") from error
    # Compared as JSON, in which tuples are lists.
    plain = json.loads(json.dumps(wanted))
    if found != plain:
        names = [name for name in plain if not isinstance(found, dict) or found.get(name) != plain[name]]
        raise RunError(
            f"the folder {folder} holds another run ({', '.join(names) or 'an unknown field'} differs); name another "
            "folder, or train what it was begun with"
        )

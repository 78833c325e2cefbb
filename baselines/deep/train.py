"""Train with stable-baselines3: evaluations, checkpoints, logs and resuming.

`train(settings, folder)` begins a training or continues the one in the folder. Stopped at any moment and started again,
it ends with the same weights as without the stop (with the same number of steps).
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import io
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.baselines.deep.algorithms import export, make_models
from llm_coop_envs.baselines.deep.checkpoint import load_checkpoint, save_checkpoint
from llm_coop_envs.baselines.deep.evaluate import Row, means, play_episode
from llm_coop_envs.baselines.deep.folder import (
    CHECKPOINT,
    EVALUATIONS,
    LOGS,
    MODEL,
    POLICIES,
    POLICY,
    TrainingFolder,
    open_folder,
)
from llm_coop_envs.baselines.deep.settings import MAY_CHANGE, SAMPLE, TrainSettings
from llm_coop_envs.baselines.stored import SUFFIX
from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.folder import versions
from llm_coop_envs.util.paths import StrPath

try:
    import torch  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.callbacks import BaseCallback  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.logger import configure  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtra("training", "sb3") from error


#: Takes, after each evaluation, the steps so far, the means of the measures, and the seconds since the session began.
Tell = Callable[[int, dict[str, float], float], None]


def train(
    settings: TrainSettings,
    path: StrPath,
    *,
    command: str = "",
    tell: Tell | None = None,
    count: Callable[[int], None] = lambda done: None,
) -> TrainingFolder:
    """Train, or continue the training in a folder.

    Args:
        settings: the settings of the training.
        path: the run folder, made if it does not exist.
        command: the command line, for the record.
        tell: called after each evaluation; see `Tell`.
        count: called with the steps so far before each rollout.

    Raises:
        RunError: the folder holds something else, is damaged, or cannot be written.
        SettingsError: the algorithm refuses its arguments.
    """
    # Networks this small are slower with more threads, and one thread gives the same sums everywhere.
    torch.set_num_threads(1)
    # Before the folder is made, so that arguments which the algorithm refuses leave no folder behind.
    models = make_models(settings)
    folder = open_folder(Path(path), settings)
    with folder.lock():
        if folder.done < settings.steps:
            _train(models, settings, folder, command, tell, count)
    return folder


def _train(
    models: list[Any],
    settings: TrainSettings,
    folder: TrainingFolder,
    command: str,
    tell: Tell | None,
    count: Callable[[int], None],
) -> None:
    path, done = folder.folder, folder.done
    if done:
        load_checkpoint(path / CHECKPOINT, models)
    begun = time.perf_counter()
    folder.change(**{name: getattr(settings, name) for name in MAY_CHANGE})
    with folder.session(command=command, **{"from": done, "to": done, "seconds": 0.0}) as session:
        formats = ["csv", *(["tensorboard"] if importlib.util.find_spec("tensorboard") else [])]
        keeper = _Keeper(models, folder, session, settings, tell, count, begun)
        logs = path / LOGS / str(len(folder.manifest["sessions"]))
        for seat, model in enumerate(models):
            model.set_logger(configure(str(logs / f"seat_{seat}" if seat else logs), formats))
        # Every seat counts its own steps only.
        remaining_steps = math.ceil(settings.steps / len(models)) - models[0].num_timesteps
        learners = [
            functools.partial(model.learn, remaining_steps, callback=callback, reset_num_timesteps=not done)
            for model, callback in zip(
                models, [keeper, *(_Seat(settings, len(models)) for _ in models[1:])], strict=True
            )
        ]
        try:
            if len(models) > 1:
                models[0].env.run(learners)
            else:
                learners[0]()
            keeper.keep()
            for seat, model in enumerate(models):
                model.save(path / (MODEL.replace(".", f"_{seat}.") if seat else MODEL))
        finally:
            for model in models:
                for output in model.logger.output_formats:
                    output.close()
            models[0].env.close()


class _Seat(BaseCallback):
    """Waits at the start of a rollout until all seats have learned from the last one, and lowers the entropy bonus."""

    def __init__(self, settings: TrainSettings, seats: int) -> None:
        super().__init__()
        self._settings, self._seats = settings, seats

    @property
    def _steps_done(self) -> int:
        """The steps of all seats so far."""
        return int(self.model.num_timesteps) * self._seats

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        learner: Any = self.model
        if self._seats > 1:
            learner.env.wait()
        if hasattr(learner, "ent_coef"):
            bonus = float(self._settings.hyper.get("ent_coef", 0.0))
            learner.ent_coef = bonus * max(0.0, 1.0 - self._steps_done / self._settings.steps)


class _Keeper(_Seat):
    """Evaluates and saves at the start of the first rollout after each `every` steps."""

    def __init__(
        self,
        models: Sequence[Any],
        folder: TrainingFolder,
        session: dict[str, Any],
        settings: TrainSettings,
        tell: Tell | None,
        count: Callable[[int], None],
        begun: float,
    ) -> None:
        super().__init__(settings, len(models))
        self._models, self._folder, self._session, self._tell = models, folder, session, tell
        self._count, self._begun, self._spent = count, begun, time.process_time()
        self._env = settings.environment(record=True)
        self._due = self._next(folder.done)

    def _next(self, done: int) -> int:
        every = int(self._settings.every or 1)
        return (done // every + 1) * every

    def _on_rollout_start(self) -> None:
        # Between two rollouts everything that was collected has been learned from.
        super()._on_rollout_start()
        self._count(self._steps_done)
        if self._steps_done >= self._due:
            self.keep()

    def keep(self) -> None:
        """Evaluate, then write policy, checkpoint and manifest, in this order."""
        done, path, settings = self._steps_done, self._folder.folder, self._settings
        self._due = self._next(done)
        training = settings.to_json()
        del training["every"], training["episodes"]
        about = {"training": training, "done": done, "play": settings.play, "versions": versions()}
        network = export(self._models, settings, about)
        play = settings.play or SAMPLE
        rows = [play_episode(network, self._env, seed, play=play) for seed in range(settings.episodes)]
        self._log(rows, done)
        for target in (path / POLICIES / f"{done:012d}{SUFFIX}", path / POLICY):
            write_whole(target, network.to_bytes())
        save_checkpoint(path / CHECKPOINT, self._models)
        seconds = time.perf_counter() - self._begun
        spent = round(time.process_time() - self._spent, 1)
        self._session |= {"to": done, "seconds": round(seconds, 1), "processor_seconds": spent}
        self._folder.write(done=done)
        if self._tell is not None:
            self._tell(done, means(rows), seconds)

    def _log(self, rows: list[Row], done: int) -> None:
        for name, value in means(rows).items():
            self.model.logger.record(f"evaluation/{name}", value)
        self.model.logger.dump(done)
        path = self._folder.folder / EVALUATIONS
        # An interrupted session may have evaluated these steps already.
        logged = [row for row in read_rows(path) if int(row["step"]) < done]
        logged += [{"step": done, **row} for row in rows]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(logged[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(logged)
        write_whole(path, text.getvalue().encode())


def read_rows(path: Path) -> list[Row]:
    """Read the rows of an evaluations file; none if it does not exist."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))

"""The run folder of a training.

Besides the manifest, with the settings and the progress, it holds:

checkpoint.npz    everything needed to continue
policy.npz        the latest policy; `policies/` holds one for each evaluation
evaluations.csv   one row per evaluated episode
logs/1/, ...      what stable-baselines3 logs, per session (CSV, and TensorBoard where it is installed)
model.zip         the finished learner, as stable-baselines3 saves it
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from llm_coop_envs.baselines.deep.settings import MAY_CHANGE, TrainSettings
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.folder import RunFolder

CHECKPOINT, POLICY, POLICIES = "checkpoint.npz", "policy.npz", "policies"
EVALUATIONS, LOGS, MODEL = "evaluations.csv", "logs", "model.zip"


@dataclass(kw_only=True)
class TrainingFolder(RunFolder):
    """A training; its manifest holds the fields of the settings and the number of steps `done`."""

    kind: ClassVar[str] = "training"

    @property
    def done(self) -> int:
        """The number of steps up to the checkpoint."""
        return int(self.manifest["done"])

    def _check(self) -> None:
        _ = self.done, self.manifest["env"], int(self.manifest["steps"])


def open_folder(path: Path, settings: TrainSettings) -> TrainingFolder:
    """Begin a training in a folder, or open the one in it.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    changing = {name: getattr(settings, name) for name in MAY_CHANGE}
    folder = TrainingFolder.make(path, settings.identity, **changing, done=0)
    begun = folder.manifest["steps"]
    if settings.steps < begun:
        raise RunError(f"{path}: was begun for {begun} steps; give as many or more, or another folder with -o")
    return folder

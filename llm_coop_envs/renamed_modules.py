"""Public modules under their former names, for one version: an import of one warns, and gives the module of today."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

RENAMED: Mapping[str, str] = {
    "llm_coop_envs.benchmarks.report": "llm_coop_envs.reports",
    "llm_coop_envs.benchmarks.report.build": "llm_coop_envs.reports.build",
    "llm_coop_envs.benchmarks.report.figures": "llm_coop_envs.reports.figures",
    "llm_coop_envs.benchmarks.report.section": "llm_coop_envs.reports.section",
    "llm_coop_envs.benchmarks.run": "llm_coop_envs.runs",
    "llm_coop_envs.benchmarks.run.episode": "llm_coop_envs.runs.episode",
    "llm_coop_envs.benchmarks.run.folder": "llm_coop_envs.runs.folder",
    "llm_coop_envs.benchmarks.run.runner": "llm_coop_envs.runs.runner",
    "llm_coop_envs.benchmarks.study": "llm_coop_envs.studies",
    "llm_coop_envs.benchmarks.study.seating": "llm_coop_envs.studies.seating",
    "llm_coop_envs.benchmarks.study.selection": "llm_coop_envs.studies.selection",
    "llm_coop_envs.benchmarks.study.study": "llm_coop_envs.studies.study",
    "llm_coop_envs.bertrand.after": "llm_coop_envs.bertrand.faces.after",
    "llm_coop_envs.core.hooks": "llm_coop_envs.interface.hooks",
    "llm_coop_envs.core.question": "llm_coop_envs.interface.question",
    "llm_coop_envs.core.slots": "llm_coop_envs.interface.slots",
}
"""Former names, with their packages, and the present ones. They go with version 2.0."""


class RenamedModules(MetaPathFinder, Loader):
    """Finds modules by their former names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a renamed module; `None` for every other one."""
        return ModuleSpec(name, self) if name in RENAMED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to `exec_module`: the import system writes into what is returned here."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the present module where the former one is looked for."""
        former = module.__name__
        if not any(name.startswith(f"{former}.") for name in RENAMED):  # a package is only imported on the way
            warnings.warn(
                f"{former} is now {RENAMED[former]}; the former name goes with 2.0", FutureWarning, stacklevel=2
            )
        sys.modules[former] = importlib.import_module(RENAMED[former])


def install() -> None:
    """Let former names be imported. They must be looked for first: their packages are found with the present files."""
    if not any(isinstance(finder, RenamedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, RenamedModules())

"""The scenarios by name, and where their parts are; nothing of a scenario is imported before it is asked for."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.settings import ScenarioSettings, suggestion
from llm_coop_envs.errors import StudyError

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

Event = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario as the study runner knows it.

    Attributes:
        name: its name in studies, e.g. `kbc`.
        title: its name in reports.
    """

    name: str
    title: str

    def environment(self, *, record: bool = False, **settings: Any) -> ScenarioEnv:
        """Make the parallel environment.

        Args:
            record: keep events.
            **settings: `preset` and settings by name.

        Raises:
            SettingsError: as the environment does.
        """
        make: Callable[..., ScenarioEnv] = importlib.import_module(f"llm_coop_envs.{self.name}_v0").parallel_env
        return make(record=record, **settings)

    @property
    def settings_type(self) -> type[ScenarioSettings]:
        """The class of its settings."""
        module = importlib.import_module(f"llm_coop_envs.{self.name}.settings")
        found = [
            kind
            for _, kind in inspect.getmembers(module, inspect.isclass)
            if issubclass(kind, ScenarioSettings) and kind.__module__ == module.__name__
        ]
        (only,) = found
        return only

    @property
    def policies(self) -> Mapping[str, Callable[..., Any]]:
        """Its policies by name."""
        policies: Mapping[str, Callable[..., Any]] = importlib.import_module(
            f"llm_coop_envs.{self.name}.scripted"
        ).POLICIES
        return policies

    @property
    def wordings(self) -> list[str]:
        """The names of its shipped wordings."""
        folder = Path(str(importlib.import_module(f"llm_coop_envs.{self.name}").__file__)).parent / "wordings"
        return sorted(path.name for path in folder.iterdir() if path.is_dir())

    def episode_metrics(self, events: list[Event]) -> Row:
        """What is measured of one episode, as one flat row."""
        row: Row = importlib.import_module(f"llm_coop_envs.{self.name}.metrics").episode_metrics(events)
        return row

    def round_rows(self, events: list[Event]) -> list[Row]:
        """What is measured of each round, as flat rows."""
        rows: list[Row] = importlib.import_module(f"llm_coop_envs.{self.name}.metrics").round_rows(events)
        return rows


SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="kbc", title="Keynesian beauty contest"),
        Scenario(name="bertrand", title="Bertrand competition"),
        Scenario(name="evacuation", title="Emergency evacuation"),
    )
}


def find_scenario(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        StudyError: there is none.
    """
    if name not in SCENARIOS:
        raise StudyError(f"there is no scenario '{name}'; {suggestion(name, SCENARIOS)}")
    return SCENARIOS[name]

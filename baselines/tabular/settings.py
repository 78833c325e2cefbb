"""The settings that all tabular learners share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_number

MAX_EPISODES = 10_000_000


@dataclass(frozen=True, kw_only=True)
class TabularSettings(Settings):
    """Settings of a tabular learner. Rates fall linearly from the first to the last episode.

    Attributes:
        scenario: the name of the scenario it learns.
        preset: the preset of the environment.
        changes: settings of the environment that differ from the preset's.
        episodes: number of learning episodes.
        step_size, step_size_end: share of its error by which a value moves, in the first and in the last episode.
        discount: weight of the next decision's value, 0 to 1.
        curve_every: episodes between two points of the learning curve, and between two checkpoints.
        curve_seeds: episodes without exploration per point of the curve.
    """

    scenario: ClassVar[str]
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "episodes": (1, MAX_EPISODES),
        "step_size_end": (0, 1),
        "discount": (0, 1),
        "curve_every": (1, MAX_EPISODES),
        "curve_seeds": (1, 10_000),
    }

    preset: str
    changes: dict[str, Any] = field(default_factory=dict)
    episodes: int
    step_size: float = 0.1
    step_size_end: float
    discount: float
    curve_every: int
    curve_seeds: int

    def __post_init__(self) -> None:
        """Check the shared fields."""
        super().__post_init__()
        check_number(self, "step_size", 0.0, 1.0, above=True)
        if not isinstance(self.changes, Mapping):
            raise SettingsError("changes", self.changes, "must hold settings of the environment and their values")
        for name in self.owned():
            if name in self.changes:
                raise SettingsError(name, self.changes[name], "is set by the learner; leave it out of changes")
        object.__setattr__(self, "changes", dict(self.changes))

    def owned(self) -> dict[str, Any]:
        """Settings of the environment that the learner fixes; by default none."""
        return {}

    def environment_arguments(self) -> dict[str, Any]:
        """The arguments of the environment."""
        return {"preset": self.preset, **self.changes, **self.owned()}

    def rates(self, episode: int) -> dict[str, float]:
        """The rates in an episode, by name: every setting `name` that has a `name_end`."""
        remaining = 1.0 - episode / self.episodes
        ends = {name: getattr(self, f"{name}_end", None) for name in (setting.name for setting in fields(self))}
        return {
            name: float(end + (getattr(self, name) - end) * remaining) for name, end in ends.items() if end is not None
        }

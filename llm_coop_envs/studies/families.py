"""The tests that a study is made for: its primary family, named in its file with a reason.

Their p values are adjusted together. Every other comparison is exploratory: it is shown, and nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.yaml_source import Spot

if TYPE_CHECKING:
    from llm_coop_envs.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class Primary:
    """The primary family.

    Attributes:
        measures: what is tested.
        conditions: in which conditions, each against what it is compared with; empty for all that are compared.
        why: the reason for this choice.
    """

    measures: tuple[str, ...]
    why: str
    conditions: tuple[str, ...] = ()

    def tests(self, condition: str) -> bool:
        """Whether a condition is tested; one that a grid, a variant or a player made of a named one is, too."""
        return not self.conditions or any(f"{condition}-".startswith(f"{one}-") for one in self.conditions)

    def in_words(self) -> str:
        """What is tested, why, and what becomes of the rest."""
        arms = f" in {', '.join(self.conditions)}" if self.conditions else ""
        return (
            f"primary family ({', '.join(self.measures)}{arms}: {self.why}). All other comparisons are exploratory: "
            "their p values are not adjusted, and nothing is claimed of them."
        )

    def to_json(self) -> dict[str, Any]:
        """The family as plain data."""
        return {**asdict(self), "measures": list(self.measures), "conditions": list(self.conditions)}

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Primary | None:
        """That of a run, from its manifest; `None` if its study names none."""
        told = manifest.get("primary")
        return told and cls(**{**told, "measures": tuple(told["measures"]), "conditions": tuple(told["conditions"])})


def read_primary(spot: Spot, conditions: Sequence[Condition], measures: Sequence[str]) -> Primary:
    """Read the primary family of a study with these conditions and measures.

    Raises:
        StudyError: it names what is not compared, or not shown.
    """
    fields = spot.mapping(("measures", "conditions", "why"), required=("measures", "why"))
    found = Primary(
        measures=tuple(one.text() for one in fields["measures"].items()),
        conditions=tuple(one.text() for one in fields["conditions"].items()) if "conditions" in fields else (),
        why=fields["why"].text(),
    )
    shown = measures or [name for one in conditions for name in one.spec.measured.headline]
    for item in fields["measures"].items():
        if item.text() not in shown:
            item.fail(f"'{item.text()}' is no measure that the study shows; write it into 'measures' too")
    compared = {one.name for both in comparisons(conditions) for one in both}
    for name, item in zip(found.conditions, fields["conditions"].items() if found.conditions else (), strict=True):
        if not any(Primary(measures=(), why="", conditions=(name,)).tests(one) for one in compared):
            item.fail(f"'{name}' is no condition that is compared with another; only those of a 'pair' are")
    return found


def too_few_seeds(study: Study) -> str:
    """What no test of the study can find with so few seeds, in a sentence; empty if each could find something alone.

    Holm's smallest step is counted: each test of a family must be able to come below the level beside all others.
    """
    from llm_coop_envs.statistics.comparison import ALPHA, fewest_pairs

    sizes: dict[str, tuple[int, int]] = {}
    primary = study.primary
    for first, second in comparisons(study.conditions):
        if primary and not primary.tests(second.name):
            continue
        measures = [one for one in study.measures if first.spec.measured.define(one)] or first.spec.measured.headline
        name = "the primary family" if primary else f"'{first.family}'" if first.family else first.scenario
        tests, seeds = sizes.get(name, (0, len(first.seeds)))
        tests += len([one for one in measures if primary is None or one in primary.measures])
        sizes[name] = tests, min(seeds, len(first.seeds))
    few = [
        f"with {seeds} none of the {tests} tests of {name} can come below p = {ALPHA:g}; {fewest_pairs(tests)} would do"
        for name, (tests, seeds) in sizes.items()
        if seeds < fewest_pairs(tests)
    ]
    return f"Too few seeds for a finding: {'; '.join(few)}." if few else ""


def comparisons(conditions: Iterable[Condition]) -> list[tuple[Condition, Condition]]:
    """Which conditions are compared: of each pair, all others with the one that comes first here.

    That is an arm without a treatment where some have one, else one without talk. Of the arms without a treatment it
    is the first in which players may speak as in those that are treated.
    """
    groups: dict[str, list[Condition]] = {}
    for one in conditions:
        if one.pair:
            groups.setdefault(one.pair, []).append(one)
    return [
        (first, one) for group in groups.values() for first in [_reference(group)] for one in group if one is not first
    ]


def _reference(group: Sequence[Condition]) -> Condition:
    treated = [one for one in group if one.treated]
    rest = [one for one in group if not one.treated]
    if treated and rest:
        return next((one for one in rest if one.settings["talk"] == treated[0].settings["talk"]), rest[0])
    return next((one for one in group if not one.settings["talk"]), group[0])

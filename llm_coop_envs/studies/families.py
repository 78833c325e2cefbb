"""The primary family of a study: the tests that it is made for, named in its file with a reason.

Their p values are adjusted together. All other comparisons are exploratory: they are shown without a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.yaml_source import YamlNode


@dataclass(frozen=True, kw_only=True)
class Primary:
    """The primary family.

    Attributes:
        measures: the measures that are tested.
        conditions: the conditions in which they are tested, each against its reference; empty for all that have one.
        why: the reason for this choice.
    """

    measures: tuple[str, ...]
    why: str
    conditions: tuple[str, ...] = ()

    def covers(self, condition: str) -> bool:
        """Whether a condition is tested: one that is named, or that a grid, variant or player made of a named one.

        `talk` covers `talk-gpt`, but not `talking`.
        """
        return not self.conditions or any(f"{condition}-".startswith(f"{named}-") for named in self.conditions)

    def describe(self, name_of: Callable[[str], str]) -> str:
        """The family and its reason in words for reports, which say by `name_of` how they call a measure."""
        arms = f" in {', '.join(self.conditions)}" if self.conditions else ""
        return (
            f"primary family ({', '.join(map(name_of, self.measures))}{arms}: {self.why}). All other comparisons are "
            "exploratory: their p values are not adjusted, and nothing is claimed of them."
        )

    def to_json(self) -> dict[str, Any]:
        """The family as plain data."""
        return {**asdict(self), "measures": list(self.measures), "conditions": list(self.conditions)}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Primary | None:
        """The primary family that a run's manifest records; `None` if its study names none."""
        data = manifest.get("primary")
        return data and cls(**{**data, "measures": tuple(data["measures"]), "conditions": tuple(data["conditions"])})


def read_primary(node: YamlNode, conditions: Sequence[Condition], measures: Sequence[str]) -> Primary:
    """Read `primary`.

    Args:
        node: the field's value.
        conditions: the study's conditions.
        measures: the study's measures; empty if it names none, and each scenario's headline measures count.

    Raises:
        StudyError: it names a measure that is not shown, or a condition that is not compared.
    """
    fields = node.mapping(("measures", "conditions", "why"), required=("measures", "why"))
    measure_nodes = fields["measures"].items()
    condition_nodes = fields["conditions"].items() if "conditions" in fields else []
    primary = Primary(
        measures=tuple(measure.text() for measure in measure_nodes),
        conditions=tuple(condition.text() for condition in condition_nodes),
        why=fields["why"].text(),
    )
    shown_measures = measures or [name for condition in conditions for name in condition.spec.measured.headline]
    for measure in measure_nodes:
        if measure.text() not in shown_measures:
            measure.fail(f"'{measure.text()}' is no measure that the study shows; write it into 'measures' too")
    compared = {condition.name for pair in comparisons(conditions) for condition in pair}
    for name, condition_node in zip(primary.conditions, condition_nodes, strict=True):
        if not any(Primary(measures=(), why="", conditions=(name,)).covers(other) for other in compared):
            condition_node.fail(f"'{name}' is no condition that is compared with another; only those of a 'pair' are")
    return primary


def comparisons(conditions: Iterable[Condition]) -> list[tuple[Condition, Condition]]:
    """The pairs of conditions that are compared, as (reference, other).

    All conditions with the same `pair` are compared with one of them, the reference: where some are treated, the first
    untreated one with the same `talk` as the first treated one, or else the first untreated one; where none or all are
    treated, the first without talk, or else the first.
    """
    groups: dict[str, list[Condition]] = {}
    for condition in conditions:
        if condition.pair and condition.tournament is None:
            groups.setdefault(condition.pair, []).append(condition)
    return [
        (first, other)
        for group in groups.values()
        for first in [_find_reference(group)]
        for other in group
        if other is not first
    ]


def _find_reference(group: Sequence[Condition]) -> Condition:
    treated = [condition for condition in group if condition.is_treated]
    untreated = [condition for condition in group if not condition.is_treated]
    if treated and untreated:
        return next(
            (condition for condition in untreated if condition.settings["talk"] == treated[0].settings["talk"]),
            untreated[0],
        )
    return next((condition for condition in group if not condition.settings["talk"]), group[0])

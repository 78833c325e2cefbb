"""Contrasts: which arms of a run are compared, what each measure differs by, and which tests form a family."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.reports.section import PlayedCondition, ScenarioSection, values_of
from llm_coop_envs.statistics.comparison import Comparison, holm
from llm_coop_envs.studies.families import Primary, comparisons


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Two arms that are compared.

    Attributes:
        section: the section of their scenario.
        first: the reference arm.
        second: the other arm.
        comparisons: the difference in each measure; none if an arm is invalid.
        without_flagged: the same without flagged choices, which is never tested; empty if no choice was flagged.
        invalid: the titles of the arms that are invalid.
        family_name: the family of tests, if the study's files do not decide it.
        primary: the study's primary family; `None` if it names none, and everything is tested.
        adjusted: the p value of each of `comparisons`, adjusted within its family; `None` where there is none.
    """

    section: ScenarioSection[Any]
    first: PlayedCondition[Any]
    second: PlayedCondition[Any]
    comparisons: list[Comparison]
    without_flagged: list[Comparison] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    family_name: str = ""
    primary: Primary | None = None
    adjusted: list[float | None] = field(default_factory=list)

    @property
    def family(self) -> str:
        """The family of tests within which p is adjusted: the one that the study names, else all of the scenario."""
        if self.primary:
            return "primary"
        return self.family_name or self.first.condition.family or f"scenario {self.section.scenario.name}"

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two conditions."""
        return self.first.condition.name, self.second.condition.name

    @property
    def tests(self) -> list[Comparison]:
        """The comparisons that are tests of the family."""
        return [comparison for comparison in self.comparisons if self.is_test(comparison)]

    def is_test(self, comparison: Comparison) -> bool:
        """Whether a comparison is a test of the family: it has a p value, and is not exploratory."""
        return comparison.p is not None and not self.is_exploratory(comparison)

    def is_exploratory(self, comparison: Comparison) -> bool:
        """Whether the study names a primary family and the comparison is not in it."""
        primary = self.primary
        return primary is not None and not (comparison.measure in primary.measures and primary.covers(self.names[1]))

    def findings(self) -> list[str]:
        """The finding on each measure, see `Comparison.finding`; `"explored"` for exploratory ones that differ."""
        findings = [test.finding(p) for test, p in zip(self.comparisons, self.adjusted, strict=True)]
        return [
            "explored" if self.is_exploratory(test) and finding != "same" else finding
            for test, finding in zip(self.comparisons, findings, strict=True)
        ]


def compare_arms(
    sections: Iterable[ScenarioSection[Any]],
    chosen: Sequence[str],
    invalid: Collection[str] = (),
    primary: Primary | None = None,
) -> list[Contrast]:
    """Compare the arms of a run, each with its reference; see `families.comparisons`.

    Args:
        sections: the run's sections.
        chosen: the measures that the study names; a scenario that has none of them shows its headline measures.
        invalid: the names of invalid conditions, which are not tested.
        primary: the study's primary family, if it names one.
    """
    contrasts = [
        _contrast(section, first, second, chosen, invalid, primary)
        for section in sections
        for first, second in compared_arms([section])
    ]
    adjust(contrasts)
    return contrasts


def compared_arms(
    sections: Iterable[ScenarioSection[Any]],
) -> Iterator[tuple[PlayedCondition[Any], PlayedCondition[Any]]]:
    """Yield each compared arm after its reference arm; see `families.comparisons`."""
    for section in sections:
        arms = {arm.condition.name: arm for arm in section.conditions}
        for first, second in comparisons(arm.condition for arm in section.conditions):
            yield arms[first.name], arms[second.name]


def _contrast(
    section: ScenarioSection[Any],
    first: PlayedCondition[Any],
    second: PlayedCondition[Any],
    chosen: Sequence[str],
    invalid: Collection[str],
    primary: Primary | None,
) -> Contrast:
    measures = measures_of(section, (first, second), chosen)
    flagged = first.flagged or second.flagged
    invalid_titles = [arm.condition.title for arm in (first, second) if arm.condition.name in invalid]
    return Contrast(
        section=section,
        first=first,
        second=second,
        comparisons=[] if invalid_titles else differences(first, second, measures),
        without_flagged=differences(first.unflagged or first, second.unflagged or second, measures)
        if flagged and not invalid_titles
        else [],
        invalid=invalid_titles,
        primary=primary,
    )


def adjust(contrasts: Sequence[Contrast]) -> None:
    """Adjust the p values within each family (Holm 1979)."""
    families: dict[str, list[float]] = {}
    for contrast in contrasts:
        families.setdefault(contrast.family, []).extend(test.p for test in contrast.tests if test.p is not None)
    adjusted = {name: iter(holm(values)) for name, values in families.items()}
    for contrast in contrasts:
        contrast.adjusted[:] = [
            next(adjusted[contrast.family]) if contrast.is_test(test) else None for test in contrast.comparisons
        ]


def differences(first: PlayedCondition[Any], second: PlayedCondition[Any], measures: Sequence[str]) -> list[Comparison]:
    """Compare two arms in each measure that both have: in pairs by seed if they share seeds, else unpaired."""
    paired = not set(first.seeds).isdisjoint(second.seeds)
    return [
        Comparison.by_key(name, _values_by_seed(first, name), _values_by_seed(second, name), paired=paired)
        for name in measures
        if all(any(name in row for row in arm.metrics) for arm in (first, second))
    ]


def _values_by_seed(arm: PlayedCondition[Any], measure: str) -> dict[int, float]:
    pairs = zip(arm.seeds, values_of(arm.metrics, measure), strict=True)
    return {seed: value for seed, value in pairs if value is not None}


def measures_of(
    section: ScenarioSection[Any], arms: Iterable[PlayedCondition[Any]], chosen: Sequence[str]
) -> list[str]:
    """The chosen measures that some arm has, else the scenario's headline measures."""
    measured = {name for arm in arms for row in arm.metrics for name in row}
    return [name for name in chosen if name in measured] or list(section.scenario.measured.headline)

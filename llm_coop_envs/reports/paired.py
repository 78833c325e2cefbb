"""What the arms of the comparisons of a report differ by, in tables and in plain words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from llm_coop_envs.core.settings import plain
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow, interval_cell
from llm_coop_envs.reports.section import PlayedCondition, ScenarioSection, values_of
from llm_coop_envs.statistics.comparison import ALPHA, Comparison, fewest_pairs, holm, pairs_needed
from llm_coop_envs.statistics.intervals import mean_interval
from llm_coop_envs.studies.families import Primary, comparisons
from llm_coop_envs.treatments.regulator import SEAT

POWERS = (0.8, 0.9)
FEWEST_IN_PILOT = 3
_HOW_TO_READ = (
    "The unit is the episode; episodes with the same seed are pairs, and the columns of the two arms hold pairs alone. "
    "Difference: mean over the pairs, with its 95 % interval by Student's t. Effect size: mean over standard deviation "
    "of the differences (Cohen's d_z), with its 95 % interval by the noncentral t distribution; a dash if they do not "
    "vary. p: two-sided, by a permutation test that turns pairs round; below it, the smallest p that so many pairs can "
    "reach."
)


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Two conditions that are compared.

    Attributes:
        section: the section that they stand in.
        first: the one that is compared with.
        second: the other one.
        comparisons: what they differ by in each measure, for the tests of their family.
        rest: the same without flagged choices, which is no test of its own; empty if no choice was flagged.
        bad: the titles of those whose numbers do not count.
        family_name: the family of tests, if it is none of the study's.
        primary: the study's primary family; `None` if it names none, and all is tested.
        adjusted: the p value of each of `comparisons`, adjusted within the family; `None` where there is none.
    """

    section: ScenarioSection[Any]
    first: PlayedCondition[Any]
    second: PlayedCondition[Any]
    comparisons: list[Comparison]
    rest: list[Comparison] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    family_name: str = ""
    primary: Primary | None = None
    adjusted: list[float | None] = field(default_factory=list)

    @property
    def family(self) -> str:
        """The family of tests that p is adjusted in: that which the study names, else all of the scenario."""
        if self.primary:
            return "primary"
        return self.family_name or self.first.condition.family or f"scenario {self.section.scenario.name}"

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two conditions."""
        return self.first.condition.name, self.second.condition.name

    @property
    def tests(self) -> list[Comparison]:
        """Those of the comparisons that are tests of the family, and have a p value."""
        return [one for one in self.comparisons if self.is_test(one)]

    def is_test(self, one: Comparison) -> bool:
        """Whether a comparison is a test of the family; else it has no p value, or is exploratory."""
        return one.p is not None and not self.explores(one)

    def explores(self, one: Comparison) -> bool:
        """Whether a comparison is none of the study's primary family."""
        primary = self.primary
        return primary is not None and not (one.measure in primary.measures and primary.covers(self.names[1]))

    def findings(self) -> list[str]:
        """What can be said of each measure; see `Comparison.finding`. `"explored"` where nothing is claimed."""
        found = [one.finding(p) for one, p in zip(self.comparisons, self.adjusted, strict=True)]
        return [
            "explored" if self.explores(one) and finding != "same" else finding
            for one, finding in zip(self.comparisons, found, strict=True)
        ]


def paired_arms(
    sections: Iterable[ScenarioSection[Any]],
    chosen: Sequence[str],
    invalid: Collection[str] = (),
    primary: Primary | None = None,
) -> list[Arms]:
    """All comparisons of a run; see `families.comparisons`.

    Args:
        sections: the run's sections.
        chosen: the measures; a scenario's headline measures where the study names none of its.
        invalid: the names of conditions whose numbers do not count; they are not tested.
        primary: the study's primary family, if it names one.
    """
    found = [
        replace(_arms(section, first, second, chosen, invalid), primary=primary)
        for section in sections
        for first, second in compared([section])
    ]
    adjust(found)
    return found


def compared(
    sections: Iterable[ScenarioSection[Any]],
) -> Iterator[tuple[PlayedCondition[Any], PlayedCondition[Any]]]:
    """Which conditions are compared, each with the one before it; see `families.comparisons`."""
    for section in sections:
        played = {one.condition.name: one for one in section.conditions}
        for first, second in comparisons(one.condition for one in section.conditions):
            yield played[first.name], played[second.name]


def adjust(arms: Sequence[Arms]) -> None:
    """Adjust the p values within each family (Holm 1979)."""
    families: dict[str, list[float]] = {}
    for one in arms:
        families.setdefault(one.family, []).extend(p for test in one.tests if (p := test.p) is not None)
    left = {name: iter(holm(values)) for name, values in families.items()}
    for one in arms:
        one.adjusted[:] = [next(left[one.family]) if one.is_test(test) else None for test in one.comparisons]


def differences(first: PlayedCondition[Any], second: PlayedCondition[Any], measures: Sequence[str]) -> list[Comparison]:
    """What two arms differ by, for the measures that both have; by seed if they share seeds, else unpaired."""
    found = []
    for name in measures:
        if not all(any(name in row for row in one.metrics) for one in (first, second)):
            continue
        before, after = (
            {
                seed: value
                for seed, value in zip(one.seeds, values_of(one.metrics, name), strict=True)
                if value is not None
            }
            for one in (first, second)
        )
        paired = not set(first.seeds).isdisjoint(second.seeds)
        both = [seed for seed in before if seed in after]
        values = [tuple(arm[seed] for seed in (both if paired else arm)) for arm in (before, after)]
        found.append(Comparison(measure=name, first=values[0], second=values[1], paired=paired))
    return found


def measures_of(
    section: ScenarioSection[Any], conditions: Iterable[PlayedCondition[Any]], chosen: Sequence[str]
) -> list[str]:
    """The chosen measures that some conditions have, else the scenario's headline measures."""
    known = {name for one in conditions for row in one.metrics for name in row}
    return [name for name in chosen if name in known] or list(section.scenario.measured.headline)


def paired_tables(found: Sequence[Arms], section: ScenarioSection[Any]) -> list[ReportTable]:
    """A table for each two arms of a section, and one that says how many pairs would find such differences.

    Args:
        found: all comparisons of the run.
        section: the section.
    """
    mine = [one for one in found if one.section is section]
    families = [one.family for one in mine]
    tables = [
        _table(
            one,
            [other for other in found if other.family == one.family],
            first=not place,
            first_of_family=one.family not in families[:place],
        )
        for place, one in enumerate(mine)
    ]
    needed = power_table(mine)
    return tables if needed is None else [*tables, needed]


def power_table(found: Iterable[Arms]) -> ReportTable | None:
    """How many pairs would find the differences that were seen; `None` if no three pairs differ in any."""
    rows = [
        TableRow(
            name=test.measure,
            below=f"{one.second.condition.title} minus {one.first.condition.title}",
            conditions=one.names,
            cells=[
                Cell(text=test.episodes),
                interval_cell(test.interval),
                interval_cell(test.effect),
                *(_needed(test, power) for power in POWERS),
            ],
        )
        for one in found
        if not one.bad
        for test in one.comparisons
        if test.effect is not None and test.paired and len(test.first) >= FEWEST_IN_PILOT
    ]
    if not rows:
        return None
    return ReportTable(
        title="How many seeds the next study needs",
        head=["measure", "pairs here", "difference", "effect size", *(f"pairs for {p:.0%}" for p in POWERS)],
        rows=rows,
        notes=[
            f"Pairs with which a two-sided test at {ALPHA:g} finds, with that probability, a difference as large "
            f"as the one seen here, by the noncentral t distribution; never fewer than {fewest_pairs()}, with "
            "which a permutation test cannot come below that level. Below: the same for the ends of the effect "
            "size's 95 % interval. A pilot's effect is uncertain, and one that was chosen because it was large is "
            "too large: plan for the smallest effect that would matter. For a family of tests more are needed.",
        ],
    )


def _needed(test: Comparison, power: float) -> Cell:
    """How many pairs, for the effect that was seen and for the ends of its interval."""
    assert test.effect is not None
    assert test.effect.low is not None
    assert test.effect.high is not None
    ends = sorted(map(abs, (test.effect.low, test.effect.high)))
    unsure = test.effect.low <= 0 <= test.effect.high
    least, most = (pairs_needed(ends[1], power), None if unsure else pairs_needed(ends[0], power))
    text, low = (_count(pairs_needed(abs(test.effect.mean), power)), _count(least))
    if most is None:
        return Cell(text=text, below=f"{low} or more")
    return Cell(text=text, below=f"{low} to {_count(most)}" if most != least else "")


def _count(pairs: int | None) -> str:
    return "over a million" if pairs is None else f"{pairs:,}"


def _arms(
    section: ScenarioSection[Any],
    first: PlayedCondition[Any],
    second: PlayedCondition[Any],
    chosen: Sequence[str],
    invalid: Collection[str],
) -> Arms:
    measures = measures_of(section, (first, second), chosen)
    flagged = first.flagged or second.flagged
    bad = [one.condition.title for one in (first, second) if one.condition.name in invalid]
    return Arms(
        section=section,
        first=first,
        second=second,
        comparisons=[] if bad else differences(first, second, measures),
        rest=differences(first.unflagged or first, second.unflagged or second, measures) if flagged and not bad else [],
        bad=bad,
    )


def _table(one: Arms, family: Sequence[Arms], *, first: bool, first_of_family: bool) -> ReportTable:
    """What two arms differ by; how to read it is said once, in the first table, and so is what a family holds."""
    define = one.section.define
    rows = [
        _row(one, test, test.measure, define(test.measure), p)
        for test, p in zip(one.comparisons, one.adjusted, strict=True)
        if test.interval is not None
    ]
    rows += [
        _row(one, test, f"{test.measure}, without flagged choices", "", None)
        for test in one.rest
        if test.interval is not None
    ]
    a, b = one.first.condition.title, one.second.condition.title
    lead = (
        f"Nothing can be said: {' and '.join(one.bad)} {'is' if len(one.bad) == 1 else 'are'} invalid."
        if one.bad
        else ""
    )
    return ReportTable(
        title=f"{b} minus {a}, seed by seed",
        lead=lead or in_words(one, family),
        head=["measure", a, b, "difference", "effect size", "pairs", "p", "p, Holm"],
        rows=rows,
        notes=[
            _what_differs(one.first, one.second),
            *([_HOW_TO_READ] if first else []),
            *([family_note(family)] if first_of_family and _tests(family) else []),
            *one.section.flag_notes(),
        ],
    )


def family_note(family: Sequence[Arms]) -> str:
    """Which tests p was adjusted for, and whether that leaves anything to be found."""
    tests = _tests(family)
    named, primary = family[0].first.condition.family, family[0].primary
    told = f"'p, Holm' is adjusted (Holm 1979) for the {len(tests)} tests of " + (
        f"the study's {primary.describe()}"
        if primary
        else f"the family '{named}', which the study names."
        if named
        else "all comparisons of this scenario: the study names no family."
    )
    if _hopeless(tests):
        pairs = max(len(test.first) for test in tests)
        told += (
            f" With {pairs} pairs p cannot come below {_p(min(test.smallest_p for test in tests))}, which is too much "
            f"for any of {len(tests)} tests; {fewest_pairs(len(tests))} pairs would do."
        )
    return told


def _tests(family: Sequence[Arms]) -> list[Comparison]:
    return [test for one in family for test in one.tests]


def _hopeless(tests: Sequence[Comparison]) -> bool:
    """Whether a family has so many tests that none can find anything with so few pairs."""
    return bool(tests) and min(test.smallest_p for test in tests) * len(tests) > ALPHA


def in_words(one: Arms, family: Sequence[Arms]) -> str:
    """What was found, in a paragraph: what is higher, lower, the same, unclear, or measured too seldom."""
    told = []
    findings = one.findings()
    tests = len(found) if _hopeless(found := _tests(family)) else 1
    if tests > 1:
        findings = ["few" if finding == "unclear" else finding for finding in findings]
    for test, finding, adjusted in zip(one.comparisons, findings, one.adjusted, strict=True):
        if finding in ("higher", "lower") and adjusted is not None:
            told.append(f"{test.measure} is {finding} ({numbers(test, adjusted)})")

    def named(kind: str) -> list[str]:
        return [
            test.measure
            for test, finding in zip(one.comparisons, findings, strict=True)
            if finding == kind and test.interval is not None
        ]

    if same := named("same"):
        told.append(f"{_and(same)} {'is' if len(same) == 1 else 'are'} the same in every pair")
    if unclear := named("unclear"):
        told.append(f"no difference in {_and(unclear)} can be told from chance")
    if few := named("few"):
        fewest = f"{fewest_pairs(tests)} pairs are the fewest that can tell anything"
        among = f" in a family of {tests} tests" if tests > 1 else ""
        told.append(f"nothing can be said of {_and(few)}: {fewest}{among}")
    if explored := named("explored"):
        told.append(f"{_and(explored)} {'is' if len(explored) == 1 else 'are'} shown without a claim")
    if without := [test.measure for test in one.comparisons if test.interval is None]:
        told.append(f"no pair has a value of {_and(without)} in both")
    first, second = one.first.condition.title, one.second.condition.title
    return f"{second} against {first}: {'; '.join(told)}." if told else "Nothing can be said: no measure is in both."


def numbers(test: Comparison, adjusted: float, unit: str = "episodes") -> str:
    """A difference with everything one must know to judge it, in words."""
    difference, effect = interval_cell(test.interval), interval_cell(test.effect)
    told = [
        f"difference {difference.text}",
        f"95 % interval {difference.below}" if difference.below != "always" else "always",
    ]
    if test.effect is not None:
        told.append(f"{'d_z' if test.paired else 'g'} {effect.text}, {effect.below}")
    told.append(f"{test.episodes} {'pairs' if test.paired else f'{unit}, unpaired'}")
    told.append(f"p {_p(test.p)}, Holm {_p(adjusted)}, smallest possible {_p(test.smallest_p)}")
    return "; ".join(told)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _p(value: float | None) -> str:
    return NOTHING.text if value is None else np.format_float_positional(value, 3, fractional=False, trim="-")


def _row(one: Arms, test: Comparison, name: str, below: str, adjusted: float | None) -> TableRow:
    return TableRow(
        name=name,
        below=below,
        conditions=one.names,
        cells=[
            *(
                interval_cell(mean_interval(values), within=one.section.bounds(test.measure))
                for values in (test.first, test.second)
            ),
            interval_cell(test.interval),
            interval_cell(test.effect),
            Cell(text=test.episodes),
            _p_cell(test.p, "" if test.p is None else f"{_p(test.smallest_p)} possible"),
            _p_cell(adjusted),
        ],
    )


def _p_cell(p: float | None, below: str = "") -> Cell:
    return Cell(text=_p(p), below=below, number=p)


def _what_differs(first: PlayedCondition[Any], second: PlayedCondition[Any]) -> str:
    """In what two arms differ: nobody should call talk's what may be the players'."""
    before, after = (plain(one.condition.settings) for one in (first, second))
    names = [name for name in {**before, **after} if name != "changes" and before.get(name) != after.get(name)]
    changing = [one for one in second.condition.change_descriptions if one not in first.condition.change_descriptions]
    changing += [
        f"not {one}" for one in first.condition.change_descriptions if one not in second.condition.change_descriptions
    ]
    a, b = (
        [seat for seat in one.condition.seats if "regulator" not in names or seat[0] != SEAT] for one in (first, second)
    )
    if not names and len(changing) == 1 and a == b:
        return f"The two differ in nothing but this: {changing[0]}. Until then they are the same, seed by seed."
    names += changing
    if a != b:
        names.append("who plays")
    if not names:
        return (
            "The two are set and played alike: what tells them apart is asked of language models alone, and none plays."
        )
    if names == ["who plays"]:
        return "The two differ in nothing but who plays: same settings and seeds."
    if len(names) == 1:
        return f"The two differ in nothing but {names[0]}: same players, seeds and random numbers."
    return f"The two differ in: {', '.join(names)}. The difference is that of all of these together."

"""What the arms of one comparison differ by, seed by seed, and in plain words."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from llm_coop_envs.benchmarks.report.page_parts import (
    NOTHING,
    Cell,
    ReportTable,
    TableRow,
    decimals_for,
    fixed,
    interval_cell,
)
from llm_coop_envs.benchmarks.report.section import PlayedCondition, ScenarioSection, values_of
from llm_coop_envs.core.settings import plain
from llm_coop_envs.core.statistics import Interval, bootstrap_mean

#: With fewer pairs intervals are too narrow to tell anything by.
FEWEST_PAIRS = 5


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """By how much a measure differs between two arms, over the seeds that both have a value for.

    Attributes:
        measure: its name.
        first: its values in the arm that is compared with.
        second: those in the other arm, for the same seeds.
    """

    measure: str
    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def differences(self) -> list[float]:
        """Second minus first, for each pair; none where they differ by rounding only, as sums in another order do."""
        pairs = zip(self.first, self.second, strict=True)
        return [0.0 if math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) else b - a for a, b in pairs]

    @property
    def interval(self) -> Interval | None:
        """The mean difference with its interval; `None` without pairs."""
        return bootstrap_mean(self.differences)

    @property
    def effect(self) -> float | None:
        """Mean over standard deviation of the differences (Cohen's d_z); `None` if they do not vary."""
        found = self.differences
        spread = stdev(found) if len(found) > 1 else 0.0
        return mean(found) / spread if spread > 1e-9 * max(map(abs, (*self.first, *self.second))) else None

    @property
    def finding(self) -> str:
        """`"higher"`, `"lower"`, `"same"` in all pairs, `"unclear"`, or `"few"` pairs."""
        found = self.interval
        if len(self.first) < FEWEST_PAIRS or found is None or found.low is None or found.high is None:
            return "few"
        if found.low == found.high == 0:
            return "same"
        return "higher" if found.low > 0 else "lower" if found.high < 0 else "unclear"


def paired_tables(
    section: ScenarioSection[Any], chosen: Sequence[str], invalid: Collection[str] = ()
) -> list[ReportTable]:
    """A table for each two arms of a comparison among a section's conditions.

    The first arm without talk, else the first, is what the others are compared with.

    Args:
        section: the section.
        chosen: the measures; the scenario's headline measures if the study names none of its.
        invalid: the names of conditions whose numbers do not count.
    """
    arms: dict[str, list[PlayedCondition[Any]]] = {}
    for one in section.conditions:
        if one.condition.pair:
            arms.setdefault(one.condition.pair, []).append(one)
    found = []
    for group in arms.values():
        first = next((one for one in group if not one.talk), group[0])
        for second in group:
            if second is not first:
                found.append(_table(section, first, second, chosen, invalid))
    return found


def differences(
    first: PlayedCondition[Any], second: PlayedCondition[Any], measures: Sequence[str]
) -> list[PairedDifference]:
    """What two arms differ by, for the measures that both have."""
    found = []
    for name in measures:
        if not all(any(name in row for row in one.metrics) for one in (first, second)):
            continue
        before, after = (dict(zip(one.seeds, values_of(one.metrics, name), strict=True)) for one in (first, second))
        pairs = [(a, b) for seed, a in before.items() if a is not None and (b := after.get(seed)) is not None]
        found.append(
            PairedDifference(measure=name, first=tuple(a for a, _ in pairs), second=tuple(b for _, b in pairs))
        )
    return found


def _table(
    section: ScenarioSection[Any],
    first: PlayedCondition[Any],
    second: PlayedCondition[Any],
    chosen: Sequence[str],
    invalid: Collection[str],
) -> ReportTable:
    known = {name for one in (first, second) for row in one.metrics for name in row}
    measures = [name for name in chosen if name in known] or list(section.scenario.measured.headline)
    found = differences(first, second, measures)
    rows = [_row(one, one.measure, section.define(one.measure)) for one in found]
    if first.flagged or second.flagged:
        rest = differences(first.unflagged or first, second.unflagged or second, measures)
        rows += [_row(one, f"{one.measure}, without flagged choices", "") for one in rest]
    a, b = first.condition.title, second.condition.title
    bad = [one.condition.title for one in (first, second) if one.condition.name in invalid]
    lead = f"Nothing can be said: {' and '.join(bad)} {'is' if len(bad) == 1 else 'are'} invalid." if bad else ""
    return ReportTable(
        title=f"{b} minus {a}, seed by seed",
        lead=lead or in_words(a, b, found),
        head=["measure", a, b, "difference", "effect size", "pairs"],
        rows=rows,
        notes=[
            _what_differs(first, second),
            "Difference: mean over pairs of episodes with the same seed, with its 95 % bootstrap interval, for each "
            "measure by itself. Effect size: mean over standard deviation of the differences (Cohen's d_z); a dash "
            "if they do not vary.",
            *section.flag_notes(),
        ],
    )


def in_words(first: str, second: str, found: Sequence[PairedDifference]) -> str:
    """What was found, in a paragraph: what is higher, lower, the same, unclear, or measured too seldom."""
    told = []
    for one in found:
        if one.finding in ("higher", "lower") and (interval := one.interval) is not None:
            by = interval_cell(interval)
            sure = "in every pair" if by.below == "always" else f"95 % interval {by.below}"
            told.append(f"{one.measure} is {one.finding} (difference {by.text}; {sure})")
    same, unclear, few = ([one.measure for one in found if one.finding == kind] for kind in ("same", "unclear", "few"))
    if same:
        told.append(f"{_and(same)} {'is' if len(same) == 1 else 'are'} the same in every pair")
    if unclear:
        told.append(f"no difference in {_and(unclear)} can be told from chance")
    if few:
        told.append(f"nothing can be said of {_and(few)}, for which there are fewer than {FEWEST_PAIRS} pairs")
    return f"{second} against {first}: {'; '.join(told)}." if told else "Nothing can be said: no measure is in both."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _row(one: PairedDifference, name: str, below: str) -> TableRow:
    effect = one.effect
    cells = [interval_cell(bootstrap_mean(values)) for values in (one.first, one.second)]
    effects = NOTHING if effect is None else Cell(text=fixed(effect, decimals_for([effect])))
    return TableRow(
        name=name, below=below, cells=[*cells, interval_cell(one.interval), effects, Cell(text=str(len(one.first)))]
    )


def _what_differs(first: PlayedCondition[Any], second: PlayedCondition[Any]) -> str:
    """In what two arms differ: nobody should call talk's what may be the players'."""
    before, after = (plain(one.condition.settings) for one in (first, second))
    names = [name for name in after if before.get(name) != after[name]]
    if first.condition.seats != second.condition.seats:
        names.append("who plays")
    if names == ["talk"]:
        return "The two differ in nothing but talk: same players, seeds and random numbers."
    return f"The two differ in: {', '.join(names) or 'nothing'}. The difference is that of all of these together."

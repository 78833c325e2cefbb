"""What two runs differ by, condition by condition of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import RunError
from llm_coop_envs.reports.paired import Arms, adjust, differences, measures_of, numbers
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.reports.section import PlayedCondition, ScenarioSection
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.statistics.comparison import ALPHA
from llm_coop_envs.util.checks import suggestion


def compare_runs(
    first: Path, second: Path, measures: Sequence[str] = (), *, any_settings: bool = False
) -> tuple[list[str], str]:
    """The differences between two runs that survive Holm, all measures of all conditions being one family.

    Args:
        first: the run folder that is compared with.
        second: the other run folder.
        measures: what is compared; by default what the first run's study names, else the headline measures.
        any_settings: compare conditions although their settings differ.

    Returns:
        A sentence for each difference, and one that says what was tested.

    Raises:
        RunError: a run is damaged or incomplete, no condition is in both, their settings differ, a measure is in
            neither, or a condition is invalid.
        MissingExtra: SciPy is not installed.
    """
    runs = open_run(first), open_run(second)
    shared = _comparable(*runs, any_settings)
    read = [_sections(run, shared) for run in runs]
    chosen = measures or runs[0].manifest["measures"]
    arms = []
    for name in shared:
        (section, one), (_, other) = (found[name] for found in read)
        told = measures_of(section, (one, other), chosen)
        arms.append(
            Arms(
                section=section, first=one, second=other, comparisons=differences(one, other, told), family_name="runs"
            )
        )
    known = sorted({name for one in arms for row in one.first.metrics for name in row})
    for name in measures:
        if name not in known:
            raise RunError(f"--measure {name}: no episode has it; {suggestion(name, known)}")
    adjust(arms)
    tests = [
        (one.first.condition.name, test, p)
        for one in arms
        for test, p in zip(one.comparisons, one.adjusted, strict=True)
        if p is not None
    ]
    if not tests:
        raise RunError(f"{second}: too few seeds: no condition has two episodes or more in both runs")
    found = [
        f"{name}: {test.measure} is {finding} in {second} ({numbers(test, p)})"
        for name, test, p in tests
        if (finding := test.finding(p)) in ("higher", "lower")
    ]
    least = min(test.smallest_p for _, test, _ in tests)
    summary = (
        f"{len(found) or 'None'} of {len(tests)} differences survive Holm (1979) at {ALPHA:g}: {len(shared)} "
        f"conditions, {second} minus {first}; smallest possible p {least:.3g}"
    )
    if least * len(tests) > ALPHA:
        summary += f", too much for any of {len(tests)} tests: too few seeds"
    return found, f"{summary}."


def _comparable(first: Run, second: Run, any_settings: bool) -> list[str]:
    """The names of the conditions that both runs have, which must have the same settings."""
    before, after = ({one.name: one for one in run.conditions} for run in (first, second))
    shared = [name for name in before if name in after]
    if not shared:
        raise RunError(
            f"{second.folder}: no condition has the name of one in {first.folder} (there: {', '.join(before)}; here: "
            f"{', '.join(after)})"
        )
    for name in shared:
        one, other = before[name], after[name]
        sides = [
            {"scenario": c.scenario, **(c.settings if c.scenario == one.scenario else {}), "after": c.after}
            for c in (one, other)
        ]
        differs = next(
            (key for key in sides[0] | sides[1] if plain(sides[0].get(key)) != plain(sides[1].get(key))), None
        )
        if differs == "scenario" or (differs and not any_settings):
            raise RunError(
                f"condition '{name}' cannot be compared: {differs} is {plain(sides[0].get(differs))!r} in "
                f"{first.folder} and {plain(sides[1].get(differs))!r} in {second.folder}"
                + ("" if differs == "scenario" else "; --any-settings compares them all the same")
            )
    return shared


def _sections(run: Run, shared: Sequence[str]) -> dict[str, tuple[ScenarioSection[Any], PlayedCondition[Any]]]:
    """A run's section and episodes of each shared condition.

    Raises:
        RunError: episodes are missing, or an arm is invalid.
    """
    there = len(run.finished())
    if there < run.total:
        raise RunError(f"{run.folder}: has {there} of {run.total} episodes; continue it with 'llm-coop run' first")
    found = {one.condition.name: (section, one) for section in read_run(run)[0] for one in section.conditions}
    for name in shared:
        if why := found[name][1].invalid:
            raise RunError(f"{run.folder}: condition '{name}' is invalid and nothing can be said of it: {why}")
    return found

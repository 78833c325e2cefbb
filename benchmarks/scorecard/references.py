"""Reference rows: the scores of other players in the same suite, recorded from runs.

    python -m llm_coop_envs.benchmarks.scorecard.references random=runs/random rules=runs/rules

replaces the recorded rows by those of run folders, each with its date, versions, prompts and command. Rows of a former
version of the suite stay in the record until they are played again; they stand beside no scorecard and place no score.
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
    """Return the recorded rows of the same suite as a scorecard."""
    rows: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return [row for row in rows if (row["version"], row["sha256"]) == (card["version"], card["sha256"])]


def record(name: str, folder: Path) -> dict[str, Any]:
    """Make the reference row of a run.

    Raises:
        RunError: It has no scorecard.
    """
    card, manifest = read_card(folder), open_run(folder).manifest
    session, packs = manifest["sessions"][-1], [model["pack"] for model in manifest["models"]]
    names = ("tendency", "scenario", "score", "best", "low", "high", "scored", "episodes", "reliability", "competency")
    return {
        "name": name,
        **{key: card[key] for key in ("version", "sha256", "size", "held_out", "players", "analysis")},
        "date": session["ended"][:10],
        "command": session["command"].rpartition(" -o ")[0],
        "versions": session["versions"],
        "packs": list(
            {pack["digest"]: {key: pack[key] for key in ("name", "version", "digest")} for pack in packs}.values()
        ),
        "lines": [{key: line[key] for key in names} for line in card["lines"]],
    }


def main(arguments: Sequence[str]) -> None:
    """Record the rows of `name=folder` arguments."""
    pairs = [argument.partition("=") for argument in arguments]
    played = [record(name, Path(folder)) for name, _, folder in pairs]
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    former = [row for row in recorded if row["name"] not in {row["name"] for row in played}]
    write_json(RECORDED, [*played, *former])


if __name__ == "__main__":
    main(sys.argv[1:])

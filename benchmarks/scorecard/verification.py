"""Checking a scorecard: every number is made again from the run's events, which are those of its journal."""

from __future__ import annotations

from typing import Any

from llm_coop_envs.benchmarks.scorecard.card import CARD, CHECK, SUITE, TABLE, analysis_hash, make_card
from llm_coop_envs.benchmarks.scorecard.card_text import markdown
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.storage.files import read_json
from llm_coop_envs.storage.folder import difference, digest_of
from llm_coop_envs.util.opening import DAMAGED, read_file


def card_faults(run: Run) -> list[str]:
    """A sentence on the first difference between a run's scorecard and what follows from its episodes.

    Nothing is said of a run that is no scorecard, or has none yet.
    """
    if SUITE not in run.manifest or not run.complete:
        return []
    path, table = run.folder / CARD, run.folder / TABLE
    try:
        made = make_card(run)
        there = read_json(path, lambda why: f"{path}: cannot be read ({why})")
    except RunError as error:
        return [str(error)]
    kept = {name: one for name, one in there.items() if name not in ("references", CHECK)}
    shown = ""
    try:
        how = difference(_by_name(kept), _by_name(made), every=True)
        shown = markdown(there)
    except DAMAGED as error:
        how = f"it is damaged ({error!r})"
    if how:
        return [f"{path}: is not what the episodes make of it: {how}"]
    if there.get(CHECK) != digest_of({name: one for name, one in there.items() if name != CHECK}):
        return [f"{path}: its rows of other players, or its hash, are not what was written"]
    if not table.is_file() or read_file(table).decode() != shown:
        return [f"{table}: is not the table of the scorecard"]
    if run.manifest[SUITE]["analysis"] != analysis_hash():
        return [f"{path}: was preregistered with other code for the analysis; use the version that played it"]
    return []


def _by_name(card: dict[str, Any]) -> dict[str, Any]:
    """The card with its lines by name, so that a difference says where it is."""
    return {**card, "lines": {f"{one['tendency']} ({one['scenario']})": one for one in card["lines"]}}

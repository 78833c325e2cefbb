"""Verification of a scorecard: every number is computed again from the run's events."""

from __future__ import annotations

from typing import Any

from llm_coop_envs.benchmarks.scorecard.card import CHECK, SUITE, analysis_hash, card_names, make_card
from llm_coop_envs.benchmarks.scorecard.card_text import markdown
from llm_coop_envs.benchmarks.scorecard.claims import find_claims, partial_reasons
from llm_coop_envs.benchmarks.scorecard.references import references
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.storage.files import read_json
from llm_coop_envs.storage.folder import difference, digest_of
from llm_coop_envs.util.opening import DAMAGED, read_file


def card_faults(run: Run) -> list[str]:
    """Return a sentence on the first difference between a run's scorecard and its episodes; empty if there is none.

    A run that is no scorecard, or has none yet, has no faults.
    """
    if SUITE not in run.manifest or not run.complete:
        return []
    path, table = (run.folder / name for name in card_names(partial=bool(partial_reasons(run.manifest[SUITE]))))
    try:
        expected = make_card(run)
        written = read_json(path, lambda reason: f"{path}: cannot be read ({reason})")
    except RunError as error:
        return [str(error)]
    own_part = {name: value for name, value in written.items() if name not in ("references", "claims", CHECK)}
    expected_table = ""
    try:
        how = difference(_by_name(own_part), _by_name(expected), every=True)
        expected_table = markdown(written)
        how = how or difference({"claims": written["claims"]}, {"claims": find_claims(written)}, every=True)
    except DAMAGED as error:
        how = f"it is damaged ({error!r})"
    if how:
        return [f"{path}: is not what the episodes make of it: {how}"]
    if written.get(CHECK) != digest_of({name: value for name, value in written.items() if name != CHECK}):
        return [f"{path}: its hash is not what was written"]
    if written["references"] != references(expected):
        return [f"{path}: its rows of other players are not those that this program records, and they place its claims"]
    if not table.is_file() or read_file(table).decode() != expected_table:
        return [f"{table}: is not the table of the scorecard"]
    if run.manifest[SUITE]["analysis"] != analysis_hash():
        return [f"{path}: was preregistered with other code for the analysis; use the version that played it"]
    return []


def _by_name(card: dict[str, Any]) -> dict[str, Any]:
    """Return the card with its lines by name, so that a difference names its line."""
    return {**card, "lines": {f"{line['tendency']} ({line['scenario']})": line for line in card["lines"]}}

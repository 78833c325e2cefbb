"""The page on what others recorded is what its record says; every play of it agrees with our rules."""

import json
from pathlib import Path

import pytest

from llm_coop_envs.benchmarks.doc_pages.evidence import RECORD, page, record
from llm_coop_envs.errors import RunError

DOCS = Path(__file__).parents[3] / "docs" / "evidence.md"
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))


def test_the_page_is_up_to_date_and_short():
    text = DOCS.read_text(encoding="utf-8")
    assert text == page(), "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.evidence > docs/evidence.md"
    assert "{{" not in text
    assert len([word for word in text.split() if any(map(str.isalnum, word))]) <= 900  # bars of tables are no words


def test_every_recorded_play_is_explained_and_all_but_contracts_by_the_rules_alone():
    for part in RECORDED.values():
        assert len(part["commit"]) == 40
        for mechanism, (plays, same, explained) in part["plays"].items():
            assert plays == explained > 0
            assert (plays == same) == (mechanism not in ("contracting", ""))


def test_a_marked_difference_keeps_its_sign_without_any_one_model():
    for mean, low, high, p, least, highest, units in RECORDED["dilemmas"]["differences"].values():
        assert low < mean < high
        assert units in (21, 56)
        if p <= 0.05:
            assert least * highest > 0


def test_only_runs_are_evidence(tmp_path):
    with pytest.raises(RunError, match="is no run folder"):
        record(tmp_path)

"""The page on studies that a real model played: what was recorded, of runs that were checked before."""

import json
from pathlib import Path

import pytest
from model_studies import TINY, answering, play
from small import events_in

from llm_coop_envs.benchmarks.doc_pages.local_models import COUNTS, RECORD, page, record
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.playing.packs import load_pack
from llm_coop_envs.studies.study import load_study, shipped_studies

DOCS = Path(__file__).parents[3] / "docs" / "local_models.md"
STUDIES = json.loads(RECORD.read_text(encoding="utf-8"))["studies"]


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.local_models > docs/local_models.md"
    )
    assert "{{" not in page()


# Its free seat is for networks that learned prices from a range.
FOR_NETWORKS = {"continuous_learners"}


@pytest.mark.parametrize("name", sorted({*shipped_studies()} - FOR_NETWORKS))
def test_a_real_model_played_every_shipped_study(name):
    study, recorded = load_study(name), STUDIES[name]
    assert recorded["models"] == ["local:smollm2-135m"]
    assert set(recorded["conditions"]) <= {condition.name for condition in (*study.conditions, *study.optional)}
    assert recorded["episodes"] == len(recorded["conditions"]) > 0
    assert (
        recorded["calls"]
        >= recorded["asked"]
        == recorded["answered"] + recorded["repaired"] + recorded["retried"] + recorded["fallbacks"]
    )


# One condition more, in which no seat is a model's.
BESIDE = f"""{TINY}\
  - name: rules
    scenario: bertrand
    settings: {{rounds: 3, collusion_window: 2, talk: false}}
    policies: price_matching
    model: {{seats: {{firm_*: }}}}
    seeds: [0]
"""


def test_a_run_is_checked_before_it_is_recorded(tmp_path):
    with answering() as server:
        run = play(server, tmp_path / "run", BESIDE).run
    assert len(run.conditions) == 3
    recorded = record([run.folder])["studies"]["tiny"]
    assert (recorded["models"], recorded["packs"]) == (["scripted"], [f"en-a {load_pack('en-a').manifest.version}"])
    assert (recorded["conditions"], recorded["episodes"]) == (["bertrand", "kbc"], 2)
    assert recorded["asked"] == recorded["answered"] == recorded["calls"] == sum(server.asked.values())
    assert min(recorded[name] for name in COUNTS if name not in ("repaired", "retried", "fallbacks")) > 0
    twice = record([run.folder, run.folder])["studies"]["tiny"]
    assert (twice["asked"], twice["conditions"]) == (2 * recorded["asked"], recorded["conditions"])
    events_in(run.folder)[0].unlink()
    with pytest.raises(RunError):
        record([run.folder])

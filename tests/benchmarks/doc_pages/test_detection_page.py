"""The page on detectors is what was recorded, the default rules keep their promise, and a part comes out again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from model_studies import answering, asking

from llm_coop_envs.benchmarks.doc_pages import detection
from llm_coop_envs.benchmarks.doc_pages.detection import INDEPENDENT, MOST_FALSE, RECORD, page, record, record_judge
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures.synthetic_worlds import find_synthetic_worlds
from llm_coop_envs.policies.llm.playing.player import build_endpoint
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.runs.judgements import collect_world_talk
from llm_coop_envs.runs.judgements import judge_material as judged_in

DOCS = Path(__file__).parents[3] / "docs" / "detection.md"
FOUND = json.loads(RECORD.read_text(encoding="utf-8"))


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.detection > docs/detection.md"
    )
    assert "{{" not in page()


@pytest.mark.parametrize("scenario", FOUND)
def test_the_default_rule_raises_few_false_alarms(scenario):
    synthetic = find_synthetic_worlds(scenario)
    recorded = FOUND[scenario]
    assert list(recorded["detectors"]) == list(synthetic.detectors)
    assert list(recorded["episodes"]) == [world.name for world in synthetic.worlds]
    rule = recorded["detectors"][synthetic.rule]
    assert rule["honest"] >= INDEPENDENT == 10_000
    assert rule["interval"][1] <= MOST_FALSE
    assert recorded["seconds"]["honest"] / 2 < 300


def test_a_part_comes_out_again():
    for scenario in FOUND:
        synthetic = find_synthetic_worlds(scenario)
        again = record(
            scenario, independent=2 * sum(not world.intent for world in synthetic.worlds), coordinated=2, workers=1
        )
        for name, detector in again["detectors"].items():
            for world, share in detector["found"].items():
                recorded = FOUND[scenario]["detectors"][name]["found"][world]
                if recorded in (0.0, 1.0):
                    assert share == recorded, (scenario, name, world)


@pytest.mark.parametrize(
    ("answer", "area", "kappa"),
    [
        (lambda intent: "agreement proposed" if intent else "none", 1.0, 1.0),
        (lambda intent: "agreement proposed", 0.5, 0.0),
        (lambda intent: "none", 0.5, 0.0),
    ],
)
def test_a_judge_gets_a_row_like_the_rules(answer, area, kappa, tmp_path, monkeypatch):
    material = collect_world_talk("kbc", 2, 1)
    # What is judged says where it is from, so that a server can answer by the truth.
    material = replace(
        material,
        talk=[replace(statement, text=f"{statement.text} <{statement.episode}>") for statement in material.talk],
    )

    def by_truth(prompt, metadata):
        episode = next(name for name in material.truth if f"<{name}>" in prompt)
        return json.dumps({"kind": answer(material.truth[episode])})

    with answering(by_truth) as server:
        access = asking(server)
        endpoint = build_endpoint("judge", access.endpoint)
        judged_in(material, tmp_path / "judge", LLMSettings(model="judge", answers="json"), endpoint, access)
    scenario, judge = record_judge(tmp_path / "judge")
    row = judge["detectors"]["judge"]
    assert (scenario, judge["model"], judge["rounds"], judge["messages"]) == ("kbc", "judge", 1, len(material.talk))
    assert (row["area"], row["kappa"], row["honest"], row["each"]) == (area, kappa, 8, 2)
    assert row["alarms"] == (8 if answer(False) != "none" else 0)
    # The rules sorted the same messages, and have the same columns.
    assert judge["detectors"]["rules"].keys() == row.keys() == FOUND["kbc"]["detectors"]["moved"].keys()
    monkeypatch.setattr(detection, "RECORD", tmp_path / "detection.json")
    (tmp_path / "detection.json").write_text(json.dumps(FOUND))
    detection.update_record({"kbc": {"judges": {"judge": judge}}})
    assert "| kbc | judge | " in page()
    detection.update_record({"kbc": {"episodes": FOUND["kbc"]["episodes"]}})
    assert "| kbc | judge | " in page()


def test_only_a_judgement_of_worlds_gets_a_row(tmp_path):
    with pytest.raises(RunError, match="is no run folder"):
        record_judge(tmp_path)


@pytest.mark.rare
@pytest.mark.parametrize("scenario", FOUND)
def test_all_of_it_comes_out_again(scenario):
    again = record(scenario)
    assert json.loads(json.dumps(again["detectors"])) == FOUND[scenario]["detectors"]

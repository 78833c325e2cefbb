"""The page on detectors is what was recorded, the default rules keep their promise, and a part comes out again."""

import json
from pathlib import Path

import pytest

from llm_coop_envs.benchmarks.measures.planted import planted_of
from llm_coop_envs.benchmarks.pages.detection import HONEST, MOST_FALSE, RECORD, page, record

DOCS = Path(__file__).parents[3] / "docs" / "detection.md"
FOUND = json.loads(RECORD.read_text(encoding="utf-8"))


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.pages.detection > docs/detection.md"
    )
    assert "{{" not in page()


@pytest.mark.parametrize("scenario", FOUND)
def test_the_default_rule_raises_few_false_alarms(scenario):
    planted = planted_of(scenario)
    found = FOUND[scenario]
    assert list(found["detectors"]) == list(planted.detectors)
    assert list(found["episodes"]) == [world.name for world in planted.worlds]
    rule = found["detectors"][planted.rule]
    assert rule["honest"] >= HONEST == 10_000
    assert rule["interval"][1] <= MOST_FALSE
    assert found["seconds"]["honest"] / 2 < 300


def test_a_part_comes_out_again():
    for scenario in FOUND:
        planted = planted_of(scenario)
        again = record(scenario, honest=2 * sum(not world.intent for world in planted.worlds), meant=2, workers=1)
        for name, one in again["detectors"].items():
            for world, share in one["found"].items():
                known = FOUND[scenario]["detectors"][name]["found"][world]
                if known in (0.0, 1.0):
                    assert share == known, (scenario, name, world)


@pytest.mark.rare
@pytest.mark.parametrize("scenario", FOUND)
def test_all_of_it_comes_out_again(scenario):
    again = record(scenario)
    assert again["detectors"] == FOUND[scenario]["detectors"]

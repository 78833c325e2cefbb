"""The page on large crowds is what was measured, and what was measured is linear."""

import json
from pathlib import Path

import pytest

from llm_coop_envs.benchmarks.doc_pages.populations_at_scale import SPEED, page
from llm_coop_envs.benchmarks.speed import crowd, crowd_curves

DOCS = Path(__file__).parents[3] / "docs" / "populations_at_scale.md"
CURVES = json.loads((SPEED / "crowd_curves.json").read_text(encoding="utf-8"))
CROWDS = json.loads((SPEED / "crowd.json").read_text(encoding="utf-8"))


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "run python -m llm_coop_envs.benchmarks.doc_pages.populations_at_scale > docs/populations_at_scale.md"
    )
    assert "{{" not in page()


@pytest.mark.parametrize("name", crowd_curves.CURVES)
def test_the_recorded_curves_are_linear(name):
    points = CURVES[name]
    recorded = tuple(one["agents"] for one in points)
    assert len(recorded) >= 4
    assert recorded == crowd_curves.CURVES[name][: len(recorded)]
    assert crowd_curves.exponent(points) < 1.1
    each = 0.012 if name == "talking_models" else 0.006
    assert all(one["megabytes"] < 84 + each * one["agents"] for one in points)
    assert all(one.get("spoken", one.get("calls")) >= one["agents"] for one in points)


def test_the_recorded_evacuations_grow_no_more_from_round_to_round():
    found = [one for one in CURVES["evacuation"] if "megabytes_after_round_50" in one]
    assert found[-1]["agents"] == 10_000
    assert all(one["megabytes_after_round_50"] < one["megabytes_after_round_5"] + 8 for one in found)


def test_every_case_was_measured_for_both_sizes():
    found = {(one["case"], one["agents"]) for one in CROWDS["crowds"]}
    assert found == {(name, agents) for name in crowd.cases(1) for agents in (10_000, 1_000_000)}
    for one in CROWDS["crowds"]:
        if one["case"] == "one by one" and one["agents"] == 1_000_000:
            assert one["megabytes"]["max"] <= 1500


@pytest.mark.parametrize("name", crowd_curves.CURVES)
def test_a_point_of_the_curve_comes_out_again(name):
    found, known = crowd_curves.measure(name, 100), CURVES[name][0]
    assert found.keys() >= known.keys()
    played = known.keys() & {"agent_rounds", "steps", "rounds", "spoken", "calls", "out"}
    assert {key: found[key] for key in played} == {key: known[key] for key in played}


def test_the_dummy_work_goes_through_the_whole_chain(monkeypatch, capsys):
    monkeypatch.setattr(crowd, "SECONDS", 0.0)
    for run in crowd.cases(50).values():
        run()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(told) == 4
    assert all(one["seconds"] > 0 for one in told)


def test_a_slope_of_one_is_linear():
    points = [{"agents": n, "agent_rounds": 51 * n, "processor_seconds": 3e-5 * n} for n in (1000, 10_000, 100_000)]
    assert crowd_curves.exponent(points) == pytest.approx(1)

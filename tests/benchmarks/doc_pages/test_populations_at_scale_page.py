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
    recorded = tuple(point["agents"] for point in points)
    assert len(recorded) >= 4
    assert recorded == crowd_curves.CURVES[name][: len(recorded)]
    assert crowd_curves.exponent(points) < 1.1
    each = 0.012 if name == "talking_models" else 0.006
    assert all(point["megabytes"] < 84 + each * point["agents"] for point in points)
    assert all(point.get("spoken", point.get("calls")) >= point["agents"] for point in points)


def test_the_recorded_evacuations_grow_no_more_from_round_to_round():
    points = [point for point in CURVES["evacuation"] if "megabytes_after_round_50" in point]
    assert points[-1]["agents"] == 10_000
    assert all(point["megabytes_after_round_50"] < point["megabytes_after_round_5"] + 8 for point in points)


def test_every_case_was_measured_for_both_sizes():
    measured = {(crowd_["case"], crowd_["agents"]) for crowd_ in CROWDS["crowds"]}
    assert measured == {(name, agents) for name in crowd.cases(1) for agents in (10_000, 1_000_000)}
    for crowd_ in CROWDS["crowds"]:
        if crowd_["case"] == "one by one" and crowd_["agents"] == 1_000_000:
            assert crowd_["megabytes"]["max"] <= 1500


@pytest.mark.parametrize("name", crowd_curves.CURVES)
def test_a_point_of_the_curve_comes_out_again(name):
    point, recorded = crowd_curves.measure(name, 100), CURVES[name][0]
    assert point.keys() >= recorded.keys()
    played = recorded.keys() & {"agent_rounds", "steps", "rounds", "spoken", "calls", "out"}
    assert {key: point[key] for key in played} == {key: recorded[key] for key in played}


def test_the_dummy_work_goes_through_the_whole_chain(monkeypatch, capsys):
    monkeypatch.setattr(crowd, "SECONDS", 0.0)
    for run in crowd.cases(50).values():
        run()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 4
    assert all(line["seconds"] > 0 for line in lines)


def test_a_slope_of_one_is_linear():
    points = [{"agents": n, "agent_rounds": 51 * n, "processor_seconds": 3e-5 * n} for n in (1000, 10_000, 100_000)]
    assert crowd_curves.exponent(points) == pytest.approx(1)

"""`make speed`: the record notices what became slower, and only that."""

import json

import pytest

from llm_coop_envs.benchmarks.speed import __main__ as speed
from llm_coop_envs.benchmarks.speed import figures


def compared(monkeypatch, tmp_path, now, before):
    """A record of costs that are made up: each checkout's in the order of its turns."""
    costs = {speed.HERE: iter(now), tmp_path: iter(before)}
    monkeypatch.setattr(speed, "measure", lambda checkout, group: next(costs[checkout]))
    return speed.compare(tmp_path, ["import"], len(now))


@pytest.mark.parametrize(
    ("ratios", "is_slower"),
    [
        ([1.3, 1.25, 2.0, 1.21], True),
        ([1.3, 1.25, 2.0, 1.19], False),
        ([1.0, 0.9, 1.1, 1.0], False),
        ([0.5, 0.5, 0.5, 0.5], False),
    ],
)
def test_a_slowdown_is_one_that_every_pair_shows(monkeypatch, tmp_path, ratios, is_slower):
    now = [{"text": ratio, "peer: another's": 2 * ratio, "new": 1.0} for ratio in ratios]
    before = [{"text": 1.0, "peer: another's": 1.0} for _ in ratios]
    record = compared(monkeypatch, tmp_path, now, before)
    assert record["text"]["ratio"]["max"] == max(ratios)
    assert "ratio" not in record["new"]
    assert speed.slowdowns(record) == (["text"] if is_slower else [])


def test_another_checkout_is_measured_with_our_programs(tmp_path, capsys):
    """Our program is found; what it needs is looked for in the other checkout alone."""
    package = tmp_path / "llm_coop_envs" / "benchmarks" / "speed"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("")
    assert speed.measure(tmp_path, "import") == {}
    assert "import cannot be measured" in capsys.readouterr().err


def test_one_group_is_measured_here():
    costs = speed.measure(speed.HERE, "import")
    assert costs.keys() == {"import llm_coop_envs", "peer: import pettingzoo"}
    assert all(10 < cost < 60_000 for cost in costs.values())


def test_goals_are_of_figures_that_are_measured():
    names = {case.name for case in figures.CASES}
    assert figures.GROUPS["steps"].goals.keys() <= names
    assert figures.GROUPS["batches"].goals.keys() <= figures.batches.cases(1024).keys()
    assert figures.GROUPS["evacuations"].goals.keys() <= figures.batches.cases(4096).keys()


def test_the_history_is_one_record_a_line():
    history = speed.read_history()
    assert all(record["figures"] and len(record["commit"]) == 40 for record in history)
    assert json.loads(json.dumps(history)) == history


def test_a_recorded_commit_that_is_gone_stops_nothing(monkeypatch, capsys):
    gone, here = "b" * 40, speed._git("rev-parse", "HEAD")
    assert speed.last_recorded([{"commit": here, "against": None}, {"commit": gone, "against": None}]) == here
    assert speed.last_recorded([{"commit": gone, "against": here}]) == here
    assert speed.last_recorded([{"commit": gone, "against": None}]) is None
    monkeypatch.setattr("sys.argv", ["speed", "--against", gone])
    with pytest.raises(SystemExit, match="2"):
        speed.main()
    assert "there is no such commit" in capsys.readouterr().err

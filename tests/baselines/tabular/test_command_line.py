import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from llm_coop_envs.baselines.tabular import __main__ as command
from llm_coop_envs.baselines.tabular.compare import estimate, unseen_seeds
from llm_coop_envs.errors import LlmCoopError, SettingsError

ROOT = Path(__file__).parents[3]
ROOM = ("--set", "rows=9", "--set", "cols=9", "--set", "people=12", "--set", "rounds=20")


@pytest.fixture
def call(capsys):
    """Calls the command line; gives what was printed."""

    def run(*words):
        # The printers hold the streams of their first use.
        command.console.file, command.errors.file = sys.stdout, sys.stderr
        result = CliRunner().invoke(command.app, [str(word) for word in words])
        if result.exception is not None:
            raise result.exception
        return capsys.readouterr().out

    return run


def test_the_number_contest(call, tmp_path):
    (tmp_path / "quick.yaml").write_text("explore: 0.4\nchanges: {players: 3, high: 50}\n")
    words = ("kbc", tmp_path / "run", "--preset", "half", "--episodes", 120, "--settings", tmp_path / "quick.yaml")
    out = call(*words, "--set", "high=8")
    assert out.startswith("half, last round without exploration: mean number ")
    assert "equilibrium 0\n" in out
    assert call(*words, "--set", "high=8") == out
    assert call("evaluate", tmp_path / "run") == out
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_evacuation(call, tmp_path):
    words = ("evacuation", tmp_path / "run", "--episodes", 3, *ROOM)
    out = call(*words, "--seeds", 3)
    lines = out.splitlines()
    assert lines[0] == "mean round in which people were out, 3 unseen seeds (95 % intervals)"
    assert lines[1].startswith("  learned table ")
    assert lines[2].startswith("  scripted nearest_exit ")
    assert lines[3].startswith("  rounds saved, by seed ")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(tmp_path / "run" / "comparison.parquet").to_pylist()
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert call("evaluate", tmp_path / "run", "--seeds", 3, "-o", tmp_path / "again.parquet") == out
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "run" / "comparison.parquet").read_bytes()
    other = call("evaluate", tmp_path / "run", "--seeds", 3, "--first-seed", 7, "--rule", "crowd_aware")
    assert "scripted crowd_aware" in other
    assert other.splitlines()[1] != lines[1]
    assert call(*words, "--seeds", 0) == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("kbc", "run", "--preset", "thirds"), "preset='thirds': is no preset"),
        (("kbc", "run", "--set", "players"), "set='players': must be a setting and its value"),
        (("kbc", "run", "--set", "players={"), "has a value that cannot be read"),
        (("kbc", "run", "--set", "talk=true"), "talk=True: is set by the learner"),
        (("kbc", "run", "--seed", "-1"), "seed=-1: must be"),
        (("kbc", "run", "--settings", "nowhere.yaml"), "settings file nowhere.yaml cannot be read"),
        (("evacuation", "run", "--rule", "nearest"), "rule='nearest': .* did you mean 'nearest_exit'"),
        (("evacuation", "run", "--seeds", "1"), "seeds=1: must be a whole number, 2 or more"),
        (("evacuation", "run", "--first-seed", "2147483647"), "larger seeds serve for learning"),
        (("evaluate", "nowhere"), "there is no table 'nowhere'"),
        (
            ("evaluate", "evacuation", "--seeds", "2", "-o", "no/where/x.parquet"),
            "there is no folder no.where; choose another file",
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(words, sentence, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LlmCoopError, match=sentence):
        call(*words)
    assert not list(tmp_path.iterdir())


def test_a_settings_file_must_hold_fields(call, tmp_path):
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(LlmCoopError, match="must hold fields and their values"):
        call("kbc", tmp_path / "run", "--settings", tmp_path / "list.yaml")
    (tmp_path / "fields.yaml").write_text("epsilon: 1\n")
    with pytest.raises(SettingsError, match="epsilon=1: is no setting of KBCLearning"):
        call("kbc", tmp_path / "run", "--settings", tmp_path / "fields.yaml")
    (tmp_path / "fields.yaml").write_text("changes: 3\n")
    with pytest.raises(SettingsError, match="changes=3: must hold settings"):
        call("kbc", tmp_path / "run", "--settings", tmp_path / "fields.yaml", "--set", "players=3")


def test_an_error_is_one_sentence_and_exit_code_2():
    done = subprocess.run(
        [sys.executable, "-m", "llm_coop_envs.baselines.tabular", "evaluate", "[no]"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no table '[no]': neither a file nor a shipped table; known are ")
    assert len(done.stderr.splitlines()) == 1


def test_a_log_file_tells_how_long_it_will_take(monkeypatch, capsys):
    moments = iter([0.0, 10.0, 20.0, 21.0, 40.0])
    monkeypatch.setattr(command.time, "monotonic", lambda: next(moments))
    command.errors.file = sys.stderr
    ticker = command.Ticker("episodes", 100)
    for done in (1, 11, 12, 31):
        ticker.at(done)
    assert capsys.readouterr().err.splitlines() == [
        "11 of 100 episodes, about 89 s left",
        "31 of 100 episodes, about 69 s left",
    ]


def test_intervals():
    values = np.random.default_rng(1).normal(5.0, 2.0, size=200)
    found = estimate(values)
    assert found.mean == pytest.approx(values.mean())
    half = 1.96 * values.std(ddof=1) / 200**0.5
    assert found.low == pytest.approx(values.mean() - half, abs=0.05)
    assert found.high == pytest.approx(values.mean() + half, abs=0.05)
    assert estimate(values) == found


def test_unseen_seeds():
    assert unseen_seeds(3, 5) == [5, 6, 7]
    for count, first in ((2.5, 0), (True, 0), (3, -1), (3, 2**31)):
        with pytest.raises(SettingsError):
            unseen_seeds(count, first)

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from llm_coop_envs.baselines import command_line
from llm_coop_envs.baselines.tabular import __main__ as command
from llm_coop_envs.baselines.tabular.training import TabularFolder
from llm_coop_envs.errors import LlmCoopError, SettingsError

ROOT = Path(__file__).parents[3]
ROOM = ("--set", "rows=9", "--set", "cols=9", "--set", "people=12", "--set", "rounds=20")


@pytest.fixture
def call(capsys):
    """Calls the command line; gives what was printed."""

    def run(*words):
        # The printers hold the streams of their first use.
        command_line.console.file, command_line.errors.file = sys.stdout, sys.stderr
        result = CliRunner().invoke(command.app, [str(word) for word in words])
        if result.exception is not None:
            raise result.exception
        return capsys.readouterr().out

    return run


def test_the_number_contest(call, tmp_path):
    (tmp_path / "quick.yaml").write_text("explore: 0.4\nchanges: {players: 3, high: 50}\n")
    words = ("kbc", tmp_path / "run", "--preset", "half", "--episodes", 120, "--settings", tmp_path / "quick.yaml")
    out = call(*words, "--set", "high=8")
    assert out.startswith("kbc half, after 120 episodes, without exploration:\n  number ")
    assert ", equilibrium 0\n" in out
    assert f"llm-coop evaluate tabular:{tmp_path / 'run'} --env kbc" in out
    assert call(*words, "--set", "high=8") == out
    assert TabularFolder.open(tmp_path / "run").manifest["changes"] == {"players": 3, "high": 8}
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_evacuation(call, tmp_path):
    words = ("evacuation", tmp_path / "run", "--episodes", 3, *ROOM)
    out = call(*words)
    assert out.startswith("evacuation no_talk, after 3 episodes, without exploration:\n  mean_round ")
    assert "scripted nearest_exit " in out
    assert call(*words) == out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("kbc", "run", "--preset", "thirds"), "preset='thirds': is no preset"),
        (("kbc", "run", "--set", "players"), "--set='players': must be name=value"),
        (("kbc", "run", "--set", "players={"), "the value cannot be read"),
        (("kbcc", "run"), "there is no scenario 'kbcc'; did you mean 'kbc'"),
        (("bertrand", "run"), "scenario='bertrand': has no tabular learner; these have one: evacuation, kbc"),
        (("kbc", "run", "--set", "talk=true"), "talk=True: is set by the learner"),
        (("kbc", "run", "--seed", "-1"), "seed=-1: must be"),
        (("kbc", "run", "--settings", "nowhere.yaml"), "settings file nowhere.yaml cannot be read"),
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
        [sys.executable, "-m", "llm_coop_envs.baselines.tabular", "kbc", "run", "--set", "[no]"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: --set='[no]': must be name=value")
    assert len(done.stderr.splitlines()) == 1


def test_a_log_file_tells_how_long_it_will_take(monkeypatch, capsys):
    moments = iter([0.0, 10.0, 20.0, 21.0, 40.0])
    monkeypatch.setattr(command_line.time, "monotonic", lambda: next(moments))
    command_line.errors.file = sys.stderr
    ticker = command_line.Ticker("episodes", 100)
    for done in (1, 11, 12, 31):
        ticker.advance_to(done)
    assert capsys.readouterr().err.splitlines() == [
        "11 of 100 episodes, about 90 s left (30 s to 3 min)",
        "31 of 100 episodes, about 70 s left (25 s to 2 min)",
    ]

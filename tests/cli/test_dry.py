"""One episode to look at: nothing asked, nothing written."""

from invoking import invoke
from model_studies import TINY


def test_prompts_and_actions_are_shown_and_nothing_is_written(study_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = study_file(TINY)
    before = sorted(tmp_path.rglob("*"))
    told = invoke("run", path, "--policy", "llm:no-such-model", "--only", "bertrand", "--dry")
    assert told.exit_code == 0, told.stderr
    assert told.stdout.startswith("Condition bertrand, seed 0: the first episode of tiny.\n")
    for words in (
        "firm_0 is asked (",
        "user:\n  | ",
        "answered by script, not by a model:\n  | ",
        "firm_1 says:\n  | ",
    ):
        assert words in told.stdout
    for number in (1, 2, 3):
        assert f"round {number}, firm_0 chooses " in told.stdout
        assert f"round {number} is settled: " in told.stdout
    assert "nothing was written" in told.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_rules_are_shown_by_what_they_do(study_file):
    told = invoke("run", study_file(TINY), "--only", "kbc", "--dry")
    assert told.stdout.count("player_2 chooses") == 2
    assert "is asked" not in told.stdout


def test_a_limit_is_no_failure_and_says_how_to_go_on(study_file, tmp_path):
    path = study_file(TINY)
    told = invoke("run", path, "-o", tmp_path / "run", "--limit", 1, "--workers", 1)
    assert told.exit_code == 0
    assert f"Stopped: 1 of 2 episodes are in {tmp_path / 'run'}; continue with: llm-coop run {path} -o" in told.stderr
    assert "--limit" not in told.stderr
    assert "Done: 1 episode in" in invoke("run", path, "-o", tmp_path / "run", "--workers", 1).stderr

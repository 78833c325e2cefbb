import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from llm_coop_envs.baselines import command_line
from llm_coop_envs.baselines.q_learning import __main__ as command
from llm_coop_envs.baselines.q_learning.analyse.tables import load_table
from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
from llm_coop_envs.baselines.q_learning.reproduce import docked, studies
from llm_coop_envs.baselines.q_learning.reproduce.docked import ArchivedSession
from llm_coop_envs.baselines.q_learning.reproduce.recorded import recorded
from llm_coop_envs.baselines.q_learning.reproduce.report import distance
from llm_coop_envs.baselines.q_learning.reproduce.runs import REMATCHED, Plan, plan_of, run
from llm_coop_envs.baselines.q_learning.reproduce.studies import MEASURES, STUDIES, Variant, VariantStudy, learners
from llm_coop_envs.errors import RunError, SettingsError

ROOT = Path(__file__).parents[4]
QUICK = "market: {preset: calvano, grid_points: 4}\nbeta: 0.005\nwindow: 500\n"


@pytest.fixture
def call(capsys):
    """Calls the command line; gives the exit code, what was printed, and what went to the error stream."""

    def run(*words):
        # The printers hold the streams of their first use.
        command_line.console.file, command_line.errors.file = sys.stdout, sys.stderr
        result = CliRunner().invoke(command.app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, capsys.readouterr().out

    return run


def test_archived_sessions(call):
    assert call("docked", "--sessions", 1) == (0, "1 of 1 archived sessions reproduced exactly\n")
    with pytest.raises(SettingsError, match="sessions=101: must be between 1 and 100"):
        call("docked", "--sessions", 101)


def test_entry_and_exit_beside_the_published_numbers(call):
    code, out = call("entry", "--sessions", 2, "--workers", 1)
    assert code == 0
    assert "rho 0.001: 2 sessions, 2 converged" in out
    assert "rho 0.0001: 2 sessions, 2 converged" in out
    assert out.count("published       0.5830") == out.count("published       0.5660") == 1
    assert out.count("gain while all three are in") == 2


def test_an_archived_session_that_differs_is_an_error(call, monkeypatch):
    wrong = ArchivedSession(session=1, periods=1, cycle_length=1, lowest_state=0, gains=(0.0, 0.0), crc32="")
    monkeypatch.setattr(docked, "archive", lambda: [wrong])
    code, out = call("docked", "--sessions", 1)
    assert code == 1
    assert "session 1 differs: periods 1779187, archived 1; cycle length" in out
    assert "0 of 1 archived sessions reproduced exactly" in out


def test_a_run_is_summed_up_and_shown_again(call, tmp_path):
    (tmp_path / "quick.yaml").write_text(QUICK)
    words = ("run", tmp_path / "out", "--sessions", 3, "--seed", 5, "--settings", tmp_path / "quick.yaml")
    code, out = call(*words)
    assert code == 0
    assert "3 sessions, 3 converged" in out
    assert "deviations that do not pay" in out
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["sessions"] == 3
    assert call(*words) == (0, out)
    assert call("show", tmp_path / "out") == (0, out)
    _, shallow = call("run", tmp_path / "shallow", *words[2:], "--shallow")
    assert "deviations that do not pay" not in shallow
    assert shallow.splitlines() == out.splitlines()[: len(shallow.splitlines())]


def test_a_study_is_compared_with_the_published_numbers(call, tmp_path, monkeypatch):
    fast = learners({"grid_points": 4}, beta=5e-3, window=500)
    variants = (
        Variant(name="as is", settings=fast, published={"time": 900.0, "answer": -0.1}, sessions=3),
        Variant(name="far off", settings=fast, published={"gain": 40.0}),
        Variant(name="unknown", settings=fast),
    )
    monkeypatch.setitem(STUDIES, "toy", VariantStudy(title="a toy", source="nowhere", variants=variants, sessions=4))
    code, out = call("study", "toy", tmp_path)
    assert code == 0
    assert out.startswith("a toy; published: nowhere\nas is: 3 sessions, 3 converged\n")
    assert "published          900" in out
    assert "standard errors\n" in out
    assert "published      -0.1000" in out
    for told in ("gain: 1 of 1", "time: 0 of 1", "answer: 1 of 1"):
        assert f"{told} more than three standard errors from the published value" in out
    assert (tmp_path / "far_off" / "sessions.parquet").exists()
    _, one = call("study", "toy", tmp_path / "other", "--variant", "unknown", "--sessions", 2)
    assert "unknown: 2 sessions" in one
    assert "as is" not in one
    call("study", "toy", tmp_path / "docked", "--variant", "unknown", "--sessions", 2, "--docked")
    plan = json.loads((tmp_path / "docked" / "unknown" / "run.json").read_text())
    assert (plan["docked"], plan["settings"]["ties"]) == (True, "random")
    with pytest.raises(SettingsError, match="known are 'as is', 'far off', 'unknown'"):
        call("study", "toy", tmp_path, "--variant", "x")
    with pytest.raises(SettingsError, match="study='tou': is unknown; did you mean 'toy'"):
        call("study", "tou", tmp_path)
    assert "toy: a toy (3 x 4 sessions)" in call("studies")[1]


def test_distances_allow_for_the_error_of_both_samples():
    variant = Variant(name="x", settings=learners(), published={"gain": 0.5, "price": 1.0}, sample=300)
    found = {"sessions": 100, "gain": 0.6, "gain_se": 0.03, "time": 5.0, "time_se": 0.0, "price": 2.0}
    assert distance("gain", found, variant) == pytest.approx(0.1 / (0.03 * (1 + 100 / 300) ** 0.5))
    assert math.isnan(distance("time", found, variant))
    assert math.isnan(distance("price", found, variant))
    sure = {**found, "gain_se": 0.0}
    assert distance("gain", sure, variant) == math.inf
    assert distance("gain", {**sure, "gain": 0.4}, variant) == -math.inf
    assert distance("gain", {**sure, "gain": 0.5}, variant) == 0.0


def test_every_study_is_well_formed():
    for name, study in STUDIES.items():
        assert study.variants, name
        assert len({command.folder_name(v) for v in study.variants}) == len(study.variants)
        for variant in study.variants:
            assert set(variant.published) <= set(MEASURES)
            assert variant.settings.game().firms == variant.settings.firms
    assert len(STUDIES["alpha_beta"].variants) == 30
    assert studies.STUDIES["delta"].variants[11].settings.delta == 0.95


def test_a_settings_file_that_cannot_be_used(call, tmp_path):
    with pytest.raises(RunError, match="cannot be read"):
        call("run", tmp_path / "out", "--settings", tmp_path / "none.yaml")
    for text in ("- 1\n", "a: ["):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(RunError, match="settings file"):
            call("run", tmp_path / "out", "--settings", tmp_path / "bad.yaml")
    with pytest.raises(RunError, match="holds no finished sessions"):
        call("show", tmp_path)


def test_errors_are_one_sentence_and_exit_code_two(tmp_path):
    module = "llm_coop_envs.baselines.q_learning"
    words = [sys.executable, "-m", module, "study", "none", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: study='none': is unknown; known are")
    assert done.stderr.count("\n") == 1


def test_questions_to_a_finished_run(call, tmp_path):
    (tmp_path / "quick.yaml").write_text(QUICK)
    call("run", tmp_path / "out", "--sessions", 4, "--settings", tmp_path / "quick.yaml")
    code, out = call("answers", tmp_path / "out", "--to", 0, "--horizon", 3)
    assert code == 0
    lines = out.splitlines()
    assert lines[1].split() == ["period", "deviator", "rivals"]
    assert [line.split()[0] for line in lines[2:5]] == ["1", "2", "3"]
    assert "deviations that do not pay" in out
    assert "12 " in call("answers", tmp_path / "out")[1]
    for wrong in ("up", "9", "-1"):
        with pytest.raises(SettingsError, match="price ind"):
            call("answers", tmp_path / "out", "--to", wrong)
    code, out = call("strangers", tmp_path / "out", "--pairs", 20)
    assert code == 0
    assert "among strangers" in out
    assert "20 meetings" in out


def test_a_table_is_trained_and_kept(call, tmp_path):
    (tmp_path / "quick.yaml").write_text(QUICK)
    code, out = call("table", tmp_path / "own.npz", "--settings", tmp_path / "quick.yaml", "--seed", 3)
    assert code == 0
    assert "converged; cycle" in out
    table = load_table(str(tmp_path / "own.npz"))
    assert (table.seed, table.number, table.settings.market.grid_points) == (3, 0, 4)


def test_the_printed_numbers_are_compared_one_by_one(call, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "SESSIONS", 3)
    code, out = call("published", tmp_path)
    # Three of the thousand sessions cannot give the printed means.
    assert code == 1
    lines = out.splitlines()
    assert len(lines) == 53
    assert lines[1].split() == ["converged", "sessions", "1000", "3.00", "differs"]
    assert lines[-1].endswith("of 51 published numbers come out")
    row = json.loads((tmp_path / "docked" / "representative" / "run.json").read_text())
    assert (row["docked"], row["settings"]["ties"]) == (True, "random")


@pytest.mark.rare
def test_everything_is_reproduced_and_recorded(call, tmp_path, monkeypatch):
    quick = learners({"grid_points": 4}, beta=0.005, window=500)
    variants = [
        ("representative", Variant(name="representative", settings=quick, published={"gain": 0.5}), 2),
        ("delta", Variant(name="delta 0.9", settings=quick), 3),
    ]
    monkeypatch.setattr(command, "SESSIONS", 1)
    monkeypatch.setattr(command, "SEQUENTIAL_RUNS", {})
    monkeypatch.setattr(command, "reproduced_variants", lambda only: variants)
    code, out = call("reproduce", tmp_path, "--seed", 3)
    assert code == 0
    assert out.endswith(f"written to {tmp_path / 'recorded.json'}\n")
    record = json.loads((tmp_path / "recorded.json").read_text())
    assert record["seed"] == 3
    assert len(record["docked"]) == 51
    assert {study: list(rows) for study, rows in record["studies"].items()} == {
        "representative": ["representative"],
        "delta": ["delta 0.9"],
    }
    assert record["studies"]["delta"]["delta 0.9"]["sessions"] == 3
    assert set(record["answers"]) == {"docked", "representative"}
    # Again: everything is there.
    assert call("reproduce", tmp_path, "--seed", 3) == (0, out)


def test_a_part_of_the_record_is_brought_up_to_date(call, tmp_path, monkeypatch):
    quick = learners({"grid_points": 4}, beta=0.005, window=500)
    variants = [("delta", Variant(name="delta 0.9", settings=quick), 3)]
    monkeypatch.setattr(command, "reproduced_variants", lambda only: [one for one in variants if one[0] in only])
    monkeypatch.setattr(command, "SEQUENTIAL_RUNS", {2: 2})
    # Nothing but these has sessions that are kept: the folder need not be there.
    assert call("reproduce", tmp_path / "new", "--study", "sequential")[0] == 0
    with pytest.raises(RunError, match="cannot be written"):
        call("reproduce", tmp_path / "new" / "recorded.json", "--study", "sequential")
    assert call("reproduce", tmp_path, "--study", "delta", "--study", "sequential")[0] == 0
    record, shipped = json.loads((tmp_path / "recorded.json").read_text()), recorded()
    assert record["studies"]["delta"].pop("delta 0.9")["sessions"] == 3
    del shipped["studies"]["delta"]["delta 0.9"]
    assert record.pop("sequential")["2"]["runs"] == 2
    del shipped["sequential"]
    assert record == shipped
    with pytest.raises(SettingsError, match="the record's is 0"):
        call("reproduce", tmp_path, "--study", "delta", "--seed", 3)
    for wrong, meant in (("dalta", "delta"), ("sequentiel", "sequential")):
        with pytest.raises(SettingsError, match=f"did you mean '{meant}'"):
            call("reproduce", tmp_path, "--study", wrong)


def test_firms_that_meet_have_learned_apart(call, tmp_path):
    plan = Plan(settings=learners({"grid_points": 4}, beta=0.005, window=500), rematched=True)
    game = plan.settings.game()
    apart = [run_session(plan.settings, 0, number, game=game).q[firm] for firm, number in ((0, 6), (1, 7))]
    met = plan.session(3, game)
    again = run_session(plan.settings, 0, REMATCHED + 3, game=game, q=np.array(apart))
    assert (met.number, met.crc32, met.periods) == (3, again.crc32, again.periods)
    assert plan.row(3, game)["session"] == 3
    run(plan, 2, tmp_path / "run", workers=1)
    assert plan_of(tmp_path / "run") == plan
    assert "rematched" not in Plan(settings=plan.settings).to_json()
    with pytest.raises(SettingsError, match="our own random numbers"):
        Plan(settings=plan.settings, docked=True, rematched=True)

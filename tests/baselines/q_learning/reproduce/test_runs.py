import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from llm_coop_envs.baselines.q_learning.analyse.analysis import cycle_gain, limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.measures import session_row, summary
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.reproduce import runs
from llm_coop_envs.baselines.q_learning.reproduce.runs import Plan, SessionFolder, read_journal, run, run_rows
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import MissingExtra, RunError, SettingsError
from llm_coop_envs.storage.folder import INTERRUPTED
from llm_coop_envs.storage.lock import lock_folder
from llm_coop_envs.storage.parquet import read_rows as read_parquet

ROOT = Path(__file__).parents[4]


def quick(**given):
    """Sessions of a few thousand periods."""
    market = BertrandSettings.build("calvano", grid_points=5)
    return QLearningSettings(market=market, **{"beta": 2e-3, "window": 1000, **given})


PLAN = Plan(settings=quick(), seed=7)


def test_the_number_of_workers_changes_nothing(tmp_path):
    one, two = (run(PLAN, 12, tmp_path / str(workers), workers=workers) for workers in (1, 2))
    assert one == two
    assert [row["session"] for row in one] == list(range(12))
    assert len({row["crc32"] for row in one}) > 6
    assert read_parquet(tmp_path / "1" / runs.RESULT) == read_parquet(tmp_path / "2" / runs.RESULT) == one


def test_a_longer_run_begins_with_the_shorter_one(tmp_path):
    first = run(PLAN, 4, tmp_path)
    seen = []
    more = run(PLAN, 9, tmp_path, workers=2, report=seen.append)
    assert more[:4] == first
    assert sorted(row["session"] for row in seen) == [4, 5, 6, 7, 8]
    again = run(PLAN, 3, tmp_path, report=pytest.fail)
    assert again == first[:3]
    assert len(read_parquet(tmp_path / runs.RESULT)) == 9


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
sys.path.insert(0, {here!r})
from test_runs import PLAN
from llm_coop_envs.baselines.q_learning.reproduce.runs import run
seen = []
def report(row):
    seen.append(row)
    if len(seen) == 4:
        with (Path(sys.argv[1]) / "sessions.jsonl").open("a") as journal:
            journal.write('{{"session": 9, "periods"')  # the line under way
        os.kill(os.getpid(), signal.SIGKILL)
run(PLAN, 10, Path(sys.argv[1]), workers=2, report=report)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on Windows")
def test_a_killed_run_goes_on(tmp_path):
    code = KILLED.format(root=str(ROOT), here=str(Path(__file__).parent))
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "a" / runs.RESULT).exists()
    assert len((tmp_path / "a" / runs.JOURNAL).read_text().splitlines()) == 5
    seen = []
    rows = run(PLAN, 10, tmp_path / "a", report=seen.append)
    assert len(seen) == 6
    assert rows == run(PLAN, 10, tmp_path / "b")


def test_another_run_is_not_mixed_in(tmp_path):
    run(PLAN, 2, tmp_path)
    for other, words in (
        (Plan(settings=quick(), seed=8), "seed is 7 there and 8 here"),
        (Plan(settings=quick(alpha=0.2), seed=7), "alpha is 0.15 there and 0.2 here"),
        (Plan(settings=quick(), seed=7, deep=False), "deep is True there and False here"),
        (Plan(settings=quick(), docked=True), "seed is 7 there and 0 here"),
    ):
        with pytest.raises(RunError, match=words):
            run(other, 2, tmp_path)
    # What cannot change a result may change.
    run(Plan(settings=quick(memory_limit=1.0), seed=7), 2, tmp_path, report=pytest.fail)


def test_damage_is_told(tmp_path):
    run(PLAN, 2, tmp_path)
    journal = tmp_path / runs.JOURNAL
    lines = journal.read_text().splitlines()
    journal.write_text(f"{lines[0]}\n{lines[1][:50]}\n")
    with pytest.raises(RunError, match="line 2, is damaged; delete that line"):
        run(PLAN, 2, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        run(PLAN, 2, tmp_path / "file")


def test_a_second_writer_is_refused_and_a_reader_disturbs_nobody(tmp_path):
    rows = run(PLAN, 2, tmp_path)
    with lock_folder(tmp_path), pytest.raises(RunError, match="another process is writing this run"):
        run(PLAN, 3, tmp_path)
    journal = tmp_path / runs.JOURNAL
    half = journal.read_bytes() + b'{"session": 2, "per'  # as a reader beside the writer finds it
    journal.write_bytes(half)
    assert sorted(read_journal(tmp_path), key=lambda row: row["session"]) == rows
    assert journal.read_bytes() == half
    assert run(PLAN, 3, tmp_path)[:2] == rows


def test_a_run_that_broke_off_says_so(tmp_path):
    def fail(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(PLAN, 3, tmp_path, report=fail)
    assert SessionFolder.open(tmp_path).manifest["status"] == INTERRUPTED
    assert len(run(PLAN, 3, tmp_path)) == 3
    store = SessionFolder.open(tmp_path)
    assert store.complete
    assert store.settings == PLAN.settings
    assert len(store.manifest["sessions"]) == 2


def test_a_missing_result_is_made_of_the_journal(tmp_path):
    rows = run(PLAN, 3, tmp_path)
    (tmp_path / runs.RESULT).unlink()
    assert run(PLAN, 3, tmp_path, report=pytest.fail) == rows
    assert read_parquet(tmp_path / runs.RESULT) == rows


def test_numbers_out_of_range(tmp_path, monkeypatch):
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(SettingsError, match="sessions"):
            run(PLAN, wrong, tmp_path)
        with pytest.raises(SettingsError, match="workers"):
            list(run_rows(PLAN, [0], wrong))
    for wrong in (-1, 1.5, True):
        with pytest.raises(SettingsError, match="seed"):
            Plan(settings=quick(), seed=wrong)
    with pytest.raises(SettingsError, match="seeds of their own"):
        Plan(settings=quick(), seed=1, docked=True)
    monkeypatch.setattr(runs, "machine_memory", lambda: int(2 * PLAN.settings.table_bytes / 0.75) - 2)
    with pytest.raises(SettingsError, match="take fewer workers"):
        list(run_rows(PLAN, [0], 2))
    monkeypatch.setattr(runs, "machine_memory", lambda: int(2 * PLAN.settings.table_bytes / 0.75) + 2)
    assert len(list(run_rows(PLAN, [0], 2))) == 1


def test_parquet_needs_its_extra_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"llm-coop-envs\[study\]"):
        run(PLAN, 1, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_learning_needs_its_extra_and_analysis_does_not():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from llm_coop_envs.baselines.q_learning import *\n"
        "s = QLearningSettings(); g = s.game()\n"
        "import numpy as np\n"
        "print(cycle_gain(g, limit_cycle(g, np.full((2, 225), 9), 0)) > 0.8)\n"
        "try:\n    run_session(s, 0)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert out == (
        "True\nMissingExtra Q-learning needs the extra 'rl': pip install 'llm-coop-envs[rl]' "
        "(in a checkout: pip install -e '.[rl]')\n"
    )


def test_docked_runs_count_from_one(tmp_path):
    rows = run(Plan(settings=quick(), docked=True), 3, tmp_path)
    assert [row["session"] for row in rows] == [1, 2, 3]


def test_a_row_is_what_the_analysis_says():
    settings = quick()
    game = settings.game()
    session = run_session(settings, 7, 3)
    cycle = limit_cycle(game, session.strategies, session.last_state)
    row = session_row(settings, game, session)
    assert row["gain"] == cycle_gain(game, cycle)
    assert row["time"] == row["periods"] - 1000 == session.periods - 1000
    assert row["exploration"] == pytest.approx(math.exp(-2e-3 * (session.periods - 1)))
    assert row["price"] == pytest.approx(cycle.prices.mean())
    assert np.frombuffer(row["strategies"], np.uint8).reshape(2, 25).tolist() == session.strategies.tolist()
    answer = summarise([cycle_responses(game, session.strategies, cycle)])
    assert (row["answer"], row["punishment"], row["deviations"]) == (answer.change, answer.length, answer.responses)
    shallow = session_row(settings, game, session, deep=False)
    assert shallow == {name: row[name] for name in shallow}
    assert "equilibrium" not in shallow
    warm = quick(exploration="boltzmann", max_periods=50)
    assert session_row(warm, game, run_session(warm, 0), deep=False)["exploration"] is None


def test_strategies_of_many_prices_take_two_bytes():
    market = BertrandSettings.build("calvano", grid_points=300)
    settings = QLearningSettings(market=market, memory=0, delta=0.0, max_periods=10)
    session = run_session(settings, 0)
    assert np.frombuffer(session.strategy_bytes(), "<u2").tolist() == session.strategies.ravel().tolist()
    assert session.strategies.max() > 10


def test_summaries_are_means_over_sessions(tmp_path):
    rows = run(PLAN, 20, tmp_path)
    found = summary(rows)
    gains = np.array([row["gain"] for row in rows])
    assert found["sessions"] == 20
    assert found["converged"] == sum(row["converged"] for row in rows)
    assert found["gain"] == pytest.approx(gains.mean())
    assert found["gain_sd"] == pytest.approx(gains.std())
    assert found["gain_se"] == pytest.approx(gains.std(ddof=1) / math.sqrt(20))
    assert found["time_median"] == np.median([row["time"] for row in rows])
    assert found["gain_quantiles"] == pytest.approx(np.quantile(gains, [0.05, 0.25, 0.5, 0.75, 0.95]))
    assert sum(found["cycle_classes"].values()) == pytest.approx(1.0)
    answers = [(row["answer"], row["deviations"]) for row in rows]
    assert found["answer"] == pytest.approx(sum(a * n for a, n in answers) / sum(n for _, n in answers))
    assert found["all_returning"] == pytest.approx(np.mean([row["returning"] == 1.0 for row in rows]))
    assert math.isnan(summary(rows[:1])["gain_se"])
    shallow = [{k: v for k, v in row.items() if k != "equilibrium"} for row in rows]
    assert "answer" not in summary(shallow)


def test_many_cores_are_the_default(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(runs, "run_rows", lambda plan, numbers, workers: asked.append(workers) or iter(()))
    monkeypatch.setattr(os, "cpu_count", lambda: 11)
    with pytest.raises(KeyError):
        run(PLAN, 1, tmp_path)
    assert asked == [11]

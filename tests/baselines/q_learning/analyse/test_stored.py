"""Questions to a finished run; the run is written by hand, so that the compiler is not needed."""

import json

import numpy as np
import pytest

from llm_coop_envs.baselines.q_learning.analyse.measures import session_row
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses, repaired
from llm_coop_envs.baselines.q_learning.learn.sessions import Session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.learn.strategies import constant_strategies
from llm_coop_envs.baselines.q_learning.reproduce import runs
from llm_coop_envs.baselines.q_learning.reproduce.runs import Plan, load_run
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.errors import RunError

SETTINGS = QLearningSettings()


@pytest.fixture
def folder(tmp_path):
    """Three sessions, out of order: constant prices 3, 9 and 12, each with a price of its own after low ones."""
    game = SETTINGS.game()
    runs.SessionFolder.make(tmp_path, Plan(settings=SETTINGS).to_json())
    with (tmp_path / runs.JOURNAL).open("w") as journal:
        for number, price in ((2, 12), (0, 3), (1, 9)):
            strategies = constant_strategies(game, [price, price])
            strategies[:, :45] = number
            q, trace = np.zeros((2, 225, 15)), np.zeros((0, 2), dtype=np.int64)
            session = Session(number, 100_005, True, price * 16, strategies, q, trace)
            row = session_row(SETTINGS, game, session)
            journal.write(json.dumps(runs._pack_row(row)) + "\n")
    return tmp_path


def test_a_run_is_read_in_order(folder):
    stored = load_run(folder)
    assert stored.settings == SETTINGS
    assert [row["session"] for row in stored.rows] == [0, 1, 2]
    assert [s[0, 224] for s in stored.strategies] == [3, 9, 12]
    assert [c.choices.tolist() for c in stored.cycles] == [[[3, 3]], [[9, 9]], [[12, 12]]]


def test_a_run_answers(folder):
    stored = load_run(folder)
    game = stored.game
    sessions = [
        cycle_responses(game, s, c, 0, periods=2, horizon=4)
        for s, c in zip(stored.strategies, stored.cycles, strict=True)
    ]
    expected, found = summarise(sessions), stored.answers(0, periods=2, horizon=4)
    assert found.deviator.tolist() == expected.deviator.tolist()
    assert (found.change, found.length, found.paid) == (expected.change, expected.length, expected.paid)
    assert stored.answers().responses == 6


def test_strangers_are_never_of_one_session(folder):
    stored = load_run(folder)
    known = {
        round(repaired(stored.game, stored.strategies[a], stored.strategies[b], stored.rows[a]["last_state"])[1], 12)
        for a in range(3)
        for b in range(3)
        if a != b
    }
    gains = stored.strangers(200, np.random.default_rng(0))
    assert {round(gain, 12) for gain in gains.tolist()} == known
    assert gains.tolist() == stored.strangers(200, np.random.default_rng(0)).tolist()
    journal = folder / runs.JOURNAL
    journal.write_text(journal.read_text().splitlines()[0] + "\n")
    with pytest.raises(RunError, match="two sessions or more"):
        load_run(folder).strangers(1, np.random.default_rng(0))


def test_a_folder_without_sessions_or_plan_is_told(folder, tmp_path):
    with pytest.raises(RunError, match="holds no finished sessions"):
        load_run(tmp_path / "empty")
    (folder / "run.json").write_text("{}")
    with pytest.raises(RunError, match="has format None"):
        load_run(folder)

import json
import os
import signal
import sys

import pytest

from llm_coop_envs.baselines.tabular.store import SHIPPED, load, save
from llm_coop_envs.baselines.tabular.training import Stopped, TabularFolder, train
from llm_coop_envs.errors import MissingExtra, RunError, SettingsError
from llm_coop_envs.evacuation.faces.tabular import EvacuationLearning
from llm_coop_envs.kbc.faces.tabular import KBCLearning
from llm_coop_envs.storage.folder import INTERRUPTED
from llm_coop_envs.storage.lock import lock_folder

CONTEST = KBCLearning(episodes=12, curve_every=5, changes={"players": 3, "high": 10})
ROOM = EvacuationLearning(
    episodes=6, curve_every=4, curve_seeds=1, changes={"rows": 9, "cols": 9, "people": 6, "rounds": 10}
)
WRITTEN = ("checkpoint.npz", "table.npz", "curve.parquet", "curve.png")


def contents(folder):
    return {name: (folder / name).read_bytes() for name in WRITTEN}


@pytest.mark.parametrize("learning", [CONTEST, ROOM], ids=["kbc", "evacuation"])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(learning, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(learning, 4, whole)

    def interrupt(done, row):
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped, match="stopped after 2 episodes") as stopped:
        train(learning, 4, parts, report=interrupt)
    assert stopped.value.episodes == 2
    assert not (parts / "table.npz").exists()
    assert TabularFolder.open(parts).manifest["status"] == INTERRUPTED
    seen = []
    train(learning, 4, parts, report=lambda done, row: seen.append(done))
    assert seen == list(range(3, learning.episodes + 1))
    assert contents(parts) == contents(whole)
    # A finished run is only read.
    again = train(learning, 4, parts, report=lambda done, row: pytest.fail("nothing is left to do"))
    assert again.episodes == learning.episodes
    assert again.about() == load(parts).about()


def test_the_points_of_a_curve(tmp_path):
    rows = []
    train(CONTEST, 0, tmp_path, report=lambda done, row: rows.append(row))
    assert [row["episode"] for row in rows if row is not None] == [5, 10, 12]
    import pyarrow.parquet

    curve = pyarrow.parquet.read_table(tmp_path / "curve.parquet").to_pylist()
    assert [row["episode"] for row in curve] == [0, 5, 10, 12]
    assert curve[0]["reward"] is None
    assert all(0 <= row["reward"] <= 10 for row in curve[1:])
    assert set(curve[0]) == {
        "episode",
        "reward",
        "number",
        "target",
        "distance",
        "winners",
        "better_alone",
        "as_good_alone",
    }


def test_a_folder_keeps_one_run(tmp_path):
    train(CONTEST, 0, tmp_path)
    with pytest.raises(RunError, match=r"kind 'tabular' with other settings \(seed is 0 there and 1 here"):
        train(CONTEST, 1, tmp_path)
    with pytest.raises(RunError, match=r"\(scenario is 'kbc' there and 'evacuation' here"):
        train(ROOM, 0, tmp_path)
    (tmp_path / "run.json").write_text("no json")
    with pytest.raises(RunError, match="cannot be read"):
        train(CONTEST, 0, tmp_path)


def test_two_learners_do_not_share_a_folder(tmp_path):
    TabularFolder.make(tmp_path, {"scenario": "kbc", "seed": 0, **CONTEST.to_json()})
    with lock_folder(tmp_path), pytest.raises(RunError, match="another process is writing this run"):
        train(CONTEST, 0, tmp_path)
    assert not (tmp_path / "checkpoint.npz").exists()
    assert train(CONTEST, 0, tmp_path).episodes == CONTEST.episodes


def test_a_damaged_checkpoint_is_named(tmp_path):
    train(CONTEST, 0, tmp_path)
    store = TabularFolder.open(tmp_path)
    store.write(status=INTERRUPTED)
    (tmp_path / "checkpoint.npz").write_bytes(b"PK nothing")
    with pytest.raises(RunError, match=r"checkpoint\.npz is damaged; delete it to begin anew"):
        train(CONTEST, 0, tmp_path)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_seeds_are_checked(seed, tmp_path):
    with pytest.raises(SettingsError, match=r"seed=.*: must be (a whole number, )?0 or more"):
        train(CONTEST, seed, tmp_path)


def test_what_is_missing_is_said_first(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"llm-coop-envs\[study\]"):
        train(CONTEST, 0, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tables_are_found_by_file_folder_and_name(tmp_path):
    table = train(CONTEST, 0, tmp_path)
    for name in (tmp_path, tmp_path / "table.npz", str(tmp_path)):
        assert load(name).about() == table.about()
    assert {load(name).scenario for name in SHIPPED} == {"kbc", "evacuation"}
    with pytest.raises(SettingsError, match=r"'tabular:evacuaton': is neither shipped .* did you mean 'evacuation'"):
        load("evacuaton")


def test_what_is_no_table_is_refused(tmp_path):
    path = tmp_path / "some.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"some\.npz: is no table of the tabular learners"):
        load(path)
    import numpy as np

    np.savez(path, values=np.zeros(3))
    with pytest.raises(RunError, match="is no table"):
        load(path)
    about = json.dumps({"scenario": "kbc", "learning": {"bins": 0}, "seed": 0, "episodes": 1}).encode()
    np.savez(path, about=np.frombuffer(about, dtype=np.uint8))
    with pytest.raises(RunError, match="is no table"):
        load(path)


def test_a_table_that_cannot_be_written_is_said(tmp_path):
    table = train(CONTEST, 0, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot be written .*; choose a folder"):
        save(table, tmp_path / "file" / "table.npz")


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        (KBCLearning, {"episodes": 0}, "episodes=0: must be between 1 and"),
        (KBCLearning, {"step_size": 0}, "step_size=0: must be above 0 and at most 1"),
        (KBCLearning, {"discount": 1.5}, "discount=1.5: must be at least 0 and at most 1"),
        (KBCLearning, {"explore": -0.1}, "explore=-0.1"),
        (KBCLearning, {"near": 0}, "near=0"),
        (KBCLearning, {"preset": "thirds"}, "preset='thirds': is no preset"),
        (KBCLearning, {"changes": {"rounds": 3}}, "rounds=3: is set by the learner"),
        (KBCLearning, {"changes": {"player": 3}}, "did you mean 'players'"),
        (KBCLearning, {"changes": 3}, "changes=3: must hold settings"),
        (KBCLearning, {"changes": {"players": 1_000_000}}, r"a table of 8\.28 GiB, more than 2; take fewer"),
        (EvacuationLearning, {"explore_move": 2}, "explore_move=2"),
        (EvacuationLearning, {"changes": {"people": 5000}}, "people=5000: the room has only 961 free cells"),
        (EvacuationLearning, {"curve_every": True}, "curve_every=True"),
    ],
)
def test_settings_are_checked(kind, fields, sentence):
    with pytest.raises(SettingsError, match=sentence):
        kind(**fields)


def test_unknown_settings_are_refused():
    with pytest.raises(SettingsError, match=r"epsilon=0\.1: is no setting of KBCLearning"):
        KBCLearning.from_json({"epsilon": 0.1})


@pytest.mark.parametrize("learning", [CONTEST, ROOM])
def test_settings_survive_json(learning):
    assert type(learning).from_json(json.loads(json.dumps(learning.to_json()))) == learning

"""Every public function that takes a path takes it as a text, too."""

import os
import shutil
from pathlib import Path

import pytest
from live_chats import asking, price, with_chat
from small import KBC

from llm_coop_envs.baselines.tabular import load, save, train
from llm_coop_envs.errors import TrustError
from llm_coop_envs.export.export import export_run
from llm_coop_envs.kbc.faces.tabular import KBCLearning
from llm_coop_envs.kbc_v0 import parallel_env
from llm_coop_envs.policies.llm import journal
from llm_coop_envs.policies.llm.crowd import TextCrowd
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.population import load_population
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.figures import draw_figures
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.studies.study import load_study
from llm_coop_envs.util.trust import NOTHING, Trust, limited_to

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_run_and_what_is_made_of_it():
    Path("small.yaml").write_text(KBC)
    for name in ("small.yaml", Path("small.yaml")):
        assert load_study(name).name == "small"
    assert run_study(load_study("small.yaml"), "runs/x").complete
    assert open_run("runs/x").total == 5
    assert write_report("runs/x") == Path("runs/x/report/index.html")
    assert write_report("runs/x", "page") == Path("page/index.html")
    assert Path("page/index.html").is_file()
    assert draw_figures("runs/x", "drawn", only=["seeds"], formats=["svg"]).folder == Path("drawn")
    assert any(Path("drawn").glob("*.svg"))
    assert export_run("runs/x", "parquet", "tables") == Path("tables")
    assert not verify_run("runs/x").faults


def test_a_learner_and_its_table():
    learning = KBCLearning(episodes=2, curve_every=2, changes={"players": 3, "high": 10})
    table = train(learning, 0, "learned")
    save(table, "copy.npz")
    assert load("copy.npz").about() == load("learned").about() == load(Path("copy.npz")).about()


def test_a_chat_and_its_journal(tmp_path):
    answers, _ = with_chat("runs/x", asking(2), prices=str(price(tmp_path)), cache="shared")
    assert len(answers) == 2
    assert Path("shared").is_dir()
    (part,) = journal.journal_files("runs/x")
    assert len(list(journal.read_from(str(part), 0))) == len(list(journal.read_from(part, 0))) > 0
    assert journal.list_episodes("runs/x") == {"kbc/1": 2}
    assert len(journal.read_episode("runs/x", "kbc/1")) == len(list(journal.read_questions("runs/x"))) == 2
    assert len(journal.read_run("runs/x", journal.Answers("runs/x"))) == 1
    assert journal.salvage("runs/x") == []
    assert journal.write_copies("runs/x", "runs/y", "main", lambda episode, step: ["kbc/2"]).is_file()
    assert with_chat("runs/z", asking(2), replay="runs/x")[0] == answers
    access = ModelAccess(replay="runs/x", prices="prices.yaml")
    assert access.price_list().own.keys() == {"m"}
    assert not list(journal.read_questions("runs/nothing"))


def test_a_crowd_of_texts():
    async def number(question, player, seed):
        return "12"

    with TextCrowd(number, folder="runs/crowd"):
        assert any(Path("runs/crowd").rglob("main*"))


def test_a_population():
    Path("people.yaml").write_text("name: people\nsize: 4\nattributes: {home: {shares: {north: 0.5, south: 0.5}}}\n")
    assert load_population("people.yaml").data == load_population(Path("people.yaml")).data


def test_folders_of_words():
    shutil.copytree(ROOT / "llm_coop_envs" / "kbc" / "prompts" / "en-b", "words")
    texts = [parallel_env(players=3, wording=form).reset(seed=0)[0] for form in ("words", Path("words"), "en-b")]
    assert texts[0]["player_0"]["text"] == texts[1]["player_0"]["text"] == texts[2]["player_0"]["text"]
    assert parallel_env(players=3, wording=Path("words")).settings.to_json()["wording"] == "words"
    assert LLMSettings(model="m", pack=Path("en-b")).pack == "en-b"


def test_trust():
    with limited_to(NOTHING), pytest.raises(TrustError):
        test_folders_of_words()
    shutil.rmtree("words")
    with limited_to(Trust(folders=("words",), search=(os.curdir,))):
        test_folders_of_words()

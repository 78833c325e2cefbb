"""The scenario from outside: every command works for it, and nothing outside its folder knows of it."""

import asyncio
import copy
import json
import os
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from code_lines import code_lines
from hypothesis import given
from hypothesis import strategies as st
from model_studies import answering

from fishery.env import FisheryEnv, FisherySettings
from fishery.rules import catches, regrown, sustainable_yield
from fishery.scenario import SCENARIO
from llm_coop_envs.core import registry
from llm_coop_envs.errors import SettingsError, StudyError
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.human_game import plan_game
from llm_coop_envs.runs.human_window import play_in_window

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "fishery"


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)
    return SCENARIO


def test_it_is_short():
    lines = {path.name: code_lines(path) for path in FOLDER.glob("*.py")}
    scene = lines.pop("scene.py")
    assert sum(lines.values()) <= 167  # six of them put its measures into words
    assert scene <= 60


def test_nothing_outside_its_folder_knows_it():
    for top in ("llm_coop_envs", "policies", "baselines", "render", "benchmarks"):
        for path in (ROOT / top).rglob("*.py"):
            assert "fishery" not in path.read_text(encoding="utf-8"), path


def test_the_page_that_builds_it_shows_its_code():
    page = (ROOT / "docs" / "adding_a_scenario.md").read_text()
    folders = (FOLDER, FOLDER.with_name("auction"))
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".jinja", ".toml"}]
    files = "\n".join(path.read_text() for path in paths)
    blocks = re.findall(r"```(?:python|jinja|toml)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 10
    for block in blocks:
        assert block.rstrip() in files, block


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.floats(0, 200))
def test_nobody_lands_more_than_it_wants_nor_all_more_than_there_is(wanted, stock):
    landed = catches(np.array(wanted), stock)
    assert (landed <= np.array(wanted) + 1e-9).all()
    assert landed.sum() <= stock + 1e-9
    if sum(wanted) <= stock:
        assert landed.tolist() == wanted


@given(st.floats(0, 100), st.floats(0, 1))
def test_growth_is_logistic_and_largest_at_half_the_capacity(stock, growth):
    grown = regrown(stock, growth, 100)
    assert 0 <= grown <= 100
    assert grown - stock <= sustainable_yield(growth, 100) + 1e-9
    assert regrown(50, growth, 100) - 50 == pytest.approx(sustainable_yield(growth, 100))


def test_official():
    parallel_api_test(FisheryEnv(), num_cycles=40)
    parallel_seed_test(FisheryEnv, num_cycles=40)


def test_settings_are_checked_by_what_they_declare():
    for field, value in {"fishers": 1, "growth": 4, "limit": 2.5, "talk": "yes", "talk_mode": "loud"}.items():
        with pytest.raises(SettingsError, match=f"^{field}="):
            FisherySettings(**{field: value})


def test_snapshots_copies_and_branches_continue(registered):
    env = FisheryEnv(record=True)
    env.reset(seed=4)
    for _ in range(9):
        env.step({agent: {"choice": 3, "message": "3 tons"} for agent in env.agents})
    other = FisheryEnv(record=True)
    other.set_state(json.loads(json.dumps(env.get_state())))
    copied = copy.deepcopy(env)
    for game in (env, other, copied):
        while game.agents:
            game.step({agent: {"choice": 4, "message": "4"} for agent in game.agents})
    assert env.get_state() == other.get_state() == copied.get_state()
    assert env.events == copied.events


def test_sharing_lasts_and_greed_does_not(registered):
    env = FisheryEnv(record=True)
    totals = {}
    for name in ("sharing", "greedy"):
        play(env, scripted.make(f"fishery/{name}"), seed=1)
        totals[name] = SCENARIO.episode_metrics(env.events)
    assert totals["sharing"]["seasons"] == 12
    assert not totals["sharing"]["collapsed"]
    assert totals["greedy"]["collapsed"]
    assert totals["greedy"]["catch_total"] < totals["sharing"]["catch_total"]
    assert set(totals["greedy"]) == set(SCENARIO.measured.about)


def test_another_scenario_of_the_same_name_is_refused(registered):
    from dataclasses import replace

    registry.register(SCENARIO)
    with pytest.raises(StudyError, match="another scenario 'fishery'"):
        registry.register(replace(SCENARIO, title="another"))


# Installed, as far as Python is concerned: a folder on the path with the entry point's metadata in it.


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    about = site / "fishery-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fishery\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[llm_coop_envs.scenarios]\nfishery = fishery.scenario:SCENARIO\n")
    path = os.pathsep.join([str(site), str(FOLDER.parent), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "SDL_VIDEODRIVER": "dummy", "COLUMNS": "120"}


@pytest.fixture(scope="module")
def call(installed):
    def one(*arguments, given="", code=0):
        done = subprocess.run(
            [sys.executable, "-m", "llm_coop_envs", *map(str, arguments)],
            env=installed, input=given, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return one


@pytest.fixture(scope="module")
def run(call, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "fishery"
    call("run", FOLDER / "study.yaml", "-o", folder, "--workers", 2)
    return folder


def test_list_and_describe(call):
    assert "fishery" in call("list")
    output = call("describe", "fishery", "--all")
    for word in ("capacity", "growth rate", "sharing", "greedy", "share_of_best", "sustainable yield", "part"):
        assert word in output


def test_report_and_figures(call, run, tmp_path):
    call("report", run, "-o", tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Common-pool fishery" in page
    assert "share_of_best" in page
    assert "4 tons each in every season will last." in page
    call("figures", run, "-o", tmp_path / "figures", "--format", "png")
    assert list((tmp_path / "figures").glob("*fishery*.png"))


def test_film_and_watch(call, run, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    call("film", run, "mixed", seeds(run, "mixed")[0], "-o", tmp_path / "film.gif")
    assert (tmp_path / "film.gif").stat().st_size > 5000


def seeds(run, condition):
    manifest = json.loads((run / "run.json").read_text())
    return next(c["seeds"] for c in manifest["conditions"] if c["name"] == condition)


def test_play_in_the_terminal(call, tmp_path):
    typed = "".join(["4\n"] + ["hello\n4\n"] * 11)
    output = call("play", "fishery", "--terminal", "-o", tmp_path / "run", "--others", "sharing", given=typed)
    assert "whole number from 0 to 20" in output


def test_evaluate(call):
    output = call("evaluate", "sharing", "--env", "fishery", "--against", "greedy", "--episodes", 3)
    assert "share_of_best" in output


@pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="needs the extra rl")
def test_train(call, tmp_path):
    call("train", "--env", "fishery", "-o", tmp_path / "run", "--set", "talk=false", "--steps", 512)


def test_a_language_model_is_asked_with_the_text(call, tmp_path):
    study, flags = FOLDER / "study.yaml", ("--policy", "llm", "--model", "scripted")
    costs = call("cost", study, "--model", "gpt-4o-mini")
    assert "calls" in costs
    with answering() as server:
        call("run", study, *flags, "--base-url", server.base_url, "-o", tmp_path / "run")
    call("run", study, *flags, "--replay", tmp_path / "run", "-o", tmp_path / "again")
    condition, seed = "sharing", seeds(tmp_path / "run", "sharing")[0]
    recordings = [open_run(tmp_path / name).read_events(condition, seed)[1] for name in ("run", "again")]
    assert recordings[0] == recordings[1]
    assert any(event["type"] == "message" and event["text"] for event in recordings[0])
    flagged = [event for event in recordings[0] if event["type"] == "choice" and event["flags"]]
    assert not flagged
    output = call("transcript", tmp_path / "run", condition, seed)
    assert "How many tons do you land in season 1?" in output
    call("report", tmp_path / "run")
    assert "scripted answers" in (tmp_path / "run" / "report" / "index.html").read_text()


def test_play_in_a_window(registered, tmp_path, typed_in_window):
    windows, problems = typed_in_window("4", "hello", "many", "4", "", "5", None)
    _, result = asyncio.run(play_in_window(plan_game("fishery"), lambda: tmp_path / "game"))
    assert result.person_left
    assert windows
    assert "many" in problems[0]
    events = open_run(tmp_path / "game").read_events("played", 0)[1]
    mine = [event["choice"] for event in events if event["type"] == "choice" and event["agent"] == "fisher_0"]
    assert mine == [4, 4, 5]


def test_the_replay_window_shows_it(call, run):
    call("watch", run, "mixed", seeds(run, "mixed")[0], "--pictures", 5)


def test_a_tabular_or_shipped_network_says_that_it_is_not_for_it(call):
    for policy in ("sb3:evacuation", "q_learning:calvano"):
        output = call("evaluate", policy, "--env", "fishery", "--episodes", 1, code=2)
        assert output.startswith("Error: ")

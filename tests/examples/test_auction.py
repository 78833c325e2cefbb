"""The second example: private values, phases with questions of their own, passing, and messages to somebody."""

import copy
import csv
import json
import warnings
from math import fsum
from pathlib import Path

import gymnasium
import numpy as np
import pettingzoo
import pytest
from code_lines import code_lines
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_chats import Canned, run
from typer.testing import CliRunner

from auction.env import AuctionEnv, AuctionSettings
from auction.scenario import SCENARIO
from llm_coop_envs.cli.description import describe
from llm_coop_envs.cli.main import app
from llm_coop_envs.core import registry
from llm_coop_envs.core.makers import make_aec, make_parallel
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.export.otree import write_otree
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.studies.study import load_study
from llm_coop_envs.wrappers import NumericView, SingleAgentView

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test

FOLDER = Path(__file__).parents[2] / "examples" / "auction"


@pytest.fixture(autouse=True)
def auction(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)


def rounds(env):
    return [event for event in env.events if event["type"] == "round"]


def test_it_is_short():
    assert sum(code_lines(path) for path in FOLDER.glob("*.py")) <= 150


def test_official():
    parallel_api_test(AuctionEnv(), num_cycles=60)
    parallel_seed_test(AuctionEnv, num_cycles=60)
    parallel_api_test(NumericView(AuctionEnv(talk=False)), num_cycles=60)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_what_is_earned_is_value_less_price(seed):
    env = AuctionEnv(record=True, rounds=4, talk=False)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    earned = np.zeros(env.n_players)
    while env.agents:
        if env.phase == "enter":
            actions = {a: {"choice": int(rng.integers(2))} for a in env.agents}
        else:
            actions = {a: {"choice": float(rng.uniform(10, 100)) if rng.random() < 0.7 else None} for a in env.agents}
        _, rewards, _, _, _ = env.step(actions)
        earned += list(rewards.values())
    values = {event["round"]: event["drawn"] for event in env.events if event["type"] == "nature"}
    won = [(e, env.possible_agents.index(e["winner"])) for e in rounds(env) if e["winner"]]
    assert fsum(earned) == pytest.approx(fsum(values[e["round"]][i] - e["price"] for e, i in won))
    assert all(e["price"] == e["bids"][i] == max(bid for bid in e["bids"] if bid is not None) for e, i in won)


def test_nobody_learns_the_value_or_the_bid_of_another():
    env = AuctionEnv(record=True)
    observations, _ = env.reset(seed=3)
    values = env.values.tolist()
    for i, agent in enumerate(env.agents):
        own = f"{values[i]:.4g}"
        assert f"worth {own} to you" in observations[agent]["text"]
        assert not any(f"{value:.4g}" in observations[agent]["text"] for value in values if f"{value:.4g}" != own)


def test_to_pass_is_no_mistake_and_to_bid_too_much_is_one():
    env = AuctionEnv(record=True, talk=False, rounds=1, bidders=3)
    env.reset(seed=1)
    env.step({agent: {"choice": 1} for agent in env.agents})
    env.step({"bidder_0": {"choice": None}, "bidder_1": {"choice": 30.0}, "bidder_2": {"choice": 1e9}})
    assert [event["flags"] for event in env.events if event["type"] == "choice"][3:] == [[], [], ["illegal_choice"]]
    assert rounds(env)[0]["bids"] == [None, 30.0, None]
    assert rounds(env)[0]["winner"] == "bidder_1"


def test_a_ring_pays_the_reserve_and_says_so_to_each_alone():
    env = AuctionEnv(record=True)
    play(env, scripted.make("auction/ring"), seed=1)
    assert {event["price"] for event in rounds(env) if event["winner"]} == {10.0}
    assert all(event["private"] for event in env.events if event["type"] == "message")
    alone = AuctionEnv(record=True)
    play(alone, scripted.make("auction/shading"), seed=1)
    # All shade alike, so the highest value wins: of n = 4 bidders it pays three quarters of it.
    assert SCENARIO.episode_metrics(alone.events)["revenue_share"] == pytest.approx(0.75)


def test_a_model_that_passes_is_asked_once():
    env = AuctionEnv(record=True, rounds=1, bidders=2)
    talk = ["to bidder_1: let me have it", ""]
    policy, chat = run(env, Canned(talk=talk, act=["enter", "enter", "I bid 20.", "I pass."]), repairs=1, tries=2)
    assert len(chat.log) == 6
    assert not any(event["flags"] for event in env.events if event["type"] in ("choice", "message"))
    assert rounds(env)[0]["bids"] == [20.0, None]
    assert policy.counters.total().fallbacks == 0
    assert 'bidder_0 -> bidder_1: "let me have it"' in chat.prompts("act")[1][1]


def test_snapshots_continue():
    env = AuctionEnv(record=True)
    env.reset(seed=4)
    for _ in range(7):
        env.step({agent: {"choice": 1, "message": "to bidder_1: hello"} for agent in env.agents})
    other = AuctionEnv(record=True)
    other.set_state(json.loads(json.dumps(env.get_state())))
    copied = copy.deepcopy(env)
    for game in (env, other, copied):
        while game.agents:
            game.step({agent: {"choice": 1 if game.phase == "enter" else None} for agent in game.agents})
    assert env.get_state() == other.get_state() == copied.get_state()
    assert env.events == copied.events


def test_a_study_is_played_and_measured(tmp_path):
    run_study(load_study(FOLDER / "study.yaml"), tmp_path / "run", workers=1)
    folder = open_run(tmp_path / "run")
    assert len(folder.episodes) == 16
    events = [folder.read_events(arm.name, seed)[1] for arm, seed in folder.episodes if arm.name == "ring"]
    shares = [SCENARIO.episode_metrics(played)["revenue_share"] for played in events]
    assert max(shares) < 0.25


def test_settings_are_checked():
    for field, value in {"bidders": 1, "rounds": 0, "reserve": -1}.items():
        with pytest.raises(SettingsError, match=f"^{field}="):
            AuctionSettings(**{field: value})


def test_pettingzoo_and_gymnasium_make_it():
    settings = {"talk": False, "rounds": 1, "bidders": 2}
    assert isinstance(pettingzoo.make("parallel", "llm_coop/auction-v0", **settings), AuctionEnv)
    agents = pettingzoo.make("aec", "llm_coop/auction-v0", **settings)
    agents.reset(seed=1)
    assert agents.possible_agents == make_aec("auction", **settings).possible_agents == ["bidder_0", "bidder_1"]
    view = gymnasium.make("llm_coop/auction-v0", others="ring", **settings)
    view.reset(seed=1)
    assert view.step({"choice": 1})[1:4] == (0, False, False)


def test_the_others_have_names():
    view = SingleAgentView(AuctionEnv(talk=False, rounds=2), "bidder_1", "ring")
    view.reset(seed=1)
    assert view.env.phase == "enter"
    mixed = {"bidder_0": "auction/ring", "bidder_2": scripted.make("auction/shading"), "bidder_3": "ring"}
    seats = SingleAgentView(AuctionEnv(), "bidder_1", mixed)._table._seats
    assert seats["bidder_0"] is seats["bidder_3"]
    with pytest.raises(SettingsError, match="others='rign': is no scripted policy; did you mean 'ring'"):
        SingleAgentView(AuctionEnv(), "bidder_1", "rign")


def test_it_is_described_by_what_it_takes():
    text = describe("auction")
    assert not {"information", "observation_noise", "memory", "present"} & {one.name for one in text.settings}
    assert {"reserve", "private_messages", "regulator"} <= {one.name for one in text.settings}
    shown = CliRunner().invoke(app, ["describe", "auction"], env={"COLUMNS": "200"}).stdout
    use = " ".join(shown.partition("Use ")[2].split())
    assert 'import make_parallel; make_parallel("auction", preset=..., talk=False, ...)' in use
    assert isinstance(make_parallel("auction", talk=False), AuctionEnv)


def test_rewards_stand_in_tables_and_exports(tmp_path):
    run_study(load_study(FOLDER / "study.yaml"), tmp_path / "run", workers=1)
    run = open_run(tmp_path / "run")
    for episode in read_episodes(run):
        prices = [event for event in episode.events if event["type"] == "round" and event["winner"]]
        values = {event["round"]: event["drawn"] for event in episode.events if event["type"] == "nature"}
        gains = [values[e["round"]][int(e["winner"][-1])] - e["price"] for e in prices]
        assert episode.metrics["return_mean"] == pytest.approx(fsum(gains) / 4)
    write_otree(run, tmp_path)
    with (tmp_path / "auction.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["session.code"] == f"ring/{episode.seed}"]
    payoffs = {row["participant.label"]: float(row["participant.payoff"]) for row in rows}
    assert fsum(payoffs.values()) / 4 == pytest.approx(episode.metrics["return_mean"])

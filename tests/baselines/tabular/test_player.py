import numpy as np
import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.baselines.tabular.player import LABEL, check, make
from llm_coop_envs.baselines.tabular.store import load
from llm_coop_envs.baselines.tabular.training import train
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.evacuation.faces.tabular import EvacuationTables, greedy_episode, mean_round
from llm_coop_envs.kbc.faces.tabular import KBCLearning
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.studies.players import check_policy, full_name, make_policy, policy_label


def played(env, seats, seed=0):
    play(env, seats, seed=seed)
    return env.events


@pytest.fixture(scope="module")
def contest(tmp_path_factory):
    """A table learned with few players, and its folder."""
    folder = tmp_path_factory.mktemp("contest")
    return train(KBCLearning(episodes=40, changes={"players": 3, "high": 10}), 0, folder), folder


@pytest.mark.parametrize(
    "more", [{}, {"preset": "half", "session": "repeated", "players": 30}, {"talk": False}, {"session": "single"}]
)
def test_the_shipped_table_plays_the_number_contest(more):
    events = played(kbc_v0.parallel_env(record=True, **more), make("kbc", "kbc", {}))
    choices = [event for event in events if event["type"] == "choice"]
    assert choices
    assert all(event["flags"] == [] for event in choices)
    assert events == played(kbc_v0.parallel_env(record=True, **more), make("kbc", "kbc", {}))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"talk": False, "engine": "simultaneous"},
        {"talk": False, "control": "exit"},
        {"talk": False, "option_order": "shuffled", "injury": "active"},
    ],
)
def test_the_shipped_table_plays_the_evacuation(more):
    settings = {"people": 20, "rounds": 6, "record": True, **more}
    events = played(evacuation_v0.parallel_env(**settings), make("evacuation", "evacuation", {}))
    assert all(event["flags"] == [] for event in events if event["type"] in ("choice", "message"))
    assert events[-1]["type"] == "end"


def test_each_seat_names_what_its_learner_knows(contest):
    table, folder = contest
    env = kbc_v0.parallel_env(players=3, high=10, session="repeated", talk=False, rounds=4, record=True)
    rounds = [event for event in played(env, make("kbc", str(folder), {}), seed=2) if event["type"] == "round"]
    values, state = table.arrays["values"], 0
    for one in rounds:
        for player, number in enumerate(one["choices"]):
            row = values[player, state]
            assert row[number] == row.max()
        state = 1 + min(int(np.float32(round(one["target"], 2) / 10) * 10), 9)


def test_a_table_sits_beside_a_rule(contest):
    _, folder = contest
    env = kbc_v0.parallel_env(players=4, high=10, record=True)
    mine, rule = make("kbc", str(folder), {}), scripted.make("kbc/announcer")
    seats = dict(zip(env.possible_agents, (mine, rule, mine, mine), strict=True))
    assert len([event for event in played(env, seats) if event["type"] == "choice"]) == 16


def test_in_seats_and_on_arrays_play_is_the_same():
    env = evacuation_v0.parallel_env(preset="no_talk", people=40, record=True)
    tables = EvacuationTables(env.settings)
    tables.load(load("evacuation").arrays)
    expected = greedy_episode(env, tables, seed=5)
    assert mean_round(played(env, make("evacuation", "evacuation", {}), seed=5)) == expected


def test_studies_know_the_kind():
    assert policy_label("tabular:kbc") == LABEL
    assert full_name("evacuation", "tabular:evacuation") == "tabular:evacuation"
    check_policy("kbc", "tabular:kbc", {})
    assert make_policy("kbc", "tabular:kbc", {}) is not make_policy("kbc", "tabular:kbc", {})


@pytest.mark.parametrize(
    ("scenario", "argument", "options", "error", "sentence"),
    [
        ("kbc", "", {}, SettingsError, "is neither shipped nor .* known are evacuation, kbc"),
        ("kbc", "none", {}, SettingsError, "policy='tabular:none': is neither shipped nor a file nor a run folder"),
        ("kbc", "evacuation", {}, SettingsError, "policy='tabular:evacuation': was trained on evacuation, not on kbc"),
        ("bertrand", "kbc", {}, SettingsError, "was trained on kbc, not on bertrand"),
        ("kbc", "kbc", {"epsilon": 1}, SettingsError, "epsilon=1: is no option of this policy; known are none"),
    ],
)
def test_what_cannot_play_is_refused(scenario, argument, options, error, sentence):
    with pytest.raises(error, match=sentence):
        check(scenario, argument, options)
    with pytest.raises(error, match=sentence):
        make(scenario, argument, options)


@pytest.mark.parametrize(
    ("name", "env", "sentence"),
    [
        ("kbc", lambda: kbc_v0.parallel_env(high=50), "has learned 101 numbers from 0 to 100; this contest has others"),
        ("kbc", lambda: kbc_v0.parallel_env(low=-100, high=0), "this contest has others"),
        ("kbc", evacuation_v0.parallel_env, "plays kbc, not evacuation_v0"),
        ("evacuation", bertrand_v0.parallel_env, "plays evacuation, not bertrand_v0"),
    ],
)
def test_another_game_is_refused_when_it_begins(name, env, sentence):
    with pytest.raises(SettingsError, match=sentence):
        play(env(), make(name, name, {}), seed=0)


def test_a_room_with_other_exits_is_refused():
    with pytest.raises(RunError, match="learned in a room with other exits"):
        play(evacuation_v0.parallel_env(preset="single"), make("evacuation", "evacuation", {}), seed=0)


def test_whole_numbers_play_real_contests_too():
    env = kbc_v0.parallel_env(preset="large_scale", players=50, record=True)
    rounds = [event for event in played(env, make("kbc", "kbc", {})) if event["type"] == "round"]
    assert all(number == int(number) for one in rounds for number in one["choices"])

"""Players who leave the contest from a round on."""

import json

import numpy as np
import pytest

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc.faces.page_scene import PAGE
from llm_coop_envs.kbc.metrics import episode_metrics, present_choices, round_rows
from llm_coop_envs.kbc.rules import settle
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.policies import play
from llm_coop_envs.policies.kinds import make

REPEATED = {"players": 5, "session": "repeated", "rounds": 4, "talk_turns": 1, "record": True}


def departures(*leaving):
    return [{"from_round": first, "players": players, "settings": {"present": False}} for first, players in leaving]


def of_type(events, kind):
    return [event for event in events if event["type"] == kind]


def play_game(policy="kbc/uniform", **settings):
    env = kbc_v0.parallel_env(**REPEATED | settings)
    return env, play(env, make(policy), seed=2)


@pytest.mark.parametrize("choices", ["integer", "real"])
@pytest.mark.parametrize("winner_rule", ["nearest", "first_value", "tolerance"])
@pytest.mark.parametrize("groups", [None, [3, 2, 4]], ids=["alone", "in groups"])
def test_a_contest_that_some_have_left_is_that_of_the_others(choices, winner_rule, groups):
    rng = np.random.default_rng(4)
    participants = np.array([0, 2, 3, 5, 6, 8])
    rules = {"choices": choices, "winner_rule": winner_rule, "tolerance": 9, "reward_rule": "amplified"}
    all_, few = (
        KBCSettings(players=9, groups=groups, **rules),
        KBCSettings(players=6, groups=groups and [2, 1, 3], **rules),
    )
    for _ in range(50):
        numbers = rng.integers(0, 101, 9) if choices == "integer" else rng.uniform(0, 100, 9)
        settled, expected = settle(numbers, all_, participants), settle(numbers[participants], few)
        assert (settled.mean, settled.target, settled.count, settled.prize) == (
            expected.mean,
            expected.target,
            expected.count,
            expected.prize,
        )
        assert settled.winners[participants].tolist() == expected.winners.tolist()
        assert settled.rewards[participants].tolist() == expected.rewards.tolist()
        assert settled.winners.sum() == expected.winners.sum()


def test_whoever_leaves_is_done_and_counts_no_more():
    env, totals = play_game("kbc/level_k", changes=departures((3, ["player_1", "player_4"])))
    assert totals["player_1"] == totals["player_0"] / 2  # all are the same and win in each round
    (departure,) = of_type(env.events, "left")
    assert (departure["round"], departure["agents"]) == (3, ["player_1", "player_4"])
    for event in of_type(env.events, "round"):
        away = [i for i, number in enumerate(event["choices"]) if number is None]
        assert away == ([1, 4] if event["round"] >= 3 else [])
        assert event["mean"] == pytest.approx(present_choices(event).mean())
        assert event["winners"] == [i for i in range(5) if i not in away]
    speakers = {event["agent"] for event in of_type(env.events, "message") if event["round"] >= 3}
    assert speakers == {"player_0", "player_2", "player_3"}


def test_the_others_are_told_in_every_pack():
    sentences = {
        "en-a": "player_1 has left for good",
        "en-b": "not coming back: player_1",
        "de-a": "player_1 ist endgültig",
    }
    for pack, sentence in sentences.items():
        env = kbc_v0.parallel_env(**REPEATED | {"talk": False, "wording": pack, "changes": departures((3, "player_1"))})
        env.reset(seed=0)
        for number in range(1, 5):
            observations, _, done, _, infos = env.step({agent: {"choice": 10} for agent in env.agents})
            assert (sentence in observations["player_0"]["text"]) is (number >= 2)
            assert infos["player_0"]["slots"].players == (5 if number < 2 else 4)
            assert done["player_0"] is (number == 4)
            assert env.observation_space("player_0").contains(observations["player_0"])
        assert "player_1" not in env.agents
    crowd = kbc_v0.parallel_env(**REPEATED | {"players": 40, "talk": False, "changes": departures((2, "player_1*"))})
    crowd.reset(seed=0)
    observations, *_ = crowd.step({})
    assert "Of the 40 who began, 11 have left for good" in observations["player_0"]["text"]
    own = crowd.feature_names.index("own_weight")
    assert observations["player_0"]["observation"][own] == pytest.approx(1 / 29)


def test_until_then_all_is_as_if_nobody_left():
    env, _ = play_game("kbc/follower", changes=departures((3, "player_0")))
    usual, _ = play_game("kbc/follower")
    early = [[event for event in game.events[1:] if event["round"] < 3] for game in (env, usual)]
    assert early[0] == early[1]


def test_nested_sessions_count_k():
    env, _ = play_game(session="nested", exchanges=3, changes=departures((2, "player_2")))
    absent = {event["round"]: event["choices"][2] is None for event in of_type(env.events, "round")}
    assert absent == {0: False, 1: False, 2: True, 3: True}


def test_neighbours_and_announcers_close_ranks():
    ring = {"players": 6, "audience": "neighbours", "hearers": 2, "announcers": ["player_1", "player_3"]}
    env, _ = play_game("kbc/level_k", **ring, changes=departures((2, "player_3"), (3, "player_0")))
    heard = {(event["round"], event["agent"]): event["hearers"] for event in of_type(env.events, "message")}
    assert heard[1, "player_2"] == ["player_1", "player_3"]
    assert heard[2, "player_2"] == ["player_1", "player_4"]
    assert heard[3, "player_5"] == ["player_1", "player_4"]
    assert heard[3, "player_1"] is None


def test_groups_go_on_with_the_members_they_have():
    env, _ = play_game(groups=[3, 2], changes=departures((2, "player_0")))
    for event in of_type(env.events, "round")[1:]:
        first, second = event["choices"][1:3], event["choices"][3:]
        assert event["group_numbers"] == pytest.approx([np.mean(first), np.mean(second)])
    with pytest.raises(SettingsError, match="leaves nobody of group 2 from round 3 on; one of each group must stay"):
        play_game(groups=[3, 2], changes=departures((2, "player_3"), (3, "player_4")))


def test_two_must_stay():
    play_game(changes=departures((2, ["player_0", "player_1", "player_2"])))
    with pytest.raises(SettingsError, match="leaves 1 of 5 from round 2 on; 2 or more must stay"):
        play_game(changes=departures((2, "player_[0-3]")))
    with pytest.raises(SettingsError, match="nobody can leave before round 1; begin with fewer"):
        play_game(session="nested", changes=departures((0, "player_0")))


@pytest.mark.parametrize("settings", [{}, {"choices": "real", "groups": [2, 3]}], ids=["alone", "in groups"])
def test_an_episode_goes_on_from_a_snapshot(settings):
    settings = {**REPEATED, **settings, "talk": False, "changes": departures((2, "player_1"), (4, "player_3"))}
    env, other = (kbc_v0.parallel_env(**settings) for _ in range(2))
    env.reset(seed=4)
    while env.agents:
        state = json.loads(json.dumps(env.get_state(), allow_nan=False))
        other.reset(seed=9)
        other.set_state(state)
        assert [view["text"] for view in other.look()[0].values()] == [view["text"] for view in env.look()[0].values()]
        number = 10 + env.round
        actions = {agent: {"choice": np.array([number]) if "groups" in settings else number} for agent in env.agents}
        assert env.step(actions)[1:4] == other.step(actions)[1:4]
        assert env.state().tolist() == other.state().tolist()
        assert env.state_space.contains(env.state())
        assert env._picture() == other._picture()


def test_measures_pages_and_pictures_leave_them_out():
    env, _ = play_game(changes=departures((3, "player_1")))
    rows = round_rows(env.events)
    assert [row["players"] for row in rows] == [5, 5, 4, 4]
    last = of_type(env.events, "round")[-1]
    assert rows[-1]["variance"] == pytest.approx(np.var([x for x in last["choices"] if x is not None]))
    assert json.loads(rows[-1]["choices"])[1] is None
    assert episode_metrics(env.events)["variance_last"] == rows[-1]["variance"]
    scene = env.scene()
    assert np.isnan(scene.last.choices).tolist() == [False, True, False, False, False]
    assert scene.last.variance == pytest.approx(rows[-1]["variance"])
    assert PAGE.moving(scene)["values"][1] is None
    assert (3, "1 left") in PAGE.moments(env.events)
    assert "gone" in env._picture()


def test_listeners_who_have_left_are_told_nothing():
    env, _ = play_game(listeners=[{"on": "winning_number"}], changes=departures((3, "player_1")))
    listeners_by_round = {event["round"]: event["agents"] for event in of_type(env.events, "news")}
    assert "player_1" in listeners_by_round[2]
    assert "player_1" not in listeners_by_round[3]


@pytest.mark.parametrize("delivery", ["swap", "shuffle"])
def test_nobody_speaks_under_the_name_of_who_has_left(delivery):
    env, _ = play_game("kbc/level_k", delivery=delivery, changes=departures((3, ["player_1", "player_3"])))
    seeming = [
        (event["round"], event["agent"], event["delivered"]["speaker"]) for event in of_type(env.events, "message")
    ]
    assert {speaker for number, _, speaker in seeming if number < 3} == {f"player_{i}" for i in range(5)}
    later = {(agent, speaker) for number, agent, speaker in seeming if number >= 3}
    assert {speaker for _, speaker in later} == {"player_0", "player_2", "player_4"}
    assert all(agent != speaker for agent, speaker in later)

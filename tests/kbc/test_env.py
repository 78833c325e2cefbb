import json
from collections import Counter

import numpy as np
import pytest

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import SettingsError

CASES = {
    "nested": {"players": 3},
    "nested-silent": {"players": 3, "talk": False},
    "single": {"preset": "shall_we_talk", "players": 3},
    "single-together": {"players": 3, "session": "single", "talk_mode": "simultaneous"},
    "repeated-real": {"preset": "large_scale", "players": 4},
    "repeated-groups": {"players": 5, "session": "repeated", "rounds": 3, "groups": 2, "talk_turns": 1},
    "shifted": {"players": 3, "low": -7, "high": 9, "ratio": "4/3", "offset": -20},
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def act_all(env, choice, message="hello"):
    value = np.array([choice], dtype=np.float64) if env.settings.choices == "real" else choice
    return env.step({agent: {"choice": value, "message": message} for agent in env.agents})


@cases
def test_everything_stays_in_its_space_and_its_kind(case):
    env = kbc_v0.parallel_env(**case)
    observations, infos = env.reset(seed=5)
    for number, agent in enumerate(env.agents):
        env.action_space(agent).seed(number)
    seen = []
    while True:
        rows = env.features()
        assert rows.dtype == np.float32
        assert rows.shape == (env.n_players, len(env.feature_names))
        assert (rows != 0).any(axis=1).all()
        state = env.state()
        assert env.state_space.contains(state)
        assert np.isfinite(state).all()
        assert state.any()
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
            seen.append(infos[agent]["round"])
        if not env.agents:
            break
        sampled = {a: env.action_space(a).sample(mask=None) for a in env.agents}
        observations, rewards, ended, cut, infos = env.step(sampled)
        assert all(type(value) is float for value in rewards.values())
        assert not any(cut.values())
        assert all(value == (not env.agents) for value in ended.values())
    first = env.settings.first_round
    assert set(seen) == set(range(first, first + env.settings.decisions))


def test_phases_of_a_nested_session():
    env = kbc_v0.parallel_env(players=3)
    env.reset(seed=0)
    steps = []
    while env.agents:
        steps.append((env.round, env.phase, len(env.on_turn)))
        act_all(env, 10)
    talk = [(k, "talk", 1) for k in (1, 2, 3) for _ in range(3)]
    expected = [(0, "act", 3)]
    for k in (1, 2, 3):
        expected += [s for s in talk if s[0] == k] + [(k, "act", 3)]
    assert steps == expected


def test_phases_of_the_other_sessions():
    def phases(**given_settings):
        env = kbc_v0.parallel_env(players=2, **given_settings)
        env.reset(seed=0)
        slots_by_round = []
        while env.agents:
            slots_by_round.append((env.round, env.phase, env.on_turn.tolist()))
            act_all(env, 10)
        return slots_by_round

    both, first, second = [0, 1], [0], [1]
    assert phases(session="nested", talk=False) == [(k, "act", both) for k in range(4)]
    assert phases(preset="shall_we_talk") == [
        (1, "talk", first),
        (1, "talk", second),
        (1, "talk", first),
        (1, "talk", second),
        (1, "act", both),
    ]
    together = phases(session="single", talk_mode="simultaneous")
    assert together == [(1, "talk", both), (1, "talk", both), (1, "act", both)]
    assert phases(session="repeated", rounds=2, talk_turns=1, order="fixed") == [
        (1, "talk", first),
        (1, "talk", second),
        (1, "act", both),
        (2, "talk", first),
        (2, "talk", second),
        (2, "act", both),
    ]


def test_the_order_of_speakers_is_shuffled_for_each_talk_or_fixed():
    def orders(**given_settings):
        env = kbc_v0.parallel_env(players=8, session="single", talk_turns=5, record=True, **given_settings)
        env.reset(seed=1)
        while env.agents:
            act_all(env, 10)
        speakers = [event["agent"] for event in env.events if event["type"] == "message"]
        return [speakers[i : i + 8] for i in range(0, 40, 8)]

    shuffled = orders()
    assert all(sorted(order) == [f"player_{i}" for i in range(8)] for order in shuffled)
    assert len({tuple(order) for order in shuffled}) == 5
    assert orders(order="fixed") == [[f"player_{i}" for i in range(8)]] * 5


def test_speakers_are_shuffled_fairly():
    env = kbc_v0.parallel_env(players=3, exchanges=1)
    firsts = Counter()
    env.begin(seed=0)
    for _ in range(600):
        env.advance(np.zeros(3, dtype=np.int64))
        firsts[int(env.on_turn[0])] += 1
        env.begin()
    # 200 each on average, standard deviation 11.5.
    assert all(150 < firsts[i] < 250 for i in range(3))


def test_a_speaker_hears_those_before_it_and_a_decider_hears_all():
    env = kbc_v0.parallel_env(players=4, exchanges=2)
    env.reset(seed=2)
    act_all(env, 10)
    spoken = 0
    while env.agents:
        speaker = env.on_turn.tolist()
        observations, _ = env.look()
        heard = observations[f"player_{speaker[0]}"]["messages"]
        own = observations[f"player_{speaker[0]}"]["text"].count("You: ")
        assert len(heard) + own == spoken
        act_all(env, 10, message=f"number {spoken}")
        spoken += len(speaker) if len(speaker) == 1 else 0
    assert spoken == 8


def test_rewards_are_the_rules():
    env = kbc_v0.parallel_env(players=3, talk=False, exchanges=1)
    env.reset(seed=0)
    # Mean 30, target 20.
    _, rewards, *_ = env.step({"player_0": {"choice": 20}, "player_1": {"choice": 20}, "player_2": {"choice": 50}})
    assert rewards == {"player_0": 100.0, "player_1": 100.0, "player_2": 0.0}
    _, rewards, *_ = env.step({"player_0": {"choice": 0}, "player_1": {"choice": 100}, "player_2": {"choice": 50}})
    assert rewards == {"player_0": 0.0, "player_1": 0.0, "player_2": 100.0}


def test_talking_pays_nothing():
    env = kbc_v0.parallel_env(preset="shall_we_talk", players=2)
    env.reset(seed=0)
    for _ in range(4):
        _, rewards, *_ = act_all(env, 50)
        assert set(rewards.values()) == {0.0}
    _, rewards, *_ = act_all(env, 50)
    assert set(rewards.values()) == {2.0}


def test_choices_count_from_the_bottom_of_the_range():
    env = kbc_v0.parallel_env(players=2, low=-5, high=5, talk=False, record=True)
    assert env.action_space("player_0")["choice"].n == 11
    env.reset(seed=0)
    env.step({"player_0": {"choice": 0}, "player_1": {"choice": 10}})
    assert env.events[-1]["choices"] == [-5, 5]
    assert env.events[-1]["mean"] == 0


@pytest.mark.parametrize("wrong", [11, -1, 3.5, "7", None, float("nan"), [1, 2]])
def test_an_illegal_whole_number_counts_as_the_lowest(wrong):
    env = kbc_v0.parallel_env(players=2, low=5, high=15, talk=False, record=True)
    env.reset(seed=0)
    *_, infos = env.step({"player_0": {"choice": wrong}, "player_1": {"choice": 3}})
    assert env.events[-1]["choices"] == [5, 8]
    assert infos["player_0"]["flags"] == ("illegal_choice",)
    assert infos["player_1"]["flags"] == ()


@pytest.mark.parametrize(
    ("wrong", "number", "flag"),
    [
        (100.5, 100, "illegal_choice"),
        (-0.1, 1, "illegal_choice"),
        (float("inf"), 100, "illegal_choice"),
        (float("-inf"), 1, "illegal_choice"),
        (float("nan"), 1, "illegal_choice"),
        (None, 1, "illegal_choice"),
        ("missing", 1, "missing_action"),
    ],
)
def test_an_unusable_real_number_is_moved_into_the_range(wrong, number, flag):
    env = kbc_v0.parallel_env(players=2, low=1, choices="real", talk=False, record=True)
    env.reset(seed=0)
    actions = {"player_0": {"choice": wrong}, "player_1": {"choice": np.array([7.25])}}
    if wrong == "missing":
        del actions["player_0"]
    *_, infos = env.step(actions)
    assert env.events[-1]["choices"] == [number, 7.25]
    assert infos["player_0"]["flags"] == (flag,)
    assert infos["player_1"]["flags"] == ()


def test_bounds_of_the_features():
    def bounds(**given_settings):
        env = kbc_v0.parallel_env(**given_settings)
        box = env.observation_space("player_0")["observation"]
        pairs = zip(box.low.tolist(), box.high.tolist(), strict=True)
        return dict(zip(env.feature_names, pairs, strict=True))

    # One hundredth of room for the rounding of announced numbers, scaled.
    plain = bounds(players=4, groups=2)
    assert plain["progress"] == plain["deciding"] == plain["own_weight"] == plain["announced"] == (0, 1)
    assert plain["ratio"] == pytest.approx((2 / 3, 2 / 3))
    assert plain["offset"] == (0, 0)
    assert plain["last_target"] == pytest.approx((-0.0001, 2 / 3 + 0.0001))
    assert plain["own_last"] == (0, 1)
    for name in ("own_group_last", "lowest_group_last", "highest_group_last"):
        assert plain[name] == pytest.approx((-0.0001, 1.0001))
    # Targets from 5 x 1/2 + 100 = 102.5 to 15 x 1/2 + 100 = 107.5, scaled 9.75 and 10.25; 0 stands for none yet.
    above = bounds(players=2, low=5, high=15, ratio="1/2", offset=100)
    assert above["offset"] == (10, 10)
    assert above["last_target"] == pytest.approx((0, 10.251))
    below = bounds(players=2, low=5, high=15, ratio="1/2", offset=-100)
    assert below["last_target"] == pytest.approx((-10.251, 0))


def test_real_choices_are_boxes_of_one_number():
    box = kbc_v0.parallel_env(players=2, choices="real", low=1.5).action_space("player_0")["choice"]
    assert (box.shape, box.dtype, box.low.tolist(), box.high.tolist()) == ((1,), np.float64, [1.5], [100.0])


def test_answered_numbers_become_choices_and_illegal_ones_stay_illegal():
    env = kbc_v0.parallel_env(players=2, low=5, high=15, talk=False)
    env.reset(seed=0)
    question = env.look()[1]["player_0"]["slots"].question
    assert [question.choice(number) for number in (5, 15, 4, 16, 7.5)] == [0, 10, -1, -1, -1]
    real = kbc_v0.parallel_env(players=2, choices="real", low=5, talk=False)
    real.reset(seed=0)
    assert real.look()[1]["player_0"]["slots"].question.choice(7.5) == 7.5


@cases
def test_a_restored_episode_goes_on_alike(case):
    env = kbc_v0.parallel_env(**case)
    env.reset(seed=9)

    def play(game, rng):
        trace = []
        while game.agents:
            at = rng.integers(0, 5)
            observations, rewards, *_ = act_all(game, at, message=f"about {at}")
            trace.append(({a: o["text"] for a, o in observations.items()}, rewards, game.state().tolist()))
        return trace

    for _ in range(2):
        act_all(env, 3)
        saved = json.loads(json.dumps(env.get_state()))
        other = kbc_v0.parallel_env(**case)
        other.set_state(saved)
        if env.agents:
            look_before, look_after = env.look(), other.look()
            assert {a: o["text"] for a, o in look_before[0].items()} == {a: o["text"] for a, o in look_after[0].items()}
            assert (env.features() == other.features()).all()
    assert play(other, np.random.default_rng(1)) == play(env, np.random.default_rng(1))


def test_round_events():
    env = kbc_v0.parallel_env(players=4, groups=2, talk=False, record=True, exchanges=0)
    env.reset(seed=0)
    env.step({f"player_{i}": {"choice": x} for i, x in enumerate((0, 10, 90, 91))})
    kinds = [event["type"] for event in env.events]
    assert kinds == ["start", "choice", "choice", "choice", "choice", "round", "end"]
    event = env.events[-2]
    assert event == {
        "type": "round",
        "step": 0,
        "round": 0,
        "choices": [0, 10, 90, 91],
        "mean": 47.75,
        "target": pytest.approx(47.75 * 2 / 3),
        "winners": [0, 1],
        "prize": 100.0,
        "group_numbers": [5.0, 90.5],
        "winning_groups": [0],
    }
    assert env.events[-1]["reason"] == "all decisions made"
    json.dumps(env.events)


def test_the_picture_shows_the_last_round():
    env = kbc_v0.parallel_env(players=50, talk=False, render_mode="ansi")
    env.reset(seed=0)
    assert "no number named yet" in env.render()
    env.step({agent: {"choice": 30} for agent in env.agents})
    picture = env.render()
    assert "mean 30.00, target 20.00, 50 of 50 won" in picture
    assert picture.count(" 30") == 41
    assert "30 30 ..." in picture
    for players, cut in [(40, False), (41, True)]:
        small = kbc_v0.parallel_env(players=players, talk=False, render_mode="ansi")
        small.reset(seed=0)
        small.step({agent: {"choice": 7} for agent in small.agents})
        assert ("..." in small.render()) == cut


def test_arrays_and_dictionaries_play_alike():
    case = {"players": 6, "session": "repeated", "rounds": 4, "talk": False}
    by_name, by_array = kbc_v0.parallel_env(**case), kbc_v0.parallel_env(**case)
    by_name.reset(seed=0)
    by_array.begin(seed=0)
    rng = np.random.default_rng(3)
    while by_name.agents:
        numbers = rng.integers(0, 101, 6)
        _, rewards, *_ = by_name.step({f"player_{i}": {"choice": int(x)} for i, x in enumerate(numbers)})
        by_array.advance(numbers)
        assert list(rewards.values()) == by_array.rewards.tolist()
        assert (by_name.features() == by_array.features()).all()
    assert by_array.over


def test_a_million_players_play_on_arrays():
    env = kbc_v0.parallel_env(players=1_000_000, talk=False)
    env.begin(seed=0)
    env.advance(np.random.default_rng(0).integers(0, 101, 1_000_000))
    assert env.rewards.sum() > 0
    assert env.features().shape == (1_000_000, 8)


def test_wrong_settings_are_refused():
    with pytest.raises(SettingsError, match="did you mean 'players'"):
        kbc_v0.parallel_env(player=3)
    with pytest.raises(SettingsError, match="is no preset"):
        kbc_v0.parallel_env(preset="third")

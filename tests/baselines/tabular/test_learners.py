import numpy as np
import pytest

from llm_coop_envs import evacuation_v0
from llm_coop_envs.errors import RunError
from llm_coop_envs.evacuation.faces.tabular import EvacuationLearner, EvacuationLearning, greedy_episode, mean_round
from llm_coop_envs.evacuation.metrics import episode_metrics
from llm_coop_envs.kbc.faces.tabular import KBCLearner, KBCLearning, alternatives, best_numbers, states_of
from llm_coop_envs.kbc.settings import KBCSettings

SMALL = {"players": 4, "high": 20}
ROOM = {"rows": 9, "cols": 9, "people": 12, "rounds": 20}


def taught(learner, episodes=None):
    for episode in range(episodes or learner.learning.episodes):
        learner.train(episode)
    return learner


def contest(episodes=300, **more):
    changes = {**SMALL, **more.pop("changes", {})}
    return KBCLearning(episodes=episodes, changes=changes, **more)


def room(episodes=40, **more):
    return EvacuationLearning(episodes=episodes, changes=more.pop("changes", ROOM), curve_seeds=4, **more)


@pytest.mark.parametrize(
    ("kind", "learning"), [(KBCLearner, contest(20)), (EvacuationLearner, room(3))], ids=["kbc", "evacuation"]
)
def test_the_same_seed_learns_the_same(kind, learning):
    first, second, other = (taught(kind(learning, seed)).arrays() for seed in (5, 5, 6))
    assert all((first[name] == second[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.parametrize(
    ("preset", "changes", "equilibrium"),
    [("half", {}, 0), ("near_half", {}, 0), ("half_plus_five", {}, 10), ("half", {"choices": "real"}, 0)],
)
def test_players_learn_the_equilibrium(preset, changes, equilibrium):
    learner = KBCLearner(contest(600, preset=preset, changes=changes, numbers=21, bins=5), 0)
    before = learner.point()
    after = taught(learner).point()
    assert abs(before["number"] - equilibrium) > 1 or equilibrium == 10
    assert after["number"] == equilibrium
    assert after["better_alone"] == 0
    assert after["as_good_alone"] == 0
    assert after["winners"] == 1


def test_players_learn_with_a_discount_too():
    learner = taught(KBCLearner(contest(600, preset="half", discount=0.5, bins=5), 0))
    assert learner.point()["number"] <= 1
    assert learner.values.max() > 1.2


def test_nothing_follows_the_last_decision():
    # After an announcement there is one decision left, which brings one point at most.
    learner = taught(KBCLearner(contest(300, preset="half", discount=0.9, bins=5, rounds=2), 0))
    assert learner.values[:, 0].max() > 1.2
    assert 0.5 < learner.values[:, 1:].max() <= 1


def test_states_of_the_number_contest():
    rows = np.zeros((6, 8), dtype=np.float32)
    rows[1:, 5] = 1
    rows[1:, 6] = [0, 0.19, 0.2, 1.0, -0.001]
    assert states_of(rows, 5).tolist() == [0, 1, 1, 2, 5, 1]


def test_equally_good_numbers_are_all_named():
    rng = np.random.default_rng(0)
    values = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 2.0]])
    found = [best_numbers(values, rng).tolist() for _ in range(40)]
    assert {one[0] for one in found} == {1, 2}
    assert {one[1] for one in found} == {2}


@pytest.mark.parametrize(
    ("players", "named", "expected"),
    [
        # Two thirds of the mean: with 24 players one who leaves 1 for 0 is farther from the target than the others.
        (24, [1] * 24, (0, 0)),
        (3, [1] * 3, (0, 1)),
        (24, [0] * 24, (0, 0)),
        # All win at 2, and whoever alone goes to 1 wins as much.
        (24, [2] * 24, (0, 1)),
        (3, [50, 50, 0], (2 / 3, 1)),
        (24, [0] * 23 + [9], (1 / 24, 1 / 24)),
    ],
)
def test_who_would_have_done_well_elsewhere(players, named, expected):
    settings = KBCSettings.build("two_thirds", players=players)
    assert alternatives(np.array(named), np.arange(101), settings) == pytest.approx(expected)


def test_who_would_have_done_well_elsewhere_in_groups():
    settings = KBCSettings.build("two_thirds", players=4, groups=2)
    # Of two groups the lower one wins. Naming 0, either member of the second could have brought it below the first.
    assert alternatives(np.array([10, 10, 15, 15]), np.arange(101), settings) == (0.5, 1)


def test_people_learn_to_get_out():
    learner = EvacuationLearner(room(60), 0)
    before = learner.point()["mean_round"]
    after = taught(learner).point()["mean_round"]
    assert after < 0.75 * before


@pytest.mark.parametrize(
    "changes",
    [
        {"control": "exit"},
        {"engine": "simultaneous"},
        {"talk": True},
        {"removal_lag": False},
        {"injury": "active", "reward_lost": -30},
        {"desks": [[3, 3], [3, 5]]},
    ],
)
def test_people_learn_in_every_kind_of_evacuation(changes):
    learner = EvacuationLearner(room(2, changes={**ROOM, **changes}), 0)
    rewards = [learner.train(episode) for episode in range(2)]
    assert all(reward < 0 for reward in rewards)
    assert learner.tables.exits.weights.any()
    assert learner.tables.moves.weights.any() == (changes.get("control") != "exit")
    assert 1 < learner.point()["mean_round"] <= 21


def test_values_are_minus_the_rounds_that_are_left():
    # One person two cells from the only exit: two moves, each costing a round.
    changes = {"rows": 7, "cols": 7, "people": 1, "exits": [["right", 3, 6]], "rounds": 30, "all_plan_first": True}
    learner = taught(EvacuationLearner(room(200, changes=changes, explore_move=0.3), 0))
    env = evacuation_v0.parallel_env(talk=False, **changes)
    env.reset(seed=0, options={"positions": [[3, 4]]})
    tiles = learner.tables.tiles
    env.advance(np.array([0]))
    assert learner.tables.moves.values(tiles.move_entries(env.features())).max() == pytest.approx(-2, abs=0.3)


def test_the_mean_round_counts_as_the_metrics_do():
    for changes in (ROOM, {**ROOM, "control": "exit"}, {**ROOM, "removal_lag": False}):
        learner = EvacuationLearner(room(10, changes=changes), 0)
        taught(learner)
        env = evacuation_v0.parallel_env(preset="no_talk", **changes, record=True)
        found = greedy_episode(env, learner.tables, seed=3)
        measured = episode_metrics(env.events)
        inside = measured["people"] - measured["escaped"]
        assert found == pytest.approx((measured["mean_round"] * measured["escaped"] + 21 * inside) / 12)
        assert mean_round(env.events) == found


def test_a_table_of_other_exits_is_refused():
    small = EvacuationLearner(room(1), 0)
    other = EvacuationLearner(room(1, changes={**ROOM, "exit_widths": (1, 1, 1)}), 0)
    with pytest.raises(RunError, match="learned in a room with other exits; use a room"):
        other.load(small.arrays())

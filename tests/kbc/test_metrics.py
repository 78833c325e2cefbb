import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs import kbc_v0
from llm_coop_envs.kbc import metrics, reference
from llm_coop_envs.kbc.settings import KBCSettings

CHOICES = st.lists(st.integers(0, 100), min_size=1, max_size=40).map(np.array)


def play(named, **given_settings):
    """Play an episode in which everyone's numbers are given, one row a decision; nobody speaks."""
    env = kbc_v0.parallel_env(record=True, **given_settings)
    env.begin(seed=0)
    rows = iter(named)
    while not env.over:
        env.advance(np.array(next(rows) if env.phase == "act" else named[0]))
    return env


def relative_deviation(choices):
    return metrics.relative_deviation(metrics.variance(choices), float(np.mean(choices)))


@given(CHOICES)
def test_variance_has_divisor_n(choices):
    mean = Fraction(int(choices.sum()), len(choices))
    exact = sum((int(x) - mean) ** 2 for x in choices) / len(choices)
    assert metrics.variance(choices) == pytest.approx(float(exact), abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40).map(np.array))
def test_spread_is_numpys_to_the_last_bit(choices):
    assert metrics.variance(choices) == np.var(choices)
    deviation = relative_deviation(choices)
    assert deviation is None or deviation == (100 * np.std(choices) / abs(np.mean(choices)) if np.std(choices) else 0)


def test_relative_deviation_is_in_percent():
    # Mean 30, population standard deviation 10.
    assert relative_deviation(np.array([20, 40])) == pytest.approx(100 / 3)
    assert relative_deviation(np.array([-20, -40])) == pytest.approx(100 / 3)
    assert relative_deviation(np.array([0, 1])) == pytest.approx(100)


def test_relative_deviation_of_nothing_but_zeros_is_zero():
    assert relative_deviation(np.zeros(4)) == 0.0
    assert relative_deviation(np.full(7, 33)) == 0.0


def test_relative_deviation_around_zero_does_not_exist():
    assert relative_deviation(np.array([-5, 5])) is None


@given(CHOICES)
def test_modal_share_counts_the_most_frequent_number(choices):
    number, share = metrics.modal(choices)
    counts = [int((choices == value).sum()) for value in choices]
    assert share == max(counts) / len(choices)
    assert number == min(int(v) for v, c in zip(choices, counts, strict=True) if c == max(counts))


@given(
    st.sampled_from(["2/3", "1/2", "51/100", "4/5"]),
    st.sampled_from([0, 5, -3]),
    st.integers(0, 5),
)
def test_levels_invert_replying_k_times(ratio, offset, k):
    contest = KBCSettings(ratio=ratio, offset=offset)
    number = 50.0
    for _ in range(k):
        number = float(contest.ratio) * number + float(contest.offset)
    levels = metrics.levels(np.array([number]), contest)
    assert levels[0] == pytest.approx(k)


def test_levels_of_two_thirds_of_the_mean():
    contest = KBCSettings()
    levels = metrics.levels(np.array([100, 66, 50, 1, 0]), contest)
    assert levels[:3].tolist() == [0, 0, 0]
    assert levels[3] == pytest.approx(np.log(1 / 50) / np.log(2 / 3))
    assert levels[3] < levels[4] == metrics.MAX_LEVEL == 10
    assert metrics.mean_level(np.array([50, 100 / 3]), contest) == pytest.approx(0.5)


def test_levels_of_a_contest_that_runs_upwards():
    levels = metrics.levels(np.array([50, 200 / 3, 10, 0]), KBCSettings(ratio="4/3"))
    assert levels.tolist() == pytest.approx([0, 1, 0, 0])


def test_levels_where_the_middle_is_below_the_fixed_point():
    # Half plus 40 has its fixed point at 80; 65 is the reply to 50, 90 is beyond 80.
    levels = metrics.levels(np.array([40, 50, 65, 80, 90]), KBCSettings(ratio="1/2", offset=40))
    assert levels.tolist() == pytest.approx([0, 0, 1, 10, 10])


def test_some_contests_have_no_levels():
    assert metrics.levels(np.array([3]), KBCSettings(ratio=1)) is None
    assert metrics.mean_level(np.array([3]), KBCSettings(ratio="1/2", offset=25)) is None


def test_the_reference_is_the_digitised_curve():
    density = reference.nyt_density()
    assert density.shape == (101,)
    assert density.sum() == pytest.approx(1)
    assert density @ np.arange(101) == pytest.approx(29.17, abs=0.01)
    # The two highest peaks of the published curve, at their published heights.
    assert np.argsort(density)[-1] == 33
    assert density[33] / density[1] == pytest.approx(0.0509 / 0.0444)
    assert density[0] / density[100] == pytest.approx(0.0402 / 0.0015)
    with pytest.raises(ValueError, match="read-only"):
        density[0] = 1


def test_the_file_of_the_reference_names_its_source():
    import importlib.resources

    text = (importlib.resources.files("llm_coop_envs.kbc") / "data" / reference.NYT_FILE).read_text()
    assert text.startswith("#")
    for part in ("New York Times", "Wu et al. 2024", "figure 5", "Digitised"):
        assert part in text


@given(CHOICES, CHOICES)
def test_wasserstein_is_the_mean_move_of_sorted_samples(first, second):
    n = min(len(first), len(second))
    a, b = np.sort(first[:n]), np.sort(second[:n])
    distance = reference.wasserstein(reference.histogram(a, 101), reference.histogram(b, 101))
    assert distance == pytest.approx(np.abs(a - b).mean(), abs=1e-9)


def test_total_variation_runs_from_nothing_to_everything():
    low, high = np.eye(101)[0], np.eye(101)[100]
    assert reference.total_variation(low, low) == 0
    assert reference.total_variation(low, high) == 1
    assert reference.total_variation(low, (low + high) / 2) == 0.5


def test_numbers_are_smoothed_with_a_bandwidth_of_one():
    spread = reference.smoothed(np.eye(101)[50])
    assert spread.sum() == pytest.approx(1)
    assert spread[51] / spread[50] == pytest.approx(np.exp(-0.5))
    assert spread[53] / spread[50] == pytest.approx(np.exp(-4.5))


def test_real_choices_are_rounded_halves_up():
    assert np.flatnonzero(reference.histogram(np.array([2.4]), 5)).tolist() == [2]
    assert np.flatnonzero(reference.histogram(np.array([2.5]), 5)).tolist() == [3]


def test_a_sample_of_the_reference_is_near_it_and_uniform_play_is_not():
    rng = np.random.default_rng(0)
    density = reference.nyt_density()
    near, moved = reference.distances(rng.choice(101, 20_000, p=density))
    far, much = reference.distances(rng.integers(0, 101, 20_000))
    assert near < 0.5 < 15 < far
    assert moved < 0.1 < 0.3 < much


@pytest.mark.parametrize(
    ("given_settings", "expected"),
    [
        ({}, True),
        ({"ratio": "1/2"}, False),
        ({"offset": 5}, False),
        ({"low": 1}, False),
        ({"high": 99}, False),
        ({"groups": 2}, False),
    ],
)
def test_only_the_same_contest_is_compared(given_settings, expected):
    assert reference.comparable(KBCSettings(**given_settings)) is expected


def test_rows_and_metrics_of_an_episode():
    env = play([[20, 40], [30, 30]], players=2, exchanges=1, talk=False)
    first, last = metrics.round_rows(env.events)
    assert (first["round"], last["round"]) == (0, 1)
    # Target 20: the first wins alone. Then target 20 again, and both are 10 away.
    assert {name: first[name] for name in ("mean", "median", "minimum", "maximum", "variance", "target")} == {
        "mean": 30,
        "median": 30,
        "minimum": 20,
        "maximum": 40,
        "variance": 100,
        "target": 20,
    }
    assert (first["n_winners"], first["prize"], first["modal_share"], first["unanimous"]) == (1, 100, 0.5, False)
    assert (last["n_winners"], last["variance"], last["rsd"], last["unanimous"]) == (2, 0, 0, True)
    assert (last["modal_number"], last["modal_share"], last["players"], last["messages"]) == (30, 1, 2, 0)
    assert json.loads(first["choices"]) == [20, 40]
    assert first["group_numbers"] is None
    assert first["rsd"] == pytest.approx(100 / 3)
    assert last["mean_level"] == pytest.approx(np.log(0.6) / np.log(2 / 3))
    assert (last["nyt_wasserstein"], last["nyt_total_variation"]) == reference.distances(np.array([30, 30]))
    row = metrics.episode_metrics(env.events)
    assert (row["decisions"], row["players"], row["messages"], row["reward_mean"]) == (2, 2, 0, 150)
    for name in ("mean", "variance", "rsd", "modal_share", "unanimous", "target", "n_winners", "mean_level"):
        assert row[f"{name}_first"] == first[name]
        assert row[f"{name}_last"] == last[name]
    json.dumps([row, first, last], allow_nan=False)
    assert all(not isinstance(value, dict | list) for value in [*row.values(), *first.values()])


def test_rows_of_group_play_measure_the_players():
    env = play([[0, 20, 60]], players=3, groups=[2, 1], session="single", talk=False)
    (row,) = metrics.round_rows(env.events)
    assert row["mean"] == pytest.approx(80 / 3)
    assert row["target"] == pytest.approx(2 / 3 * 35)
    assert json.loads(row["group_numbers"]) == [10, 60]
    assert row["n_winners"] == 2
    assert row["nyt_wasserstein"] is None
    assert row["nyt_total_variation"] is None
    assert metrics.episode_metrics(env.events)["reward_mean"] == pytest.approx(200 / 3)


def test_messages_are_counted_by_round():
    env = kbc_v0.parallel_env(players=2, exchanges=2, record=True)
    env.begin(seed=3)
    while not env.over:
        silent = env.round == 2 and env.on_turn[0] == 0
        env.advance(np.array([1, 2]), {} if silent else {int(i): "hello" for i in env.on_turn})
    assert [row["messages"] for row in metrics.round_rows(env.events)] == [0, 2, 1]
    assert metrics.episode_metrics(env.events)["messages"] == 3


def test_an_episode_without_a_decision_has_no_values():
    env = kbc_v0.parallel_env(players=2, record=True)
    env.begin(seed=0)
    row = metrics.episode_metrics(env.events)
    assert (row["decisions"], row["reward_mean"], row["variance_last"]) == (0, 0, None)
    assert metrics.round_rows(env.events) == []


def test_events_without_a_start_are_refused():
    with pytest.raises(ValueError, match="record=True"):
        metrics.round_rows([])


def test_every_measure_is_defined():
    row = metrics.episode_metrics(play([[20, 40]], players=2, session="single", talk=False).events)
    assert row.keys() == metrics.MEASURES.about.keys()
    assert set(metrics.MEASURES.headline) <= row.keys()

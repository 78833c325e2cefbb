"""How many pairs find an effect, by the test that is used."""

import numpy as np
import pytest
from scipy import stats

from llm_coop_envs.statistics.comparison import (
    ALPHA,
    Comparison,
    cluster_means,
    fewest_pairs,
    permutation_p,
    t_interval,
)
from llm_coop_envs.statistics.power import pairs_needed, power_of


def simulated(effect, pairs, samples=3_000):
    """How often the test of comparisons finds the effect; 16 standard errors of it are some 14 points."""
    differences = np.random.default_rng(pairs).standard_normal((samples, pairs)) + effect
    return (permutation_p(differences) <= ALPHA).mean()


@pytest.mark.parametrize(("effect", "pairs"), [(1.5, 6), (1.2, 7), (1.0, 8), (0.8, 10)])
def test_power_is_that_of_the_permutation_test_that_is_used(effect, pairs):
    assert power_of(effect, pairs) == pytest.approx(simulated(effect, pairs), abs=0.03)


def test_a_p_value_at_the_level_is_a_finding():
    """Five pairs reach p = 1/16 at best, and reach it where all have the same sign."""
    assert power_of(8.0, 5, alpha=1 / 16) == 1.0
    assert power_of(8.0, 4, alpha=1 / 16) == 0.0


def test_six_pairs_need_the_same_sign_in_all():
    """p <= .05 takes six differences of one sign, whose probability is known: .66 at d_z 1.5, where Student has .83."""
    known = stats.norm.cdf(1.5) ** 6 + stats.norm.cdf(-1.5) ** 6
    assert power_of(1.5, 6) == pytest.approx(known, abs=0.02)
    assert power_of(-1.5, 6) == power_of(1.5, 6) < 0.7
    assert pairs_needed(1.5, 0.8) == 7


@pytest.mark.parametrize("effect", [0.75, 0.9])
def test_beyond_twelve_pairs_students_power_is_as_good(effect):
    assert power_of(effect, 13) == pytest.approx(simulated(effect, 13, 1_500), abs=0.04)


# Cohen's (1988) examples as every power program prints them: d_z, power, pairs.
@pytest.mark.parametrize(
    ("effect", "power", "pairs"),
    [(0.2, 0.8, 199), (0.5, 0.8, 34), (0.8, 0.8, 15), (0.5, 0.9, 44), (0.8, 0.9, 19), (-0.5, 0.8, 34)],
)
def test_pairs_that_are_needed(effect, power, pairs):
    assert pairs_needed(effect, power) == pairs
    assert power_of(effect, pairs - 1) < power <= power_of(effect, pairs)


def test_power_ends():
    assert pairs_needed(5.0, 0.8) == fewest_pairs()  # Student's test would do with 3, no permutation test does
    assert pairs_needed(1e-4, 0.8) is None
    # Rearrangements are few: of ten pairs 50 of 1,024 reach the level.
    assert power_of(0.0, 10) == pytest.approx(50 / 1024, abs=0.01)


def clustered(rng, clusters, size=3):
    """Values of clusters of three seeds, of whose variance three quarters are the cluster's; the truth is 0."""
    shared = np.repeat(rng.standard_normal(clusters), size) * np.sqrt(0.75)
    return shared + rng.standard_normal(clusters * size) * 0.5


def test_intervals_and_tests_by_cluster_hold_where_those_by_seed_do_not():
    rng = np.random.default_rng(5)
    covered = {"seed": 0, "cluster": 0}
    found = dict(covered)
    experiments = 1_000
    labels = {seed: str(seed // 3) for seed in range(24)}
    for _ in range(experiments):
        by_seed = dict(enumerate(clustered(rng, 8).tolist()))
        units = {"seed": by_seed, "cluster": cluster_means(by_seed, labels)}
        for name, values in units.items():
            interval = t_interval(list(values.values()))
            covered[name] += interval.low <= 0 <= interval.high
            found[name] += not interval.low <= 0 <= interval.high
    assert covered["seed"] / experiments < 0.85
    assert 0.93 <= covered["cluster"] / experiments <= 0.97
    means = np.array(
        [list(cluster_means(dict(enumerate(clustered(rng, 8).tolist())), labels).values()) for _ in range(2_000)]
    )
    assert (permutation_p(means) <= ALPHA).mean() <= 0.06


def test_clusters_count_alike_and_seeds_without_one_for_themselves():
    assert cluster_means({1: 0.0, 2: 1.0, 3: 5.0, 4: 7.0}, {1: "a", 2: "a", 3: "b"}) == {"a": 0.5, "b": 5.0, 4: 7.0}
    assert cluster_means({1: 0.25}, {}) == {1: 0.25}


@pytest.mark.parametrize("paired", [True, False])
def test_copies_of_one_game_are_no_sample(paired):
    values = {"first": (0.0,) * 7, "second": (1.0, 2.0) * 3 + (1.0,)}
    copied = Comparison(measure="m", **values, paired=paired, distinct=(1, 2))
    assert (copied.p, copied.effect, copied.finding(0.01)) == (None, None, "copies")
    assert copied.interval.mean > 0
    assert (copied.interval.low, copied.interval.high) == (None, None)
    nearly = Comparison(measure="m", **values, paired=paired, distinct=(7, 5))
    assert nearly.finding(0.01) == "copies"
    enough = Comparison(measure="m", **values, paired=paired, distinct=(6, 7))
    assert enough.finding(0.01) == "higher"
    few = Comparison(measure="m", first=(0.0,) * 3, second=(1.0, 2.0, 3.0), distinct=(3, 3))
    assert few.finding(few.p) == "few"

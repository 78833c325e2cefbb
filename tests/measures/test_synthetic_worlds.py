"""Detectors against worlds of known intent: their rates, and the worlds themselves."""

from dataclasses import replace

import numpy as np
import pytest

from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.measures import synthetic_worlds
from llm_coop_envs.measures.synthetic_worlds import RULE, find_synthetic_worlds, kappa, roc, score_worlds
from llm_coop_envs.statistics.intervals import exact_interval

WITH_WORLDS = [name for name in scenarios() if find_scenario(name).synthetic_worlds is not None]


def test_the_curve_of_detectors_that_are_right_random_and_wrong():
    low, high = np.array([0.1, 0.2, 0.2]), np.array([0.6, 0.9])
    false, true, area = roc(low, high)
    assert area == 1.0
    assert (false[0], true[0], false[-1], true[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert roc(high, low)[2] == 0.0
    assert roc(low, low)[2] == pytest.approx(0.5)


def test_the_interval_is_the_exact_one():
    assert exact_interval(0, 10_000) == (0.0, pytest.approx(3.688e-4, rel=1e-3))
    assert exact_interval(10, 10)[1] == 1.0
    # Clopper and Pearson for 1 of 10 at 95 %.
    assert exact_interval(1, 10) == (pytest.approx(0.00253, abs=1e-5), pytest.approx(0.44502, abs=1e-5))


def test_scores_that_differ_by_rounding_alone_are_ties():
    """Exits used alike by 14, 3 and 3 and by 3, 14 and 3 had other sums, and a recorded area had other digits."""
    independent, coordinated = np.array([0.1 + 0.2, 0.3, 0.3]), np.array([0.3, 0.1 + 0.2])
    *_, area = roc(independent, coordinated)
    assert area == 0.5
    assert roc(independent + 1e-6, coordinated)[2] == 0.0


def test_kappa():
    truth = np.array([True, True, False, False])
    assert kappa(truth, truth) == 1.0
    assert kappa(~truth, truth) == -1.0
    assert kappa(np.array([True, False, True, False]), truth) == 0.0
    assert kappa(np.zeros(4, bool), np.zeros(4, bool)) == 0.0


def test_chance_in_kappa_has_the_margins_of_both():
    """With as many of both kinds one margin is 1/2, and half of all agree by chance whatever the other is."""
    verdicts = np.repeat([True, True, False, False], [20, 5, 10, 15])
    truth = np.repeat([True, False, True, False], [20, 5, 10, 15])
    # 35 of 50 alike; by chance 25/50 x 30/50 + 25/50 x 20/50.
    assert kappa(verdicts, truth) == pytest.approx((0.7 - 0.5) / 0.5)
    verdicts = np.repeat([True, True, False, False], [5, 2, 1, 32])
    truth = np.repeat([True, False, True, False], [5, 2, 1, 32])
    chance = 7 / 40 * 6 / 40 + 33 / 40 * 34 / 40
    assert kappa(verdicts, truth) == pytest.approx((37 / 40 - chance) / (1 - chance))


def test_worlds_count_alike_in_kappa_whatever_their_episodes():
    # Of three honest worlds 0, 0 and 60 % are flagged, of three others 100, 100 and 50 %.
    shares = np.array([0.0, 0.0, 0.6, 1.0, 1.0, 0.5])
    intent = np.array([False] * 3 + [True] * 3)
    each = np.concatenate([np.arange(10) < 10 * share for share in shares])
    assert kappa(shares, intent) == pytest.approx(kappa(each, np.repeat(intent, 10)))
    assert kappa(shares, intent) == pytest.approx(2.5 / 3 - 0.6 / 3)


@pytest.mark.parametrize("scenario", WITH_WORLDS)
def test_there_are_five_worlds_or_more_of_both_kinds(scenario):
    synthetic = find_synthetic_worlds(scenario)
    assert len({world.name for world in synthetic.worlds}) == len(synthetic.worlds) >= 5
    assert {world.intent for world in synthetic.worlds} == {True, False}
    assert synthetic.rule in synthetic.detectors


@pytest.mark.parametrize("scenario", WITH_WORLDS)
def test_a_few_episodes_of_independent_worlds_raise_no_alarm(scenario):
    synthetic = find_synthetic_worlds(scenario)
    scores = score_worlds(scenario, {world.name: 5 for world in synthetic.worlds if not world.intent})
    for world, by_detector in scores.items():
        assert (by_detector[synthetic.rule] < RULE).all(), world


def test_a_scenario_without_worlds_is_refused(monkeypatch):
    without = replace(find_scenario("kbc"), synthetic_worlds=None)
    monkeypatch.setattr(synthetic_worlds, "find_scenario", lambda name: without)
    with pytest.raises(ValueError, match="no worlds"):
        find_synthetic_worlds("kbc")

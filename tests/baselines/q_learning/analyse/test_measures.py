"""Summaries over sessions: means with standard errors, and the reading of the authors' program."""

from dataclasses import replace

import numpy as np
import pytest

from llm_coop_envs.baselines.q_learning.analyse.measures import session_row, summary
from llm_coop_envs.baselines.q_learning.learn.sessions import Session
from llm_coop_envs.baselines.q_learning.reproduce.report import comparison_lines
from llm_coop_envs.baselines.q_learning.reproduce.studies import MEASURES, STUDIES, learners


def session(settings, seed):
    """A session that learned nothing: drawn strategies."""
    rng = np.random.default_rng(seed)
    q = rng.random((2, settings.states, settings.market.grid_points))
    return Session(seed, 200_000, True, 0, q.argmax(axis=2), q, np.zeros((0, 2), dtype=np.int64))


def rows(settings, count, **more):
    game = settings.game()
    return [session_row(settings, game, session(settings, seed), **more) for seed in range(count)]


def test_the_authors_reading_takes_the_first_firms_prices():
    settings = next(v.settings for v in STUDIES["quality"].variants if v.name == "quality 2.75")
    right, theirs = rows(settings, 6), rows(settings, 6, misread=True)
    game = settings.game()
    assert game.prices[0][0] != game.prices[1][0]
    for one, other in zip(right, theirs, strict=True):
        assert one["answer"] != other["answer"]
        assert {name: one[name] for name in one if name != "answer"} == {
            name: other[name] for name in one if name != "answer"
        }
    # The same strategies with the first firm's prices for both.
    same = replace(game, prices=np.array([game.prices[0]] * 2))
    expected = [session_row(settings, same, session(settings, seed))["answer"] for seed in range(6)]
    assert [one["answer"] for one in theirs] == pytest.approx(expected)
    alike = learners()
    assert rows(alike, 3) == rows(alike, 3, misread=True)


def test_every_measure_has_a_standard_error_and_a_distance():
    settings = learners()
    found = summary(rows(settings, 40))
    assert all(found[f"{name}_se"] >= 0 for name in MEASURES)
    variant = STUDIES["representative"].variants[0]
    lines = comparison_lines(variant, found)[1:]
    assert len(lines) == len(MEASURES)
    assert all("standard errors" in line for line in lines)
    # Of sessions with as many deviations each it is the usual one.
    some = [{**row, "deviations": 2, "answer": k / 10} for k, row in enumerate(rows(settings, 5))]
    values = np.arange(5) / 10
    found = summary(some)
    assert found["answer"] == pytest.approx(values.mean())
    assert found["answer_se"] == pytest.approx(values.std(ddof=1) / np.sqrt(5))


def test_the_error_of_a_mean_over_deviations_is_that_of_sessions():
    """Against drawing sessions anew: with unequal weights the spread of the mean is what the error says."""
    settings = learners()
    given = [{**row, "deviations": 1 + k % 5} for k, row in enumerate(rows(settings, 60))]
    rng = np.random.default_rng(0)
    values, weights = (np.array([row[name] for row in given], dtype=float) for name in ("answer", "deviations"))
    draws = rng.integers(60, size=(4000, 60))
    means = (values * weights)[draws].sum(axis=1) / weights[draws].sum(axis=1)
    assert summary(given)["answer_se"] == pytest.approx(means.std(), rel=0.1)

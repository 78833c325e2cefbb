"""The game of choosing a policy against closed forms: a prisoner's dilemma with reciprocity, games of no winner."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from llm_coop_envs.statistics.meta_game import (
    best_replies,
    deviation_ratings,
    exploitability,
    payoff_array,
    regrets,
    replicator_path,
    shares_of,
)

ROCK = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])


def reciprocity(rounds):
    """Always C, always D and tit-for-tat in a prisoner's dilemma of so many rounds, by hand."""
    n = float(rounds)
    return np.array([[2 * n, 0, 2 * n], [3 * n, n, 3 + (n - 1)], [2 * n, n - 1, 2 * n]])


def test_shares_of_two_policies_grow_as_the_logistic_function():
    payoffs = reciprocity(1)[:2, :2]  # D earns 1 more than C, whatever the shares
    path = replicator_path(payoffs, np.array([0.9, 0.1]), 40, 0.25)
    steps = np.arange(41)
    assert path[:, 1] == pytest.approx(1 / (1 + 9 * np.exp(-0.25 * steps)), rel=1e-12)


@pytest.mark.parametrize("rounds", [2, 10, 50])
def test_reciprocity_against_unconditional_cooperation_grows_by_what_defectors_leave_it(rounds):
    rate = 0.01
    path = replicator_path(reciprocity(rounds), shares_of(None, 3), 300, rate)
    gained = np.log(path[-1, 2] / path[-1, 0])
    assert gained == pytest.approx(rate * (rounds - 1) * path[:-1, 1].sum(), rel=1e-9)
    lead = np.log(path[-1, 1] / path[-1, 0])  # D earns 1 a round more than C, but against tit-for-tat only once 3
    per_step = path[:-1, 0] * rounds + path[:-1, 1] * rounds + path[:-1, 2] * (rounds + 2 - 2 * rounds)
    assert lead == pytest.approx(rate * per_step.sum(), rel=1e-9)


def test_regret_and_exploitability_of_reciprocity():
    payoffs = reciprocity(10)
    only = np.eye(3)
    assert regrets(payoffs, only[0]).tolist() == [10, 0, 10]
    assert exploitability(payoffs, only[0]) == 10  # who always cooperates loses the temptation
    assert exploitability(payoffs, only[1]) == exploitability(payoffs, only[2]) == 0  # both are equilibria
    assert best_replies(payoffs).T.tolist() == [[False, True, False], [False, True, False], [True, False, True]]
    # By hand: of shares c, 0, t with c + t = 1, defection gains 10 c + 12 t - 20 + 20 c; 0 at t = 10 / 18.
    edge = np.array([8 / 18, 0, 10 / 18])
    assert exploitability(payoffs, edge) == pytest.approx(0, abs=1e-12)
    assert exploitability(payoffs, np.array([0.5, 0, 0.5])) == pytest.approx(1)


@pytest.mark.parametrize("rounds", [3, 10])
def test_deviation_ratings_of_reciprocity_in_closed_form(rounds):
    # On (D, D) with chance q and (T, T) else, D gains (1 - q)(2 - n) and T gains -q; alike where q = (n-2)/(n-1).
    q = (rounds - 2) / (rounds - 1)
    ratings = deviation_ratings(reciprocity(rounds))
    assert ratings[1:] == pytest.approx([-q, -q], abs=1e-6)
    assert ratings[0] == pytest.approx(-q * rounds, abs=1e-5)


def test_ratings_of_a_game_without_a_winner_and_of_a_copy():
    assert deviation_ratings(ROCK) == pytest.approx([0, 0, 0], abs=1e-6)
    index = [0, 1, 2, 0]
    assert deviation_ratings(ROCK[np.ix_(index, index)]) == pytest.approx([0] * 4, abs=1e-6)
    payoffs = reciprocity(10)
    index = [0, 1, 2, 2]
    copied = deviation_ratings(payoffs[np.ix_(index, index)])
    assert copied[:3] == pytest.approx(deviation_ratings(payoffs), abs=1e-5)
    assert copied[3] == pytest.approx(copied[2], abs=1e-5)


def test_three_players():
    # Public goods of two actions: who takes earns 1 more than who gives, whatever the others do.
    gives = {(0, 0, 0): 1.5, (0, 0, 1): 1.0, (0, 1, 1): 0.5}
    means = {**gives, (1, 0, 0): 2.0, (1, 0, 1): 1.5, (1, 1, 1): 1.0}
    payoffs = payoff_array(means, 2, 3)
    path = replicator_path(payoffs, shares_of(None, 2), 20, 0.1)
    assert path[:, 1] == pytest.approx(1 / (1 + np.exp(-0.05 * np.arange(21))), rel=1e-12)
    assert deviation_ratings(payoffs) == pytest.approx([-0.5, 0], abs=1e-7)
    assert best_replies(payoffs)[1].all()


def test_a_share_of_nothing_stays_nothing():
    path = replicator_path(ROCK, np.array([0.5, 0.5, 0.0]), 50, 0.5)
    assert path[:, 2].max() == 0
    assert path.sum(axis=1) == pytest.approx(1)


def slowly_rated(payoffs):
    """The definition, a program for each gain: it is final if it cannot be lowered while none is above the largest."""
    count = len(payoffs)
    gains = np.array(
        [
            [
                (payoffs[s, b] - payoffs[a, b] + payoffs[s, a] - payoffs[b, a]) / 2
                for a in range(count)
                for b in range(count)
            ]
            for s in range(count)
        ]
    )
    final, cells = {}, gains.shape[1]

    def lowest(objective, limits):
        """The least expectation of a row, where each row has an upper limit."""
        solved = linprog(
            objective,
            A_ub=[[*row, *more] for row, more, _ in limits],
            b_ub=[limit for *_, limit in limits],
            A_eq=[[1.0] * cells + [0.0]],
            b_eq=[1.0],
            bounds=[(0, None)] * cells + [(None, None)],
        )
        return solved.fun

    while len(final) < count:
        held = [(gains[s], [0.0], value + 1e-9) for s, value in final.items()]
        free = [s for s in range(count) if s not in final]
        level = lowest([0.0] * cells + [1.0], [*held, *((gains[s], [-1.0], 0.0) for s in free)])
        below = [*held, *((gains[s], [0.0], level + 1e-9) for s in free)]
        final |= {s: level for s in free if lowest([*gains[s], 0.0], below) > level - 1e-6}
    return [final[s] for s in range(count)]


@pytest.mark.parametrize("seed", range(12))
def test_ratings_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    count = 3 + seed % 3
    payoffs = rng.integers(-3, 4, (count, count)).astype(float) if seed % 2 else rng.normal(size=(count, count))
    assert deviation_ratings(payoffs) == pytest.approx(slowly_rated(payoffs), abs=1e-4)


@st.composite
def games(draw):
    """Payoffs of two players: of any size, of few values, without a winner, or with policies that are copies."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(2, 7))
    payoffs = rng.normal(size=(count, count))
    kind = draw(st.sampled_from(["any", "few values", "zero sum", "copies"]))
    if kind == "few values":
        payoffs = rng.integers(-1, 2, (count, count)).astype(float)
    elif kind == "zero sum":
        payoffs = payoffs - payoffs.T
    elif kind == "copies":
        index = rng.integers(count, size=count)
        payoffs = payoffs[np.ix_(index, index)]
    return payoffs * draw(st.sampled_from([1e-12, 1.0, 1e9]))


@settings(max_examples=40, database=None)
@given(games())
def test_every_game_has_ratings_and_copies_are_rated_alike(payoffs):
    ratings, scale = deviation_ratings(payoffs), max(1.0, float(np.abs(payoffs).max()))
    assert np.isfinite(ratings).all()
    assert ratings.max() <= 1e-5 * scale  # in a correlated equilibrium nobody gains by switching
    assert ratings[-1] == pytest.approx(deviation_ratings(payoffs[::-1, ::-1])[0], abs=1e-4 * scale)
    doubled = [*range(len(payoffs)), 0]
    with_copy = deviation_ratings(payoffs[np.ix_(doubled, doubled)])
    assert with_copy[-1] == pytest.approx(with_copy[0], abs=1e-4 * scale)

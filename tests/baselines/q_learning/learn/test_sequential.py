"""Firms that move in turn, against a plain loop, and against what is known of such games."""

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.learn.sequential import (
    LAST,
    SequentialRun,
    SequentialSettings,
    best_values,
    greedy_cycle,
    run_sequential,
    summary,
)
from llm_coop_envs.errors import SettingsError

MASK = 2**64 - 1


def mix(seed):
    """SplitMix64, as numbers in [0, 1)."""
    state = int(seed)
    while True:
        state = z = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield ((z ^ (z >> 31)) >> 11) / 2**53


def plain(settings, seed, number):
    """The paper's pseudocode (page 545), with a history of all prices."""
    luck = mix(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0])
    k, alpha, delta = settings.intervals, settings.alpha, settings.delta

    def profit(own, rival):
        p = own / k
        return p * (1 - p) * (1.0 if own < rival else 0.5 if own == rival else 0.0)

    q = [{}, {}]

    def value(i, s):
        return [q[i].get((s, p), 0.0) for p in range(k + 1)]

    drawn = [int((k + 1) * next(luck)) for _ in range(3)]
    history = [(drawn[0], drawn[1]), (drawn[0], drawn[2])]
    for t in range(3, settings.periods + 1):
        i = 0 if t % 2 else 1
        j = 1 - i
        own, was, now = history[t - 3][i], history[t - 3][j], history[t - 2][j]
        target = profit(own, was) + delta * profit(own, now) + delta**2 * max(value(i, now))
        q[i][was, own] = (1 - alpha) * q[i].get((was, own), 0.0) + alpha * target
        if next(luck) < 10 ** (-6.0 * t / settings.periods):
            chosen = int((k + 1) * next(luck))
        else:
            row = value(i, now)
            tied = [p for p, one in enumerate(row) if one == max(row)]
            chosen = tied[int(len(tied) * next(luck))] if len(tied) > 1 else tied[0]
        history.append((chosen, now) if i == 0 else (now, chosen))
    return history, np.array([[value(i, s) for s in range(k + 1)] for i in (0, 1)])


def through_the_environment(settings, seed, number):
    """The same learner as a player of the environment with the other clock; it knows its rewards and nothing else."""
    luck = mix(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0])
    k, alpha, delta = settings.intervals, settings.alpha, settings.delta
    q = np.zeros((2, k + 1, k + 1))
    drawn = [int((k + 1) * next(luck)) for _ in range(3)]
    env = bertrand_v0.parallel_env(
        **{"demand": "linear", "quality": 1.0, "cost": 0.0, "beta": 1.0, "d": 1.0, "clamp_demand": True},
        **{"moves": "alternating", "initial_prices": [drawn[0] / k, drawn[1] / k], "rounds": settings.periods},
        **{"talk": False, "collusion_window": 0, "history_window": 1, "bins": 0, "record": True},
    )
    env.reset(seed=0)
    asked, seen, earned = [0, 0], [drawn[1], drawn[0]], [0.0, 0.0]
    for t in range(1, settings.periods + 1):
        (i,) = env.on_turn.tolist()
        if t <= 2:
            asked[i] = drawn[2 * i]
        else:
            now, cell = asked[1 - i], (i, seen[i], asked[i])
            q[cell] = (1 - alpha) * q[cell] + alpha * (earned[i] + delta**2 * q[i, now].max())
            seen[i] = now
            if next(luck) < 10 ** (-6.0 * t / settings.periods):
                asked[i] = int((k + 1) * next(luck))
            else:
                tied = np.flatnonzero(q[i, now] == q[i, now].max())
                asked[i] = int(tied[int(len(tied) * next(luck))] if len(tied) > 1 else tied[0])
        earned[i] = 0.0
        env.submit({f"firm_{i}": {"choice": asked[i] / k}})
        for j in (0, 1):
            # A price earns in the round in which it is named, and in the next one.
            earned[j] += float(env.rewards[j]) * (1.0 if j == i else delta)
    return [event["prices"] for event in env.events if event["type"] == "round"], q


def test_the_environments_other_clock_is_the_learners():
    for intervals, number in ((6, 0), (3, 1)):
        settings = SequentialSettings(intervals=intervals, periods=2 * LAST)
        found = run_sequential(settings, 4, number)
        prices, q = through_the_environment(settings, 4, number)
        assert (found.prices / intervals).tolist() == prices[-LAST:]
        np.testing.assert_allclose(found.q, q, rtol=1e-12)


def test_the_loop_is_the_papers():
    pytest.importorskip("numba")
    settings = SequentialSettings(intervals=4, periods=2 * LAST)
    for number in range(3):
        run = run_sequential(settings, 7, number)
        history, q = plain(settings, 7, number)
        # Powers of ten are not added up in the same order, nor are profits: nothing hangs on the last bits.
        assert run.prices.tolist() == [list(pair) for pair in history[-LAST:]]
        np.testing.assert_allclose(run.q, q, rtol=1e-9)


def test_most_runs_collude_on_few_prices():
    pytest.importorskip("numba")
    found = summary([run_sequential(SequentialSettings(), 1, number) for number in range(12)])
    assert found["runs"] == 12
    # Joint profit is 0.125 a firm.
    assert 0.09 < found["profit"] < 0.125
    assert found["optimality"] > 0.8
    assert 0.3 < found["equilibrium"] < 1.0


def test_play_without_exploration_ends_in_a_cycle():
    # Firm 0 undercuts and goes up from 0, firm 1 undercuts and stays at 0: after 2, 1, 0, 0 it goes round.
    replies = np.array([[3, 0, 1, 2], [0, 0, 1, 2]])
    assert greedy_cycle(replies, 0, 3).tolist() == [3, 2, 1, 0]
    # Each holds its own price: nothing moves.
    assert greedy_cycle(np.array([[2, 2, 2], [1, 1, 1]]), 1, 0).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("cycle", "expected"), [([3, 3], False), ([3, 2, 1, 0], True), ([2, 1, 5, 3], True), ([3, 1, 3, 1], False)]
)
def test_cycles_of_undercutting(cycle, expected):
    nothing = np.zeros(0)
    found = SequentialRun(nothing, nothing, nothing, nothing, np.array(cycle))
    assert found.edgeworth is expected


def test_the_best_reply_to_one_price_is_known():
    game = SequentialSettings(intervals=4).game()
    earned = game.profits[:, 0].reshape(5, 5)
    assert earned[2].tolist() == [0.0, 0.0, 0.125, 0.25, 0.25]
    # A rival who always asks 3/4 is undercut with 1/2 for ever.
    values = best_values(earned, np.full(5, 3), 0.5)
    assert values.argmax(axis=1)[3] == 2
    assert values[3, 2] == pytest.approx(0.25 / (1 - 0.5))


@pytest.mark.parametrize(("field", "value"), [("intervals", 1), ("delta", 1.0), ("alpha", 0.0), ("periods", 10)])
def test_bad_settings(field, value):
    with pytest.raises(SettingsError, match=field):
        SequentialSettings(**{field: value})

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.baselines.q_learning.analyse import analysis, responses
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.initial import initial_q, initial_state
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.learn.strategies import constant_strategies
from llm_coop_envs.bertrand.rules import normalised_profits
from llm_coop_envs.bertrand.settings import BertrandSettings


def game_of(points=15, firms=2, memory=1, delta=0.95, **market):
    market = BertrandSettings.build("calvano", firms=firms, grid_points=points, **market)
    return QLearningSettings(market=market, memory=memory, delta=delta).game()


@st.composite
def games(draw):
    """A small game with unequal firms, and strategies for it."""
    firms = draw(st.integers(2, 3))
    memory = draw(st.integers(0, 2 if firms == 2 else 1))
    points = draw(st.integers(2, 4 if memory < 2 else 3))
    delta = draw(st.tuples(*[st.sampled_from([0.0, 0.5, 0.9, 0.99])] * firms))
    game = game_of(points, firms, memory, delta, cost=(1.0, 0.9, 0.8)[:firms])
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return game, rng.integers(points, size=(firms, game.states)), rng


def play(game, strategies, state, periods, firm=None, price=None):
    """Actions and states of greedy play, with one price forced in the first period."""
    states, actions = [], []
    for t in range(periods):
        choices = [int(strategies[i, state]) for i in range(game.firms)]
        if t == 0 and firm is not None:
            choices[firm] = price
        action = 0
        for choice in choices:
            action = action * game.points + choice
        past = [state // game.actions**k % game.actions for k in reversed(range(game.memory))]
        state = 0
        for one in [action, *past][: game.memory]:
            state = state * game.actions + one
        states.append(state)
        actions.append(action)
    return actions, states


def worth(game, firm, actions):
    return sum(game.profits[a, firm] * game.delta[firm] ** t for t, a in enumerate(actions))


@settings(max_examples=40)
@given(games())
def test_states_and_actions_are_numbers_in_base_m(case):
    game, strategies, rng = case
    for choices in itertools.islice(itertools.product(range(game.points), repeat=game.firms), 20):
        action = int(game.action(choices))
        assert game.choices(action).tolist() == list(choices)
        prices = game.price_of(choices)
        assert prices.tolist() == [game.prices[i, c] for i, c in enumerate(choices)]
    state = int(rng.integers(game.states))
    actions, states = play(game, strategies, state, 1)
    assert int(game.next_state(state, actions[0])) == states[0]
    assert int(analysis.next_states(game, strategies)[state]) == states[0]
    if game.memory:
        assert states[0] // game.actions ** (game.memory - 1) == actions[0]


@settings(max_examples=60)
@given(games())
def test_a_limit_cycle_is_what_play_repeats(case):
    game, strategies, rng = case
    start = int(rng.integers(game.states))
    cycle = analysis.limit_cycle(game, strategies, start)
    actions, states = play(game, strategies, start, game.states + 3 * cycle.length)
    late = states[-cycle.length :]
    assert sorted(late) == sorted(cycle.states.tolist())
    assert len(set(late)) == cycle.length
    assert states[-cycle.length - 1] == late[-1]
    assert int(analysis.next_states(game, strategies)[cycle.states[-1]]) == cycle.states[0]
    mean = game.profits[actions[-cycle.length :]].mean(axis=0)
    np.testing.assert_allclose(cycle.profits.mean(axis=0), mean)
    np.testing.assert_allclose(
        np.sort(cycle.prices, axis=0), np.sort(game.price_of(game.choices(actions[-cycle.length :])), axis=0)
    )
    kind = cycle.kind
    assert kind in analysis.CYCLE_CLASSES
    assert kind.startswith(str(min(cycle.length, 3)))
    assert (kind == "1-symmetric") == (cycle.length == 1 and len(set(cycle.choices[0].tolist())) == 1)
    back = [
        sorted(set(play(game, strategies, s, 2 * game.states)[1][game.states :])) == sorted(late)
        for s in range(game.states)
    ]
    assert analysis.reaches(game, strategies, cycle) == pytest.approx(np.mean(back))


def test_a_cycle_begins_after_the_first_visit_of_the_state_that_comes_back():
    # From state 3 play goes 0, 1, 2, 0: the authors' code names this cycle 1, 2, 0.
    game = game_of(points=2)
    strategies = np.array([[0, 1, 0, 0], [1, 0, 0, 0]])
    assert analysis.next_states(game, strategies).tolist() == [1, 2, 0, 0]
    assert analysis.limit_cycle(game, strategies, 3).states.tolist() == [1, 2, 0]


@settings(max_examples=40)
@given(games())
def test_values_are_discounted_profits(case):
    game, strategies, rng = case
    values = analysis.strategy_values(game, strategies)
    q = analysis.strategy_q(game, strategies)
    state, firm, price = int(rng.integers(game.states)), int(rng.integers(game.firms)), int(rng.integers(game.points))
    actions, _ = play(game, strategies, state, 3500)
    assert values[firm, state] == pytest.approx(worth(game, firm, actions), rel=1e-9)
    actions, _ = play(game, strategies, state, 3500, firm, price)
    assert q[firm, state, price] == pytest.approx(worth(game, firm, actions), rel=1e-9)
    own = strategies[firm, state]
    assert q[firm, state, own] == pytest.approx(values[firm, state], rel=1e-12)


@settings(max_examples=30)
@given(games())
def test_no_plan_beats_the_best_reply(case):
    game, strategies, _ = case
    best = analysis.best_reply_values(game, strategies)
    assert (best >= analysis.strategy_values(game, strategies) * (1 - 1e-9)).all()
    for i in range(game.firms):
        # The optimality equation, state by state.
        for state in range(game.states):
            choices = strategies[:, state].copy()
            reached = []
            for price in range(game.points):
                choices[i] = price
                action = int(game.action(choices))
                reached.append(game.profits[action, i] + game.delta[i] * best[i, int(game.next_state(state, action))])
            assert best[i, state] == pytest.approx(max(reached), rel=1e-9)


@settings(max_examples=40)
@given(games())
def test_equilibrium_play_and_loss_by_their_definitions(case):
    game, strategies, rng = case
    cycle = analysis.limit_cycle(game, strategies, int(rng.integers(game.states)))
    q = analysis.strategy_q(game, strategies)
    one, full = (analysis.equilibrium_play(game, strategies, cycle, d) for d in ("one_shot", "full"))
    own = np.array([[q[i, s, strategies[i, s]] for s in range(game.states)] for i in range(game.firms)])
    best = own >= q.max(axis=2) * (1 - 1e-9)
    assert one.best.tolist() == best.tolist()
    assert one.on_path == best[:, cycle.states].all()
    assert one.everywhere == best.all()
    assert one.share == pytest.approx(best.all(axis=0).mean())
    assert one.on_path == best[:, cycle.states].all()
    # Whoever cannot gain by any plan cannot gain by one deviation; and in every state at once that is the same.
    assert not (full.best & ~one.best).any()
    assert full.everywhere == one.everywhere
    loss = (q.max(axis=2) - own) / np.abs(q.max(axis=2))
    off = [s for s in range(game.states) if s not in cycle.states]
    found = analysis.q_loss(game, strategies, cycle)
    assert found.on_path == pytest.approx(loss[:, cycle.states].mean(), abs=1e-15)
    assert found.everywhere == pytest.approx(loss.mean(), abs=1e-15)
    assert found.off_path == pytest.approx(loss[:, off].mean(), abs=1e-15) if off else np.isnan(found.off_path)


def test_there_are_two_definitions():
    game = game_of(points=3)
    strategies = constant_strategies(game, [0, 0])
    with pytest.raises(ValueError, match="definition='other'"):
        analysis.equilibrium_play(game, strategies, analysis.limit_cycle(game, strategies, 0), "other")


def test_a_loss_that_is_small_but_real_counts():
    game = game_of(points=2, delta=0.0)
    shifted = Game(
        game.prices, np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9], [1.0, 1.0], [1.0, 1.0]]), 1, (0.0, 0.0), game.equilibria
    )
    strategies = constant_strategies(shifted, [0, 0])
    cycle = analysis.limit_cycle(shifted, strategies, 0)
    assert not analysis.equilibrium_play(shifted, strategies, cycle).on_path
    # A hair's breadth is rounding.
    shifted.profits[1, 1] = 1.0 + 1e-14
    assert analysis.equilibrium_play(shifted, strategies, cycle).on_path


def test_profit_gains_of_equal_prices():
    # Calvano et al. 2020: gains at the points of their grid.
    game = game_of()
    known = {
        2: -0.024,
        3: 0.117,
        5: 0.378,
        8: 0.707,
        9: 0.794,
        10: 0.868,
        11: 0.926,
        12: 0.969,
        13: 0.993,
        14: 0.9997,
        15: 0.987,
    }
    for point, gain in known.items():
        strategies = constant_strategies(game, [point - 1, point - 1])
        cycle = analysis.limit_cycle(game, strategies, 7)
        assert analysis.cycle_gain(game, cycle) == pytest.approx(gain, abs=0.0006)
        assert analysis.firm_gains(game, cycle) == pytest.approx([analysis.cycle_gain(game, cycle)] * 2)
        assert normalised_profits(cycle.profits.mean(axis=0), game.equilibria) == pytest.approx(
            analysis.firm_gains(game, cycle)
        )


def test_gains_of_unequal_firms_have_marks_of_their_own():
    game = game_of(cost=(1.0, 0.5))
    strategies = constant_strategies(game, [10, 10])
    cycle = analysis.limit_cycle(game, strategies, 0)
    equilibria, earned = game.equilibria, cycle.profits[0]
    for i in range(2):
        gain = (earned[i] - equilibria.nash_profit[i]) / (equilibria.joint_profit[i] - equilibria.nash_profit[i])
        assert analysis.firm_gains(game, cycle)[i] == pytest.approx(gain)
    mean = (earned.sum() - sum(equilibria.nash_profit)) / (sum(equilibria.joint_profit) - sum(equilibria.nash_profit))
    assert analysis.cycle_gain(game, cycle) == pytest.approx(mean)


def test_the_index_is_the_place_of_the_mean_price():
    game = game_of()
    low, high = game.equilibria.nash[0], game.equilibria.joint[0]
    for a, b in ((3, 9), (0, 0), (14, 14)):
        strategies = constant_strategies(game, [a, b])
        cycle = analysis.limit_cycle(game, strategies, 0)
        mean = (game.prices[0, a] + game.prices[1, b]) / 2
        assert analysis.cycle_index(game, cycle) == pytest.approx(min(max((mean - low) / (high - low), 0.0), 1.0))


def learning(**given):
    return QLearningSettings(**given)


def test_first_tables():
    settings = learning(initial="nash")
    game = settings.game()
    q = initial_q(settings, game, None)
    assert q[0, 5, 1] == pytest.approx(game.profits[16, 0] / 0.05)
    assert q[0, 5, 7] == pytest.approx(game.profits[7 * 15 + 1, 0] + 0.95 * game.profits[16, 0] / 0.05)
    grim = initial_q(learning(initial="grim"), game, None)
    together = 13 * 15 + 13
    assert grim[1, together, 13] == pytest.approx(game.profits[together, 1] / 0.05)
    assert grim[1, 0, 7] == pytest.approx(game.profits[15 + 7, 1] + 0.95 * game.profits[16, 1] / 0.05)
    moved = initial_q(learning(initial="grim", initial_points=(2, 9)), game, None)
    assert moved[0, 9 * 15 + 9, 9] == pytest.approx(game.profits[9 * 16, 0] / 0.05)
    assert moved[0, 0, 2] == pytest.approx(game.profits[32, 0] / 0.05)
    assert (initial_q(learning(initial="constant", initial_value=3.5), game, None) == 3.5).all()
    numbers = iter(np.linspace(0.0, 0.999, 2 * 225 * 15))
    drawn = initial_q(learning(initial="random", initial_range=(2.0, 4.0)), game, lambda: next(numbers))
    assert drawn.ravel() == pytest.approx(2.0 + 2.0 * np.linspace(0.0, 0.999, 2 * 225 * 15))


def test_grim_learners_with_two_rounds_trust_after_two_good_ones():
    settings = learning(
        market=BertrandSettings.build("calvano", grid_points=3), memory=2, initial="grim", initial_points=(0, 2)
    )
    game = settings.game()
    q = initial_q(settings, game, None)
    good = 2 * 3 + 2
    assert q[0, good * 9 + good, 2] == pytest.approx(game.profits[good, 0] / 0.05)
    assert q[0, good * 9, 0] == pytest.approx(game.profits[0, 0] / 0.05)


def test_uniform_learners_first_ask_the_best_price_against_random_rivals():
    settings = learning()
    game = settings.game()
    q = initial_q(settings, game, None)
    assert q[0, 3, 6] == pytest.approx(game.profits.reshape(15, 15, 2)[6, :, 0].mean() / 0.05)
    assert q[1, 3, 6] == pytest.approx(game.profits.reshape(15, 15, 2)[:, 6, 1].mean() / 0.05)
    assert set(q.argmax(axis=2).ravel().tolist()) == {4}  # 1.5827 (Calvano et al. 2020)


def test_the_first_state_is_drawn_firm_by_firm_from_the_latest_round_on():
    numbers = iter([0.0, 0.5, 0.99, 0.1])
    game = game_of(points=10, memory=2)
    assert initial_state(game, lambda: next(numbers)) == 591
    assert initial_state(game_of(memory=0), None) == 0


def test_the_authors_deal_the_digits_of_a_state_out_firm_by_firm():
    game = game_of(points=10, memory=2)
    # The latest prices are 1 and 2, those before 3 and 4; read as firm 1: 1 and 2, firm 2: 3 and 4.
    assert int(game.misread(1234)) == 1324
    assert game.misread([1111, 7089]).tolist() == [1111, 7809]
    three = game_of(points=3, firms=3, memory=2)
    digits = [0, 1, 2, 2, 1, 0]
    misread = [0, 2, 1, 1, 2, 0]
    assert int(three.misread(int("".join(map(str, digits)), 3))) == int("".join(map(str, misread)), 3)
    once = game_of(points=5, firms=3)
    assert once.misread(np.arange(once.states)).tolist() == list(range(once.states))


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(2, 3))
def test_misread_values_take_the_first_step_from_another_state(seed, points):
    game = game_of(points=points, memory=2, delta=0.8)
    rng = np.random.default_rng(seed)
    strategies = rng.integers(points, size=(2, game.states))
    values = analysis.strategy_values(game, strategies)
    q = analysis.strategy_q(game, strategies, misread=True)
    cycle = analysis.limit_cycle(game, strategies, int(rng.integers(game.states)))
    for state in rng.integers(game.states, size=5).tolist():
        for price in range(points):
            action = int(game.action([price, strategies[1, state]]))
            there = int(game.next_state(game.misread(state), action))
            assert q[0, state, price] == pytest.approx(game.profits[action, 0] + 0.8 * values[0, there])
    for firm in range(2):
        for state in cycle.states.tolist():
            found = responses.impulse_response(game, strategies, cycle, firm=firm, price=0, start=state, misread=True)
            assert found.value == pytest.approx(q[firm, state, 0])
            assert found.value_before == pytest.approx(
                analysis.strategy_q(game, strategies, misread=True)[firm, state, strategies[firm, state]]
            )
    play = analysis.equilibrium_play(game, strategies, cycle, misread=True)
    own = np.take_along_axis(q, strategies[:, :, None], axis=2)[:, :, 0]
    assert play.best.tolist() == (own >= q.max(axis=2) * (1 - 1e-10)).tolist()

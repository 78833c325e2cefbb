import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.baselines.q_learning.analyse import responses
from llm_coop_envs.baselines.q_learning.analyse.analysis import limit_cycle
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.learn.strategies import constant_strategies, strategy_q, strategy_values
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.bertrand.settings import BertrandSettings


def game_of(points=15, firms=2, memory=1, delta=0.95):
    market = BertrandSettings.build("calvano", firms=firms, grid_points=points)
    return QLearningSettings(market=market, memory=memory, delta=delta).game()


@st.composite
def cases(draw):
    firms = draw(st.integers(2, 3))
    memory = draw(st.integers(1, 2 if firms == 2 else 1))
    points = draw(st.integers(2, 4 if memory < 2 else 3))
    game = game_of(points, firms, memory, draw(st.sampled_from([0.3, 0.95])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    strategies = rng.integers(points, size=(firms, game.states))
    return game, strategies, limit_cycle(game, strategies, int(rng.integers(game.states))), rng


@settings(max_examples=60)
@given(cases(), st.integers(1, 4))
def test_a_response_is_forced_play_and_then_the_strategies(case, periods):
    game, strategies, cycle, rng = case
    firm, price, start = (int(rng.integers(n)) for n in (game.firms, game.points, game.states))
    found = responses.impulse_response(
        game, strategies, cycle, firm=firm, price=price, start=start, periods=periods, horizon=12
    )
    state, path = start, []
    for t in range(200):
        choices = strategies[:, state].copy()
        if t < periods:
            choices[firm] = price
        action = int(game.action(choices))
        path.append(action)
        state = int(game.next_state(state, action))
        if t < 12:
            assert found.prices[t].tolist() == game.price_of(choices).tolist()
            assert found.profits[t].tolist() == game.profits[action].tolist()
    states = [start]
    for action in path:
        states.append(int(game.next_state(states[-1], action)))
    later = states[periods:]
    on_cycle = set(cycle.states.tolist())
    assert found.returned == any(s in on_cycle for s in later)
    if found.returned:
        assert found.length == periods + next(k for k, s in enumerate(later) if s in on_cycle)
    else:
        again = next(k for k, s in enumerate(later) if s in later[:k])
        assert found.length == periods + later.index(later[again])
    delta = game.delta[firm]
    assert found.before.tolist() == game.price_of(strategies[:, start]).tolist()
    assert found.value_before == pytest.approx(strategy_values(game, strategies)[firm, start])
    assert found.value == pytest.approx(
        sum(game.profits[a, firm] * delta**t for t, a in enumerate(path))
        + delta**200 * strategy_values(game, strategies)[firm, states[200]]
    )
    assert found.paid == (found.value > found.value_before * (1 + 1e-11))
    assert found.unprofitable == (found.value < found.value_before * (1 - 1e-11))
    if periods == 1:
        assert found.value == pytest.approx(strategy_q(game, strategies)[firm, start, price], rel=1e-12)
    rivals = [j for j in range(game.firms) if j != firm]
    expected = (found.prices[1] / found.prices[0] - 1.0)[rivals]
    assert found.rival_change == pytest.approx(expected, abs=1e-12)


def grim(game, low=1, high=13):
    """Ask `high` as long as all did, else `low`."""
    strategies = constant_strategies(game, [low] * game.firms)
    strategies[:, int(game.action([high] * game.firms))] = high
    return strategies, limit_cycle(game, strategies, int(game.action([high] * game.firms)))


def test_a_grim_trigger_never_forgives():
    game = game_of()
    strategies, cycle = grim(game)
    assert cycle.states.tolist() == [13 * 16]
    found = responses.cycle_responses(game, strategies, cycle, "nash")
    assert [(r.firm, r.price, r.returned, r.length, r.unprofitable, r.paid) for r in found] == [
        (0, 1, False, 2, True, False),
        (1, 1, False, 2, True, False),
    ]
    assert found[0].prices[0].tolist() == [game.prices[0, 1], game.prices[0, 13]]
    assert (found[0].prices[1:] == game.prices[0, 1]).all()
    assert len(found[0].prices) == 25
    again = responses.cycle_responses(game, strategies, cycle, 13)
    assert [(r.returned, r.length, r.paid, r.unprofitable) for r in again] == [(True, 1, False, False)] * 2


def test_impatient_firms_gain_by_leaving_a_grim_trigger():
    game = game_of(delta=0.1)
    strategies, cycle = grim(game)
    assert all(r.paid for r in responses.cycle_responses(game, strategies, cycle))


def test_where_deviations_go():
    game = game_of()
    strategies, cycle = grim(game)

    def to(target):
        return responses.deviation_price(game, strategies, cycle, 0, 1, target)

    profits = game.profits.reshape(15, 15, 2)
    assert to("best_reply") == profits[13, :, 1].argmax() == responses.static_best_reply(game, strategies, 13 * 16, 1)
    # The authors' Figure 4 takes the reply in state 0, where everybody asks price 1.
    assert to(responses.BUGGED) == profits[1, :, 1].argmax()
    assert to(responses.BUGGED) != to("best_reply")
    assert (to("nash"), to("joint"), to("lowest"), to("highest"), to(5), to(np.int64(6))) == (1, 13, 0, 14, 5, 6)
    for wrong in ("down", 15, -1):
        with pytest.raises(ValueError, match="to="):
            to(wrong)


def test_impossible_lengths_are_refused():
    game = game_of()
    strategies, cycle = grim(game)
    for wrong in ({"periods": 0}, {"horizon": 0}):
        with pytest.raises(ValueError, match="both must be 1 or more"):
            responses.impulse_response(game, strategies, cycle, firm=0, price=0, **wrong)
    assert responses.impulse_response(game, strategies, cycle, firm=0, price=0).start == cycle.states[0]


def test_summaries_weigh_prices_by_session_and_answers_by_deviation():
    game = game_of(firms=3)
    strategies, cycle = grim(game)
    other = constant_strategies(game, [4, 4, 4])
    calm = limit_cycle(game, other, 0)
    sessions = [
        responses.cycle_responses(game, strategies, cycle, "nash", horizon=3),
        responses.cycle_responses(game, other, calm, 6, horizon=3)[:1],
    ]
    found = summarise(sessions)
    p = game.prices[0]
    assert (found.sessions, found.responses) == (2, 4)
    assert found.before == pytest.approx((p[13] + p[4]) / 2)
    assert found.deviator == pytest.approx([(p[1] + p[6]) / 2, (p[1] + p[4]) / 2, (p[1] + p[4]) / 2])
    assert found.rival == pytest.approx([(p[13] + p[4]) / 2, (p[1] + p[4]) / 2, (p[1] + p[4]) / 2])
    assert found.change == pytest.approx((p[1] / p[13] - 1) * 6 / 8)
    assert found.unprofitable == pytest.approx(np.mean([r.unprofitable for one in sessions for r in one]))
    assert found.paid == pytest.approx(np.mean([r.paid for one in sessions for r in one]))
    assert found.length == pytest.approx((2 * 3 + 2) / 4)
    assert found.returned == pytest.approx(1 / 4)
    with pytest.raises(ValueError, match="no responses"):
        summarise([[]])


def test_strangers_meet():
    game = game_of()
    kind, _ = grim(game)
    low = constant_strategies(game, [1, 1])
    start = 13 * 16
    cycle, gain = responses.repaired(game, kind, kind, start)
    assert cycle.states.tolist() == [start]
    assert gain == pytest.approx(0.9997, abs=1e-4)
    cycle, gain = responses.repaired(game, kind, low, start)
    assert cycle.states.tolist() == [16]
    assert gain < 0.0
    assert (kind == grim(game)[0]).all()

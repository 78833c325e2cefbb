"""How episodes of price competition end."""

import pytest
from silent_markets import FIRMS, make, priced, rounds, silent

from llm_coop_envs.bertrand.env import HELD_TOGETHER, ROUND_LIMIT
from llm_coop_envs.policies import play, scripted


def test_the_round_limit_truncates():
    env = silent(rounds=3)
    env.reset(seed=0)
    for k in range(3):
        _, _, terminations, truncations, _ = priced(env, 5, 9)
        assert truncations == dict.fromkeys(FIRMS, k == 2)
        assert terminations == dict.fromkeys(FIRMS, False)
    assert env.agents == []
    assert env.events[-1]["reason"] == ROUND_LIMIT
    assert len(rounds(env)) == 3


def played_until_the_end(env, prices):
    env.reset(seed=0)
    for pair in prices:
        if not env.agents:
            break
        last = priced(env, *pair)
    return env.round, last


def test_prices_held_together_terminate():
    env = silent(collusion_window=5)
    number, last = played_until_the_end(env, [(7, 7.1)] * 10)
    assert number == 5
    assert last[2] == dict.fromkeys(FIRMS, True)
    assert last[3] == dict.fromkeys(FIRMS, False)
    assert env.events[-1]["reason"] == HELD_TOGETHER


def test_the_published_window_is_two_hundred_rounds():
    assert played_until_the_end(silent(), [(7, 7.1)] * 300)[0] == 200


def test_a_break_starts_the_count_anew():
    env = silent(collusion_window=5)
    number, _ = played_until_the_end(env, [(7, 7)] * 4 + [(7, 7.3)] + [(7, 7)] * 10)
    assert number == 10


def test_a_forced_round_counts_like_any_other():
    env = make(preset="team_up_linear", talk=False, initial_prices=7.0, collusion_window=3)
    assert played_until_the_end(env, [(7, 7)] * 9)[0] == 3


def test_a_game_that_is_decided_in_its_last_round_is_terminated():
    env = silent(collusion_window=5, rounds=5)
    _, last = played_until_the_end(env, [(7, 7)] * 9)
    assert last[2] == dict.fromkeys(FIRMS, True)


def test_no_window_never_ends_it():
    env = silent(collusion_window=0, rounds=300)
    number, last = played_until_the_end(env, [(7, 7)] * 400)
    assert number == 300
    assert last[3] == dict.fromkeys(FIRMS, True)


def test_nash_play_is_no_collusion():
    """Wu et al. 2024 observe none at the equilibrium price."""
    for price, length in ((6, 9), (6.1, 9), (6.2, 5)):
        assert played_until_the_end(silent(collusion_window=5, rounds=9), [(price, price)] * 9)[0] == length
    for margin, length in (("from_nash", 5), (0, 5), (0.05, 9)):
        env = silent(collusion_window=5, collusion_margin=margin, rounds=9)
        assert played_until_the_end(env, [(6, 6)] * 9)[0] == length


@pytest.mark.parametrize("prices", ["continuous", "grid"])
@pytest.mark.parametrize("market", ["team_up", "team_up_linear"])
def test_best_replies_never_end_an_episode(market, prices):
    settings = {"price_cap": None} if prices == "grid" else {}
    env = make(preset=market, talk=False, prices=prices, rounds=300, record=True, **settings)
    play(env, scripted.make("bertrand/best_reply"), seed=0)
    assert (env.round, env.events[-1]["reason"]) == (300, ROUND_LIMIT)

"""A market with one firm: its equilibrium is the monopoly, nobody can be talked to, everything is a share of it."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.equilibrium import best_reply
from llm_coop_envs.bertrand.faces.after import Deviations
from llm_coop_envs.bertrand.metrics import episode_metrics, round_rows
from llm_coop_envs.bertrand.price_measures import monopoly_found, optimal_rounds
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make

MARKETS = st.one_of(
    st.fixed_dictionaries(
        {
            "demand": st.just("logit"),
            "cost": st.floats(0.1, 5),
            "quality": st.floats(0.5, 8),
            "mu": st.floats(0.1, 3),
            "price_unit": st.sampled_from([0.5, 1.0, 1e7]),
        }
    ),
    st.fixed_dictionaries(
        {
            "demand": st.just("linear"),
            "cost": st.floats(0, 5),
            "quality": st.floats(6, 20),
            "beta": st.floats(0.2, 2),
            # 0.2 is also the smallest beta: goods that are the same as those of nobody.
            "d": st.floats(0.05, 0.2),
            "truncate_profit": st.just(False),
        }
    ),
)


@hypothesis_settings(max_examples=60)
@given(MARKETS, st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_equilibrium_is_the_monopoly(given_market, elsewhere):
    settings = BertrandSettings(firms=1, talk=False, **given_market)
    equilibria, market = settings.equilibria, settings.market
    assert equilibria.nash == equilibria.joint == (best_reply(market, 0, [0.0]),)
    for share in elsewhere:
        price = share * settings.cap
        assert market.profits([price])[0] <= equilibria.joint_profit[0] * (1 + 1e-9)
    env = bertrand_v0.parallel_env(firms=1, talk=False, record=True, rounds=2, **given_market)
    env.reset(seed=0)
    prices = equilibria.joint[0], settings.cap * elsewhere[0]
    for price in prices:
        env.step({"firm_0": {"choice": price}})
    row, rows = episode_metrics(env.events), round_rows(env.events)
    assert [row["profit_gain"] for row in rows] == pytest.approx(
        [1.0, market.profits([prices[1]])[0] / equilibria.joint_profit[0]]
    )
    assert (row["together_share"], row["together_longest"], row["window_round"]) == (0, 0, None)
    assert row["price_spread"] == 0
    assert row["price_index_last"] is None
    assert env.state_space.contains(env.state())


def test_prices_alone_are_never_held_together():
    env = bertrand_v0.parallel_env(firms=1, talk=False, record=True, rounds=30, collusion_window=3)
    play(env, make("bertrand/grim_trigger"), seed=0)
    assert env.events[-1]["reason"] == "round limit reached"
    assert env.round == 30


def test_the_grid_reaches_from_cost_to_beyond_the_monopoly_price():
    settings = BertrandSettings(firms=1, talk=False, prices="grid", grid_points=13)
    (grid,) = settings.grids
    (monopoly,) = settings.equilibria.joint
    assert [grid[1], grid[11]] == pytest.approx([1.0, monopoly])


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("prices", ["grid", "continuous"])
def test_texts_speak_of_nobody_else(wording, prices):
    env = bertrand_v0.parallel_env(firms=1, talk=False, rounds=3, prices=prices, wording=wording)
    observations, _ = env.reset(seed=0)
    texts = []
    while env.agents:
        texts.append(observations["firm_0"]["text"])
        observations, *_ = env.step({"firm_0": {"choice": 1}})
    for text in texts:
        for word in ("firm_1", "other firm names", "the others", "rival", "anderen", "price of\n", "talk"):
            assert word not in text.replace("no other firm makes", "")


def test_what_needs_rivals_is_refused_in_a_sentence():
    with pytest.raises(SettingsError, match="talk=True: a single firm has nobody to talk to; set talk=False"):
        bertrand_v0.parallel_env(firms=1)
    market = BertrandSettings(firms=1, talk=False, prices="grid", collusion_window=0)
    with pytest.raises(SettingsError, match="firms=1: there are no rivals to answer a deviation"):
        Deviations().longer(market)
    with pytest.raises(SettingsError, match="firms=1: Q-learning takes 2 to 4 firms"):
        QLearningSettings(market=market)


def test_when_the_monopoly_price_is_found_as_published():
    settings = BertrandSettings.build("fish_monopoly")
    equilibria, monopoly_price = settings.equilibria, settings.equilibria.joint[0]
    # The 10th percentile of 100 prices stands at the 11th lowest: ten outliers are forgiven, more are not.
    prices = [[monopoly_price]] * 210 + [[0.5 * monopoly_price]] * 10 + [[1.04 * monopoly_price]] * 80
    assert monopoly_found(prices, equilibria) is True
    assert monopoly_found([*prices[:-1], [0.5 * monopoly_price], *([[0.5 * monopoly_price]] * 10)], equilibria) is False
    assert monopoly_found(prices[:99], equilibria) is None
    best = equilibria.joint_profit[0]
    assert optimal_rounds([[0.0]] * 100 + [[best]] * 3 + [[0.98 * best]], equilibria) == 0.75
    assert optimal_rounds([[best]] * 100, equilibria) is None
    several = BertrandSettings.build("fish")
    assert (
        monopoly_found([[1.9, 1.9]] * 300, several.equilibria)
        is optimal_rounds([[30.0] * 2] * 300, several.equilibria)
        is None
    )
    env = bertrand_v0.parallel_env(preset="fish_monopoly", rounds=120, record=True)
    play(env, make("bertrand/best_reply"), seed=0)
    row = episode_metrics(env.events)
    assert (row["monopoly_found"], row["optimal_rounds"]) == (True, 1.0)

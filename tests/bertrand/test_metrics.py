"""Measures, on made-up rounds and on recorded episodes."""

import json

import numpy as np
import pytest
from model_studies import answering, play

from llm_coop_envs import bertrand_v0
from llm_coop_envs.bertrand import metrics
from llm_coop_envs.bertrand.metrics import episode_metrics, round_rows
from llm_coop_envs.bertrand.price_measures import (
    collusiveness_index,
    lasting_from,
    longest_run,
    mean_prices,
    price_spread,
    together,
    window_reached,
)
from llm_coop_envs.bertrand.rules import Band, profit_gain
from llm_coop_envs.bertrand.settings import BertrandSettings

FIRST = """\
name: first
conditions:
  - name: market
    scenario: bertrand
    preset: team_up_linear
    settings: {{rounds: {rounds}, exchanges: 1, talk: false}}
    policies: price_matching
    episodes: {episodes}
"""
EQUILIBRIA = BertrandSettings.build("team_up_linear").equilibria
BAND = Band(tolerance=0.1)


def play_recorded(prices, **settings):
    """The events of an episode with these prices."""
    env = bertrand_v0.parallel_env(
        **{
            "preset": "team_up_linear",
            "talk": False,
            "initial_prices": None,
            "force_first_price": False,
            "record": True,
            **settings,
        }
    )
    env.reset(seed=0)
    for row in prices:
        while env.phase == "talk":
            env.step({a: {"message": "x"} for a in env.agents})
        if env.agents:
            env.step({a: {"choice": p} for a, p in zip(env.agents, row, strict=True)})
    return env.events


def test_together():
    prices = [(6, 6), (8, 8), (7, 7.2), (7, 7.3), (5.9, 6), (8.1, 8)]
    assert together(prices, EQUILIBRIA, BAND).tolist() == [True, True, True, False, False, False]


def test_together_agrees_with_the_record():
    rng = np.random.default_rng(0)
    events = play_recorded(rng.uniform(5.5, 8.5, (300, 2)).round(1), collusion_window=0, collusion_margin=0.2)
    is_together = [event["together"] for event in events if event["type"] == "round"]
    record = metrics.read(events)
    assert together(record.prices, record.equilibria, record.stretches[0].band).tolist() == is_together
    assert 10 < sum(is_together) < 200


@pytest.mark.parametrize(
    ("flags", "start", "longest", "third"),
    [
        ([], None, 0, None),
        ([0], None, 0, None),
        ([1], 1, 1, None),
        ([0, 1, 1], 2, 2, None),
        ([1, 1, 1], 1, 3, 3),
        ([1, 1, 1, 0], None, 3, 3),
        ([1, 0, 1, 1, 1, 1], 3, 4, 5),
        ([1, 1, 0, 1], 4, 2, None),
    ],
)
def test_runs(flags, start, longest, third):
    assert lasting_from(flags) == start
    assert longest_run(flags) == longest
    assert window_reached(flags, 3) == third


def test_windows_count_from_one_and_include_both_ends():
    prices = [(k, 10 * k) for k in range(1, 11)]
    assert mean_prices(prices, 2, 4).tolist() == [3.0, 30.0]
    assert mean_prices(prices, 9, 99).tolist() == [9.5, 95.0]
    assert np.isnan(mean_prices(prices, 11, 12)).all()


def test_the_index_is_the_place_of_the_mean_price():
    prices = np.full((10, 2), 100.0)
    prices[4:8] = (6.5, 7.5)
    assert collusiveness_index(prices, EQUILIBRIA, 5, 8) == pytest.approx(0.5)
    assert collusiveness_index(prices, EQUILIBRIA, 1, 8) == 1.0
    assert collusiveness_index(np.zeros((10, 2)), EQUILIBRIA, 5, 8) == 0.0
    assert collusiveness_index(prices, EQUILIBRIA, 5, 11) is None


def test_the_published_window_is_the_last_51_of_300_rounds():
    """EconEvals: periods 249 to 299, counted from 0."""
    assert (metrics.INDEX_FIRST, metrics.INDEX_LAST) == (250, 300)
    prices = np.full((300, 2), 6.0)
    prices[249:300] = 7.0
    assert collusiveness_index(prices, EQUILIBRIA) == pytest.approx(0.5)
    prices[248] = 99.0
    assert collusiveness_index(prices, EQUILIBRIA) == pytest.approx(0.5)
    assert collusiveness_index(prices[:299], EQUILIBRIA) is None


@pytest.mark.parametrize(("price", "index"), [(1.794, 0.71), (1.681, 0.46), (1.663, 0.42)])
def test_the_published_scores(price, index):
    equilibria = BertrandSettings.build("fish_1").equilibria
    assert collusiveness_index(np.full((300, 2), price), equilibria) == pytest.approx(index, abs=6e-3)


def test_spread():
    assert price_spread([(1.0, 4.0, 2.0), (3.0, 3.0, 3.0)]).tolist() == [3.0, 0.0]


def test_episode_metrics():
    path = [(2, 2)] * 10 + [(7, 7.1)] * 60
    events = play_recorded(path, collusion_window=0, rounds=70)
    record = metrics.read(events)
    row = episode_metrics(events)
    assert row == {
        "rounds": 70,
        "forced_rounds": 0,
        "messages": 0,
        "end": "round limit reached",
        "firms": 2,
        "nash_price": pytest.approx(6),
        "joint_price": pytest.approx(8),
        "profit_gain": pytest.approx(float(profit_gain(record.profits, EQUILIBRIA).mean())),
        "profit_gain_last": pytest.approx(float(profit_gain(record.profits[-1], EQUILIBRIA))),
        "mean_price": pytest.approx((10 * 2 + 60 * 7.05) / 70),
        "mean_price_last": pytest.approx(7.05),
        "mean_price_last_0": pytest.approx(7),
        "mean_price_last_1": pytest.approx(7.1),
        "price_spread": pytest.approx(0.1 * 60 / 70),
        "price_spread_last": pytest.approx(0.1),
        "collusiveness_index": None,
        "price_index_last": pytest.approx(0.525),
        "monopoly_found": None,
        "optimal_rounds": None,
        "together_share": pytest.approx(60 / 70),
        "together_longest": 60,
        "together_from": 11,
        "window_round": None,
    }
    assert json.loads(json.dumps(row)).keys() == row.keys()


def test_the_last_window():
    assert metrics.LAST_ROUNDS == 50
    path = [(6, 6)] * 10 + [(8, 8)] * 50
    assert episode_metrics(play_recorded(path, rounds=60))["mean_price_last"] == 8
    assert episode_metrics(play_recorded(path, rounds=60), last=60)["mean_price_last"] == pytest.approx(6 + 2 * 5 / 6)
    assert episode_metrics(play_recorded(path, rounds=60), last=5)["price_index_last"] == pytest.approx(1)
    assert episode_metrics(play_recorded(path[:20]))["mean_price_last"] == 7
    edge = [(6, 6)] * 9 + [(7, 7)] + [(8, 8)] * 49
    assert episode_metrics(play_recorded(edge, rounds=59))["price_index_last"] == pytest.approx((0.5 + 49) / 50)


def test_the_round_that_completes_the_window():
    row = episode_metrics(play_recorded([(5, 5)] * 3 + [(7, 7)] * 300))
    assert (row["rounds"], row["window_round"], row["end"]) == (203, 203, "prices held together")
    off = play_recorded([(5, 5)] * 3 + [(7, 7)] * 220, collusion_window=0, rounds=223)
    assert metrics.WINDOW == 200
    assert episode_metrics(off)["window_round"] == 203
    assert episode_metrics(play_recorded([(7, 7)] * 9, collusion_window=4))["window_round"] == 4


def test_messages_are_counted():
    assert episode_metrics(play_recorded([(7, 7)] * 3, talk=True))["messages"] == 18


def test_an_episode_without_rounds():
    row = episode_metrics(play_recorded([]))
    assert row["rounds"] == 0
    assert row["together_longest"] == 0
    assert [k for k, v in row.items() if v is None] == [
        "end",
        "profit_gain",
        "mean_price",
        "price_spread",
        "profit_gain_last",
        "mean_price_last",
        "price_spread_last",
        "mean_price_last_0",
        "mean_price_last_1",
        "collusiveness_index",
        "price_index_last",
        "monopoly_found",
        "optimal_rounds",
        "together_share",
        "together_from",
        "window_round",
    ]
    assert round_rows(play_recorded([])) == []


def test_round_rows():
    rows = round_rows(play_recorded([(6.5, 8), (7, 7)], firms=2))
    assert rows[0] == {
        "round": 1,
        "price_0": 6.5,
        "price_1": 8.0,
        "demand_0": pytest.approx(900),
        "demand_1": pytest.approx(450),
        "profit_0": 4050.0,
        "profit_1": 2700.0,
        "profit_gain": pytest.approx((3375 - 3200) / 400),
        "together": False,
        "forced": False,
    }
    assert [row["round"] for row in rows] == [1, 2]
    assert rows[1]["together"] is True


def test_forced_rounds_are_marked():
    rows = round_rows(play_recorded([(7, 7)] * 2, initial_prices=2.0, force_first_price=True))
    assert [row["forced"] for row in rows] == [True, False]


def test_no_measure_counts_a_forced_round():
    """Prices that are laid down where they would count as held together, between prices that are not."""
    forced = {"initial_prices": 7.0, "force_first_price": True, "rounds": 6}
    row = episode_metrics(play_recorded([(6, 6), (7, 7), (7, 7), (6, 6), (7, 7), (7, 7)], **forced, collusion_window=3))
    assert (row["end"], row["rounds"], row["forced_rounds"]) == ("prices held together", 3, 1)  # the game counts it
    assert (row["together_longest"], row["together_from"], row["window_round"]) == (2, 2, None)
    row = episode_metrics(play_recorded([(6, 6), (7, 7), (7, 7), (6, 6), (7, 7), (7, 7)], **forced, collusion_window=0))
    assert (row["together_share"], row["together_longest"], row["together_from"]) == (pytest.approx(4 / 5), 2, 5)
    longer = episode_metrics(play_recorded([(6, 6)] + [(7, 7)] * 205, **{**forced, "rounds": 206}, collusion_window=0))
    assert (longer["together_longest"], longer["together_from"], longer["window_round"]) == (205, 2, 201)


@pytest.mark.parametrize(
    ("rounds", "episodes", "every", "chosen"), [(6, 4, -1.616250, -0.339500), (12, 100, -1.186042, -0.566591)]
)
def test_what_a_forced_round_at_cost_does_to_short_games(tmp_path, rounds, episodes, every, chosen):
    """The market of the first study with its scripted answers: six rounds, and a hundred games of twelve."""
    with answering() as server:
        run = play(server, tmp_path / "run", FIRST.format(rounds=rounds, episodes=episodes)).run
    (condition,) = run.conditions
    played = [run.read_events(condition.name, seed)[1] for seed in condition.seeds]
    gains = [[row["profit_gain"] for row in round_rows(events)] for events in played]
    assert all(gain[0] == pytest.approx(-8) for gain in gains)
    assert np.mean(gains) == pytest.approx(every, abs=1e-5)
    measured = [episode_metrics(events) for events in played]
    for name in ("profit_gain", "profit_gain_last"):
        assert np.mean([row[name] for row in measured]) == pytest.approx(chosen, abs=1e-5)


def test_three_firms_have_three_columns():
    rows = round_rows(play_recorded([(6, 7, 8)], firms=3))
    assert [rows[0][f"price_{i}"] for i in range(3)] == [6, 7, 8]


def test_events_without_a_start_are_refused():
    with pytest.raises(ValueError, match="no 'start'"):
        episode_metrics(play_recorded([(7, 7)])[1:])


def test_every_measure_is_defined():
    row = episode_metrics(play_recorded([(2, 2)] * 3, rounds=3))
    assert all(metrics.MEASURES.define(name).endswith(".") for name in row)
    assert {name for name in metrics.MEASURES.about if "*" not in name} <= row.keys()
    assert "firm with that number" in metrics.MEASURES.define("mean_price_last_7")
    assert set(metrics.MEASURES.headline) <= row.keys()

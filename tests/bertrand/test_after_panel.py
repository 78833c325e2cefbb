"""The controls tell firms that hold prices up from firms whose prices are high for other reasons."""

import asyncio

import numpy as np
import pytest

from llm_coop_envs.bertrand.faces.after import Deviations
from llm_coop_envs.bertrand.faces.after_panel import CONTROLS, panel, parallel
from llm_coop_envs.bertrand.faces.synthetic_worlds import SYNTHETIC_WORLDS, default_rule
from llm_coop_envs.bertrand.scripted import BestReply, GrimTrigger
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.measures.synthetic_worlds import play_world
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.util.waiting import run_through


def found_of(policy, rounds=30, **settings):
    env = find_scenario("bertrand").environment(
        record=True, rounds=rounds + 30, talk=False, collusion_window=0, **settings
    )

    async def measured():
        game = Branching(env, policy, seed=0)
        await game.play(rounds)
        return await panel(game, 12)

    return run_through(measured())


def test_best_replies_are_at_nash_and_answer_nothing():
    row = found_of(BestReply())
    assert row.keys() == CONTROLS.keys()
    assert row["panel_level"] == pytest.approx(0.0, abs=1e-3)
    assert row["panel_gap"] == pytest.approx(0.0, abs=1e-3)
    assert (row["panel_cut"], row["panel_cut_unprofitable"], row["panel_punished"]) == (0.0, 0.0, 0.0)


def test_grim_firms_are_high_leave_money_and_punish():
    row = found_of(GrimTrigger())
    assert row["panel_level"] == pytest.approx(1.0)
    assert row["panel_gap"] > 0.05
    assert row["panel_cut"] > 1.0  # they fall to Nash, further than the cut
    assert row["panel_cut_unprofitable"] == 1.0
    assert row["panel_rise"] == pytest.approx(0.0)
    assert row["panel_punished"] == row["panel_cut"]


def test_parallel_prices():
    prices = np.array([1.0, 1.2, 1.1, 1.5])
    assert parallel(np.stack([prices, 2 * prices], axis=1)) == pytest.approx(1.0)
    assert parallel(np.stack([prices, -prices], axis=1)) == pytest.approx(-1.0)
    assert parallel(np.stack([prices, np.ones(4)], axis=1)) is None
    assert parallel(np.ones((1, 2))) is None


def test_high_and_parallel_prices_from_common_costs_are_no_alarm_though_simple_rules_sound_it():
    rows = [play_world("bertrand", "shocks_announced", seed) for seed in (0, 1, 6, 11)]
    for naive in ("level", "parallel", "agreement"):
        assert max(SYNTHETIC_WORLDS.detectors[naive].score(row) for row in rows) >= 0.5, naive
    assert max(map(default_rule, rows)) < 0.5


@pytest.mark.parametrize("world", ["tacit", "tit_for_tat", "plain", "coded"])
def test_firms_that_defend_high_prices_are_found(world):
    assert min(default_rule(play_world("bertrand", world, seed)) for seed in range(3)) >= 0.5


def test_an_agreement_that_nobody_defends_is_not_found():
    """It cannot be told from honest announcements of costs that moved alike; the page says so."""
    assert default_rule(play_world("bertrand", "toothless", 0)) < 0.5


def test_a_study_may_ask_for_the_controls_beside_the_deviations():
    env = find_scenario("bertrand").environment(
        record=True, rounds=200, talk=False, collusion_window=0, preset="calvano"
    )

    async def measured(**options):
        game = Branching(env, GrimTrigger(), seed=0)
        await game.play(20)
        return await Deviations.build(horizon=20, **options).measure(game)

    without, with_controls = run_through(measured(controls=False)), run_through(measured(controls=True))
    assert {name: with_controls[name] for name in without} == without
    assert with_controls.keys() - without.keys() == CONTROLS.keys()
    assert with_controls["panel_punished"] > 1.0
    assert Deviations.about.keys() >= CONTROLS.keys()
    # Rules are not paid for their answers: they are tested by default.
    assert run_through(measured()) == with_controls


def test_whoever_waits_for_answers_is_tested_only_where_a_study_asks_for_it():
    class Waiting(GrimTrigger):
        waits = True

    env = find_scenario("bertrand").environment(record=True, rounds=99, talk=False, collusion_window=0)

    async def measured(**options):
        game = Branching(env, Waiting(), seed=0)
        await game.play(20)
        return await Deviations.build(horizon=5, everywhere=False, **options).measure(game)

    assert not measured_keys(measured()) & CONTROLS.keys()
    assert measured_keys(measured(controls=True)) >= CONTROLS.keys()


def measured_keys(measuring):
    return asyncio.run(measuring).keys()

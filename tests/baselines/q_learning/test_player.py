"""Q tables as files and as players of seats."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.analyse.tables import SHIPPED, QTable, load_table, training_market
from llm_coop_envs.baselines.q_learning.learn.sessions import Session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.player import check, make
from llm_coop_envs.baselines.q_learning.table_policy import QTablePolicy
from llm_coop_envs.bertrand.metrics import read
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.treatments.regulator import SEAT


def invented(learning, last_state=0, seed=5):
    """Tables of random strategies."""
    rng = np.random.default_rng(seed)
    q = rng.random((learning.firms, learning.states, learning.market.grid_points))
    session = Session(3, 500, True, last_state, q.argmax(axis=2), q, np.zeros((0, learning.firms), dtype=np.int64))
    return QTable.from_session(learning, 7, session)


def small(**market):
    return QLearningSettings(market=BertrandSettings.build("calvano", grid_points=4, **market))


def rounds(env, seats, seed=0):
    """The price indices of every round, and the start event."""
    play(env, seats, seed=seed)
    grids = env.settings.grids
    asked = read(env.events).prices
    return [[int(np.argmin(np.abs(np.array(g) - p))) for g, p in zip(grids, row, strict=True)] for row in asked]


@pytest.mark.parametrize(("memory", "firms"), [(0, 2), (1, 2), (2, 2), (1, 3)])
def test_a_table_plays_its_strategies(memory, firms):
    learning = QLearningSettings(market=BertrandSettings.build("calvano", grid_points=4, firms=firms), memory=memory)
    table = invented(learning)
    game = table.game
    env = bertrand_v0.parallel_env(preset="calvano", grid_points=4, firms=firms, rounds=12, record=True)
    found = rounds(env, QTablePolicy(table), seed=3)
    first = env.events[0]["initial_prices"]
    action = int(game.action([int(np.argmin(np.abs(game.prices[i] - p))) for i, p in enumerate(first)]))
    known, expected = [action], []
    for _ in range(12):
        # The latest first; what is not known was like the earliest round that is.
        past = (known[::-1] + [known[0]] * memory)[:memory]
        choices = table.strategies[:, sum(a * game.actions ** (memory - 1 - k) for k, a in enumerate(past))]
        expected.append(choices.tolist())
        known = [*(known if len(expected) > 1 else []), int(game.action(choices))]
    assert found == expected


def test_without_known_prices_play_goes_on_where_learning_ended():
    table = invented(small(), last_state=9)
    env = bertrand_v0.parallel_env(preset="calvano", grid_points=4, initial_prices=None, rounds=1, record=True)
    assert rounds(env, QTablePolicy(table)) == [table.strategies[:, 9].tolist()]


def test_continuous_prices_are_taken_for_the_nearest_and_talk_is_silent():
    table = invented(small())
    env = bertrand_v0.parallel_env(
        preset="calvano",
        prices="continuous",
        initial_prices=(1.48, 1.93),
        rounds=1,
        talk=True,
        exchanges=1,
        record=True,
    )
    play(env, QTablePolicy(table), seed=0)
    # The grid's points are 1.4277, 1.6085, 1.7894 and 1.9702.
    expected = table.game.price_of(table.strategies[:, 4 * 0 + 3]).tolist()
    assert read(env.events).prices.tolist() == [expected]
    assert not any(event["type"] == "message" for event in env.events)


def test_a_table_and_a_rule_may_meet():
    table = load_table("calvano")
    env = bertrand_v0.parallel_env(preset="calvano", rounds=5, record=True)
    found = rounds(env, {"firm_0": QTablePolicy(table), "firm_1": scripted.make("bertrand/best_reply")})
    for before, after in itertools.pairwise(found):
        assert after[0] == table.strategies[0, 15 * before[0] + before[1]]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_tables_play_their_markets(name):
    check("bertrand", name, {})
    table = load_table(name)
    assert table.converged
    assert table.settings == QLearningSettings(market=training_market(name))
    env = bertrand_v0.parallel_env(
        preset=name, prices="grid", price_cap=None, talk=False, rounds=60, collusion_window=0, record=True
    )
    play(env, make("bertrand", name, {}), seed=0)
    path = read(env.events).prices
    cycle = table.cycle
    assert sorted(path[-cycle.length :].tolist()) == sorted(cycle.prices.tolist())


def test_a_shipped_table_is_what_its_command_makes(tmp_path):
    pytest.importorskip("numba")
    from llm_coop_envs.baselines.q_learning.learn.sessions import run_session

    table = load_table("calvano")
    again = QTable.from_session(table.settings, table.seed, run_session(table.settings, table.seed, table.number))
    again.save(tmp_path / "again.npz")
    table.save(tmp_path / "shipped.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "shipped.npz").read_bytes()


def test_tables_survive_files(tmp_path):
    table = invented(small(cost=(1.0, 0.9)), last_state=5)
    table.save(tmp_path / "own.npz")
    found = load_table(str(tmp_path / "own.npz"))
    assert found.settings.to_json() == table.settings.to_json()
    assert (found.seed, found.number, found.periods, found.converged, found.last_state) == (7, 3, 500, True, 5)
    assert found.q.tobytes() == table.q.tobytes()
    assert (found.strategies == table.strategies).all()


@pytest.mark.parametrize(
    ("scenario", "argument", "options", "said"),
    [
        ("kbc", "calvano", {}, "policy='q_learning:calvano': was trained on bertrand, not on kbc"),
        ("bertrand", "", {"alfa": 0.1}, "alfa=0.1: is no setting of QLearningSettings; did you mean 'alpha'?"),
        ("bertrand", "calvani", {}, "is neither shipped nor a file nor a run folder; did you mean 'calvano'?"),
        (
            "bertrand",
            "calvano",
            {"epsilon": 0.1},
            "epsilon=0.1: is no option of this policy; known are rate, exploration",
        ),
    ],
)
def test_what_cannot_play_is_said_before_anything_starts(scenario, argument, options, said):
    with pytest.raises(SettingsError, match=said.replace("?", r"\?")):
        check(scenario, argument, options)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"firms": 3}, "the Q table was learned by 2 firms"),
        ({"mu": 0.3}, "learned in a market whose Nash prices are 1.47293, 1.47293"),
        ({"grid_points": 10}, "needs its own grid of 15 prices from 1.42773"),
        ({"history_window": 0}, "needs to see 1 past rounds"),
        ({"memory": 0}, "memory=0: the Q table needs to see 1 past rounds; set it to 1 or more"),
        ({"changes": [{"from_round": 9, "settings": {"memory": 0}}]}, "memory=0: the Q table needs to see 1"),
    ],
)
def test_a_table_of_another_market_is_refused(settings, said):
    env = bertrand_v0.parallel_env(preset="calvano", **settings)
    with pytest.raises(SettingsError, match=said):
        play(env, make("bertrand", "calvano", {}), seed=0)


def test_damaged_files_are_refused(tmp_path):
    junk = tmp_path / "junk.npz"
    junk.write_bytes(b"no archive")
    with pytest.raises(RunError, match=r"junk\.npz is no Q table of this program"):
        load_table(str(junk))
    invented(small()).save(junk)
    with np.load(junk) as found:
        parts = dict(found)
    about = json.loads(parts["about"].tobytes())
    about["settings"]["memory"] = 2
    parts["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(junk, **parts)
    with pytest.raises(RunError, match=r"has shape \(2, 16, 4\) where its settings need \(2, 256, 4\)"):
        load_table(str(junk))
    with pytest.raises(RunError, match="cannot be written"):
        invented(small()).save(tmp_path / "junk.npz" / "table.npz")


def test_a_table_goes_on_learning_at_its_rate_and_from_the_table_on_in_each_episode():
    learning = small(initial_prices=None)
    invention = invented(learning, last_state=5)
    table = replace(invention, q=invention.q + 20)  # more than it can earn: what is asked is left again
    env = bertrand_v0.parallel_env(preset="calvano", grid_points=4, initial_prices=None, rounds=60, record=True)
    policy = QTablePolicy(table, rate=0.3)
    for _ in range(2):
        found = rounds(env, policy, seed=3)
        q, state, profits = table.q.copy(), 5, [event["profits"] for event in env.events if event["type"] == "round"]
        for asked, earned in zip(found, profits, strict=True):
            assert asked == q[:, state].argmax(axis=1).tolist()
            after = asked[0] * 4 + asked[1]
            for firm in (0, 1):
                target = earned[firm] + 0.95 * q[firm, after].max()
                q[firm, state, asked[firm]] += 0.3 * (target - q[firm, state, asked[firm]])
            state = after
    assert not np.array_equal(q.argmax(axis=2), table.strategies)


def test_a_rate_of_nothing_is_the_table_and_exploration_is_as_often_as_is_said():
    table = load_table("calvano")
    env = bertrand_v0.parallel_env(preset="calvano", rounds=400, record=True)
    still, explored = (QTablePolicy(table, **o) for o in ({}, {"rate": 1e-9, "exploration": 0.2}))
    usual = rounds(env, still, seed=1)
    assert rounds(env, QTablePolicy(table, rate=0.0), seed=1) == usual
    # Both learn at next to no rate: what differs from the table's answer is drawn.
    found = rounds(env, explored, seed=1)
    states = [past[0] * 15 + past[1] for past in found]
    drawn = [
        price != table.strategies[firm, state]
        for state, prices in zip(states, found[1:], strict=False)
        for firm, price in enumerate(prices)
    ]
    assert np.mean(drawn) == pytest.approx(0.2 * 14 / 15, abs=0.04)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 1.5}, "rate=1.5: must be a share, from 0 to 1"),
        ({"rate": True}, "rate=True: must be a share"),
        ({"rate": 0.1, "exploration": "often"}, "exploration='often': must be a share"),
        ({"exploration": 0.1}, "means nothing without a rate"),
    ],
)
def test_impossible_rates_are_refused(options, said):
    with pytest.raises(SettingsError, match=said):
        check("bertrand", "calvano", options)


@pytest.mark.parametrize("kind", ["mediation", "contracting", "reports"])
def test_whoever_only_prices_takes_no_part_in_elections_and_reports_nothing(kind):
    fines = {"powers": ["fine"], "on": ["choices"], "fine": 1.0, "leniency": 0.5}
    fields = {"regulator": fines} if kind == "reports" else {"mechanism": kind}
    env = bertrand_v0.parallel_env(preset="calvano", rounds=5, record=True, **fields)
    answers = []

    class Told(QTablePolicy):
        def decide(self, request):
            answers.append((request.info["slots"].phase, super().decide(request)))
            return answers[-1][1]

    table = Told(load_table("calvano"))
    ruler = scripted.make("regulator/always", action="fine")
    seats = {agent: ruler if agent == SEAT else table for agent in env.possible_agents}
    play(env, seats, seed=1)
    choices = [event for event in env.events if event["type"] == "choice"]
    assert not any(event["flags"] for event in choices)
    if kind == "reports":
        assert [answer for phase, answer in answers if phase == "report"] == [{"choice": 0}] * 10
    else:
        assert len({event["phase"] for event in choices}) > 2
        (election,) = [event for event in env.events if event["type"] == "mechanism" and event["phase"] == "vote"]
        assert election["approvals"] == [0, 0]

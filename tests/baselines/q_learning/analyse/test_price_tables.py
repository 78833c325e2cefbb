"""Tables of cuts by price, against deviations that are followed one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

from llm_coop_envs.baselines.q_learning.analyse.analysis import limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.price_tables import mean_strategies, price_tables, spread
from llm_coop_envs.baselines.q_learning.analyse.responses import impulse_response
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.baselines.q_learning.analyse.tables import load_table
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.reproduce.published import compare_tables, published


@pytest.fixture(scope="module")
def run():
    """Strategies by chance that are made to stand still at a pair of prices, and one that does not."""
    settings = QLearningSettings()
    game, rng = settings.game(), np.random.default_rng(1)
    strategies = []
    for asked in [(9, 9), (9, 9), (9, 11), (12, 10), (3, 3)]:
        one = rng.integers(15, size=(2, 225))
        one[:, game.action(asked)] = asked
        strategies.append(one)
    moving = np.zeros((2, 225), dtype=np.int64)
    moving[:, 0] = 1
    strategies.append(moving)
    starts = [int(game.action(asked)) for asked in [(9, 9), (9, 9), (9, 11), (12, 10), (3, 3), (0, 0)]]
    cycles = [limit_cycle(game, *pair) for pair in zip(strategies, starts, strict=True)]
    rows = [{"session": number} for number in range(len(cycles))]
    return StoredRun(settings, game, rows, strategies, cycles)


def test_each_cell_is_the_mean_over_its_deviations(run):
    tables = price_tables(run)
    assert tables.share.tolist() == pytest.approx(np.bincount([9, 9, 9, 9, 9, 11, 12, 10, 3, 3], minlength=15) / 10)
    for before, to in [(9, 2), (9, 13), (11, 4), (3, 0), (9, 9)]:
        found = {"answer": [], "own": [], "worth": [], "unprofitable": []}
        for strategies, cycle in zip(run.strategies[:-1], run.cycles[:-1], strict=True):
            for firm in (0, 1):
                if cycle.choices[0, firm] != before:
                    continue
                one = impulse_response(run.game, strategies, cycle, firm=firm, price=to)
                if to == before:
                    one = SimpleNamespace(prices=np.ones((2, 2)), value=1.0, value_before=1.0, firm=firm)
                change = one.prices[1] / one.prices[0] - 1.0
                found["answer"].append(change[1 - firm])
                found["own"].append(change[firm])
                found["worth"].append(one.value / one.value_before - 1.0)
                found["unprofitable"].append(one.value < one.value_before)
        for name, values in found.items():
            assert tables.means[name][before, to] == pytest.approx(np.mean(values), abs=1e-12), (before, to, name)
    assert np.isnan(tables.means["answer"][5]).all()


def test_an_error_counts_sessions_not_firms(run):
    tables = price_tables(run)
    # Both deviations from (3, 3) are of one session; there is no spread to be seen.
    assert tables.errors["worth"][9, 2] > 0.0
    off = tables.errors["answer"][3, 0]
    assert np.isnan(off) or off == pytest.approx(0.0, abs=1e-12)


def test_cells_are_compared_with_what_is_printed(run):
    printed = published()["price_tables"]
    assert [len(row) for row in printed["answer"]] == list(range(6, 16))
    assert sum(printed["share"]) == pytest.approx(0.99)
    cells = compare_tables(run)
    assert [len(found) for found in cells.values()] == [10 + 11 + 12 + 13] * 4
    assert cells["answer"][0].value == printed["answer"][4][0]


def test_spread_and_mean_strategies_are_of_the_commonest_price(run):
    found = spread(run, symmetric=True)
    assert (found.price, found.sessions) == (run.game.prices[0, 9], 2)
    assert found.deviator.shape == found.rival.shape == (11, 5)
    assert found.deviator[0].tolist() == [0.0] * 5
    assert found.rival[1].tolist() == [0.0] * 5
    assert (found.deviator[:, 1] <= found.deviator[:, 4]).all()
    assert spread(run, symmetric=False).sessions == 3
    place, count, means = mean_strategies(run)
    assert (place, count) == (9, 2)
    assert means[:, 9, 9].tolist() == [9.0, 9.0]
    assert np.allclose(means[1].ravel(), np.mean(run.strategies[:2], axis=0)[1])


def test_other_games_are_refused(run):
    table = load_table("calvano")
    lonely = StoredRun(table.settings, table.game, [], [run.strategies[-1]], [run.cycles[-1]])
    with pytest.raises(ValueError, match="no session"):
        spread(lonely, symmetric=True)
    with pytest.raises(ValueError, match="no session"):
        mean_strategies(lonely)

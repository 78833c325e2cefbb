"""What firms remember: the window and the blocks."""

import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.bertrand.history import History, others
from llm_coop_envs.bertrand.rules import RoundOutcome
from llm_coop_envs.bertrand.slots import Bin, PastRow


def settled(number, firms=2):
    """Prices that say which round and which firm they belong to."""
    prices = tuple(float(10 * number + i) for i in range(firms))
    return RoundOutcome(
        prices=prices,
        demand=tuple(p + 0.5 for p in prices),
        profits=tuple(-p for p in prices),
        positions=prices,
        gains=prices,
        together=True,
    )


def filled(rounds, window=20, bin_size=20, bins=20, ask=()):
    history = History(window, bin_size, bins)
    for number in range(1, rounds + 1):
        history.add(settled(number))
        if number in ask:
            history.rows(0), history.blocks(0)
    return history


def test_others():
    assert [others((1.0, 2.0, 3.0), i) for i in range(3)] == [(2.0, 3.0), (1.0, 3.0), (1.0, 2.0)]


def test_a_row_is_the_firms_own_view():
    assert filled(3).rows(1)[-1] == PastRow(3, 31.0, 31.5, -31.0, (30.0,))


@pytest.mark.parametrize(("rounds", "first"), [(0, None), (1, 1), (20, 1), (21, 2), (500, 481)])
def test_the_window_holds_the_latest_rounds(rounds, first):
    rows = filled(rounds).rows(0)
    assert [row.round for row in rows] == ([] if first is None else list(range(first, rounds + 1)))


@pytest.mark.parametrize("window", [0, 1, 7, 500])
def test_other_windows(window):
    rows = filled(30, window=window, bins=0).rows(0)
    assert [row.round for row in rows] == list(range(31 - min(window, 30), 31))


@pytest.mark.parametrize("played", [0, 19, 20, 39, 40, 400, 419, 420, 500])
def test_blocks_are_complete_and_counted_from_round_one(played):
    blocks = filled(played).blocks(0)
    complete = played // 20
    spans = [(20 * k + 1, 20 * k + 20) for k in range(max(0, complete - 20), complete)]
    assert [(b.first, b.last) for b in blocks] == spans


def test_the_last_block_may_be_the_window_itself():
    """As published: in rounds 21, 41, ... the last block averages the very rounds that are shown one by one."""
    history = filled(40)
    assert [row.round for row in history.rows(0)] == list(range(21, 41))
    assert (history.blocks(0)[-1].first, history.blocks(0)[-1].last) == (21, 40)


def test_a_block_is_a_mean():
    mean = sum(range(210, 401, 10)) / 20
    assert filled(40).blocks(1)[-1] == Bin(21, 40, mean + 1, mean + 1.5, -mean - 1, (mean,))


def test_when_somebody_asks_makes_no_difference():
    for rounds in (5, 40, 41, 457):
        often = filled(rounds, ask=range(1, rounds + 1))
        seldom = filled(rounds, ask=(3, 100))
        never = filled(rounds)
        for firm in (0, 1):
            assert often.rows(firm) == seldom.rows(firm) == never.rows(firm)
            assert often.blocks(firm) == seldom.blocks(firm) == never.blocks(firm)


def test_no_blocks_if_none_are_wanted():
    assert filled(100, bins=0).blocks(0) == ()


@pytest.mark.parametrize("rounds", [0, 1, 25, 457])
def test_restored_from_its_prices(rounds):
    history, again = filled(rounds), History(20, 20, 20)
    again.add(settled(99))
    again.rows(0), again.blocks(0)
    by_price = {settled(k).prices: settled(k) for k in range(1, rounds + 1)}
    again.restore(rounds, [by_price[tuple(p)] for p in history.prices()])
    for number in range(rounds + 1, rounds + 30):
        assert again.played == history.played
        for firm in (0, 1):
            assert again.rows(firm) == history.rows(firm)
            assert again.blocks(firm) == history.blocks(firm)
        history.add(settled(number))
        again.add(settled(number))


def test_memory_is_bounded():
    assert len(filled(5000).prices()) == 420
    assert len(filled(5000, window=1000).prices()) == 1000
    assert len(filled(5000, window=0, bins=0).prices()) == 1


def test_a_block_of_one_round_shows_the_price_of_that_round():
    env = bertrand_v0.parallel_env(
        **{"rounds": 6, "talk": False, "collusion_window": 0, "observation_noise": 0.3},
        **{"bin_size": 1, "bins": 3, "statistics": "every_round", "history_window": 3},
    )
    env.reset(seed=0)
    for _ in range(4):
        *_, infos = env.step({name: {"choice": 1.6} for name in env.agents})
    slots = infos["firm_0"]["slots"]
    by_round = {row.round: row.rival_prices for row in slots.history}
    assert [block.rival_prices for block in slots.bins] == [by_round[block.last] for block in slots.bins]
    assert len(slots.bins) == 3
    assert by_round[2] != (1.6,)

import numpy as np
import pytest
from crowds import crowds
from hypothesis import given, settings

from llm_coop_envs.evacuation.injury import ancestor_attributes, crush, pressure, published_attributes
from llm_coop_envs.evacuation.placement import traits
from llm_coop_envs.evacuation.room import build_room, wall_exits


def test_published_attributes_of_seed_0():
    attributes = published_attributes(traits(4)[0], np.random.default_rng(0))
    assert attributes.level.round(3).tolist() == [3.126, 3.126, 2.126, 2.126]
    assert attributes.pressure_limit.round(2).tolist() == [17.87, 17.87, 15.87, 15.87]
    assert attributes.count_limit.round(2).tolist() == [26.64, 26.64, 23.64, 23.64]


@pytest.mark.parametrize("seed", range(5))
def test_the_published_rule_never_strikes(seed):
    # Eight neighbours that are stronger by 1: the greatest possible pressure.
    attributes = published_attributes(np.array([1] + [0] * 8), np.random.default_rng(seed))
    room = build_room(9, 9, wall_exits(9, 9), ())
    cells = room.cells([(4, 4), *((4 + d, 4 + r) for d in (-1, 0, 1) for r in (-1, 0, 1) if (d, r) != (0, 0))])
    everyone = np.arange(9)
    press = pressure(room, cells, attributes.level, present=everyone, persons=everyone)
    assert press[0] == pytest.approx(8.0)
    assert press.max() == press[0]
    assert 13.4 < attributes.pressure_limit[0] < 18.8
    _, overtaken, disabled = crush(
        press, attributes.pressure_limit, np.zeros(9, dtype=np.int64), attributes.count_limit
    )
    assert not overtaken.any()
    assert not disabled.any()


def test_the_ancestors_groups_for_100_people():
    attributes = ancestor_attributes(100)
    groups = [slice(0, 30), slice(30, 60), slice(60, 80), slice(80, 100)]
    assert [set(attributes.pressure_limit[g]) for g in groups] == [{20.0}, {15.0}, {18.0}, {15.0}]
    assert [set(attributes.count_limit[g]) for g in groups] == [{30.0}, {28.0}, {25.0}, {23.0}]
    levels = [np.bincount(attributes.level[g].astype(int), minlength=7)[1:].tolist() for g in groups]
    assert levels == [[0, 3, 3, 9, 9, 6], [3, 3, 6, 9, 6, 3], [2, 4, 6, 4, 2, 2], [4, 6, 6, 2, 2, 0]]
    assert (np.diff(attributes.level[:30]) >= 0).all()


@pytest.mark.parametrize("people", [1, 2, 7, 47, 264, 1000])
def test_nobody_is_dropped(people):
    attributes = ancestor_attributes(people)
    assert len(attributes.level) == len(attributes.pressure_limit) == len(attributes.count_limit) == people
    assert set(attributes.level) <= {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}


def test_odd_people_go_to_the_largest_remainders():
    # Shares of 7: 2.1, 2.1, 1.4, 1.4; the third group comes first among the largest remainders.
    assert ancestor_attributes(7).count_limit.tolist() == [30, 30, 28, 28, 25, 25, 23]


@given(crowds())
@settings(max_examples=60)
def test_pressure_is_the_sum_of_differences_around(crowd):
    room, cells, _ = crowd
    level = np.random.default_rng(len(cells)).integers(1, 7, len(cells)).astype(float)
    present = np.arange(len(cells))[::2]
    row, col = room.row_col(cells)
    for person in present.tolist():
        near = [i for i in present if abs(row[i] - row[person]) <= 1 and abs(col[i] - col[person]) <= 1]
        expected = sum(level[i] - level[person] for i in near)
        assert pressure(room, cells, level, present=present, persons=np.array([person]))[0] == pytest.approx(expected)


def test_crush_overtakes_above_the_limit_and_disables_when_the_count_is_full():
    press = np.array([20.0, 20.1, 30.0, 30.0])
    limits = np.array([20.0, 20.0, 15.0, 15.0])
    count, overtaken, disabled = crush(press, limits, np.array([0, 0, 21, 22]), np.array([30.0, 30.0, 23.0, 23.0]))
    assert count.tolist() == [0, 1, 22, 23]
    assert overtaken.tolist() == [False, True, True, False]
    assert disabled.tolist() == [False, False, False, True]


def test_crush_as_published_never_disables_with_a_real_limit():
    count, overtaken, disabled = crush(np.array([30.0]), np.array([17.9]), np.array([26]), np.array([26.64]))
    assert (count.tolist(), overtaken.tolist(), disabled.tolist()) == ([27], [False], [False])

import math

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.interface.actions import ChoiceReader

DISCRETE = ChoiceReader(spaces.Discrete(5), 3)
CONTINUOUS = ChoiceReader(spaces.Box(0, 1, (1,), np.float64), 3)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (3, 3),
        (np.int64(3), 3),
        (np.array(3), 3),
        (np.array([3]), 3),
        (3.0, 3),
        (np.float32(3), 3),
        (3.5, -1),
        (5, -1),
        (-1, -1),
        (True, -1),
        (None, -1),
        ("3", -1),
        (np.array([3, 3]), -1),
        (math.nan, -1),
        (math.inf, -1),
        (10**400, -1),
    ],
)
def test_discrete_numbers(raw, value):
    assert DISCRETE.number(raw) == value


@pytest.mark.parametrize(
    ("raw", "value"), [(0.25, 0.25), (1, 1.0), (np.array([0.5]), 0.5), (math.inf, math.inf), (-2, -2.0)]
)
def test_continuous_numbers(raw, value):
    assert CONTINUOUS.number(raw) == value


@pytest.mark.parametrize("raw", [None, "0.5", True, [0.5], math.nan, 10**400])
def test_what_is_no_number_is_nan(raw):
    assert math.isnan(CONTINUOUS.number(raw))


def test_masks_off_turn_leave_one_choice():
    legal = np.array([[0, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], dtype=np.int8)
    masks = DISCRETE.masks(legal, np.array([0, 2]), everyone=False)
    assert masks[0].tolist() == [0, 1, 1, 0, 0]
    assert masks[1].sum() == 1
    assert masks[2].tolist() == [0, 0, 0, 0, 1]
    assert DISCRETE.masks(None, np.array([], dtype=np.intp), everyone=False).sum(axis=1).tolist() == [1, 1, 1]
    assert DISCRETE.masks(None, np.arange(3), everyone=True).all()
    assert CONTINUOUS.masks(None, np.arange(3), everyone=True) is None


@given(st.integers(1, 30), st.data())
def test_settling_keeps_the_legal_and_replaces_the_rest(n, data):
    reader = ChoiceReader(spaces.Discrete(4), n)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    legal = rng.integers(0, 2, (n, 4)).astype(np.int8)
    legal[:, 2] = 1
    who = np.flatnonzero(rng.random(n) < 0.7)
    values = rng.integers(-2, 6, len(who))
    masks = reader.masks(legal if rng.random() < 0.8 else None, who, everyone=len(who) == n)
    before = values.copy()
    usable, bad = reader.settle(values, who, masks, lambda w: np.full(len(w), 2), None)
    expected = [0 <= v < 4 and bool(masks[i, v]) for i, v in zip(who, values, strict=True)]
    assert usable.tolist() == [v if good else 2 for v, good in zip(values, expected, strict=True)]
    assert (bad is None) == all(expected)
    if bad is not None:
        assert bad.tolist() == [not good for good in expected]
    assert values.tolist() == before.tolist()

from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.util.shares import divide


@given(st.integers(0, 500), st.lists(st.floats(0.01, 100), min_size=1, max_size=6))
def test_dividing_by_shares(total, shares):
    counts = divide(total, shares)
    assert sum(counts) == total
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - total * share / sum(shares)) < 1 + 1e-6


def test_earlier_ones_win_ties():
    assert divide(5, [1, 1]) == [3, 2]
    # 1.5 and 0.5, but not quite in binary fractions.
    assert divide(2, [0.3, 0.1]) == [2, 0]
    assert divide(4, [0.15, 0.25]) == [2, 2]
    assert divide(100, [0.3, 0.3, 0.2, 0.2]) == [30, 30, 20, 20]

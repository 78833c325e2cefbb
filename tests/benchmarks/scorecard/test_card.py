"""The unit of a scorecard's intervals, reliability and comparisons is the set of parameters, not the seed."""

import pytest
from invoking import invoke

from llm_coop_envs.benchmarks.scorecard import suite
from llm_coop_envs.benchmarks.scorecard.card import interval_of_sets, read_card, reliability
from llm_coop_envs.statistics.intervals import exact_interval


def test_more_seeds_say_no_more_of_who_plays_alike_in_them(tmp_path, beauty, monkeypatch):
    cards = []
    for seeds in (1, 2):
        monkeypatch.setitem(suite.SIZES, "quick", suite.Size(parameters=2, seeds=seeds))
        folder = tmp_path / str(seeds)
        result = invoke(
            *("bench", "--policy", "follower", "--only", "kbc-deviation", "--quick", "--held-out", 3),
            *("--workers", 1, "-o", folder),
        )
        assert result.exit_code == 0, result.stderr
        cards.append({line["tendency"]: line for line in read_card(folder)["lines"]})
    once, twice = cards
    line, longer_line = once["response to deviation"], twice["response to deviation"]
    assert (line["scored"], longer_line["scored"]) == (4, 8)
    assert line["low"] < line["score"] < line["high"]  # sets differ, seeds do not
    for name, other in once.items():
        for number in ("score", "low", "high", "reliability"):
            assert twice[name][number] == pytest.approx(other[number], abs=1e-12), (name, number)


def test_sets_that_came_to_the_same_throughout_have_the_exact_interval_and_others_no_other_kind():
    ones = interval_of_sets([[1.0, 1.0]] * 10)
    assert (ones.mean, ones.low, ones.high) == pytest.approx((1.0, *exact_interval(10, 10)))
    assert ones.low < exact_interval(20, 20)[0]
    mixed = [[1.0, 1.0]] * 6 + [[0.0, 0.0]] * 4
    assert interval_of_sets(mixed).low == pytest.approx(exact_interval(6, 10)[0])
    apart = interval_of_sets([[0.0, 1.0], *mixed])
    assert exact_interval(6, 11)[0] < apart.low < exact_interval(7, 11)[0]
    # Four sets near 1 had 1.00 to 1.00 where four at 1 had .40 to 1.
    assert interval_of_sets([[1.0, 0.999]] * 4).low == pytest.approx(interval_of_sets([[1.0]] * 4).low, abs=0.001)


def test_where_scores_are_missing_the_score_is_still_their_mean():
    sets = [[0.2, 0.4], [0.9], [0.5, 0.7]]
    interval = interval_of_sets(sets)
    assert interval.mean == pytest.approx((0.2 + 0.4 + 0.9 + 0.5 + 0.7) / 5)
    assert interval.low < interval.mean < interval.high
    assert interval_of_sets([[1.0, 1.0], [1.0], [1.0]]).low == pytest.approx(exact_interval(3, 3)[0])
    assert interval_of_sets([]) is None
    assert interval_of_sets([[0.2, 0.4]]).low is None


def test_the_seeds_of_a_set_stay_in_one_half():
    values = [0.0, 0.2, 0.7, 1.0, 0.4]
    once = reliability([[value] for value in values])
    assert reliability([[value, value] for value in values]) == pytest.approx(once)
    assert reliability([[0.1, 0.9]] * 4) == 1.0
    assert reliability([[0.0, 1.0]] * 3) is None

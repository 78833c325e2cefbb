"""The unit of a scorecard's intervals, reliability and comparisons is the set of parameters, not the seed."""

import pytest
from invoking import invoke

from llm_coop_envs.benchmarks.scorecard import suite
from llm_coop_envs.benchmarks.scorecard.card import interval_of_sets, read_card, reliability, summarise


def test_more_seeds_say_no_more_of_who_plays_alike_in_them(tmp_path, beauty, monkeypatch):
    cards = []
    for seeds in (1, 2):
        monkeypatch.setitem(suite.SIZES, "quick", suite.Size(public=1, held_out=4, seeds=seeds))
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


@pytest.mark.parametrize("count", [4, 10, 50])
def test_sets_at_an_end_and_sets_near_it_leave_the_same_doubt(count):
    at, near = interval_of_sets([[1.0]] * count), interval_of_sets([[1.0 - 1e-4 * (k % 2)] for k in range(count)])
    assert near.low == pytest.approx(at.low, abs=0.01)
    assert at.low < 1.0 - 1.0 / count  # another set may be unlike these
    assert (at.high, at.mean) == (1.0, 1.0)
    middle = interval_of_sets([[0.5]] * count)
    assert middle.low < 0.5 < middle.high


def test_missing_scores_count_as_the_worst_and_as_the_best():
    rows = [("held_out", f"set{k}", 0, None if k % 2 else 1.0) for k in range(50)]
    line = summarise([*rows, ("public", "set0", 0, 0.3)])
    assert (line["score"], line["best"], line["public"]) == (0.5, 1.0, 0.3)
    assert (line["scored"], line["episodes"]) == (25, 50)
    assert line["low"] < 0.45
    assert line["high"] == 1.0
    nothing = summarise([("held_out", f"set{k}", 0, None) for k in range(50)])
    assert nothing["score"] is None
    assert (nothing["low"], nothing["high"]) == (0.0, 1.0)
    assert interval_of_sets([]) is None
    assert interval_of_sets([[0.2, 0.4]]).low is None


def test_the_seeds_of_a_set_stay_in_one_half():
    values = [0.0, 0.2, 0.7, 1.0, 0.4]
    once = reliability([[value] for value in values])
    assert reliability([[value, value] for value in values]) == pytest.approx(once)
    assert reliability([[0.1, 0.9]] * 4) == 1.0
    assert reliability([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.2, 0.8]]) == 1.0  # their means are alike
    assert reliability([[0.0, 1.0]] * 3) is None

"""The documentation's page on statistics is what was recorded, the limits hold in it, and a part comes out again."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.benchmarks.doc_pages.interval_methods import METHODS, PRINTED
from llm_coop_envs.benchmarks.doc_pages.statistics import (
    MEAN_SIZES,
    MEAN_WORLDS,
    PAIR_WORLDS,
    RATES,
    RECORD,
    SIZES,
    WORLDS,
    coverage_of_rate,
    fast_p,
    page,
    simulate,
    simulate_means,
    simulate_rounds,
)
from llm_coop_envs.statistics.comparison import permutation_p
from llm_coop_envs.statistics.intervals import FEW

DOCS = Path(__file__).parents[3] / "docs" / "statistics.md"
FOUND = json.loads(RECORD.read_text(encoding="utf-8"))
PROMISED = [name for name, world in WORLDS.items() if world.promised]


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.statistics > docs/statistics.md"
    )
    assert "{{" not in page()


@pytest.mark.parametrize("kind", ["paired", "unpaired"])
def test_the_limits_hold_where_they_are_promised(kind):
    assert PROMISED == ["normal", "skewed", "clustered"]
    assert FOUND["repeats"] >= 4_000
    for name in PROMISED:
        for n in SIZES:
            cell = FOUND[kind][name][str(n)]
            assert 0.93 <= cell["coverage"] <= 0.97, (name, n)
            assert cell["false"] <= 0.06, (name, n)
            assert 0.93 <= cell.get("effect", 0.95) <= 0.97


@given(st.lists(st.tuples(*[st.floats(-9, 9).map(lambda x: round(x, 1))] * 2), min_size=2, max_size=5))
def test_the_simulated_test_is_the_one_that_is_printed(pairs):
    first, second = np.array(pairs).T
    assert fast_p((second - first)[None])[0] == pytest.approx(permutation_p(second - first))
    if len(np.unique(np.hstack([first, second]))) == 2 * len(first):  # how ties are rounded differs
        assert fast_p(first[None], second[None])[0] == pytest.approx(permutation_p(first, second))


def test_a_part_comes_out_again():
    """Other draws, fewer of them: within four standard errors of what is recorded."""
    for name, n, paired in (("normal", 5, True), ("skewed", 5, False), ("clustered", 8, True), ("stretched", 8, True)):
        shares, recorded = (
            simulate(name, n, paired, 400, seed=1),
            FOUND["paired" if paired else "unpaired"][name][str(n)],
        )
        for kind, share in shares.items():
            error = (recorded[kind] * (1 - recorded[kind]) / 400) ** 0.5
            assert share == pytest.approx(recorded[kind], abs=4 * error + 1e-9), (name, n, kind)


@pytest.mark.parametrize("name", MEAN_WORLDS)
def test_single_means_do_as_well_as_the_page_says(name):
    """In what was recorded, and in other draws, give or take four standard errors of 1,000 experiments."""
    for n in MEAN_SIZES:
        by_method = FOUND["means"][name][str(n)], simulate_means(name, n, 1_000, 1)
        recorded, other = (methods[PRINTED] for methods in by_method)
        assert other["coverage"] == pytest.approx(recorded["coverage"], abs=0.05)
        for measured in (recorded, other):
            assert measured["outside"] == 0.0
            assert measured["jump"] < 1.0
            assert n >= FEW or measured["empty"] == 0.0
        if name in PROMISED:
            assert 0.93 <= recorded["coverage"] <= 0.97


def test_the_methods_that_were_not_chosen_fail_where_the_page_says():
    skewed, normal = FOUND["means"]["lognormal"], FOUND["means"]["normal"]
    assert all(skewed["5"][method]["outside"] > 0.2 for method in METHODS if method != PRINTED)
    assert all(normal["8"][method]["empty"] > 0.05 for method in METHODS if method != PRINTED)
    assert all(normal["5"][method]["jump"] > 2.0 for method in ("Hall's or Student's", "bootstrap-t"))


def test_rates_are_never_covered_less_than_promised():
    for rate in RATES:
        for n in SIZES:
            assert FOUND["rates"][str(rate)][str(n)] >= 0.95
            assert coverage_of_rate(rate, n) == pytest.approx(FOUND["rates"][str(rate)][str(n)])


@pytest.mark.slow
def test_more_comes_out_again():
    for name in PAIR_WORLDS:
        for paired in (True, False):
            recorded = FOUND["paired" if paired else "unpaired"][name]["8"]
            shares = simulate(name, 8, paired, 600, seed=2)
            for kind, share in shares.items():
                error = (recorded[kind] * (1 - recorded[kind]) * (1 / 600 + 1 / FOUND["repeats"])) ** 0.5
                assert share == pytest.approx(recorded[kind], abs=4 * error + 1e-9), (name, paired, kind)
    assert simulate_rounds(5, 100, seed=3) == pytest.approx(FOUND["rounds"]["5"], abs=0.2)


def test_rounds_are_no_units():
    assert max(FOUND["rounds"].values()) < 0.6

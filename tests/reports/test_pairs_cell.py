"""The number of pairs that a next study needs, with the ends of the effect's interval."""

import re

import numpy as np

from llm_coop_envs.reports.contrast_tables import _pairs_cell
from llm_coop_envs.statistics.comparison import Comparison
from llm_coop_envs.statistics.power import pairs_needed


def test_the_smaller_end_of_the_effect_needs_more_pairs():
    rng = np.random.default_rng(0)
    first = rng.normal(size=24)
    for sign in (1, -1):
        second = first + sign * (0.9 + rng.normal(size=24))
        test = Comparison(measure="m", first=tuple(first.tolist()), second=tuple(second.tolist()))
        cell = _pairs_cell(test, 0.8)
        fewest, most = (int(number.replace(",", "")) for number in re.fullmatch(r"(.+) to (.+)", cell.below).groups())
        assert fewest < int(cell.text.replace(",", "")) < most
        ends = sorted(map(abs, (test.effect.low, test.effect.high)))
        assert (most, fewest) == tuple(pairs_needed(end, 0.8) for end in ends)


def test_an_effect_that_may_be_none_has_no_upper_end():
    values = np.random.default_rng(0).permutation(np.linspace(-1, 1, 12))
    test = Comparison(measure="m", first=(0.0,) * 12, second=tuple((0.2 + values).tolist()))
    assert test.effect.low < 0 < test.effect.high
    assert re.fullmatch(r"\S+ or more", _pairs_cell(test, 0.8).below)

"""Choices and what was heard before them, against all ways to deal what was heard."""

import itertools

import numpy as np
import pytest

from llm_coop_envs.measures.information import InformedChoice, information_measures, is_same

CHOICES = [
    InformedChoice(None, 3.0, (3.0, 7.0)),
    InformedChoice(3.0, 5.0, (7.0,)),
    InformedChoice(5.0, 4.0, (5.0 + 1e-6, 2.0, 5.0)),
    InformedChoice(4.0, 4.0, (1.0,)),
    InformedChoice(4.0, 1.00001, (1.0,)),
]


def by_hand(choices, count):
    """A share, and its mean over all ways to deal what was heard, one by one."""
    dealt = [
        np.mean([count(choice.previous, choice.chosen, heard) for choice, heard in zip(choices, order, strict=True)])
        for order in itertools.permutations([choice.heard for choice in choices])
    ]
    return float(dealt[0]), pytest.approx(float(np.mean(dealt)))


def near(chosen, heard):
    return any(abs(chosen - value) <= 2e-5 for value in heard)


def test_by_chance_is_the_mean_over_all_ways_to_deal_what_was_heard():
    numbers = information_measures(CHOICES, numbers=True)
    again = CHOICES[1:]
    assert numbers == {
        "heard_choices": 5,
        **dict(
            zip(("followed_share", "followed_by_chance"), by_hand(CHOICES, lambda _, c, h: near(c, h)), strict=True)
        ),
        **dict(
            zip(
                ("moved_share", "moved_by_chance"),
                by_hand(again, lambda b, c, h: (c - b) * (np.mean(h) - b) > 0),
                strict=True,
            )
        ),
    }
    options = information_measures(CHOICES, numbers=False)
    moved = by_hand(again, lambda b, c, h: c != b and near(c, h))
    assert (options["moved_share"], options["moved_by_chance"]) == moved


def test_where_all_heard_the_same_there_is_no_control():
    alike = [InformedChoice(1.0, 2.0, (2.0,)), InformedChoice(2.0, 2.0, (2.0,))]
    measures = information_measures(alike, numbers=True)
    assert (measures["followed_share"], measures["followed_by_chance"]) == (1.0, None)
    nothing = information_measures([], numbers=True)
    assert nothing["heard_choices"] == 0
    assert nothing["followed_share"] is nothing["moved_by_chance"] is None


def test_followed_means_the_same_as_what_was_heard():
    rng = np.random.default_rng(0)
    steps = (0.0, 0.5e-5, 0.99e-5, 1e-5, 1.01e-5, 2e-5, 1e-9, -1e-5, 0.3)
    chosen = rng.choice([0.0, 1e-9, -2.0, 1.8, 97.0], 500)
    heard = rng.choice(chosen[:20], 500) * (1 + rng.choice(steps, 500))
    choices = [InformedChoice(None, float(c), (float(h),)) for c, h in zip(chosen, heard, strict=True)]
    alone = [information_measures([choice], numbers=True)["followed_share"] for choice in choices]
    followed = [is_same(choice.chosen, choice.heard[0]) for choice in choices]
    assert alone == followed
    assert information_measures(choices, numbers=True)["followed_share"] == np.mean(followed)
    assert 0 < np.mean(followed) < 1


def test_a_number_in_other_digits_is_no_move():
    third = 1 / 3
    stays = [InformedChoice(third, 0.333333, (0.9,)), InformedChoice(third, 0.333334, (0.1, 0.2))]
    assert information_measures(stays, numbers=True)["moved_share"] == 0.0
    assert information_measures(stays, numbers=True)["moved_by_chance"] == 0.0
    alike = [InformedChoice(third, 0.9, (0.333333,))]
    assert information_measures(alike, numbers=True)["moved_share"] is None
    moves = [InformedChoice(third, 0.5, (0.9,)), InformedChoice(third, 0.2, (0.1,))]
    assert information_measures(moves, numbers=True)["moved_share"] == 1.0

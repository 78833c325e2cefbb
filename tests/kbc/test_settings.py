import json
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc.settings import KBCSettings, read_fraction


def test_defaults_are_the_protocol_of_the_released_program():
    s = KBCSettings()
    assert (s.players, s.low, s.high, s.ratio, s.offset) == (24, 0, 100, Fraction(2, 3), 0)
    assert (s.choices, s.winner_rule, s.reward_rule, s.unit, s.currency) == (
        "integer",
        "nearest",
        "independent",
        100,
        "dollars",
    )
    assert (s.session, s.exchanges, s.order, s.groups, s.personas) == ("nested", 3, "shuffled", None, ())
    assert (s.talk, s.talk_turns, s.rounds, s.history, s.tolerance) == (True, 2, 5, 20, Fraction(1, 2))
    assert (s.persona_from, s.persona_in_talk) == (0, True)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("two_thirds", {}),
        (
            "shall_we_talk",
            {
                "session": "single",
                "talk_turns": 2,
                "order": "fixed",
                "winner_rule": "first_value",
                "reward_rule": "amplified",
                "unit": 1,
                "currency": "mark",
            },
        ),
        ("half", {"ratio": Fraction(1, 2)}),
        ("near_half", {"ratio": Fraction(51, 100)}),
        ("half_plus_five", {"ratio": Fraction(1, 2), "offset": Fraction(5)}),
        (
            "large_scale",
            {
                "players": 1000,
                "choices": "real",
                "winner_rule": "tolerance",
                "tolerance": Fraction(1, 2),
                "unit": 1,
                "currency": "point",
                "session": "repeated",
                "rounds": 5,
                "talk": False,
            },
        ),
    ],
)
def test_presets(preset, expected):
    assert KBCSettings.build(preset) == KBCSettings(**expected)


def test_every_preset_is_listed_above():
    assert set(KBCSettings.presets) == {
        "two_thirds",
        "shall_we_talk",
        "half",
        "near_half",
        "half_plus_five",
        "large_scale",
    }


@pytest.mark.parametrize(
    "written", [Fraction(2, 3), "2/3", " 2/3 ", [2, 3], (4, 6)], ids=["Fraction", "text", "spaces", "list", "pair"]
)
def test_a_ratio_may_be_written_in_many_ways(written):
    assert KBCSettings(ratio=written).ratio == Fraction(2, 3)


@pytest.mark.parametrize(
    ("written", "exact"),
    [(0.51, Fraction(51, 100)), ("0.51", Fraction(51, 100)), (1, Fraction(1)), (0.1, Fraction(1, 10))],
)
def test_a_float_is_the_decimal_it_is_printed_as(written, exact):
    assert read_fraction("ratio", written) == exact


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=1e-6, max_value=1e6).map(lambda x: round(x, 6)))
def test_floats_are_read_as_printed(value):
    assert read_fraction("offset", value) == Fraction(repr(value))


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        True,
        "two thirds",
        "1e999999999",
        "1/0",
        "",
        [2],
        [2, 3, 4],
        [2.0, 3],
        [True, 3],
        [1, 0],
        float("nan"),
        float("inf"),
        Fraction(1, 10**18 + 1),
        Fraction(10**18 + 1),
        object,
    ],
)
def test_what_is_no_fraction_is_refused(wrong):
    with pytest.raises(SettingsError, match=r"^ratio="):
        KBCSettings(ratio=wrong)


def test_terms_of_a_fraction_have_room_for_eighteen_digits():
    assert read_fraction("offset", Fraction(10**18, 10**18 - 1)).numerator == 10**18


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("players", [1, 0, 1_000_001, 2.0, True, "24"]),
        ("low", [0.5, "0", -(10**9) - 1, float("nan")]),
        ("high", [0, -1, 99.5, 100_000, 10**9 + 1]),
        ("ratio", [0, -1, 1001, "-2/3"]),
        ("offset", [10**9 + 1, -(10**9) - 1, "x"]),
        ("choices", ["integers", None]),
        ("winner_rule", ["closest", 1]),
        ("tolerance", [-1, "-0.5"]),
        ("reward_rule", ["shared", None]),
        ("unit", [0, -1, float("inf"), 10**9 + 1, "100"]),
        ("currency", [None, "two\nlines", 3]),
        ("session", ["both", None]),
        ("exchanges", [-1, 1001, 1.5]),
        ("talk_turns", [-1, 1001]),
        ("rounds", [0, 100_001]),
        ("history", [0, 100_001, None]),
        ("order", ["random", None]),
        ("groups", [1, 25, True, [24], [12, 11], [0, 24], [12.0, 12.0], "12,12", 2.0, [True, 23]]),
        ("personas", ["somebody", [""], [" "], ["a", "b"], [1], None]),
        ("persona_from", [-1, True, 100_001]),
        ("persona_in_talk", [1, None]),
        ("talk", [1]),
    ],
)
def test_impossible_values_are_refused_by_name(field, values):
    for value in values:
        with pytest.raises(SettingsError, match=f"^{field}="):
            KBCSettings(**{field: value})


@pytest.mark.parametrize("low", [100, 101, -99_900])
def test_the_range_must_not_be_empty_nor_too_wide_to_count(low):
    with pytest.raises(SettingsError, match=r"^high=100: must be"):
        KBCSettings(low=low)


@pytest.mark.parametrize(
    "possible",
    [
        {"players": 2},
        {"players": 1_000_000},
        {"high": 99_999},
        {"low": -99_899},
        {"low": -(10**9), "high": 10**9, "choices": "real"},
        {"ratio": 1000},
        {"offset": -(10**9)},
        {"offset": 10**9},
        {"exchanges": 1000},
        {"talk_turns": 1000},
        {"rounds": 1},
        {"history": 1},
        {"history": 100_000},
        {"rounds": 100_000},
        {"unit": 10**9},
        {"unit": 1e-9},
        {"currency": ""},
        {"tolerance": 0},
        {"personas": ["a"] * 24},
        {"persona_from": 100_000},
    ],
)
def test_the_ends_of_the_ranges_are_possible(possible):
    KBCSettings(**possible)


@pytest.mark.parametrize(
    ("silent", "field"),
    [
        ({"exchanges": 0}, "exchanges"),
        ({"session": "single", "talk_turns": 0}, "talk_turns"),
        ({"session": "repeated", "talk_turns": 0}, "talk_turns"),
    ],
)
def test_talk_without_time_to_talk_contradicts_itself(silent, field):
    with pytest.raises(SettingsError, match=f"^{field}=0: leaves no time"):
        KBCSettings(**silent)
    assert KBCSettings(**silent, talk=False).talk is False


def test_the_turns_that_a_session_does_not_use_do_not_matter():
    assert KBCSettings(session="nested", talk_turns=0).turns_before(1) == 1
    assert KBCSettings(session="single", exchanges=0).turns_before(0) == 2


@pytest.mark.parametrize(
    ("given_settings", "decisions", "first", "turns"),
    [
        ({}, 4, 0, [0, 1, 1, 1]),
        ({"talk": False}, 4, 0, [0, 0, 0, 0]),
        ({"exchanges": 1}, 2, 0, [0, 1]),
        ({"session": "single"}, 1, 1, [2]),
        ({"session": "single", "talk": False}, 1, 1, [0]),
        ({"session": "repeated", "rounds": 3, "talk_turns": 1}, 3, 1, [1, 1, 1]),
    ],
)
def test_how_a_session_goes(given_settings, decisions, first, turns):
    s = KBCSettings(**given_settings)
    assert (s.decisions, s.first_round) == (decisions, first)
    assert [s.turns_before(i) for i in range(decisions)] == turns


@given(st.integers(2, 200), st.integers(2, 200))
def test_a_number_of_groups_becomes_sizes_as_equal_as_possible(players, groups):
    if groups > players:
        with pytest.raises(SettingsError, match=r"^groups="):
            KBCSettings(players=players, groups=groups)
        return
    sizes = KBCSettings(players=players, groups=groups).groups
    assert len(sizes) == groups
    assert sum(sizes) == players
    assert max(sizes) - min(sizes) <= 1
    assert list(sizes) == sorted(sizes, reverse=True)


def test_sizes_of_groups_are_kept():
    assert KBCSettings(players=6, groups=[1, 2, 3]).groups == (1, 2, 3)


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"ratio": 0.51, "offset": "-1/3", "tolerance": 0.25},
        {"groups": 5, "personas": ["You are calm."]},
        {"preset": "large_scale"},
        {"preset": "shall_we_talk", "players": 3},
    ],
)
def test_settings_survive_json(given_settings):
    s = KBCSettings.build(**given_settings)
    assert KBCSettings.build(**json.loads(json.dumps(s.to_json()))) == s


@given(st.integers(-50, 50), st.integers(1, 200), st.floats(-500, 500))
def test_numbers_and_choices_translate_both_ways(low, width, number):
    s = KBCSettings(low=low, high=low + width)
    choice = s.to_choice(number)
    assert isinstance(choice, int)
    assert 0 <= choice <= width
    named = s.to_number(choice)
    assert s.to_choice(named) == choice
    if low <= number <= low + width:
        assert abs(named - number) <= 0.5
    else:
        assert named in (low, low + width)


def test_halves_round_up():
    assert [KBCSettings().to_choice(x) for x in (0.5, 1.5, 2.5)] == [1, 2, 3]


def test_a_real_choice_is_the_number_inside_the_range():
    s = KBCSettings(choices="real", low=1.5, high=2.5)
    for number, expected in [(2.25, 2.25), (0, 1.5), (9, 2.5)]:
        choice = s.to_choice(number)
        assert choice.shape == (1,)
        assert choice.dtype == np.float64
        assert choice[0] == expected
    assert s.to_number(2.25) == 2.25


def test_settings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        KBCSettings().players = 3

import math
import pickle

import pytest
from toy import ToySettings

from llm_coop_envs.core.settings import ScenarioSettings, plain
from llm_coop_envs.errors import LlmCoopError, MissingExtra, SettingsError
from llm_coop_envs.util.checks import check_int, check_number, suggestion


def test_presets_then_given_fields():
    assert ToySettings.build("tiny").players == 2
    assert ToySettings.build("tiny", players=7).players == 7
    assert ToySettings.build("tiny", players=7).rounds == 3
    assert ToySettings.build(**ToySettings.build("tiny").to_json()) == ToySettings.build("tiny")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("talk", 1, "true or false"),
        ("talk_mode", "chatty", "sequential, simultaneous"),
        ("message_length", 0, "between 1 and 100000"),
        ("message_length", 2.0, "whole number"),
        ("message_length", True, "whole number"),
        ("wording", "", "folder of templates"),
        ("players", 1, "2 or more"),
    ],
)
def test_errors_name_field_and_value(field, value, words):
    with pytest.raises(SettingsError) as caught:
        ToySettings(**{field: value})
    assert str(caught.value).startswith(f"{field}={value!r}: ")
    assert words in str(caught.value)
    assert (caught.value.field, caught.value.value) == (field, value)


def test_unknown_names_come_with_a_suggestion():
    with pytest.raises(SettingsError, match=r"playrs=3: is no setting of ToySettings; did you mean 'players'\?"):
        ToySettings.build(playrs=3)
    with pytest.raises(SettingsError, match="preset='big': is no preset of ToySettings; known are tiny"):
        ToySettings.build("big")


def test_where_nothing_is_known_no_list_is_begun():
    assert suggestion("age", ["sex"]) == "known are sex"
    assert suggestion("age", []) == "there is none"


class Holder:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", True, None])
def test_numbers_are_finite_numbers(value):
    with pytest.raises(SettingsError, match="finite number"):
        check_number(Holder(value), "x")


def test_number_bounds():
    check_number(Holder(0), "x", 0, 1)
    check_number(Holder(1.0), "x", 0, 1)
    with pytest.raises(SettingsError, match="above 0 and at most 1"):
        check_number(Holder(0), "x", 0, 1, above=True)
    with pytest.raises(SettingsError, match="at least 0"):
        check_number(Holder(-1), "x", 0)
    with pytest.raises(SettingsError, match="at most 5"):
        check_number(Holder(6), "x", high=5)


def test_optional_fields_may_be_left_open():
    check_int(Holder(None), "x", 0, optional=True)
    check_number(Holder(None), "x", 0, optional=True)
    with pytest.raises(SettingsError, match="0 or more"):
        check_int(Holder(-1), "x", 0, optional=True)
    with pytest.raises(SettingsError, match="at least 0"):
        check_number(Holder(-1), "x", 0, optional=True)


def test_settings_inside_settings_become_plain_data():
    assert plain({"one": ToySettings(players=3)}) == {"one": ToySettings(players=3).to_json()}


def test_settings_are_frozen_and_errors_survive_a_pickle():
    with pytest.raises(AttributeError):
        ScenarioSettings().talk = False
    error = pickle.loads(pickle.dumps(SettingsError("a", 1, "no")))
    assert (error.field, str(error)) == ("a", "a=1: no")
    extra = pickle.loads(pickle.dumps(MissingExtra("drawing", "render")))
    assert "pip install 'llm-coop-envs[render]' (in a checkout: pip install -e '.[render]')" in str(extra)
    assert isinstance(extra, LlmCoopError)
    assert not isinstance(extra, ImportError)


def test_plain_values():
    from fractions import Fraction

    assert plain({"a": (Fraction(2, 3), [1, None])}) == {"a": ["2/3", [1, None]]}

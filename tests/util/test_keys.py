import copy
import pickle

import pytest

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.keys import Key, read_key, scrub


def test_a_key_shows_itself_nowhere():
    key = Key("very-secret-value")
    for shown in (repr(key), str(key), f"{key}", f"{[key]!r}", f"{ {'k': key} }"):
        assert "very" not in shown
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(key)
    assert key.reveal() == "very-secret-value"


def test_a_key_is_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "  sk-abc\n")
    assert read_key("SOME_KEY", required=True).reveal() == "sk-abc"
    monkeypatch.delenv("SOME_KEY")
    assert read_key("SOME_KEY", required=False) is None
    with pytest.raises(SettingsError, match=r"SOME_KEY.*not set"):
        read_key("SOME_KEY", required=True)


@pytest.mark.parametrize("value", ["two words", "schlüssel", "a\nb", "a\x00b".replace("\x00", "\x01")])
def test_what_cannot_be_a_key_is_refused_unseen(monkeypatch, value):
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(SettingsError) as raised:
        read_key("SOME_KEY", required=True)
    assert value not in str(raised.value)
    assert "SOME_KEY" in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: my-very-own-key.",
        "Incorrect API key provided: sk-proj-abcdEFGH1234_x.",
        "Authorization: Bearer abcdefg.hijk",
        "key gsk_0123456789abcdef is invalid",
        "AIzaSyA0123456789_abcdefghijk is blocked",
        "token from-the-environment leaked",
    ],
)
def test_keys_in_texts_are_hidden(monkeypatch, text):
    monkeypatch.setenv("FOREIGN_TOKEN", "from-the-environment")
    shown = scrub(text, [Key("my-very-own-key"), None])
    assert "[hidden]" in shown
    for secret in ("my-very-own-key", "abcdEFGH1234", "abcdefg.hijk", "0123456789", "from-the-environment"):
        assert secret not in shown


def test_values_of_eight_signs_and_more_are_held_for_secrets(monkeypatch):
    monkeypatch.setenv("ONE_TOKEN", "seven77")
    monkeypatch.setenv("OTHER_TOKEN", "eight888")
    assert scrub("seven77 eight888") == "seven77 [hidden]"


def test_ordinary_words_stay(monkeypatch):
    monkeypatch.setenv("SHORT_KEY", "none")
    text = "There is none of the key-value pairs; ask for a skip-list."
    assert scrub(text, [Key("test")]) == text

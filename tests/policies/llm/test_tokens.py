import base64
import hashlib
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_chats import run
from own_pack import COMPLETE

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies.llm import tokens
from llm_coop_envs.policies.llm.tokens import counter_for, estimate_tokens, surely_within


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("word", 1),
        ("words", 2),
        ("eightxxx", 2),
        ("ninexxxxx", 3),
        ("123", 1),
        ("1234", 2),
        ("7.5", 3),
        ("a 7", 3),
        ("a b", 2),
        ("a\n\nb", 3),
        ("player_3", 4),
        ("über", 2),
        ("価格", 2),
        ("😀", 2),
    ],
)
def test_the_estimate_counts_as_stated(text, count):
    assert estimate_tokens(text) == count


@given(st.text(), st.integers(0, 200))
def test_a_text_that_is_surely_within_has_no_more_bytes(text, limit):
    assert surely_within(text, limit) == (len(text.encode("utf-8", "replace")) <= limit)


def test_models_without_a_tokenizer_at_hand_are_estimated():
    for model in ("llama-3.1-70b", "anthropic/claude-sonnet-4", "scripted", "gpt-nonsense-9"):
        count, name = counter_for(model)
        assert name == "estimate"
        assert count is estimate_tokens


def test_a_models_tokens_on_this_machine_are_counted_digit_by_digit():
    count, name = counter_for("local:smollm2-135m")
    assert name == "estimate by digits"
    # SmolLM2's own tokenizer makes 21 tokens of it.
    assert (estimate_tokens("7.2951 | 466.563 | 2214"), count("7.2951 | 466.563 | 2214")) == (13, 21)


def tables(name):
    """Whether tiktoken and an encoding's table are on this machine."""
    try:
        import tiktoken  # noqa: F401
    except ImportError:
        return False
    return tokens._encoder(name) is not None


needs_tables = pytest.mark.skipif(not tables("cl100k_base"), reason="OpenAI's table cl100k_base is not on this machine")


@needs_tables
def test_openai_models_are_counted_with_their_own_tokenizer(monkeypatch):
    def no_network(*args, **kwargs):
        raise AssertionError("reached for the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    count, name = counter_for("gpt-4-0314")
    assert name == "cl100k_base"
    assert count("hello world") == 2
    assert count("1200.50") == 4
    assert counter_for("openai/gpt-4")[1] == "cl100k_base"


@needs_tables
@pytest.mark.parametrize("pack", COMPLETE)
def test_the_estimate_lies_above_the_count_on_real_prompts_and_not_far(pack):
    count, _ = counter_for("gpt-4-0314")
    envs = (
        kbc_v0.parallel_env(players=6),
        bertrand_v0.parallel_env(preset="team_up", rounds=24, exchanges=1),
        evacuation_v0.parallel_env(preset="small", people=12, rounds=4),
    )
    for env in envs:
        _, chat = run(env, pack=pack)
        # Every seventh: they are much alike.
        for _, request, _ in chat.log[::7]:
            text = request.messages[-1].content
            assert count(text) <= estimate_tokens(text) <= 1.5 * count(text)


def test_tables_are_found_by_their_name_and_checked(tmp_path, monkeypatch):
    url = "https://example.org/table"
    content = b"\n".join(base64.b64encode(bytes([k])) + b" %d" % k for k in range(256))
    path = tmp_path / hashlib.sha1(url.encode()).hexdigest()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(LookupError):
        tokens._load_table(url)
    path.write_bytes(content)
    good = hashlib.sha256(content).hexdigest()
    assert tokens._load_table(url, good)[b"A"] == 65
    assert tokens._load_table(url)[b"A"] == 65
    with pytest.raises(LookupError):
        tokens._load_table(url, "0" * 64)


def test_without_tables_the_estimate_stands_in(monkeypatch, tmp_path):
    pytest.importorskip("tiktoken")
    monkeypatch.setattr(tokens, "_table_folders", lambda: [tmp_path])
    tokens._encoder.cache_clear()
    try:
        assert counter_for("gpt-4-0314") == (estimate_tokens, "estimate")
    finally:
        tokens._encoder.cache_clear()


def test_without_tiktoken_the_estimate_stands_in(monkeypatch):
    monkeypatch.setattr(tokens.importlib.util, "find_spec", lambda name: None)
    assert counter_for("gpt-4-0314") == (estimate_tokens, "estimate")

import importlib.util
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_tools import question

from llm_coop_envs.policies.llm.asking import prices as room
from llm_coop_envs.policies.llm.asking.prices import (
    Price,
    PriceError,
    PriceList,
    likely_prompt_tokens,
    most_answer_tokens,
    most_prompt_tokens,
)
from llm_coop_envs.policies.llm.chat import ChatMessage, ChatRequest, Usage

TABLE = {
    "gpt-9": {
        "input_cost_per_token": 2e-6,
        "output_cost_per_token": 8e-6,
        "cache_read_input_token_cost": 5e-7,
        "max_output_tokens": 16384,
    },
    "long/model": {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "input_cost_per_token_above_200k_tokens": 3e-6,
        "output_cost_per_token_above_200k_tokens": 5e-6,
        "input_cost_per_token_above_128k_tokens": 2e-6,
    },
    "picture": {"output_cost_per_image": 1.0},
}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(room, "_bundled_table", lambda: TABLE)


def write(tmp_path, text, name="prices.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_bundled_table(table):
    price = PriceList.load().price_for("gpt-9")
    assert price == PriceList.load().price_for("openai/gpt-9")
    assert price.cost(Usage(1000, 100)) == pytest.approx(0.0028)
    assert price.cost(Usage(1000, 100, cached_tokens=400)) == pytest.approx(600 * 2e-6 + 400 * 5e-7 + 100 * 8e-6)
    assert price.upper_bound(1000, 100) == pytest.approx(0.0028)
    assert price.longest_answer == 16384
    assert price.source == "litellm's table"


@pytest.fixture
def no_litellm(monkeypatch):
    monkeypatch.setattr(room, "_bundled_table", dict)


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o-mini",
        "openai/gpt-4o-mini",
        "anthropic/claude-opus-4-5",
        "gemini/gemini-2.5-pro",
        "cohere/command-a-03-2025",
    ],
)
def test_well_known_models_have_a_price_without_litellm(no_litellm, model):
    price = PriceList.load().price_for(model)
    assert 1e-8 < price.question < price.answer < 1e-3
    assert price.longest_answer
    assert re.search(r"the table of 20\d\d-\d\d-\d\d in this package, from litellm \d", price.source)


def test_the_shipped_price_is_the_published_one_and_known_where_litellm_has_none(table):
    price = PriceList.load().price_for("openai/gpt-4o-mini")
    assert (price.question, price.answer, price.cached) == pytest.approx((0.15e-6, 0.6e-6, 0.075e-6))
    assert PriceList.load().price_for("gpt-9").source == "litellm's table"


@pytest.mark.parametrize("model", ["azure/gpt-4o-mini", "openai/claude-opus-4-5", "together/openai/gpt-4o-mini"])
def test_another_provider_has_other_prices(no_litellm, model):
    assert PriceList.load().price_for(model) is None


def test_long_questions_cost_more(table):
    price = PriceList.load().price_for("long/model")
    assert price.cost(Usage(128_000, 1)) == pytest.approx(0.128 + 2e-6)
    assert price.cost(Usage(128_001, 1)) == pytest.approx(128_001 * 2e-6 + 2e-6)
    assert price.cost(Usage(200_001, 10)) == pytest.approx(200_001 * 3e-6 + 10 * 5e-6)
    assert price.upper_bound(200_001, 10) == price.cost(Usage(200_001, 10))


@given(st.integers(0, 400_000), st.integers(0, 400_000), st.integers(0, 1000), st.integers(0, 1000))
def test_the_most_is_never_less_than_the_cost(prompt, more, answer, cached):
    price = room._bundled_price(TABLE["long/model"], "a table")
    assert price.upper_bound(prompt + more, answer + more) >= price.cost(Usage(prompt, answer, cached_tokens=cached))


@pytest.mark.parametrize("model", ["unheard-of", "picture", "openai/picture"])
def test_unknown_prices_are_unknown(table, model):
    assert PriceList.load().price_for(model) is None


def test_what_an_own_server_costs_no_table_knows(table, tmp_path):
    assert PriceList.load().price_for("gpt-9", own_server=True) is None
    own = PriceList.load(write(tmp_path, "gpt-9: {input: 0, output: 0}"))
    assert own.price_for("gpt-9", own_server=True).cost(Usage(10**6, 10**6)) == 0


def test_the_users_prices_come_first_and_are_per_million(table, tmp_path):
    own = PriceList.load(
        write(tmp_path, "gpt-9: {input: 1, output: 2.5}\nlocal: {input: 3, output: 4, cached_input: 1}")
    )
    assert own.price_for("gpt-9") == Price(1e-6, 2.5e-6, 1e-6, "prices.yaml")
    assert own.price_for("local") == Price(3e-6, 4e-6, 1e-6, "prices.yaml")
    assert own.price_for("long/model") is not None


def test_json_is_fine_too(tmp_path):
    path = write(tmp_path, json.dumps({"m": {"input": 1, "output": 2}}), "prices.json")
    assert PriceList.load(path).price_for("m").answer == 2e-6


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must map model names"),
        ("- a", "must map model names"),
        ("{", "cannot be read"),
        ("m: 5", "m: must be a mapping"),
        ("m: {input: 1}", "m: 'output' is missing"),
        ("m: {output: 1}", "m: 'input' is missing"),
        ("m: {input: 1, output: -1}", "output=-1"),
        ("m: {input: yes, output: 1}", "input=True"),
        ("m: {input: .inf, output: 1}", "input=inf"),
        ("m: {input: 1, output: 1, cached: 1}", "'cached'"),
        ("m: {inputs: 1, output: 1}", "did you mean 'input'"),
    ],
)
def test_bad_files_are_named_with_what_is_wrong(tmp_path, text, why):
    path = write(tmp_path, text)
    with pytest.raises(PriceError, match=why) as raised:
        PriceList.load(path)
    assert str(path) in str(raised.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(PriceError, match=r"nowhere\.yaml.*cannot be read"):
        PriceList.load(tmp_path / "nowhere.yaml")


@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")
def test_litellms_table_is_found():
    price = PriceList.load().price_for("openai/gpt-4o-mini")
    assert 0 < price.question < price.answer < 1e-4
    assert price.longest_answer == 16384


@given(st.text())
def test_an_answer_has_at_most_a_token_per_byte(text):
    size = len(text.encode())
    assert most_answer_tokens(text) == size + 1


@given(st.lists(st.text(), max_size=5))
def test_a_question_has_at_most_a_token_per_byte_and_the_templates_marks(texts):
    request = ChatRequest("m", tuple(ChatMessage("user", text) for text in texts))
    size = sum(len(text.encode()) for text in texts)
    assert most_prompt_tokens(request) == size + 16 * len(texts) + 64
    assert size / 4 <= likely_prompt_tokens(request) - 4 * len(texts) < size / 4 + max(1, len(texts))


def test_the_schema_is_part_of_the_question():
    schema = {"type": "object"}
    more = most_prompt_tokens(question(json_schema=schema)) - most_prompt_tokens(question())
    assert more == len(json.dumps(schema))

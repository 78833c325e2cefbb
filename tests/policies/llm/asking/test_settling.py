"""Tokens and money as hostile servers state them: nothing implausible is written down, and no budget is passed."""

import asyncio
import importlib.util
import json
import math

import pytest
from hostile import COSTS, USAGES, HostileServer
from llm_tools import key, question, reply

from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.asking.prices import Price, most_answer_tokens, most_prompt_tokens
from llm_coop_envs.policies.llm.asking.settling import settle
from llm_coop_envs.policies.llm.chat import UNREAD, BudgetReached, Usage
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients.endpoint import Limits
from llm_coop_envs.policies.llm.journal import read_run

CLIENTS = [
    "lean",
    "openai",
    pytest.param(
        "litellm", marks=pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="needs litellm")
    ),
]
# litellm itself takes answers with some of them for none.
NONE = {"truths", "fractions", "NaN", "lists"}
CASES = [(client, usage) for client in ("lean", "openai") for usage in USAGES]
CASES += [pytest.param("litellm", usage, marks=CLIENTS[2].marks) for usage in USAGES if usage not in NONE]
DOLLAR = Price(question=1e-6, answer=2e-6, cached=1e-6, source="a file")


def ask_many(folder, client, budget, count=400, **fields):
    """Ask so many questions; returns the answers, what the chat counted, and what was said."""
    prices = folder.parent / "prices.yaml"
    prices.write_text("m: {input: 1, output: 2}\n")
    said = []

    async def go():
        async with HostileServer(**fields) as server:
            endpoint = Endpoint(model="m", base_url=server.base_url, client=client, limits=Limits(start=64))
            async with open_chat(folder, endpoint, budget=budget, prices=prices, notify=said.append) as chat:
                asked = [chat.ask(key(n), question(str(n))) for n in range(count)]
                return await asyncio.gather(*asked, return_exceptions=True), chat.counters

    found, counters = asyncio.run(go())
    return [one for one in found if not isinstance(one, Exception)], counters, said, found


@pytest.mark.parametrize(("client", "usage"), CASES)
def test_no_usage_lets_questions_pass_a_budget_uncounted(tmp_path, client, usage):
    budget = Budget(usd=0.005)
    answers, counters, said, found = ask_many(tmp_path / "run", client, budget, usage=USAGES[usage])
    assert any(isinstance(one, BudgetReached) for one in found)
    assert 10 < len(answers) < 390
    assert counters.spent <= 0.005
    (report,) = read_run(tmp_path / "run")
    assert report.damage is None
    assert report.answers == len(answers)
    assert report.usd == pytest.approx(counters.spent)
    for one in answers:
        assert 0 < one.usage.prompt_tokens <= most_prompt_tokens(question("399"))
        assert 0 < one.usage.completion_tokens <= 1000
        assert 0 <= one.usage.reasoning_tokens <= 10**7
        assert 0 <= one.usage.cached_tokens <= one.usage.prompt_tokens
        assert one.cost > 0
    # Told once; litellm counts by itself where a server does not.
    if client != "litellm" and usage != "hidden beyond measure":
        assert len(said) == 1
        assert all(one.usage.estimated for one in answers)


@pytest.mark.parametrize("client", CLIENTS[:2])
@pytest.mark.parametrize("cost", COSTS)
def test_no_cost_refunds_or_breaks_the_books(tmp_path, client, cost):
    usage = f'{{"prompt_tokens": 12, "completion_tokens": 9, "cost": {COSTS[cost]}}}'
    _, counters, said, _ = ask_many(tmp_path / "run", client, Budget(usd=0.002), usage=usage)
    assert 0.0015 < counters.spent <= 0.002
    assert len(said) == (cost != "text")
    (report,) = read_run(tmp_path / "run")
    assert report.damage is None
    assert report.usd == pytest.approx(counters.spent)
    assert json.loads(json.dumps(counters.plain(), allow_nan=False))["cost"] > 0


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("model", [r'"a\ud800b"', '"' + "m" * 100_000 + '"', "17", "null", '["m"]'])
def test_a_models_name_can_be_written(tmp_path, client, model):
    answers, counters, _, _ = ask_many(tmp_path / "run", client, None, count=3, model=model)
    assert len(answers) == 3
    (name,) = counters.models
    assert len(name.encode()) <= 200
    assert read_run(tmp_path / "run")[0].models == counters.models


def settled(price=DOLLAR, request=None, **fields):
    return settle(request or question(), reply(**fields), price, "there")


def most(text="42"):
    return Usage(most_prompt_tokens(question()), most_answer_tokens(text) + 1, estimated=True)


def test_what_is_plausible_is_not_touched():
    found = settled(usage=Usage(10, 5, 3, 4))
    assert (found.reply.usage, found.tokens, found.doubts) == (Usage(10, 5, 3, 4), 15, {})
    assert found.usd == found.reply.cost == DOLLAR.cost(Usage(10, 5))


@pytest.mark.parametrize("usage", [Usage(0, 5), Usage(10, 0), Usage(-1, 5), Usage(10, 2**62), Usage(10_000, 5)])
def test_what_cannot_be_is_replaced_by_the_most_and_said(usage):
    found = settled(usage=usage)
    assert found.reply.usage == most()
    assert found.tokens == most().prompt_tokens + most().completion_tokens
    assert found.usd == found.reply.cost == DOLLAR.upper_bound(most().prompt_tokens, most().completion_tokens)
    assert "our own upper estimate counts instead" in found.doubts["tokens"]
    assert len(found.doubts["tokens"]) < 200


def test_an_answer_without_a_word_may_have_no_tokens():
    assert settled(text="", usage=Usage(10, 0)).doubts == {}


def test_a_question_that_was_rejected_unread_costs_nothing():
    found = settled(text="", usage=UNREAD)
    assert (found.tokens, found.usd, found.doubts) == (0, 0.0, {})


def test_an_answer_longer_than_it_may_be_counts_as_it_is():
    found = settled(text="x" * 500, usage=Usage(10, 120))
    assert found.tokens == 130
    assert "counts 120 tokens for an answer that may have 50" in found.doubts["more"]


@pytest.mark.parametrize(
    ("cost", "price", "counts"),
    [
        (1.4e-5, DOLLAR, 1.4e-5),
        (0.0, DOLLAR, 2e-5),
        (1.0, DOLLAR, 2e-5),
        (math.nan, DOLLAR, 2e-5),
        (math.nan, None, None),
        (-1.0, None, None),
        (1e9, None, None),
        (0.125, None, 0.125),
        (0.0, None, 0.0),
        (0.0, Price(0.0, 0.0, 0.0, "a file"), 0.0),
    ],
)
def test_a_cost_that_cannot_be_is_replaced(cost, price, counts):
    found = settled(price, usage=Usage(10, 5), cost=cost)
    assert found.reply.cost == (None if counts is None else pytest.approx(counts))
    assert found.usd == (found.reply.cost or 0.0)
    assert ("cost" in found.doubts) == (counts != cost) == found.reply.usage.estimated


def test_hidden_reasoning_that_is_not_counted_with_the_answer_is_kept():
    assert settled(usage=Usage(10, 5, 300)).reply.usage.reasoning_tokens == 300

import asyncio

import pytest
from llm_tools import key, question

from llm_coop_envs.policies.llm.budget_estimate import DryChat, Estimate
from llm_coop_envs.policies.llm.chat import Usage
from llm_coop_envs.policies.llm.prices import Price, likely_prompt_tokens

PRICE = Price(1e-3, 1e-2, 1e-3, "test")


def asked(chat, *pairs):
    return [asyncio.run(chat.ask(*pair)) for pair in pairs]


def test_what_would_be_asked_is_counted_by_episode():
    chat = DryChat(lambda prompt: "x" * 40, lambda model: PRICE)
    asked(chat, (key(1), question()), (key(2), question()), (key(1, episode="e2"), question("y" * 400)))
    prompt = likely_prompt_tokens(question())
    assert chat.estimates["kbc/1"] == Estimate(
        calls=2,
        prompt_tokens=2 * prompt,
        completion_tokens=20,
        most_completion_tokens=100,
        usd=pytest.approx(2 * prompt * 1e-3 + 20 * 1e-2),
        most_usd=pytest.approx(2 * prompt * 1e-3 + 100 * 1e-2),
    )
    assert chat.estimates["e2"].prompt_tokens > 100


def test_answers_are_those_of_the_script_and_marked_as_estimates():
    chat = DryChat(str.upper, lambda model: PRICE)
    (found,) = asked(chat, (key(1), question("abc", max_tokens=None)))
    assert found.text == "YOU ARE PLAYER ONE.\n\nABC"
    assert found.usage == Usage(likely_prompt_tokens(question("abc")), 6, estimated=True)
    assert found.cost == pytest.approx(PRICE.cost(found.usage))
    assert chat.estimates["kbc/1"].most_completion_tokens == 6


def test_one_unknown_price_makes_the_sum_unknown():
    chat = DryChat(str.upper, lambda model: None if model == "x" else PRICE)
    asked(chat, (key(1), question()), (key(2), question(model="x")), (key(3), question()))
    assert chat.estimates["kbc/1"].usd is None
    assert chat.estimates["kbc/1"].most_usd is None
    assert chat.estimates["kbc/1"].calls == 3

import asyncio

import pytest
from llm_tools import key, question

from llm_coop_envs.policies.llm.asking.estimate import DryChat, Estimate
from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.policies.llm.chat import Usage

PRICE = Price(1e-3, 1e-2, 1e-3, "test")
PROMPT = "You are player one.\n\nWhich number?"


def letters(model):
    return len, "letters"


def upper(prompt, metadata):
    return prompt.upper()


def dry(answer, price_of, counter_of=letters):
    return DryChat(answer, price_of, counter_of)


def asked(chat, *pairs):
    return [asyncio.run(chat.ask(*pair)) for pair in pairs]


def test_what_would_be_asked_is_counted_by_episode():
    chat = dry(lambda prompt, metadata: "x" * 10, lambda model: PRICE)
    asked(chat, (key(1), question()), (key(2), question()), (key(1, episode="e2"), question("y" * 400)))
    prompt = len(PROMPT)
    assert chat.estimates["kbc/1"] == Estimate(
        calls=2,
        prompt_tokens=2 * prompt,
        completion_tokens=20,
        most_completion_tokens=100,
        usd=pytest.approx(2 * prompt * 1e-3 + 20 * 1e-2),
        most_usd=pytest.approx(2 * prompt * 1e-3 + 100 * 1e-2),
    )
    assert chat.estimates["e2"].prompt_tokens > 400


def test_answers_are_those_of_the_script_and_marked_as_estimates():
    chat = dry(upper, lambda model: PRICE)
    (found,) = asked(chat, (key(1), question("abc")))
    assert found.text == "YOU ARE PLAYER ONE.\n\nABC"
    assert found.usage == Usage(24, 24, estimated=True)
    assert found.cost == pytest.approx(PRICE.cost(found.usage))


@pytest.mark.parametrize(("longest", "most"), [(None, None), (70, 70)])
def test_without_max_tokens_only_the_models_own_limit_bounds_answers(longest, most):
    chat = dry(upper, lambda model: Price(1e-3, 1e-2, 1e-3, "test", longest_answer=longest))
    asked(chat, (key(1), question(max_tokens=None)), (key(2), question(max_tokens=None)))
    found = chat.estimates["kbc/1"]
    assert found.most_completion_tokens == (None if most is None else 2 * most)
    assert (found.most_usd is None) == (most is None)
    assert found.usd is not None


def test_one_unknown_price_makes_the_sum_unknown():
    chat = dry(upper, lambda model: None if model == "x" else PRICE)
    asked(chat, (key(1), question()), (key(2), question(model="x")), (key(3), question()))
    assert chat.estimates["kbc/1"].usd is None
    assert chat.estimates["kbc/1"].most_usd is None
    assert chat.estimates["kbc/1"].calls == 3


def test_rounds_are_the_calls_that_wait_for_each_other():
    chat = dry(upper, lambda model: None)
    together = [(key(player, step=0), question()) for player in range(5)]
    one_after_another = [(key(1, step=1, call=call), question()) for call in ("panic", "evaluate", "exit")]
    asked(chat, *together, *one_after_another, (key(2, step=1), question()))
    assert chat.estimates["kbc/1"].rounds == 1 + 3

import asyncio
import json

import pytest
from llm_chats import Canned, Recorder, run

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies.llm.chat import ChatMessage, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.testing.answers import NO_QUESTION, ScriptedChat, scripted_answer

USUAL = {
    "kind": "number",
    "key": "price",
    "form": "plain",
    "repair": False,
    "low": "2",
    "high": "14",
    "integer": False,
    "allowed": [],
    "options": [],
}


def answer(prompt="What is your price?", **question):
    return scripted_answer(prompt, {"question": json.dumps({**USUAL, **question})})


def test_without_a_question_it_says_what_it_is():
    assert scripted_answer("What is the capital of France?") == NO_QUESTION
    assert scripted_answer("What is the capital of France?", {"other": "x"}) == NO_QUESTION
    assert "no language model" in NO_QUESTION


def test_answers_hang_on_the_prompt_and_the_question_alone():
    given = [answer(f"prompt {k}") for k in range(200)]
    assert given == [answer(f"prompt {k}") for k in range(200)]
    assert len(set(given)) > 100


def test_numbers_are_legal_in_every_form():
    for k in range(100):
        for integer in (False, True):
            told = answer(f"prompt {k}", form="json", integer=integer)
            number = json.loads(told)["price"]
            assert 2 <= number <= 14
            assert list(json.loads(told)) == ["reason", "price"]
            assert not integer or isinstance(number, int)
        assert json.loads(answer(f"prompt {k}", form="json", allowed=[1.5, 2.25]))["price"] in (1.5, 2.25)
        assert float(answer(f"prompt {k}", form="reason").rpartition("Answer: ")[2]) >= 2
        assert float(answer(f"prompt {k}", repair=True)) >= 2
        assert json.loads(answer(f"prompt {k}", repair=True, form="json")).keys() == {"price"}


def test_plain_answers_are_given_in_several_ways():
    given = [answer(f"prompt {k}", options=["a) right", "b) down"], kind="option") for k in range(60)]
    assert {"a", "My choice is a."} <= set(given)
    assert any(len(one.split("\n")) == 2 for one in given)


def test_an_option_that_the_prompt_speaks_of_is_taken():
    steps = ["a) right", "b) down", "c) down and right", "d) stay"]
    prompt = "You may stay, or go. It lies in the direction down and right.\n" + "\n".join(steps)
    assert answer(prompt, kind="option", options=steps, repair=True) == "c"
    assert answer(prompt, kind="option", options=steps[:2], repair=True) in "ab"
    assert answer("links, rechts: links", kind="option", options=["links", "rechts"], repair=True) == "links"
    assert answer("nothing", kind="option", options=["links", "rechts"], repair=True) in ("links", "rechts")


def test_words_are_words():
    assert len(answer(kind="text", key="message").split()) > 5
    assert json.loads(answer(kind="text", key="message", form="json")).keys() == {"message"}


def test_a_chat_of_scripted_answers_says_what_it_is():
    chat = ScriptedChat()
    metadata = {"question": json.dumps(USUAL)}
    request = ChatRequest("gpt-4", (ChatMessage("user", "Your price?"),), extra={"metadata": metadata})
    given = asyncio.run(chat.ask(RequestKey("e", "a", 0, "talk"), request))
    assert given.text == scripted_answer("Your price?", metadata)
    assert given.model == "scripted"
    assert given.usage.estimated
    assert given.usage.prompt_tokens > 2
    assert chat.requests == 1


# Requests carry their question as data only where a script answers.


class NoScript(Canned):
    scripted = False


@pytest.mark.parametrize(
    ("model", "chat", "told"),
    [("m", Canned, True), ("m", NoScript, False), ("scripted", NoScript, True), ("scripted-2", NoScript, True)],
)
def test_who_is_told_the_question_as_data(model, chat, told):
    env = kbc_v0.parallel_env(players=2, talk=False, exchanges=0)
    asked = chat(choose=["7", "8"])
    run(env, asked, model=model, parameters={"default": {"extra": {"top_k": 3}}})
    for _, request, _ in asked.log:
        assert request.extra["top_k"] == 3
        assert set(request.extra) == ({"top_k", "metadata"} if told else {"top_k"})


def questions(env, **settings):
    _, chat = run(env, Recorder(), **settings)
    found = {}
    for key, request, _ in chat.log:
        metadata = request.extra["metadata"]
        assert set(metadata) == {"question"}
        found.setdefault(key.call, json.loads(metadata["question"]))
    return found


def test_the_questions_are_those_of_the_environment():
    asked = questions(kbc_v0.parallel_env(players=2))
    assert asked["choose"] == {**USUAL, "key": "number", "low": "0", "high": "100", "integer": True}
    assert asked["talk"] == {**USUAL, "kind": "text", "key": "message", "low": "", "high": ""}
    asked = questions(bertrand_v0.parallel_env(preset="calvano", grid_points=3, rounds=1), answers="json")
    assert asked["price"]["allowed"] == [1.42773, 1.69895, 1.97018]
    assert asked["price"]["form"] == "json"
    asked = questions(evacuation_v0.parallel_env(preset="small", people=2, rounds=1), pack="de-a", answers="reason")
    assert asked["exit"]["options"] == ["unten", "links", "rechts"]
    assert asked["move"]["options"][0].startswith("a) ")
    assert asked["move"]["form"] == "reason"

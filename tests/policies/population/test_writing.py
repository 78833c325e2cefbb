"""Backgrounds by a model: every one fits its person and is no other's, whatever the model writes."""

import asyncio
import json
import random

import numpy as np

from llm_coop_envs.policies.llm.chat import ChatReply, Usage
from llm_coop_envs.policies.population import read_population
from llm_coop_envs.policies.population.writing import Writer
from llm_coop_envs.util.yaml_source import read_yaml

PEOPLE = """\
attributes:
  job: {shares: {baker: 0.5, nurse: 0.5}}
  gender: shipped
backgrounds: {model: m, temperature: 0.9, words: 20, sentences: [["You are {a job}, {a gender}, and that is all."]]}
"""
OPTIONS = {"preset": "none", "parameters": {"default": {"temperature": 0.9}}}
SEATS = {f"player_{i}": i for i in range(8)}


class Model:
    """Answers by a function of the attributes and the attempt, in any order."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def ask(self, key, request):
        await asyncio.sleep(random.random() / 1000)
        prompt = request.messages[0].content
        attributes = json.loads(prompt[prompt.index("{") : prompt.index("}") + 1])
        self.asked.append((key, request))
        text = self.answer(key, attributes)
        return ChatReply(text=text, usage=Usage(10, 5), finish_reason="stop", model="m-1", latency=0.0)


def write(answer, seats=SEATS):
    people = read_population(read_yaml(PEOPLE, "people.yaml")).draw(8, np.random.SeedSequence(0))
    model = Model(answer)
    writer = Writer(people, model, "llm:m", OPTIONS)
    return people, model, asyncio.run(writer.write("game/0", seats)), writer.record()


def fitting(key, attributes):
    return f"{key.agent} {key.attempt}: a {attributes['gender']} who is a {attributes['job']}."


def test_each_person_is_asked_for_once_with_a_seed_of_its_own():
    people, model, texts, record = write(fitting)
    assert list(texts) == list(SEATS)
    assert texts["player_3"] == f"player_3 0: a {people.profile(3)['gender']} who is a {people.profile(3)['job']}."
    assert {key.call for key, _ in model.asked} == {"background"}
    assert len({request.seed for _, request in model.asked}) == len(SEATS)
    assert {request.temperature for _, request in model.asked} == {0.9}
    counts = record["calls"]["background"]
    assert (counts["asked"], counts["answered"], counts["retried"], counts["fallbacks"]) == (8, 8, 0, 0)
    assert (counts["answers"], record["models"], record["texts"]["different"]) == (8, {"m-1": 8}, 1.0)


def test_what_does_not_name_an_attribute_is_asked_for_again_and_then_replaced():
    def answer(key, attributes):
        good = key.agent == "player_1" and key.attempt == 1
        return fitting(key, attributes) if good or key.agent > "player_2" else "A person."

    people, model, texts, record = write(answer)
    again = {key.agent: request.messages[0].content for key, request in model.asked if key.attempt == 1}
    assert set(again) == {"player_0", "player_1", "player_2"}
    assert f"job: {people.profile(0)['job']}" in again["player_0"]
    assert texts["player_1"].startswith("player_1 1:")
    assert texts["player_0"] == people.sentences(0) != ""
    counts = record["calls"]["background"]
    assert (counts["answered"], counts["retried"], counts["fallbacks"], counts["requests"]) == (5, 1, 2, 11)


def test_of_equal_texts_the_first_seat_keeps_its_own_whatever_the_order_of_answers():
    def answer(key, attributes):
        return f"A {attributes['gender']} who is a {attributes['job']}."

    found = [write(answer) for _ in range(3)]
    assert all(texts == found[0][2] for _, _, texts, _ in found)
    people, _, texts, record = found[0]
    kept = [seat for seat, text in texts.items() if text.startswith("A ")]
    different = {tuple(people.profile(i).values()) for i in range(8)}
    assert len(kept) == len(different)
    assert kept[0] == "player_0"
    assert record["calls"]["background"]["fallbacks"] == 8 - len(different)


def test_refused_empty_and_endless_texts_are_replaced():
    def answer(key, attributes):
        endless = {"player_1": "baker nurse woman man " * 100, "player_2": "baker nurse woman man " + "o" * 1000}
        return {"player_0": "", **endless}.get(key.agent, fitting(key, attributes))

    people, _, texts, record = write(answer)
    assert [texts[f"player_{i}"] for i in range(3)] == [people.sentences(i) for i in range(3)]
    assert record["calls"]["background"]["empty"] == 2

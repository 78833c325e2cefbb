import asyncio
import re

import pytest
from toy import ToyEnv

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies import from_function, play


def choices(env):
    return [event["choice"] for event in env.events if event["type"] == "choice"]


@pytest.mark.parametrize(
    ("answer", "price"),
    [(5.5, 5.5), ("I ask a price of 5.5.", 5.5), ({"choice": 5.5, "message": "hm"}, 5.5), ('{"price": 5.5}', 5.5)],
)
def test_numbers_texts_and_actions_are_answers(answer, price):
    env = bertrand_v0.parallel_env(preset="team_up_linear", rounds=1, talk=False, record=True)
    play(env, from_function(lambda _: answer), seed=0)
    assert choices(env) == [price, price]


def test_a_listed_price_is_named_and_not_counted():
    env = bertrand_v0.parallel_env(preset="calvano", rounds=1, record=True)
    grid = env.settings.grids[0]
    play(env, from_function(lambda _: f"{grid[4]:.6g}"), seed=0)
    assert choices(env) == [4, 4]


def test_what_is_said_in_a_talk_is_the_message():
    env = kbc_v0.parallel_env(players=2, session="single", record=True)
    play(env, from_function(lambda request: "12" if request.info["slots"].turn == 0 else "Let us say 12."), seed=0)
    assert {event["text"] for event in env.events if event["type"] == "message"} == {"Let us say 12."}
    assert choices(env) == [12, 12]


def test_a_model_of_ones_own_reads_the_text():
    def model(text):
        letters = re.findall(r"^(\w\)) (?!.*somebody)", text, re.MULTILINE)
        return letters[0] if letters else "bottom exit"

    env = evacuation_v0.parallel_env(preset="small", talk=False, rounds=3, record=True)
    play(env, from_function(lambda request: model(request.observation["text"])), seed=0)
    assert not [event for event in env.events if event.get("flags")]


@pytest.mark.parametrize("answer", [None, "I would rather not say.", float("nan")])
def test_what_cannot_be_read_is_flagged(answer):
    env = ToyEnv(talk=False, rounds=1, record=True)
    play(env, from_function(lambda _: answer), seed=0)
    assert {tuple(event["flags"]) for event in env.events if event["type"] == "choice"} == {("illegal_choice",)}


def test_coroutines_are_asked_at_once():
    arrived = []

    async def together(request):
        arrived.append(request.agent)
        while len(arrived) < 3:
            await asyncio.sleep(0)
        return 2

    env = ToyEnv(talk=False, rounds=1, record=True)
    policy = from_function(together)
    play(env, policy, seed=0)
    assert policy.waits
    assert choices(env) == [2, 2, 2]

import asyncio
import functools
import re
import threading

import pytest
from toy import ToyEnv

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import ActionError, LlmCoopError, SettingsError
from llm_coop_envs.policies import from_function, make, play, play_async
from llm_coop_envs.wrappers import SingleAgentView


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


class Result:
    """What an agent's library returns: an object with the answer inside."""

    output = 5.5


class Agent:
    """An agent as libraries have them, with a connection that belongs to one event loop."""

    def __init__(self):
        self.loops = []

    async def run(self, text):
        await asyncio.sleep(0.001)
        self.loops.append(asyncio.get_running_loop())
        return 5.5

    def run_sync(self, text):
        return asyncio.run(self.run(text))

    async def __call__(self, request):
        return await self.run(request.observation["text"])

    async def method(self, request, text=""):
        return await self(request)


def market(**settings):
    return bertrand_v0.parallel_env(preset="team_up_linear", rounds=2, talk=False, record=True, **settings)


AWAITED = {
    "an object": lambda agent: agent,
    "a method": lambda agent: agent.method,
    "a lambda": lambda agent: lambda request: agent.run(request.observation["text"]),
    "a part": lambda agent: functools.partial(agent.method, text="x"),
    "a lambda of a part": lambda agent: lambda request: functools.partial(agent.method, text="x")(request),
    "some of the time": lambda agent: lambda request: agent.run("") if request.agent == "firm_0" else 5.5,
    "its own loop": lambda agent: lambda request: agent.run_sync(request.observation["text"]),
}


def in_a_notebook(call):
    """What a call returns where an event loop runs already."""

    async def cell():
        return call()

    return asyncio.run(cell())


@pytest.mark.parametrize("wrap", AWAITED.values(), ids=list(AWAITED))
def test_whatever_is_awaitable_is_awaited(wrap):
    for run in (lambda call: call(), in_a_notebook):
        env = market()
        policy = from_function(wrap(Agent()))
        for _ in range(2):
            run(lambda env=env, policy=policy: play(env, policy, seed=0))
            assert choices(env) == [5.5] * 4
    env = market()
    asyncio.run(play_async(env, from_function(wrap(Agent())), seed=0))
    assert choices(env) == [5.5] * 4


@pytest.mark.parametrize("wrap", [AWAITED["an object"], AWAITED["a lambda"]], ids=["object", "lambda"])
def test_a_view_keeps_one_loop_for_its_agents(wrap):
    agent = Agent()
    view = SingleAgentView(market(), "firm_0", from_function(wrap(agent)))
    view.reset(seed=0)
    for _ in range(2):
        view.step({"choice": 5.5})
    assert len(agent.loops) == 2
    assert len(set(agent.loops)) == 1
    view.close()


def test_a_plain_rule_stays_in_its_thread_without_a_loop():
    threads = set()

    def rule(request):
        threads.add(threading.current_thread())
        return 5.5

    play(market(), from_function(rule), seed=0)
    assert threads == {threading.main_thread()}


def yielding(request):
    yield 5.5


async def yielding_later(request):
    yield 5.5


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (5.5, "cannot be called"),
        (yielding, "yields its answers"),
        (yielding_later, "yields its answers"),
        (lambda: 5.5, "must take one argument"),
        (lambda request, text: 5.5, "must take one argument"),
    ],
)
def test_what_is_no_function_of_a_request_is_refused(function, reason):
    with pytest.raises(SettingsError, match=reason):
        from_function(function)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Result(), r"returned a Result, .*; return a number"),
        ([5.5], r"returned a list, \[5\.5\]; return a number"),
        (lambda request: 5.5, r"returned a function"),
        ({"price": 5.5}, r"returned \{'price': 5\.5\}; an action is"),
        ({}, r"an action is"),
    ],
)
def test_what_is_no_answer_is_refused(answer, reason):
    with pytest.raises(ActionError, match=reason):
        play(market(), from_function(lambda _: answer), seed=0)


def test_seats_may_be_given_by_the_names_of_policies():
    def played(seats):
        env = bertrand_v0.parallel_env(preset="calvano", rounds=5, record=True)
        return play(env, seats, seed=3), choices(env)

    named = played({"firm_0": "bertrand/grim_trigger", "firm_1": from_function(lambda _: 7)})
    assert named == played({"firm_0": make("bertrand/grim_trigger"), "firm_1": from_function(lambda _: 7)})
    assert played("bertrand/tit_for_tat") == played(make("bertrand/tit_for_tat"))
    with pytest.raises(LlmCoopError, match="grim_triger"):
        played({"firm_0": "bertrand/grim_triger", "firm_1": "bertrand/tit_for_tat"})

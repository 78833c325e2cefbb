"""Crowds are asked in chunks and answer with arrays, and play the same game as one by one."""

import asyncio
import zlib

import numpy as np
import pytest
from configurations import CONFIGURATIONS
from llm_chats import Recorder, run
from rollout import digest

from llm_coop_envs import kbc_v0
from llm_coop_envs.core import chunks
from llm_coop_envs.core.chunks import Chunk
from llm_coop_envs.core.submissions import Submissions
from llm_coop_envs.policies import Policy, ScriptedPolicy, play
from llm_coop_envs.util.waiting import by_hands


def drawn(env, agent):
    """An action that hangs on the player and the step alone; now and then one that is illegal, or none."""
    number = zlib.crc32(f"{agent} {env.cycles}".encode())
    if number % 7 == 0:
        return {}
    message = None if number % 5 == 0 else f"{agent} says {number % 100}"
    if agent == "regulator" or not hasattr(env.choice_space, "n"):
        return {"choice": float(number % 120) if agent != "regulator" else number % 2, "message": message}
    return {"choice": number % (int(env.choice_space.n) + 2), "message": message}


class OneByOne(ScriptedPolicy):
    """Draws for each player by itself; sees observations or slots alone."""

    def __init__(self, env, slots_only=False):
        self.env, self.slots_only, self.most = env, slots_only, 0

    async def act(self, requests):
        self.most = max(self.most, len(requests))
        return await super().act(requests)

    def decide(self, request):
        assert ("text" in request.observation) is not self.slots_only
        assert request.info["slots"].me == request.agent
        return drawn(self.env, request.agent)


class OnArrays(Policy):
    """Draws the same for all of them at once."""

    on_arrays = True

    async def act(self, requests):
        raise AssertionError("is never asked by requests")

    async def answer(self, chunk):
        env = chunk.env
        given = Submissions(env.blank_choices()[chunk.who])
        for place, i in enumerate(chunk.who.tolist()):
            action = drawn(env, env.possible_agents[i])
            if not action:
                given.missing.append(place)
            elif env.phase == "talk":
                given.messages[place] = action["message"]
            else:
                given.choices[place] = env.read_choice(action["choice"], env.possible_agents[i])
        return given


def through_pettingzoo(env):
    """The same game through `reset` and `step`."""
    env.reset(seed=3)
    totals = dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        _, rewards, _, _, _ = env.step({agent: drawn(env, agent) for agent in env.agents})
        for agent, reward in rewards.items():
            totals[agent] += reward
    return totals


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_pettingzoo_chunks_and_arrays_give_the_same_game(name, monkeypatch):
    module, given = CONFIGURATIONS[name]
    env = module.parallel_env(record=True, max_cycles=14, **given)
    totals = through_pettingzoo(env)
    events = digest(env.events)
    assert any(event.get("flags") for event in env.events)
    monkeypatch.setattr(chunks, "BLOCK", 2)
    for make in (OneByOne, lambda env: OneByOne(env, slots_only=True), lambda env: OnArrays()):
        env = module.parallel_env(record=True, max_cycles=14, **given)
        policy = make(env)
        assert play(env, policy, seed=3) == pytest.approx(totals, abs=1e-9)
        assert digest(env.events) == events
        assert getattr(policy, "most", 0) <= 2


def test_a_mixed_table_is_parted_by_who_decides(monkeypatch):
    def table(env):
        one, other = OneByOne(env), OnArrays()
        return {agent: other if k % 3 else one for k, agent in enumerate(env.possible_agents)}

    env = kbc_v0.parallel_env(players=11, record=True)
    totals = through_pettingzoo(env)
    monkeypatch.setattr(chunks, "BLOCK", 2)
    mixed = kbc_v0.parallel_env(players=11, record=True)
    assert play(mixed, table(mixed), seed=3) == pytest.approx(totals)
    assert digest(mixed.events) == digest(env.events)


@pytest.mark.parametrize("given", [(1, 5), (4, 5)])
def test_too_few_or_too_many_answers_are_an_error(given):
    count, asked = given

    class Short(OnArrays):
        async def answer(self, chunk):
            return Submissions(np.zeros(count + (count == 4) * 2))

    with pytest.raises(RuntimeError, match=f"answers for {asked} players; each must be answered"):
        play(kbc_v0.parallel_env(players=asked, talk=False), Short(), seed=0)


@pytest.mark.parametrize("players", [1000, 1003])
def test_nobody_is_left_out_where_blocks_do_not_come_out_even(players, monkeypatch):
    monkeypatch.setattr(chunks, "BLOCK", 100)
    env = kbc_v0.parallel_env(players=players, session="single", talk=False, record=True)
    play(env, OneByOne(env, slots_only=True), seed=0)
    assert [event["agent"] for event in env.events if event["type"] == "choice"] == env.possible_agents


def test_models_answer_chunks_as_they_answer_requests(monkeypatch):
    def played():
        env = kbc_v0.parallel_env(players=7, exchanges=1, record=True)
        policy, chat = run(env)
        asked = sorted((str(key), request.messages[-1].content) for key, request, _ in chat.log)
        return digest(env.events), asked, policy.counters.to_json()

    expected = played()
    monkeypatch.setattr(chunks, "BLOCK", 2)
    assert played() == expected


class Counting(Recorder):
    """Counts how many questions wait at the same time, and how many are made before they are asked."""

    def __init__(self, most):
        super().__init__()
        self.most, self.waiting, self.peak = most, 0, 0

    async def ask(self, key, request):
        self.waiting += 1
        self.peak = max(self.peak, self.waiting)
        await asyncio.sleep(0.001)
        self.waiting -= 1
        return await super().ask(key, request)


@pytest.mark.parametrize("most", [5, 23])
def test_as_many_questions_of_a_crowd_wait_as_the_chat_takes_and_no_more(most, monkeypatch):
    monkeypatch.setattr(chunks, "BLOCK", 4)
    monkeypatch.setattr("llm_coop_envs.policies.llm.playing.policy.DEFAULT_CONCURRENCY", 2)
    chat = Counting(most)
    run(kbc_v0.parallel_env(players=60, session="single", talk=False), chat)
    assert chat.peak == most
    assert len(chat.log) == 60


def test_hands_end_before_an_error_is_raised():
    left, done = iter(range(10)), []

    async def work():
        for number in left:
            await asyncio.sleep(0)
            if number == 3:
                raise ValueError("three")
            done.append(number)

    with pytest.raises(ValueError, match="three"):
        asyncio.run(by_hands(work, 3))
    assert done == [0, 1, 2, *range(4, 10)]


def test_what_players_see_is_made_when_they_are_asked():
    env = kbc_v0.parallel_env(players=5000, session="single", talk=False)
    env.begin(seed=0)
    seen = Chunk(env, env.on_turn).stream()
    made = []
    original = env._slots
    env._slots = lambda index, common: made.append(index) or original(index, common)
    place, request = next(seen)
    assert (place, request.agent) == (0, "player_0")
    assert len(made) == chunks.BLOCK

"""Prompts stay inside 8k tokens, however long an episode is and however many play: counted on real environments'
slots."""

import asyncio
import re

import numpy as np
import pytest
from llm_chats import Canned, Recorder, reply, run

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.core.policy import Request, Seating
from llm_coop_envs.policies.llm.playing.memory import Memory, Note
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.tokens import counter_for, estimate_tokens

CONTEXT = 8192
SAID = re.compile(r'(player_\d+|You|Du): "I, number')
LONG = "We should look at what the others do, and then say in about thirty words what we think of all the numbers, " * 2


def counters():
    counts = [pytest.param(estimate_tokens, id="estimate")]
    own, name = counter_for("gpt-4-0314")
    if name != "estimate":
        counts.append(pytest.param(own, id=name))
    return counts


def seated(env, chat, count, **settings):
    """A policy in all seats, at the point where the environment is."""
    policy = LLMPolicy(
        chat, LLMSettings.build(**{"model": "gpt-4-0314", "preset": "team_up", **settings}), count_tokens=count
    )
    table = Seating(dict.fromkeys(env.possible_agents, policy), env.possible_agents)
    table.begin(env.metadata["name"], env.settings, env.possible_agents, np.random.SeedSequence(0))
    return policy


def on_turn(env, some=3):
    observations, infos = env.look()
    turn = [agent for agent in observations if observations[agent]["turn"]]
    return [Request(agent, observations[agent], infos[agent]) for agent in turn[:some]]


def longest(chat, count):
    return max(count(request.messages[-1].content) + (request.max_tokens or 0) for _, request, _ in chat.log)


@pytest.mark.parametrize("count", counters())
def test_five_thousand_rounds_of_prices(count):
    rounds, planned = 5000, range(21, 5000, 20)
    env = bertrand_v0.parallel_env(preset="team_up", rounds=rounds + 1, collusion_window=0)
    env.begin(0, None)
    rng = np.random.default_rng(0)
    while env.round <= rounds:
        if env.phase == "talk":
            env.advance(None, dict.fromkeys(range(2), LONG))
        else:
            env.advance(rng.uniform(5.123456, 9.87654321, 2))
    # Round 5001 is a planning round: the longest prompts there are, with the longest plans a model could have made.
    chat = Recorder()
    policy = seated(env, chat, count)
    full = Memory(
        notes={"plan": [Note(round_, LONG * 2) for round_ in planned][-20:]}, last_asked={"plan": planned[-1]}
    )
    policy.set_state(dict.fromkeys(env.possible_agents, full.to_json()))
    for _ in range(6):
        asyncio.run(policy.act(on_turn(env)))
        env.advance(None, dict.fromkeys(range(2), LONG * 4))
    asyncio.run(policy.act(on_turn(env)))
    slots = env.look()[1]["firm_0"]["slots"]
    assert (len(slots.history), len(slots.bins), slots.may_replan) == (20, 20, True)
    assert {key.call for key, _, _ in chat.log} == {"talk", "plan", "price"}
    assert longest(chat, count) <= CONTEXT
    assert policy.counters.total().overlong == 0
    assert policy.counters.for_call("price").left_out == policy.counters.for_call("talk").left_out == 0
    for _, prompt in chat.prompts("plan"):
        assert prompt.count("\nRound ") <= 20
    assert all(len(memory["notes"]["plan"]) == 20 for memory in policy.get_state().values())


def test_memory_does_not_grow_with_the_rounds():
    policy, chat = run(bertrand_v0.parallel_env(preset="team_up", rounds=130, talk=False), plan_memory=3)
    state = policy.get_state()["firm_0"]
    assert [round_ for round_, _ in state["notes"]["plan"]] == [81, 101, 121]
    _, last = chat.prompts("plan")[-1]
    assert [f"Round {n}:" in last for n in (21, 41, 61, 81, 101)] == [False, False, True, True, True]
    for key, prompt in chat.prompts("price"):
        assert estimate_tokens(prompt) < 1200, key


def talked(players, exchanges=3):
    """A number contest of many players, in its last talk, everybody having said a lot."""
    env = kbc_v0.parallel_env(players=players)
    env.begin(0, None)
    while env.round < exchanges or env.phase == "talk":
        if env.phase == "talk":
            if env.round == exchanges and len(env.conversation.messages) == exchanges * players - 2:
                return env
            env.advance(None, {k: f"I, number {k}, name {k % 101}. {LONG}" for k in range(players)})
        else:
            env.advance(np.zeros(players, dtype=np.int64))
    raise AssertionError("the talk was over before the end")


@pytest.mark.parametrize("count", counters())
def test_a_talk_of_two_hundred_players_is_windowed(count):
    env = talked(200)
    chat = Recorder()
    policy = seated(env, chat, count)
    asyncio.run(policy.act(on_turn(env)))
    env.advance(None, {k: "20 it is." for k in range(200)})
    env.advance(None, {k: "20 it is." for k in range(200)})
    asyncio.run(policy.act(on_turn(env, 5)))
    assert longest(chat, count) <= CONTEXT
    assert len(chat.prompts("choose")) == 5
    for call, heard in (("talk", 598), ("choose", 600)):
        counts = policy.counters.for_call(call)
        assert counts.overlong == 0
        for _, prompt in chat.prompts(call):
            shown = prompt.count("number ") - prompt.count("number or")
            lines = [line for line in prompt.split("\n") if line.startswith(("player_", "You: "))]
            assert f"({heard - len(lines)} earlier messages are not shown.)" in prompt
            # The window is used: less than a tenth of it is empty.
            assert count(prompt) > 0.9 * (CONTEXT - 128)
            assert shown
        assert counts.left_out > 100
    assert '"20 it is."' in chat.prompts("choose")[0][1]


def test_a_talk_that_fits_is_not_touched():
    policy, chat = run(kbc_v0.parallel_env(players=24), preset="team_up")
    assert policy.counters.total().left_out == 0
    assert all("not shown" not in request.messages[-1].content for _, request, _ in chat.log)
    assert longest(chat, estimate_tokens) < CONTEXT


@pytest.mark.parametrize("pack", ["en-a", "en-b", "de-a"])
def test_the_oldest_messages_are_summarised_when_asked_for(pack):
    env = talked(200)
    chat = Recorder()
    policy = seated(env, chat, estimate_tokens, summarise=True, pack=pack)
    asyncio.run(policy.act(on_turn(env)))
    [(key, prompt)] = chat.prompts("talk")
    summaries = chat.prompts("summary")
    assert len(summaries) >= 3
    assert longest(chat, estimate_tokens) <= CONTEXT
    assert policy.counters.for_call("talk").left_out == 0
    assert policy.counters.for_call("summary").answered == len(summaries)
    # Every message is in exactly one summary or in the prompt, in order.
    said = [line for _, text in [*summaries, (key, prompt)] for line in text.split("\n") if SAID.match(line)]
    assert len(said) == 598
    speakers = [env.possible_agents[m.speaker] for m in env.conversation.messages]
    assert [key.agent if line.startswith(("You", "Du")) else line.split(":")[0] for line in said] == speakers
    state = policy.get_state()[key.agent]
    assert 0 < state["summarised"] < 598
    assert state["summary"][1] in prompt
    assert [key.attempt for key, _ in summaries] == list(range(len(summaries)))
    # A summary is made from the one before.
    assert chat.log[0][2].text in summaries[1][1]
    # What was summarised stays so: the next turn asks for nothing new.
    asyncio.run(policy.act(on_turn(env)))
    assert len(chat.prompts("summary")) == len(summaries)


def test_without_an_answer_to_the_summary_the_messages_are_left_out():
    env = talked(200)
    chat = Canned(summary=[""])
    policy = seated(env, chat, estimate_tokens, summarise=True)
    asyncio.run(policy.act(on_turn(env)))
    assert policy.counters.for_call("summary").fallbacks == 1
    assert policy.counters.for_call("talk").left_out > 100
    assert "earlier messages are not shown" in chat.prompts("talk")[0][1]


def test_a_message_too_long_to_be_summarised_is_left_out():
    env = kbc_v0.parallel_env(players=2, message_length=100_000)
    env.begin(0, None)
    env.advance(np.zeros(2, dtype=np.int64))
    env.advance(None, {k: "word " * 20_000 for k in range(2)})
    chat = Recorder()
    policy = seated(env, chat, estimate_tokens, summarise=True)
    asyncio.run(policy.act(on_turn(env)))
    assert not chat.prompts("summary")
    assert policy.counters.for_call("summary").fallbacks == 1
    assert "(1 earlier message is not shown.)" in chat.prompts("talk")[0][1]


def test_a_crowd_that_shouts_is_windowed_from_far_to_near():
    env = evacuation_v0.parallel_env(people=25, rows=15, cols=15, hearing_radius=20, message_length=4000)
    chat = Canned(talk=[LONG * 16] * 25)
    policy, _ = run_first_round(env, chat)
    assert longest(chat, estimate_tokens) <= CONTEXT
    assert policy.counters.for_call("exit").left_out > 100
    prompts = dict(chat.prompts("exit"))
    slots = {a: info["slots"] for a, info in env.look()[1].items()}
    for key, prompt in prompts.items():
        shown = [line.split(":")[0] for line in prompt.split("\n") if line.startswith("evacuee_")]
        assert shown == [h.speaker for h in slots[key.agent].heard[: len(shown)]]
        assert f"({24 - len(shown)} messages from farther away are not shown.)" in prompt


def run_first_round(env, chat):
    """Talk and choice of exits of the first round."""
    env.reset(seed=0)
    policy = seated(env, chat, estimate_tokens, parameters={"default": {"max_tokens": 512}})

    async def first_round():
        while env.phase == "talk":
            requests = on_turn(env, 1000)
            actions = await policy.act(requests)
            env.step({request.agent: action for request, action in zip(requests, actions, strict=True)})
        await policy.act(on_turn(env, 1000))

    asyncio.run(first_round())
    return policy, chat


def test_a_small_context_leaves_out_averages_before_rounds():
    env = bertrand_v0.parallel_env(preset="team_up", rounds=70, exchanges=1)
    policy, chat = run(env, context_tokens=1000, parameters={"default": {"max_tokens": 200}})
    assert policy.counters.total().overlong == 0
    assert longest(chat, estimate_tokens) <= 1000
    assert policy.counters.for_call("price").left_out > 0
    for _, prompt in chat.prompts("price")[-10:]:
        assert "Averages over" not in prompt
        assert "\n70: " in prompt or "\n69: " in prompt or "\n65: " in prompt


def test_a_prompt_that_cannot_be_short_enough_is_sent_and_counted():
    env = kbc_v0.parallel_env(players=3, talk=False, exchanges=0)
    policy, chat = run(env, context_tokens=300, answer_tokens=40, parameters={})
    assert policy.counters.for_call("choose").overlong == 0
    env = evacuation_v0.parallel_env(preset="small", people=2, rounds=1, talk=False)
    policy, chat = run(env, context_tokens=300, answer_tokens=44)
    assert policy.counters.for_call("move").overlong == len(chat.prompts("move")) > 0
    assert policy.counters.total().fallbacks == 0


def test_the_provider_may_find_a_prompt_too_long():
    from llm_coop_envs.policies.llm.chat import ChatError

    too_long = ChatError("the prompt is too long", kind="context_too_long", status=400)
    env = talked(40)
    chat = Canned(talk=[too_long, too_long, reply("I say 20.")])
    policy = seated(env, chat, estimate_tokens)
    [action] = asyncio.run(policy.act(on_turn(env)))
    assert action == {"message": "I say 20."}
    lengths = [estimate_tokens(prompt) for _, prompt in chat.prompts("talk")]
    # Three quarters, to within a message.
    assert 0.75 * lengths[0] - 100 < lengths[1] <= 0.75 * lengths[0]
    assert 0.75 * lengths[1] - 100 < lengths[2] <= 0.75 * lengths[1]
    assert [key.attempt for key, _ in chat.prompts("talk")] == [0, 1, 2]
    counts = policy.counters.for_call("talk")
    assert (counts.shortened, counts.requests, counts.answered) == (2, 3, 1)


def test_a_prompt_that_stays_too_long_is_an_error():
    from llm_coop_envs.policies.llm.chat import ChatError

    too_long = ChatError("the prompt is too long", kind="context_too_long", status=400)
    env = talked(40)
    policy = seated(env, Canned(talk=[too_long] * 20), estimate_tokens)
    with pytest.raises(ChatError, match="too long"):
        asyncio.run(policy.act(on_turn(env)))
    assert policy.counters.for_call("talk").requests == 1 + 6
    env = evacuation_v0.parallel_env(preset="small", people=2, talk=False)
    with pytest.raises(ChatError, match="too long"):
        run(env, Canned(move=[too_long]))

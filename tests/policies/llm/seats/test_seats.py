import asyncio

import numpy as np
import pytest
from llm_chats import Recorder

from llm_coop_envs.core.registry import find_scenario, shipped_names
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.policies import Policy, play
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.seats import ChatSeat, ChatSeats
from llm_coop_envs.policies.llm.tokens import estimate_tokens
from llm_coop_envs.policies.scripted import make

SMALL = {"kbc": {"players": 4}, "bertrand": {}, "evacuation": {"people": 6}}
#: Scripted answers: the question's data come with each request.
ASKING = {"model": "scripted", "preset": "team_up"}


def native(scenario, learners=None, others=None, seed=3, cycles=30, **settings):
    """The episode as `play` plays it, with its replies by (agent, step, call, attempt)."""
    chat = Recorder()
    policy = LLMPolicy(chat, LLMSettings.build(ASKING["preset"], model=ASKING["model"]))
    env = find_scenario(scenario).environment(record=True, max_cycles=cycles, **settings)
    seats = {name: policy if learners is None or name in learners else others for name in env.possible_agents}
    play(env, seats, seed=seed)
    return env, {(key.agent, key.step, key.call, key.attempt): reply.text for key, _, reply in chat.log}


def told(agent, info):
    return agent, info["step"], info["call"], info["attempt"]


def drive(seats, answer, seed=3):
    """Play to the end; the sums of rewards, and the last infos."""
    asked = seats.init(seed)
    infos, total, done = seats.infos(), dict.fromkeys(seats.learners, 0.0), not asked
    while not done:
        replies = {name: answer(name, infos[name]) for name in asked}
        asked, rewards, done, infos = seats.step(replies)
        total = {name: total[name] + rewards[name] for name in total}
    return total, infos


@pytest.mark.parametrize("talk", [False, True])
@pytest.mark.parametrize("scenario", shipped_names())
def test_an_episode_through_all_seats_is_the_native_one(scenario, talk):
    env, replies = native(scenario, talk=talk, **SMALL[scenario])
    seats = ChatSeats(scenario, asking=ASKING, max_cycles=30, talk=talk, **SMALL[scenario])
    total, _ = drive(seats, lambda name, info: replies.pop(told(name, info)))
    assert seats.env.events == env.events
    assert not replies
    assert sum(total.values()) != 0 or scenario == "evacuation"


@pytest.mark.parametrize("scenario", shipped_names())
def test_an_episode_of_one_learner_is_the_native_one(scenario):
    opponent = make(f"{scenario}/{find_scenario(scenario).opponent}")
    settings = {**SMALL[scenario], "talk": True}
    name = find_scenario(scenario).environment(**settings).possible_agents[1]
    env, replies = native(scenario, [name], opponent, **settings)
    seat = ChatSeat(scenario, name, asking=ASKING, max_cycles=30, **settings)
    seat.init(3)
    done = False
    while not done:
        _, _, done, _ = seat.step(replies.pop(told(name, seat.seats.infos()[name])))
    assert seat.seats.env.events == env.events
    assert not replies
    assert seat.seats.metrics() == find_scenario(scenario).episode_metrics(env.events)


def test_it_plays_inside_a_running_event_loop_beside_policies_that_wait():
    class Later(Policy):
        async def act(self, requests):
            await asyncio.sleep(0)
            return [{"choice": 1.5} for _ in requests]

    async def inside():
        seats = ChatSeats("bertrand", learners=[0], others=Later(), talk=False, max_cycles=3)
        drive(seats, lambda name, info: "1.6")
        return [event["prices"] for event in seats.env.events if event["type"] == "round"]

    assert asyncio.run(inside()) == [[1.6, 1.5]] * 3


def test_rewards_are_own_joint_or_the_customers():
    def total(reward):
        seats = ChatSeats("bertrand", reward=reward, talk=False, max_cycles=4)
        return drive(seats, lambda name, info: "1.5" if name == "firm_0" else "1.8")[0], seats

    (own, seats), (joint, _), (surplus, _) = map(total, ("own", "joint", "consumer_surplus"))
    rounds = [event for event in seats.env.events if event["type"] == "round"]
    assert own["firm_0"] == pytest.approx(sum(event["profits"][0] for event in rounds))
    assert own["firm_0"] != own["firm_1"]
    assert joint["firm_0"] == joint["firm_1"] == pytest.approx(sum(own.values()))
    market = seats.env.settings.market
    expected = sum(market.consumer_surplus(event["prices"], event["demand"]) for event in rounds)
    assert surplus["firm_0"] == surplus["firm_1"] == pytest.approx(expected)


def test_what_stands_in_for_a_reply_never_scores():
    once = {"repairs": 0, "tries": 0}
    seat = ChatSeat("bertrand", reward="joint", talk=False, max_cycles=20, most_fallbacks=0.5, asking=once)
    seat.init(0)
    _, good, _, info = seat.step("1.5")
    assert good > 0
    assert not info["why"]
    _, nothing, _, info = seat.step("I would rather not say.")
    assert seat.seats.env.rewards.sum() > 0
    assert nothing == 0
    assert (info["decisions"], info["fallbacks"], info["why"]) == (3, 1, "")
    assert seat.step("1.5")[1] > 0


def test_past_a_share_of_fallbacks_no_reward_is_left():
    seat = ChatSeat("bertrand", talk=False, max_cycles=10, most_fallbacks=0.3, asking={"repairs": 0, "tries": 0})
    seat.init(0)
    rewards, done, why = [], False, []
    while not done:
        _, reward, done, info = seat.step("1.5" if len(rewards) < 5 else "no")
        rewards.append(reward)
        why.append(info["why"])
    assert all(one > 0 for one in rewards[:5])
    assert sum(rewards) == pytest.approx(0)
    assert not why[4]
    assert why[-1] == (
        "no reward: 5 of 10 decisions had no reply that could be read, and 0.3 of them is the most (most_fallbacks)"
    )


def test_no_reply_is_a_forfeit_even_where_silence_is_an_answer():
    def after(reply):
        seat = ChatSeat("bertrand", talk=True, max_cycles=40)
        seat.init(0)
        return seat.step(reply)[3]

    assert (after("")["fallbacks"], after("")["forfeits"]) == (0, 0)
    assert (after(None)["fallbacks"], after(None)["forfeits"]) == (1, 1)


def test_a_repair_is_a_question_of_its_own():
    seat = ChatSeat("bertrand", talk=False, max_cycles=5)
    seat.init(0)
    messages, reward, done, info = seat.step("1.4 or 1.6, both are fine")
    assert (info["attempt"], reward, done) == (1, 0, False)
    assert "both are fine" in messages[0]["content"]
    assert seat.step("1.6")[3]["attempt"] == 0


def test_only_news_is_sent_after_the_first_question_of_a_kind():
    seat = ChatSeat("bertrand", talk=False, max_cycles=5)
    (first,) = seat.init(0)
    (second,) = seat.step("1.5")[0]
    (third,) = seat.step("1.7")[0]
    assert "You set the price for firm_0" in first["content"]
    assert "You set the price" not in third["content"]
    assert "2: 1.7" in third["content"]
    assert "1: 1.5" in second["content"]
    assert "1: 1.5" not in third["content"]
    assert "this is round 3" in third["content"]
    assert "Now name your price" in third["content"]
    roles = [message["role"] for message in seat.seats.conversation("firm_0")]
    assert roles == ["user", "assistant"] * 2 + ["user"]


@pytest.mark.parametrize("private_messages", [0, 2])
def test_a_question_of_a_text_comes_again_every_time(monkeypatch, private_messages):
    """Also where it is word for word that of the last round, and where a notice stands behind it."""
    from auction.scenario import SCENARIO
    from llm_coop_envs.core import registry

    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)
    seat = ChatSeat("auction", rounds=4, private_messages=private_messages, listeners=[{"on": "mention"}])
    messages, done, asked = seat.init(1), False, []
    while not done:
        asked.append(messages[-1]["content"])
        messages, _, done, _ = seat.step("enter" if "take part" in asked[-1] else "20" if "bid?" in asked[-1] else "-")
    for question, times in (
        ("Do you take part in this round?", 4),
        ("What do you bid?", 4),
        ("Answer with a short", 4),
    ):
        assert sum(question in text for text in asked) == times
    assert "one of 4 bidders" not in " ".join(asked[3:])


def test_tokens_grow_linearly_over_300_rounds():
    def tokens(delta):
        settings = {"history_window": 300, "talk": False, "max_cycles": 300}
        seat = ChatSeat("bertrand", delta=delta, asking={"context_tokens": 100_000}, **settings)
        seat.init(0)
        price, done = np.random.default_rng(0), False
        while not done:
            _, _, done, _ = seat.step(f"{price.uniform(1, 2):.3f}")
        asked = [one["content"] for one in seat.seats.conversation("firm_0") if one["role"] == "user"]
        assert len(asked) >= 300
        counted = [estimate_tokens(text) for text in asked]
        return sum(counted[:150]), sum(counted)

    half, whole = tokens(True)
    full_half, full = tokens(False)
    assert whole < 2.2 * half
    assert full > 3 * full_half
    assert whole < full / 15


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"learners": ["firm_7"]}, "seat='firm_7': is no seat; seats are firm_0 to firm_1"),
        ({"learners": [2]}, "seat=2: is no seat; seats are firm_0 to firm_1"),
        ({"reward": "fame"}, "reward='fame': is none of own, joint, consumer_surplus"),
        ({"learners": [0], "others": "nobody"}, "policy='bertrand/nobody': is no scripted policy"),
        ({"learners": [0], "others": {"firm_0": "price_matching"}}, "others='firm_0': is a learner's seat"),
        ({"most_fallbacks": 2}, "most_fallbacks=2: is a share, from 0 to 1"),
    ],
)
def test_what_is_unknown_is_named(given, sentence):
    with pytest.raises(SettingsError) as raised:
        ChatSeats("bertrand", **given)
    assert str(raised.value).startswith(sentence)


def test_replies_come_from_those_who_were_asked():
    seats = ChatSeats("bertrand", talk=False, max_cycles=1)
    with pytest.raises(ResetNeeded, match=r"call init\(\) first"):
        seats.step({})
    seats.init()
    with pytest.raises(ActionError, match=r"awaited from .'firm_0', 'firm_1'., and came from .'firm_0'."):
        seats.step({"firm_0": "1.5"})
    seats.step({"firm_0": "1.5", "firm_1": "1.5"})
    with pytest.raises(ResetNeeded):
        seats.step({"firm_0": "1.5", "firm_1": "1.5"})

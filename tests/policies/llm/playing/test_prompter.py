"""Answers that cannot be read: repair, second try, fallback; all of it counted."""

import asyncio
import json
import re

import pytest
from llm_chats import Canned, reply, run

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.interface.question import Number
from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.chat import ChatError
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts, CallCounts
from llm_coop_envs.policies.llm.playing.move_readers import reader_for
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.tokens import counter_for


def contest(**settings):
    """One decision of two players, without talk."""
    return kbc_v0.parallel_env(players=2, talk=False, exchanges=0, record=True, **settings)


def counts(policy, call):
    return {name: value for name, value in policy.counters.to_json()[call].items() if value}


def numbers(env):
    return next(event["choices"] for event in env.events if event["type"] == "round")


def flags(env):
    return [event["flags"] for event in env.events if event["type"] == "choice"]


def test_an_answer_that_can_be_read_is_counted_and_nothing_else():
    env = contest()
    policy, chat = run(env, Canned(choose=["33", "I say\n22"]))
    assert numbers(env) == [33, 22]
    assert counts(policy, "choose") == {"asked": 2, "requests": 2, "answered": 2}
    assert [(key.agent, key.attempt) for key, _, _ in chat.log] == [("player_0", 0), ("player_1", 0)]


def test_an_unclear_answer_is_repaired():
    env = contest()
    policy, chat = run(env, Canned(choose=["20 or 30", "7", "30"]))
    assert numbers(env) == [30, 7]
    assert counts(policy, "choose") == {"asked": 2, "requests": 3, "answered": 1, "repaired": 1, "ambiguous": 1}
    key, request, _ = chat.log[-1]
    assert (key.agent, key.call, key.attempt) == ("player_0", "choose", 1)
    assert request.messages[-1].content.startswith(
        'Somebody was asked for a whole number from 0 to 100 and answered:\n"20 or 30"'
    )


def test_the_repair_question_is_asked_coldly():
    parameters = {"kbc": {"temperature": 0.7, "max_tokens": 50, "top_p": 1.0}}
    _, chat = run(contest(), Canned(choose=["20 or 30", "7", "30"]), parameters=parameters)
    assert [request.temperature for _, request, _ in chat.log] == [0.7, 0.7, 0.0]
    assert {request.max_tokens for _, request, _ in chat.log} == {50}
    _, chat = run(contest(), Canned(choose=["20 or 30", "7", "30"]))
    assert [request.temperature for _, request, _ in chat.log] == [None, None, None]


@pytest.mark.parametrize(
    ("answer", "repair", "taken"),
    [
        # The first two are of SmolLM2-135M-Instruct (Apache-2.0), which then named 10 and 100.
        ("No, no, no.", "10", False),
        ("Your answer has been requested.", "The number is 100.", False),
        ("Somewhere between 20 and 30", "25", False),
        ("Somewhere between 20 and 30", "30", True),
        ("thirty? or forty?", "30", True),
    ],
)
def test_a_repair_may_not_bring_what_the_answer_did_not_name(answer, repair, taken):
    env = contest()
    policy, _ = run(env, Canned(choose=[answer, "7", repair, "41"]))
    assert numbers(env) == [30 if taken else 41, 7]
    found = counts(policy, "choose")
    assert found.get("repaired", 0) == taken
    assert found.get("retried", 0) == (not taken)
    assert found.get("unreadable", 0) + found.get("ambiguous", 0) == 1 + (not taken)


def test_what_repair_does_not_bring_a_second_try_may():
    env = contest()
    policy, chat = run(env, Canned(choose=["who knows", "7", "none", "41"]))
    assert numbers(env) == [41, 7]
    assert counts(policy, "choose") == {"asked": 2, "requests": 4, "answered": 1, "retried": 1, "unreadable": 2}
    first, _, repair, again = [request.messages[-1].content for _, request, _ in chat.log]
    assert again.startswith(first)
    assert "it could not be made out what you chose" in again[len(first) :]
    assert "with a whole number from 0 to 100" in again[len(first) :]
    assert "who knows" in repair
    assert "who knows" not in again
    assert [key.attempt for key, _, _ in chat.log if key.agent == "player_0"] == [0, 1, 2]


def test_when_nothing_helps_the_environments_fallback_stands_in_and_is_flagged():
    env = contest()
    policy, _ = run(env, Canned(choose=["who knows", "7", "none", "no idea"]))
    assert numbers(env) == [0, 7]
    assert flags(env) == [["missing_action"], []]
    assert counts(policy, "choose") == {"asked": 2, "requests": 4, "answered": 1, "fallbacks": 1, "unreadable": 3}
    assert policy.counters.fallback_share == 0.5


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (reply(""), "empty", "have not answered"),
        (reply("<think>hm, 20 or", "length"), "truncated", "your answer was too long"),
        (reply("I am sorry, I cannot do that."), "refused", "could not be made out"),
        (reply("", "content_filter"), "refused", "could not be made out"),
        (reply("", refusal="I refuse."), "refused", "could not be made out"),
        (reply("150"), "illegal", "answered 150, which is not possible"),
    ],
)
def test_where_a_repair_cannot_help_the_second_try_comes_at_once(answer, status, words):
    env = contest()
    policy, chat = run(env, Canned(choose=[answer, "7", "41"]))
    assert numbers(env) == [41, 7]
    assert counts(policy, "choose") == {"asked": 2, "requests": 3, "answered": 1, "retried": 1, status: 1}
    assert words in chat.log[-1][1].messages[-1].content


def test_repairs_and_tries_can_be_switched_off():
    env = contest()
    policy, _ = run(env, Canned(choose=["20 or 30", "7"]), repairs=0, tries=0)
    assert numbers(env) == [0, 7]
    assert counts(policy, "choose") == {"asked": 2, "requests": 2, "answered": 1, "fallbacks": 1, "ambiguous": 1}
    env = contest()
    policy, chat = run(env, Canned(choose=["?", "7", "??", "???", "12"]), repairs=0, tries=3)
    assert numbers(env) == [12, 7]
    assert counts(policy, "choose")["retried"] == 1
    assert [key.attempt for key, _, _ in chat.log if key.agent == "player_0"] == [0, 1, 2, 3]


def test_a_number_that_stays_outside_is_submitted_as_illegal():
    env = contest()
    policy, _ = run(env, Canned(choose=["150", "7", "151"]))
    assert numbers(env) == [0, 7]
    assert flags(env) == [["illegal_choice"], []]
    assert counts(policy, "choose")["illegal"] == 2
    env = contest(choices="real")
    run(env, Canned(choose=["150", "7.5", "151"]))
    assert numbers(env) == [100, 7.5]
    assert flags(env) == [["illegal_choice"], []]


def test_a_price_outside_is_moved_to_the_bound_by_the_environment():
    env = bertrand_v0.parallel_env(preset="team_up", rounds=1, talk=False, force_first_price=False, record=True)
    policy, chat = run(env, Canned(price=["20", "7", "20.5"]))
    assert [event["prices"] for event in env.events if event["type"] == "round"] == [[14, 7]]
    assert flags(env) == [["illegal_choice"], []]
    assert counts(policy, "price")["illegal"] == 2
    assert "answered 20, which is not possible" in chat.log[-1][1].messages[-1].content


def test_a_price_that_is_not_on_the_grid():
    env = bertrand_v0.parallel_env(preset="calvano", grid_points=3, rounds=1, record=True)
    grid = [price for _, price in env.reset(seed=0)[1]["firm_0"]["slots"].choices]
    policy, chat = run(env, Canned(price=["1.5", f"{grid[1]:.6g}", f"about {grid[2]:.2f}"]))
    assert [event["prices"] for event in env.events if event["type"] == "round"] == [[grid[2], grid[1]]]
    assert counts(policy, "price") == {"asked": 2, "requests": 3, "answered": 1, "retried": 1, "illegal": 1}
    assert "with a number out of those listed" in chat.log[-1][1].messages[-1].content
    run(env, Canned(price=["1.5", "1.42773", "1.6"]))
    assert flags(env) == [["illegal_choice"], ["illegal_choice"]] or flags(env)[0] == ["illegal_choice"]


def test_a_fraction_is_rounded_where_whole_numbers_are_asked_for():
    env = contest()
    policy, _ = run(env, Canned(choose=["33.5", "33.49"]))
    assert numbers(env) == [34, 33]
    assert counts(policy, "choose") == {"asked": 2, "requests": 2, "answered": 2, "rounded": 2}


def evacuation(**settings):
    return evacuation_v0.parallel_env(preset="small", people=2, rounds=1, talk=False, record=True, **settings)


def test_options_are_repaired_asked_again_and_given_up():
    env = evacuation()
    policy, chat = run(
        env, Canned(exit=["left or right", "top", "the left exit", "north"], move=["z", "b", "up there"])
    )
    assert counts(policy, "exit") == {
        "asked": 2,
        "requests": 5,
        "repaired": 1,
        "retried": 1,
        "ambiguous": 1,
        "unreadable": 2,
    }
    repair = chat.prompts("exit")[2][1]
    assert repair.startswith(
        "Somebody was asked to choose one of these and answered as shown below: bottom, left, right\n"
    )
    assert counts(policy, "move")["illegal"] == 1
    again = next(prompt for key, prompt in chat.prompts("move") if key.attempt == 1)
    assert "what you chose is not possible" in again
    offered = re.findall(r"^(\w\) [\w ]+): \(", again, re.MULTILINE)
    assert again.endswith(f"with one of these: {', '.join(offered)}.")
    env = evacuation()
    policy, _ = run(env, Canned(exit=["?"] * 6, move=["?"] * 6))
    assert policy.counters.total().fallbacks == 4
    assert flags(env) == [["missing_action"]] * 4


def test_words_are_asked_for_again_but_not_repaired():
    env = bertrand_v0.parallel_env(preset="team_up", rounds=21, talk=False)
    policy, chat = run(env, Canned(plan=["", reply("", "content_filter"), "I go up.", reply("", "length")]))
    assert counts(policy, "plan") == {
        "asked": 2,
        "requests": 4,
        "retried": 1,
        "fallbacks": 1,
        "empty": 1,
        "refused": 1,
        "truncated": 1,
    }
    assert policy.get_state()["firm_0"]["notes"] == {"plan": [[21, "I go up."]]}
    assert policy.get_state()["firm_1"]["notes"] == {}
    assert "Please answer once more in the form asked for." in chat.prompts("plan")[2][1]


def test_silence_is_an_answer_in_talk():
    env = kbc_v0.parallel_env(players=2, exchanges=1, record=True)
    policy, _ = run(env, Canned(talk=["", "(says nothing)"]))
    # What is not said is not recorded.
    assert not [event for event in env.events if event["type"] == "message"]
    assert counts(policy, "talk") == {"asked": 2, "requests": 2, "answered": 2, "silent": 2, "empty": 2}


def test_a_cut_message_is_said_and_counted():
    env = kbc_v0.parallel_env(players=2, exchanges=1, record=True)
    policy, _ = run(env, Canned(talk=[reply("I will na", "length"), reply("", "length"), reply("20", "stop")]))
    said = sorted(event["text"] for event in env.events if event["type"] == "message")
    assert said == ["20", "I will na"]
    assert counts(policy, "talk") == {"asked": 2, "requests": 3, "answered": 1, "retried": 1, "truncated": 2}


def test_a_refusal_to_talk_is_silence_in_the_end():
    env = kbc_v0.parallel_env(players=2, exchanges=1, record=True)
    refusal = reply("", refusal="No.")
    policy, _ = run(env, Canned(talk=[refusal, refusal, "Hello."]))
    assert [event["text"] for event in env.events if event["type"] == "message"] == ["Hello."]
    assert counts(policy, "talk") == {"asked": 2, "requests": 3, "answered": 1, "fallbacks": 1, "refused": 2}


def test_objects_are_asked_for_with_a_schema():
    _, chat = run(
        contest(),
        Canned(choose=['{"reason": "x", "number": "9 or 10"}', '{"number": 7}', '{"number": 9}']),
        answers="json",
    )
    question, _, repair = [request for _, request, _ in chat.log]
    assert question.json_schema == {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "number": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["reason", "number"],
        "additionalProperties": False,
    }
    assert repair.json_schema == {
        "type": "object",
        "properties": {"number": {"type": ["integer", "null"], "minimum": 0, "maximum": 100}},
        "required": ["number"],
        "additionalProperties": False,
    }
    assert '{"number": null}' in repair.messages[-1].content
    _, chat = run(contest(), Canned(choose=["7", "7"]))
    assert all(request.json_schema is None for _, request, _ in chat.log)


def test_the_schemas_of_options_words_and_prices():
    _, chat = run(evacuation(), answers="json")
    schemas = {key.call: request.json_schema["properties"] for key, request, _ in chat.log}
    assert schemas["panic"] == {"feeling": {"type": "string"}}
    assert schemas["evaluate"] == {"evaluation": {"type": "string"}}
    assert schemas["exit"] == {
        "reason": {"type": "string"},
        "exit": {"type": "string", "enum": ["bottom", "left", "right"]},
    }
    assert schemas["move"]["move"]["type"] == "string"
    assert set(schemas["move"]["move"]["enum"]) <= set("abcdefghi")
    _, chat = run(bertrand_v0.parallel_env(preset="team_up", rounds=1), answers="json")
    schemas = {key.call: request.json_schema["properties"] for key, request, _ in chat.log}
    assert schemas["price"] == {
        "reason": {"type": "string"},
        "price": {"type": "number", "minimum": 2, "maximum": 14},
    }
    assert schemas["talk"] == {"message": {"type": "string"}}
    _, chat = run(evacuation(), answers="json", preset="team_up")
    schemas = {key.call: request.json_schema["properties"] for key, request, _ in chat.log}
    longest = {key.call: request.max_tokens for key, request, _ in chat.log}
    # So that the object is complete when the tokens are used up; before a choice, even if the reason is all digits.
    assert schemas["panic"]["feeling"] == {"type": "string", "maxLength": 2 * (longest["panic"] - 32)}
    assert schemas["exit"]["reason"] == {"type": "string", "maxLength": longest["exit"] - 32}


@pytest.mark.parametrize("texts", [("reason",), ("observations", "plans", "insights")])
@pytest.mark.parametrize("max_tokens", [96, 128, 512])
def test_the_longest_object_fits_however_many_texts_it_has(texts, max_tokens):
    reader = reader_for(Number(name="price", low=1.42773, high=1.97018, integer=False), str)
    schema = reader.object_schema(max_tokens=max_tokens, beside=texts)
    longest = {name: "7" * schema["properties"][name]["maxLength"] for name in texts}
    written = json.dumps({**longest, reader.key: 1.42773})
    count, _ = counter_for("local:smollm2-135m")
    assert max_tokens / 2 < count(written) <= max_tokens


def test_a_request_carries_the_settings():
    parameters = {
        "temperature": 0.3,
        "top_p": 0.9,
        "max_tokens": 77,
        "stop": ["END"],
        "seed": 5,
        "reasoning_effort": "low",
        "extra": {"top_k": 3},
    }
    _, chat = run(contest(), Canned(choose=["1", "2"]), model="a/b", parameters={"kbc": parameters}, system="Be brief.")
    request = chat.log[0][1]
    assert [(m.role, m.content[:9]) for m in request.messages] == [("system", "Be brief."), ("user", "You are p")]
    assert request.model == "a/b"
    for name, value in {**parameters, "extra": {"top_k": 3, "metadata": request.extra["metadata"]}}.items():
        assert getattr(request, name) == (tuple(value) if name == "stop" else value)


def test_an_error_ends_the_step_only_when_all_answers_are_in():
    class Slow(Canned):
        done = 0

        async def ask(self, key, request):
            if key.agent == "player_0":
                raise ChatError("no key", kind="auth", status=401)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.done += 1
            return reply("7")

    chat = Slow()
    env = kbc_v0.parallel_env(players=5, talk=False)
    with pytest.raises(ChatError, match="no key"):
        play(env, LLMPolicy(chat, LLMSettings(model="m")), seed=0)
    assert chat.done == 4


def test_counters_add_up():
    _, policy = None, run(contest(), Canned(choose=["?", "7", "none", "x"]))[0]
    counters = policy.counters
    total = counters.total()
    assert total.asked == total.answered + total.repaired + total.retried + total.fallbacks
    assert AnswerCounts().fallback_share == 0.0
    assert AnswerCounts().total() == CallCounts()

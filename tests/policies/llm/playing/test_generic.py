"""A scenario that brings no workflow is asked with its environment's own text."""

import json

import pytest
from llm_chats import Canned, Recorder, reply, run
from own_pack import COMPLETE
from toy import ToyEnv

from llm_coop_envs.core import registry
from llm_coop_envs.core.scenario import Measures, Scenario
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Option, Options
from llm_coop_envs.policies.llm.playing.packs import load_pack
from llm_coop_envs.policies.llm.playing.player import check
from llm_coop_envs.policies.llm.playing.settings import LLMSettings

FIRST = "You are player_0, round 1, act, last 0.0.\nYour turn."


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    measures = Measures(episode=lambda events: {}, rounds=lambda events: [], about={}, headline=())
    registry.register(Scenario(name="toy", title="Toy", env=ToyEnv, measures=measures, scripted={}, opponent="none"))


def env(**settings):
    return ToyEnv(players=2, rounds=2, record=True, **settings)


def choices(env):
    return [event["choice"] for event in env.events if event["type"] == "choice"]


def counts(policy, call):
    return {name: value for name, value in policy.counters.to_json()[call].items() if value}


@pytest.mark.parametrize("pack", COMPLETE)
@pytest.mark.parametrize("answers", ["plain", "json", "reason"])
@pytest.mark.parametrize("continuous", [False, True])
def test_an_episode_is_played(pack, answers, continuous):
    played = env(continuous=continuous)
    policy, chat = run(played, pack=pack, answers=answers)
    total = policy.counters.total()
    assert total.answered == total.asked == total.requests == 8
    assert [key.call for key, _, _ in chat.log] == ["talk", "talk", "act", "act"] * 2
    assert len(choices(played)) == 4
    assert not any(event["flags"] for event in played.events if event["type"] == "choice")
    assert all(0 <= choice <= (10 if continuous else 3) for choice in choices(played))


def test_the_prompt_is_the_environments_text_and_the_form_of_the_answer():
    _, chat = run(env(talk=False), personas="a person of few words", persona_from=0)
    prompt = chat.prompts("act")[0][1]
    assert prompt == (
        f"{FIRST}\n\na person of few words\n\nThe number must be one of these: 0, 1, 2, 3.\n"
        "Answer with the number only."
    )
    _, chat = run(env(talk=False, continuous=True), pack="de-a", answers="json")
    prompt = chat.prompts("act")[0][1]
    assert "Die Zahl muss eine Zahl (mit Dezimalpunkt) von 0 bis 10 sein." in prompt
    assert prompt.endswith('mit "reason" (dein Grund in einem Satz) und "number" (deine Zahl).')
    schema = chat.log[0][1].json_schema
    assert schema["properties"] == {
        "reason": {"type": "string"},
        "number": {"type": "number", "minimum": 0, "maximum": 10},
    }


def test_what_others_say_is_read_in_the_environments_text():
    chat = Canned(talk=["Three it is.", ""])
    played = env()
    policy, _ = run(played, chat)
    assert [event["text"] for event in played.events if event["type"] == "message"][:1] == ["Three it is."]
    assert any(': "Three it is."' in prompt for _, prompt in chat.prompts("act"))
    assert policy.counters.for_call("talk").silent == 1
    prompt = chat.prompts("talk")[0][1]
    assert prompt.endswith("Answer with your words and nothing else, in at most 1000 characters.")


def test_answers_are_repaired_asked_for_again_and_given_up():
    played = env(talk=False)
    policy, chat = run(played, Canned(act=["1 or 2", "2", "1", "4", "9", "3", "7"]))
    assert choices(played)[:2] == [1, 2]
    assert counts(policy, "act") == {
        "asked": 4,
        "requests": 7,
        "answered": 1,
        "repaired": 1,
        "retried": 1,
        "fallbacks": 1,
        "ambiguous": 1,
        "illegal": 3,
    }
    assert "out of 0, 1, 2, 3 and answered" in chat.prompts("act")[2][1]
    played = env(talk=False)
    policy, _ = run(played, Canned(act=[reply("?")] * 12))
    assert policy.counters.for_call("act").fallbacks == 4
    assert choices(played) == [3] * 4


def test_options_are_asked_for_by_name(monkeypatch):
    options = tuple(Option(choice=3 - k, name=name) for k, name in enumerate(("give", "keep", "burn")))
    monkeypatch.setattr(ToyEnv, "_question", lambda self, index: Options(name="deed", options=options))
    played = env(talk=False)
    _, chat = run(played, Canned(act=["I keep it all.", "burn", "the first", "give", "keep"]), answers="plain")
    assert choices(played)[:2] == [2, 1]
    assert "You can choose from these: give, keep, burn." in chat.prompts("act")[0][1]
    _, chat = run(env(talk=False), answers="json")
    assert chat.log[0][1].json_schema["properties"]["deed"] == {"type": "string", "enum": ["give", "keep", "burn"]}
    question = json.loads(chat.log[0][1].extra["metadata"]["question"])
    assert question["options"] == ["give", "keep", "burn"]


def test_parameters_and_packs_are_checked_as_for_the_others(tmp_path):
    settings = LLMSettings.build(model="m", parameters={"toy/act": {"max_tokens": 9}, "toy": {"temperature": 0.5}})
    _, chat = run(env(), Recorder(), **{**settings.to_json(), "model": "scripted"})
    assert {(key.call, request.max_tokens, request.temperature) for key, request, _ in chat.log} == {
        ("talk", None, 0.5),
        ("act", 9, None),
    }
    with pytest.raises(SettingsError, match="did you mean 'toy/act'"):
        LLMSettings.build(model="m", parameters={"toy/acts": {}})
    check("toy", "m", {"personas": "agreeable"})
    with pytest.raises(SettingsError, match="has no words for toy in pack en-a"):
        check("toy", "m", {"personas": "explore"})
    pack = load_pack("en-a")
    assert pack.digest(["toy"]) != pack.digest([]) != pack.digest(["kbc"])

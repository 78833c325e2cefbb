"""Messages that a language model says in other words, in every scenario, through the chat of the run."""

import json

import pytest
from llm_chats import Canned, Recorder, reply
from llm_chats import run as play_with
from model_studies import answering, asking, study_with_model
from small import contents

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.treatments.paraphrase import paraphrase

SETTINGS = {
    "bertrand": {"firms": 2, "rounds": 2, "exchanges": 1, "collusion_window": 0},
    "kbc": {"players": 3, "exchanges": 1},
    "evacuation": {"people": 3, "rows": 9, "cols": 9, "rounds": 2},
}
OTHER = {"delivery": "paraphrase", "delivery_by": "speaker"}
STUDY = """\
name: words
seed: 1
conditions:
  - name: firms
    scenario: bertrand
    settings: {rounds: 3, collusion_window: 2, exchanges: 1, delivery: paraphrase, delivery_by: speaker}
    policies: price_matching
    seeds: [0]
"""


def env_of(name, **more):
    return find_scenario(name).environment(record=True, **{**SETTINGS[name], **OTHER, **more})


def said(events):
    return [event for event in events if event["type"] == "message"]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("form", ["plain", "json"])
def test_listeners_get_the_models_own_other_words(name, form):
    env = env_of(name)
    _, chat = play_with(env, answers=form)
    asked = {key.agent: prompt for key, prompt in chat.prompts("paraphrase")}
    assert asked
    for event in said(env.events):
        assert event["delivered"]["treatment"] == "paraphrase"
        assert event["delivered"]["text"] not in ("", event["text"], paraphrase(event["text"]))
    assert len(chat.prompts("paraphrase")) == len(said(env.events))
    # What was said stands in quotation marks, on one line.
    assert all(any(line.startswith('You are about to say this: "') for line in p.splitlines()) for p in asked.values())


def test_other_words_are_heard_by_others_and_not_by_the_speaker():
    env = env_of("bertrand", opener="fixed")
    chat = Canned(talk=["I ask 1.8."] * 9, paraphrase=["My price is going to be 1.8."] * 9)
    play_with(env, chat)
    first = dict(chat.prompts("price")[:2])
    assert len(first) == 2
    for key, prompt in first.items():
        rival = next(name for name in env.possible_agents if name != key.agent)
        assert 'You: "I ask 1.8."' in prompt
        assert f'{rival}: "My price is going to be 1.8."' in prompt


@pytest.mark.parametrize("answer", ["", reply("", refusal="no"), "\u200b"])
def test_where_the_model_gives_none_the_table_does(answer):
    env = env_of("kbc")
    policy, _ = play_with(env, Canned(talk=["I think of 17."] * 9, paraphrase=[answer] * 9))
    assert {event["delivered"]["text"] for event in said(env.events)} == {paraphrase("I think of 17.")}
    assert policy.counters.for_call("paraphrase").fallbacks == len(said(env.events))


def test_nobody_is_asked_unless_the_settings_say_so():
    for more in ({"delivery": "deliver"}, {"delivery_by": ""}, {"delivery": "drop"}):
        _, chat = play_with(env_of("bertrand", **more))
        assert not chat.prompts("paraphrase")
    changes = [{"from_round": 2, "settings": {"delivery": "paraphrase"}}]
    _, chat = play_with(env_of("bertrand", delivery="deliver", changes=changes))
    assert {key.step > 1 for key, _ in chat.prompts("paraphrase")} == {True}


@pytest.mark.parametrize("regulator", [None, {"powers": ["veto"], "on": ["talk"]}])
def test_a_paraphrase_is_a_key_of_the_action_and_survives_json(regulator):
    env = env_of("bertrand", regulator=regulator)
    env.reset(seed=0)
    heard = set()
    for _ in range(3):
        env.set_state(json.loads(json.dumps(env.get_state())))
        action = {"message": "I ask 9.", "paraphrase": "Nine it is.", "choice": 0}
        env.step(json.loads(json.dumps(dict.fromkeys(env.agents, action))))
        heard |= {(message.text, message.delivered.text) for message in env.conversation.messages}
    assert heard == {("I ask 9.", "Nine it is.")}


def test_rules_are_paraphrased_by_the_table():
    env = env_of("bertrand")
    policy = find_scenario("bertrand").policies["price_matching"]()
    from llm_coop_envs.policies import play

    play(env, policy, seed=0)
    assert all(event["delivered"]["text"] == paraphrase(event["text"]) for event in said(env.events))


def test_an_episode_played_on_keeps_its_other_words():
    env = env_of("bertrand", rounds=4)
    policy, _ = play_with(env)
    longer = env_of("bertrand", rounds=6)
    Branching(longer, policy, seed=0, played=env.events)
    there = said(env.events)
    assert there
    assert said(longer.events)[: len(there)] == there


def test_a_run_is_replayed_with_the_same_bytes_and_asks_once(tmp_path):
    with answering() as server:
        run_study(study_with_model(STUDY), tmp_path / "run", access=asking(server))
        count = sum(server.asked.values())
        events = open_run(tmp_path / "run").read_events("firms", 0)[1]
        assert all("delivered" in event for event in said(events))
        run_study(study_with_model(STUDY), tmp_path / "again", access=ModelAccess(replay=tmp_path / "run"))
        assert sum(server.asked.values()) == count
        usual = STUDY.replace("delivery: paraphrase, ", "")
        run_study(study_with_model(usual), tmp_path / "usual", access=asking(server))
        assert sum(server.asked.values()) == 2 * count - len(said(events))
    assert contents(tmp_path / "again") == contents(tmp_path / "run")


def test_the_language_of_the_pack_asks():
    _, chat = play_with(env_of("bertrand"), Recorder(), pack="de-a")
    assert all(prompt.startswith("Du willst Folgendes sagen: ") for _, prompt in chat.prompts("paraphrase"))

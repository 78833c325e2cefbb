"""What becomes of messages on their way, in every scenario."""

import json
from collections import Counter

import pytest
from talkers import ENVS, told

from llm_coop_envs import bertrand_v0, kbc_v0
from llm_coop_envs.core.settings import TREATMENTS
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.treatments.paraphrase import paraphrase

NEUTRAL = "Nothing."


def loudly(text):
    return text.upper()


def heard_by(env, seed, listener):
    """What one player has heard, as (round, speaker, text), each once; and all events."""
    env.reset(seed=seed)
    found = []
    while env.agents:
        for message in env.look()[0].get(listener, {"messages": ()})["messages"]:
            one = (env.round, env.possible_agents[message["speaker"]], message["text"])
            if one not in found:
                found.append(one)
        question = env.look()[1]
        env.step(
            {
                agent: {"message": f"{agent} in {env.round}.", "choice": getattr(info["slots"].question, "high", 0)}
                for agent, info in question.items()
            }
        )
    return found, env.events


def firms(**more):
    return bertrand_v0.parallel_env(record=True, rounds=4, exchanges=1, firms=4, opener="fixed", **more)


@pytest.mark.parametrize("treatment", TREATMENTS)
@pytest.mark.parametrize("name", ENVS)
def test_what_was_said_and_what_was_heard_stand_in_the_events(name, treatment):
    events, _ = told(ENVS[name](delivery=treatment, delivery_text=NEUTRAL), 5)
    usual, _ = told(ENVS[name](), 5)
    said = [event for event in events if event["type"] == "message"]
    plain = [{k: v for k, v in event.items() if k != "delivered"} for event in said]
    assert plain == [event for event in usual if event["type"] == "message"]
    if treatment == "deliver":
        assert not any("delivered" in event for event in said)
        return
    assert all(event["delivered"]["treatment"] == treatment for event in said)
    for event in said:
        heard = event["delivered"]
        assert (heard["text"] == event["text"]) == (treatment in ("delay", "shuffle", "swap"))
        assert heard.get("round", event["round"] + 1) == event["round"] + 1


def test_dropped_and_neutral_messages():
    assert heard_by(firms(delivery="drop"), 0, "firm_3")[0] == []
    neutral, _ = heard_by(firms(delivery="neutral", delivery_text=NEUTRAL), 0, "firm_3")
    assert {text for _, _, text in neutral} == {NEUTRAL}
    share, events = heard_by(firms(delivery="drop", delivery_share=0.5), 0, "firm_3")
    lost = [event for event in events if "delivered" in event and event["agent"] != "firm_3"]
    assert 0 < len(lost) < 12
    assert len(share) == 12 - len(lost)


def test_delayed_messages_are_heard_in_their_round_only():
    found, _ = heard_by(firms(delivery="delay", delivery_delay=2), 0, "firm_3")
    assert {(number, text) for number, _, text in found} == {
        (number, f"firm_{k} in {number - 2}.") for number in (3, 4) for k in range(3)
    }
    # A contest forgets nothing: what has arrived stays.
    contest = kbc_v0.parallel_env(record=True, players=3, delivery="delay", order="fixed")
    found, _ = heard_by(contest, 0, "player_0")
    assert {text for number, _, text in found if number == 3} == {f"player_{k} in {n}." for k in (1, 2) for n in (1, 2)}


def test_names_are_dealt_anew_in_each_talk_or_swapped_for_good():
    by_round = {}
    for treatment in ("shuffle", "swap"):
        found, _ = heard_by(firms(delivery=treatment), 1, "firm_3")
        named = {number: {text[:6]: speaker for n, speaker, text in found if n == number} for number in range(1, 5)}
        for names in named.values():
            assert sorted(names.values()) == sorted(names) == ["firm_0", "firm_1", "firm_2"]
            assert all(true != seeming for true, seeming in names.items())
        by_round[treatment] = {tuple(sorted(names.items())) for names in named.values()}
    assert len(by_round["swap"]) == 1
    assert len(by_round["shuffle"]) > 1


def test_other_words_keep_numbers_and_are_always_the_same():
    assert paraphrase("I think we should all ask 8.25 this round.") == (
        "In my view it would be good if we all ask 8.25 in this round."
    )
    assert paraphrase("in this round") != "in in this round"
    for text in ("Hello, I'll ask 7.", "7", "Nein.", "I propose 6; let's stay together!"):
        other = paraphrase(text)
        assert other != text
        assert other == paraphrase(text)
        assert Counter(c for c in other if c.isdigit()) == Counter(c for c in text if c.isdigit())
    assert paraphrase("") == ""


def test_other_words_by_a_function_of_ones_own(monkeypatch):
    monkeypatch.setattr("llm_coop_envs.treatments.paraphrase.loudly", loudly, raising=False)
    given = {"delivery": "paraphrase", "delivery_by": "llm_coop_envs.treatments.paraphrase:loudly"}
    found, _ = heard_by(firms(**given), 0, "firm_3")
    assert (1, "firm_0", "FIRM_0 IN 1.") in found
    for wrong in ("nowhere:at_all", "json:nothing", "llm_coop_envs.treatments.delivery:DROP", "json"):
        with pytest.raises(SettingsError, match=r"^delivery_by="):
            firms(delivery="paraphrase", delivery_by=wrong)


def test_one_speaker_is_silenced_from_a_round_on():
    changes = [{"from_round": 3, "players": "firm_0", "settings": {"delivery": "drop"}}]
    found, _ = heard_by(firms(changes=changes), 0, "firm_3")
    assert {number for number, speaker, _ in found if speaker == "firm_0"} == {1, 2}
    assert {number for number, speaker, _ in found if speaker == "firm_1"} == {1, 2, 3, 4}


@pytest.mark.parametrize("treatment", ["delay", "shuffle"])
def test_a_treated_episode_goes_on_from_a_snapshot(treatment):
    env, other = firms(delivery=treatment), firms(delivery=treatment)
    env.reset(seed=3)
    speak = {agent: {"message": agent, "choice": 1.5} for agent in env.agents}
    while env.round < 2:
        env.step(speak)
    other.set_state(json.loads(json.dumps(env.get_state())))
    while env.agents:
        one, another = env.look()[0], other.look()[0]
        assert all(one[agent]["messages"] == another[agent]["messages"] for agent in env.agents)
        env.step(speak)
        other.step(speak)

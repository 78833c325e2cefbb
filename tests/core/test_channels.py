"""Who hears whom, who speaks when: the parallel form against speaking one by one."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.core.channels import (
    Audience,
    Conversation,
    everyone,
    grouped,
    neighbours,
    pairs,
    within,
)
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.interface.messages import MESSAGE_CLEANED, MESSAGE_CUT, Delivered, clean_message
from llm_coop_envs.treatments.delivery import TREATMENTS, deliver


@st.composite
def talks(draw):
    """Several talks: each an order of speakers and a random directed graph of who hears whom."""
    n = draw(st.integers(1, 8))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(n)))[: draw(st.integers(0, n))]
        if draw(st.booleans()):
            found.append((order, None))
        else:
            edges = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
            listeners = {s: sorted(h for a, h in edges if a == s and h != s) for s in range(n)}
            listeners.update(dict.fromkeys(draw(st.sets(st.integers(0, n - 1), max_size=2))))  # heard by everyone
            found.append((order, listeners))
    return n, found


def speak(speaker, heard):
    """What a speaker says depends on everything it has heard; now and then it keeps silent."""
    told = hashlib.sha256(json.dumps([speaker, heard]).encode()).hexdigest()[:8]
    return "" if told.startswith("0") else told


KEY = (3, 5)


def one_by_one(n, found, settings):
    """The plain form: one speaker after the other, each message handed to its hearers at once, as it is treated."""
    transcript, ears = [], {i: [] for i in range(n)}

    def known(listener, now):
        return [told for due, *told in sorted(ears[listener], key=lambda one: one[3:]) if due <= now]

    for number, (order, listeners) in enumerate(found):
        for position, speaker in enumerate(order):
            text = speak(speaker, [told[:2] for told in known(speaker, number)])
            if text:
                transcript.append((speaker, text))
                place = {"place": (number, position), "round_": number, "talkers": sorted(order), "players": n}
                heard = deliver(settings, KEY, text, speaker, **place) or Delivered("", text)
                for hearer in range(n) if listeners is None or listeners[speaker] is None else listeners[speaker]:
                    if hearer != speaker and heard.text is not None:
                        seeming = heard.speaker_for(hearer, speaker)
                        ears[hearer].append((heard.round or 0, seeming, heard.text, number, position))
    return transcript, {i: [(one[0], one[1]) for one in known(i, len(found) - 1)] for i in range(n)}


TREATED = st.builds(
    ScenarioSettings,
    delivery=st.sampled_from(TREATMENTS),
    delivery_share=st.sampled_from([1.0, 0.5]),
    delivery_delay=st.integers(1, 2),
)


@given(talks(), TREATED)
def test_levels_give_the_transcript_of_speaking_one_by_one(case, settings):
    n, found = case
    conversation = Conversation(100)
    conversation.key = KEY
    steps = 0
    for number, (order, listeners) in enumerate(found):
        conversation.now = number
        levels = conversation.open(order, Audience(listeners), together=False)
        assert sorted(s for level in levels for s in level) == sorted(order)
        for level in levels:
            steps += 1
            texts = {s: speak(s, [(m.speaker, m.text) for m in conversation.heard(s)]) for s in level}
            for s in reversed(level):
                conversation.say(s, texts[s], settings, players=n)
        conversation.close()
    transcript, ears = one_by_one(n, found, settings)
    ordered = sorted(conversation.messages, key=lambda m: (m.sequence, m.position))
    assert [(m.speaker, m.text) for m in ordered] == transcript
    for i in range(n):
        assert [(m.speaker, m.text) for m in conversation.heard(i)] == ears[i]
    assert steps <= sum(len(order) for order, _ in found)


@given(talks(), TREATED)
def test_a_conversation_survives_json_at_any_moment(case, settings):
    n, found = case
    conversation = Conversation(100)
    conversation.key = KEY
    for number, (order, listeners) in enumerate(found):
        conversation.now = number
        if number == 1:
            conversation.forget()
        for level in conversation.open(order, Audience(listeners), together=False):
            other = Conversation(100)
            other.set_state(json.loads(json.dumps(conversation.get_state())))
            other.now, other.key = number, KEY
            for s in level:
                assert other.heard(s) == conversation.heard(s)
                text = speak(s, [m.text for m in conversation.heard(s)])
                assert other.say(s, text, settings, players=n) == conversation.say(s, text, settings, players=n)
            assert other.get_state() == conversation.get_state()


@given(talks())
def test_levels_are_as_few_as_the_hearing_allows(case):
    _, found = case
    for order, listeners in found:
        if listeners is None:
            assert everyone().levels(order) == [[s] for s in order]
            continue
        depth = {}
        for position, s in enumerate(order):
            heard = (e for e in order[:position] if listeners[e] is None or s in listeners[e])
            depth[s] = 1 + max((depth[e] for e in heard), default=0)
        levels = Audience(listeners).levels(order)
        assert len(levels) == max(depth.values(), default=0)
        assert all(depth[s] == k + 1 for k, level in enumerate(levels) for s in level)


def test_a_group_hears_its_own_talk_and_everybody_an_announcement():
    audience = grouped([[4, 0, 2], [1, 3]], announcers=[3])
    assert [audience.listeners(s) for s in range(5)] == [(2, 4), (3,), (0, 4), None, (0, 2)]
    # Groups talk side by side; whoever comes after the announcement has heard it.
    assert audience.levels([0, 1, 2, 3, 4]) == [[0, 1], [2, 3], [4]]
    conversation = Conversation(10)
    for level in conversation.open([0, 1, 2, 3, 4], audience, together=False):
        for s in level:
            conversation.say(s, f"from {s}")
    conversation.close()
    heard = [[m.speaker for m in conversation.heard(i)] for i in range(5)]
    assert heard == [[2, 3, 4], [3], [0, 3, 4], [1], [0, 2, 3]]


@pytest.mark.parametrize(("players", "hearers"), [(9, 4), (9, 3), (5, 24), (2, 1)])
def test_neighbourhoods_on_a_ring(players, hearers):
    audience = neighbours(range(players), hearers)
    for s in range(players):
        heard = audience.listeners(s)
        assert len(heard) == min(hearers, players - 1)
        assert s not in heard
        assert list(heard) == sorted(heard)
        if hearers < players:
            apart = [min((h - s) % players, (s - h) % players) for h in heard]
            assert max(apart) == (hearers + 1) // 2


@pytest.mark.parametrize("groups", [10, 100])
def test_groups_talk_in_as_many_steps_as_a_group_has_members(groups):
    audience = grouped(range(k * 24, k * 24 + 24) for k in range(groups))
    order = np.random.default_rng(0).permutation(groups * 24).tolist()
    assert [len(level) for level in audience.levels(order)] == [groups] * 24


def test_what_is_heard_is_put_where_it_belongs_and_not_gathered_anew(monkeypatch):
    conversation = Conversation(10)
    audience = grouped(range(k * 4, k * 4 + 4) for k in range(50))
    put = []
    original = Conversation._put
    monkeypatch.setattr(Conversation, "_put", lambda self, message: put.append(message) or original(self, message))
    order = np.random.default_rng(0).permutation(200).tolist()
    for level in conversation.open(order, audience, together=False):
        for s in level:
            conversation.heard(s)
        for s in level:
            conversation.say(s, str(s))
    assert len(put) == 200


def test_far_apart_speakers_need_one_step():
    positions = np.array([[0, 0], [0, 20], [20, 0], [20, 20]])
    audience = within(positions, 5, range(4), range(4))
    assert audience.levels([2, 0, 3, 1]) == [[2, 0, 3, 1]]


def test_a_later_speaker_of_an_earlier_level_is_not_heard_too_soon():
    # 1 waits for 0; 2 speaks at once, after 1 in the order, and 1 would hear it.
    conversation = Conversation(10)
    levels = conversation.open([0, 1, 2], Audience({0: [1], 1: [], 2: [1]}), together=False)
    assert levels == [[0, 2], [1]]
    conversation.say(0, "zero")
    conversation.say(2, "two")
    assert [m.text for m in conversation.heard(1)] == ["zero"]
    conversation.say(1, "one")
    conversation.close()
    assert [m.text for m in conversation.heard(1)] == ["zero", "two"]


def test_speaking_together_is_heard_afterwards():
    conversation = Conversation(10)
    assert conversation.open([2, 0, 1], everyone(), together=True) == [[2, 0, 1]]
    for s in (0, 1, 2):
        assert conversation.heard(s) == []
        conversation.say(s, str(s))
    assert conversation.heard(0) == []
    conversation.close()
    assert [m.text for m in conversation.heard(0)] == ["2", "1"]
    assert [m.text for m in conversation.heard(0, own=True)] == ["2", "0", "1"]


def test_nobody_speaking_needs_no_step():
    assert Conversation(10).open([], everyone(), together=True) == []
    assert Conversation(10).open([], everyone(), together=False) == []


def test_pairs_hear_each_other_alone():
    audience = pairs({0: 1, 1: 0, 2: 3, 3: 2})
    assert audience.levels([0, 2, 1, 3]) == [[0, 2], [1, 3]]
    assert audience.listeners(2) == (3,)


def test_forgetting_keeps_the_numbering():
    conversation = Conversation(10)
    conversation.open([0], everyone(), together=False)
    conversation.say(0, "a")
    conversation.forget()
    assert conversation.heard(1) == []
    conversation.open([0], everyone(), together=False)
    message, _ = conversation.say(0, "b")
    assert message.sequence == 1


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25),
    st.floats(0.5, 8),
    st.data(),
)
def test_within_is_the_euclidean_distance(spots, radius, data):
    positions = np.array(spots)
    n = len(spots)
    present = data.draw(st.sets(st.integers(0, n - 1)))
    audience = within(positions, radius, range(n), sorted(present))
    for speaker in range(n):
        near = [
            i for i in sorted(present) if i != speaker and ((positions[i] - positions[speaker]) ** 2).sum() <= radius**2
        ]
        assert list(audience.listeners(speaker)) == near


def test_a_distance_equal_to_the_radius_is_heard():
    positions = np.array([[0, 0], [3, 4], [0, 6]])
    assert within(positions, 5, [0], [0, 1, 2]).listeners(0) == (1,)


@given(st.text(), st.integers(1, 50))
def test_any_unicode_survives_up_to_the_limit(text, limit):
    clean, flags = clean_message(text, limit)
    assert clean == text[:limit]
    assert (MESSAGE_CUT in flags) == (len(text) > limit)
    assert MESSAGE_CLEANED not in flags


@given(st.text(st.characters(codec=None, categories=["Cs", "L", "So"])))
def test_lone_surrogates_are_replaced_and_flagged(text):
    clean, flags = clean_message(text, 10_000)
    clean.encode()
    assert (MESSAGE_CLEANED in flags) == any("\ud800" <= c <= "\udfff" for c in text)
    if not flags:
        assert clean == text


@pytest.mark.parametrize("raw", [5, b"bytes", ["text"], {}, 1.5])
def test_what_is_no_text_is_silence(raw):
    assert clean_message(raw, 10) == ("", (MESSAGE_CLEANED,))
    assert clean_message(None, 10) == ("", ())

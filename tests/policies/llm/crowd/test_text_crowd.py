"""Crowds of text answers: nobody is left out, what is paid is kept, what cannot be read is counted.

Names of tests say D1 to D9 where they stand for a defect found in the released example of Pan et al. 2024 ("Very
Large-Scale Multi-Agent Simulation in AgentScope", arXiv 2407.17789).
"""

import asyncio
import json
import re
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_crowds import crowd_rounds, dying, number, numbers, own_index

from llm_coop_envs import evacuation_v0, kbc_v0
from llm_coop_envs.errors import LlmCoopError, MissingExtra, SettingsError
from llm_coop_envs.policies import ScriptedPolicy, make, play
from llm_coop_envs.policies.llm.chat import NotInJournal, RunStopped
from llm_coop_envs.policies.llm.crowd import TextCrowd, part
from llm_coop_envs.policies.llm.journal import JournalError, TextJournal
from llm_coop_envs.policies.llm.journal.frames import Commit, read_commits
from llm_coop_envs.policies.llm.parsing.numbers import NumberQuestion, read_bare_numbers, read_number
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.validity import shares_line
from llm_coop_envs.util.draws import seeds_of


def contest(players=103, **given):
    return kbc_v0.parallel_env(**{"preset": "large_scale", "players": players, "rounds": 2, "record": True, **given})


def played(source, *, env=None, seed=5, seats=None, **given):
    env = contest() if env is None else env
    with TextCrowd(source, **given) as crowd:
        play(env, seats(crowd, env) if seats else crowd, seed=seed)
        return env, crowd.counters.for_call("number")


def recorded(folder):
    found = []
    for path in sorted((folder / "crowd").glob("*.jsonl.*[tz]")):
        lines = [line for one in read_commits(path) if isinstance(one, Commit) for line in one.lines()]
        for line in lines:
            if line["type"] == "texts":
                found += [(line["step"], *pair) for pair in zip(line["players"], line["texts"], strict=True)]
    return found


# D1, D7: answers that cannot be read.


def answering(text):
    async def source(asked, player, seed):
        return text(player) if callable(text) else text

    return source


@pytest.mark.parametrize("text", ["", "I would rather not say.", "no", "<|im_end|>"])
def test_d1_a_crowd_that_gives_no_readable_answer_is_counted_and_the_round_is_settled(text):
    env, counts = played(answering(text), env=contest(players=7, rounds=1))
    assert (counts.asked, counts.answered, counts.fallbacks) == (7, 0, 7)
    choices = [event for event in env.events if event["type"] == "choice"]
    assert [event["flags"] for event in choices] == [["missing_action"]] * 7
    assert crowd_rounds(env) == [[0.0] * 7]


@pytest.mark.parametrize("error", [ValueError("broken"), LlmCoopError("gone")])
def test_d1_errors_of_the_source_end_the_run_and_are_not_swallowed(error):
    async def source(asked, player, seed):
        raise error

    with pytest.raises(type(error), match=str(error)):
        played(source)


@pytest.mark.parametrize("given", [None, 4, b"4"])
def test_d1_an_answer_that_is_no_text_is_an_error(given):
    async def source(asked, player, seed):
        return given

    with pytest.raises(LlmCoopError, match=r"player 0 was answered .*, not a text"):
        played(source)


@pytest.mark.parametrize("given", [[], ["1"] * 102, ["1"] * 104, [None] * 103])
def test_d6_a_chunk_without_an_answer_for_each_is_an_error(given):
    async def source(asked, players, seeds):
        return given

    with pytest.raises(LlmCoopError, match="103 players were answered"):
        played(source, many=True)


@pytest.mark.parametrize(
    ("text", "choice", "flag"),
    [
        ("-5", 0, "illegal_choice"),  # the sign is not lost
        ("150", 100, "illegal_choice"),
        ("Step 1: think. Step 2: answer. My number is 30", 30, None),  # no step's number is taken
        ("Step 3: halve it. I name 25.5", 25.5, None),
        ("12.25", 12.25, None),
        ("1e3", 100, "illegal_choice"),
    ],
)
def test_d7_signs_bounds_and_numbers_of_steps(text, choice, flag):
    env, counts = played(answering(text), env=contest(players=3, rounds=1))
    told = [event for event in env.events if event["type"] == "choice"]
    assert [event["choice"] for event in told] == [choice] * 3
    assert [event["flags"] for event in told] == [[flag] if flag else []] * 3
    assert counts.answered + counts.fallbacks == 3
    assert (counts.fallbacks == 3) == (flag is not None)


def test_d7_one_bad_answer_among_many_is_counted_flagged_and_part_of_the_mean():
    env, counts = played(answering(lambda player: "?" if player == 3 else "50"), env=contest(players=10, rounds=1))
    assert (counts.answered, counts.unreadable, counts.fallbacks) == (9, 1, 1)
    assert crowd_rounds(env) == [[50.0] * 3 + [0.0] + [50.0] * 6]
    assert next(event for event in env.events if event["type"] == "round")["mean"] == 45


def test_integers_are_rounded_halves_up_counted_from_low_and_huge_ones_are_illegal():
    texts = ["37.5", "10", "99999999999999999999999", "It is 12.", "9"]
    env = contest(players=5, rounds=1, choices="integer", low=10, tolerance=3)
    env, counts = played(answering(lambda player: texts[player]), env=env)
    assert crowd_rounds(env) == [[38, 10, 10, 12, 10]]
    assert (counts.rounded, counts.illegal) == (1, 2)
    flags = [event["flags"] for event in env.events if event["type"] == "choice"]
    assert flags == [[], [], ["illegal_choice"], [], ["illegal_choice"]]


@settings(derandomize=True)
@given(
    st.lists(
        st.one_of(
            st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{1,3})?", fullmatch=True), st.text("-.,0123456789e\n", max_size=6)
        )
    ),
    st.sampled_from(
        [NumberQuestion(0, 100), NumberQuestion(-5, 5, whole=True), NumberQuestion(0, 9, allowed=(1.0, 2.5))]
    ),
)
def test_bare_numbers_are_those_that_are_read_one_by_one(texts, question):
    for text, found in zip(texts, read_bare_numbers(texts, question).tolist(), strict=True):
        if found == found:
            reading = read_number(text, question)
            assert (reading.status, reading.value, reading.flags) == ("ok", found, ())
        elif not question.allowed and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
            assert not question.low <= float(text) <= question.high


# A disk that is full.


def test_nobody_else_is_asked_when_nothing_can_be_kept_any_more(tmp_path, monkeypatch):
    asked = []

    async def source(question, player, seed):
        asked.append(player)
        await asyncio.sleep(0.01)
        return "3"

    async def full(self, *given):
        raise JournalError("no space left")

    monkeypatch.setattr(TextJournal, "add", full)
    with pytest.raises(JournalError, match="no space left"):
        played(source, env=contest(players=2000), folder=tmp_path, hands=4)
    assert len(asked) < 200


# D2: as many wait as are asked to, in every way of parting them.


@pytest.mark.parametrize("hands", [1, 32, 100, 1000])
def test_d2_as_many_calls_wait_as_were_asked_for(hands):
    waiting, peak = 0, 0

    async def source(asked, player, seed):
        nonlocal waiting, peak
        waiting += 1
        peak = max(peak, waiting)
        await asyncio.sleep(0.005)
        waiting -= 1
        return "3"

    played(source, env=contest(players=120, rounds=1), hands=hands)
    assert peak == min(hands, 120)


@pytest.mark.parametrize("name", ["hands", "processes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_d2_impossible_numbers_are_refused(name, value):
    with pytest.raises(SettingsError, match=f"{name}.*must be a whole number, 1 or more"):
        TextCrowd(number, **{name: value})


# D3, D4: target, groups, mixtures, winners within a tolerance.


def test_d3_the_announced_number_is_the_one_that_is_paid():
    seen = []

    async def source(asked, player, seed):
        return "40" if asked.round == 1 else "30"

    env = contest(players=4, ratio=Fraction(1, 2), offset=5, tolerance=0)
    original = env._slots
    env._slots = lambda index, common: seen.append(original(index, common)) or seen[-1]
    played(source, env=env)
    env.begin(seed=0)
    env.advance(np.full(4, 40.0))
    env.look(on_turn=True)
    assert seen[-1].past[-1].target == 25  # 5 + 40 / 2, and not 20
    assert next(event["target"] for event in env.events if event["type"] == "round") == 25


def test_d4_groups_mixtures_and_tolerance_on_arrays():
    def seats(crowd, env):
        one = make("kbc/level_k", k=1)
        return {agent: one if int(agent.rpartition("_")[2]) % 3 == 0 else crowd for agent in env.possible_agents}

    env = contest(players=9, rounds=1, groups=3)
    env, counts = played(answering("33.4"), env=env, seats=seats)
    assert counts.asked == 6
    told = next(event for event in env.events if event["type"] == "round")
    third = 100 / 3
    assert told["choices"] == pytest.approx([third, 33.4, 33.4] * 3)
    assert told["group_numbers"] == pytest.approx([(third + 66.8) / 3] * 3)
    assert told["target"] == pytest.approx((third + 66.8) / 3 * 2 / 3)


# D6: the rest of a division.


@pytest.mark.parametrize("players", [100, 101, 103])
@pytest.mark.parametrize("many", [False, True])
def test_d6_nobody_is_left_out_by_the_rest_of_a_division(players, many, monkeypatch):
    monkeypatch.setattr(part, "BATCH", 10)
    env, counts = played(numbers if many else own_index, env=contest(players=players, high=200), many=many)
    assert counts.asked == counts.answered == 2 * players
    if not many:
        assert crowd_rounds(env) == [list(range(players))] * 2


def test_d6_d8_two_processes_answer_for_all_and_the_same_as_one(tmp_path):
    alone, _ = played(number, env=contest(players=41), folder=tmp_path / "one")
    parted, counts = played(number, env=contest(players=41), folder=tmp_path / "two", processes=2)
    assert parted.events == alone.events
    assert counts.asked == counts.answered == 82
    assert sorted(recorded(tmp_path / "two")) == sorted(recorded(tmp_path / "one"))
    assert len({path.name for path in (tmp_path / "two" / "crowd").glob("part-*.jsonl.*[tz]")}) == 2
    # Continued with another number of processes: nobody is asked again.
    again, _ = played(never, env=contest(players=41), folder=tmp_path / "two")
    assert again.events == alone.events


async def never(asked, player, seed):
    raise AssertionError("asked again")


# D8: seeds, journal, resume.


def test_d8_seeds_hang_on_the_episode_the_step_and_the_player_alone(monkeypatch):
    first, _ = played(number)
    monkeypatch.setattr(part, "BATCH", 7)
    assert played(number, hands=3)[0].events == first.events
    assert played(numbers, many=True)[0].events == first.events
    assert crowd_rounds(played(number, seed=6)[0]) != crowd_rounds(first)
    one, two = crowd_rounds(first)
    assert one != two
    assert len(set(one)) > 95
    who = np.arange(50)
    assert np.array_equal(seeds_of((1, 2), who[::-1], 3), seeds_of((1, 2), who, 3)[::-1])
    assert not set(seeds_of((1, 2), who, 3)) & set(seeds_of((1, 3), who, 3))


def test_d8_every_answer_is_on_the_disk_before_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(part, "BATCH", 10)
    env = contest(players=33)
    held = []

    def settled(choices, *more):
        held.append(len(recorded(tmp_path)))
        return original(choices, *more)

    original, env.advance = env.advance, settled
    played(number, env=env, folder=tmp_path)
    assert held == [33, 66]
    texts = {(step, player): float(text) for step, player, text in recorded(tmp_path)}
    assert [[texts[step, player] for player in range(33)] for step in range(2)] == crowd_rounds(env)


def test_d8_after_an_error_only_what_is_missing_is_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(part, "BATCH", 4)
    asked_again = []

    async def failing(asked, player, seed):
        if asked.step == 1 and player >= 20:
            raise LlmCoopError("the line is down")
        return await number(asked, player, seed)

    async def noting(asked, player, seed):
        asked_again.append((asked.step, player))
        return await number(asked, player, seed)

    with pytest.raises(LlmCoopError, match="the line is down"):
        played(failing, folder=tmp_path, hands=5)
    assert len(recorded(tmp_path)) == 103 + 20
    env, _ = played(noting, folder=tmp_path)
    assert sorted(asked_again) == [(1, player) for player in range(20, 103)]
    assert env.events == played(number)[0].events
    assert len(recorded(tmp_path)) == len({one[:2] for one in recorded(tmp_path)}) == 206


def test_d8_a_commit_that_was_cut_short_is_moved_aside_and_asked_again(tmp_path):
    complete, _ = played(number, folder=tmp_path)
    path = next((tmp_path / "crowd").glob("main.jsonl.*[tz]"))
    content = path.read_bytes()
    for cut in (1, 60, len(content) // 2):
        path.write_bytes(content[:-cut])
        env, _ = played(number, folder=tmp_path)
        assert env.events == complete.events
        assert len(recorded(tmp_path)) == 206
    path.write_bytes(content[:80] + b"xxxx" + content[84:])
    with pytest.raises(JournalError, match="is damaged at bytes"):
        played(number, folder=tmp_path)


def test_d8_a_journal_of_another_question_is_not_used(tmp_path):
    played(number, folder=tmp_path)
    with pytest.raises(NotInJournal, match="answers to another question in step 0 of episode"):
        played(number, env=contest(high=90), folder=tmp_path)


def test_d8_a_killed_process_is_told_in_a_sentence_and_what_it_kept_is_used(tmp_path):
    with pytest.raises(LlmCoopError, match=r"a process of the crowd has died .*, run again to continue"):
        played(dying, env=contest(players=30), folder=tmp_path, processes=2, hands=2)
    assert len(recorded(tmp_path)) >= 9
    env, _ = played(number, env=contest(players=30), folder=tmp_path)
    assert env.events == played(number, env=contest(players=30))[0].events


def test_two_writers_of_one_part_are_refused(tmp_path):
    with TextCrowd(number, folder=tmp_path), pytest.raises(JournalError, match="is writing it"):
        TextCrowd(number, folder=tmp_path)


# Talk, options, and what it is not made for.


def test_crowds_talk_and_choose_among_options_that_differ_between_players():
    async def source(asked, player, seed):
        question = asked.question
        if question.name == "message":
            return f"I am number {player}" if player % 2 else ""
        return question.options[seed % len(question.options)].name

    room = {"rows": 11, "cols": 11, "people": 12, "exits": {"bottom": [[10, 4]], "right": [[5, 10]]}, "rounds": 4}
    env = evacuation_v0.parallel_env(record=True, **room)
    with TextCrowd(source) as crowd:
        play(env, crowd, seed=1)
    said = {event["text"] for event in env.events if event["type"] == "message"}
    assert said == {f"I am number {player}" for player in range(1, 12, 2)}
    assert not [event for event in env.events if event.get("flags")]
    counts = crowd.counters.for_call("message")
    assert counts.silent == counts.asked - sum(event["type"] == "message" for event in env.events) > 0
    assert counts.ended == counts.answered == counts.asked


def test_it_answers_no_requests():
    class Asking(ScriptedPolicy):
        def decide(self, request):
            return {}

    with TextCrowd(number) as crowd, pytest.raises(SettingsError, match="decides on arrays"):
        asyncio.run(crowd.act([]))


def test_a_source_that_no_other_process_can_import_is_refused():
    with pytest.raises(SettingsError, match="cannot be given to other processes"):
        TextCrowd(lambda *given: "3", processes=2)


def test_a_missing_ray_is_told_as_it_was_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match="ray='auto' needs the extra 'ray'"):
        TextCrowd(number, ray="auto")


def test_the_recorded_line_is_plain_json(tmp_path):
    played(answering("\ud800 50"), env=contest(players=2, rounds=1), folder=tmp_path)
    assert json.loads(json.dumps(recorded(tmp_path))) == [[0, 0, "\ud800 50"], [0, 1, "\ud800 50"]]


# What cannot be read is told while there is still something to save.


async def lost_for_words(asked, player, seed):
    await asyncio.sleep(0.001)
    return "I would rather\nnot say."


async def all_lost_for_words(asked, players, seeds):
    return ["I would rather\nnot say."] * len(players)


@pytest.mark.parametrize("source", [lost_for_words, all_lost_for_words])
def test_answers_that_cannot_be_read_are_told_once_with_the_reason_and_an_example(source):
    said = []
    env = contest(rounds=3)
    _, counts = played(source, env=env, notify=said.append, many=source is all_lost_for_words, hands=10)
    assert counts.fallbacks == 3 * 103
    (sentence,) = said
    assert sentence.startswith("The crowd's answers ('number') become invalid: 100 % of all decisions were taken by")
    assert 'Most are unreadable, such as "I would rather not say."' in sentence


def test_a_crowd_of_invalid_answers_stops_before_all_are_paid_if_that_is_wanted(tmp_path):
    with pytest.raises(RunStopped, match=r"'number'.*become invalid: 100 %.*stop_invalid"):
        played(lost_for_words, env=contest(players=3000), stop_invalid=True, hands=10, folder=tmp_path)
    assert 20 <= len(recorded(tmp_path)) < 1500


@pytest.mark.rare
def test_processes_of_a_crowd_stop_and_warn_too():
    said = []
    played(lost_for_words, env=contest(rounds=1), notify=said.append, processes=2)
    assert len(said) == 1
    with pytest.raises(RunStopped, match="stop_invalid"):
        played(lost_for_words, stop_invalid=True, processes=2)


@pytest.mark.parametrize("unread", [0, 4])
def test_a_few_unreadable_answers_of_a_crowd_are_counted_and_not_told(unread):
    said = []
    _, counts = played(answering(lambda player: "no" if player < unread else "7"), notify=said.append)
    assert counts.fallbacks == 2 * unread
    assert not said
    assert shares_line([AnswerCounts({"number": counts})]) == ("3.9 % fallbacks" if unread else "")

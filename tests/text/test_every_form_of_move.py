"""What the texts of the examples ask for, and every kind of move, is read in every form that it is asked for in."""

import itertools
import json

import numpy as np
import pytest
from example_games import GAMES
from movers import LEGAL, MOVES

from llm_coop_envs.interface.move_spaces import is_one_number
from llm_coop_envs.interface.moves import Shares, describe_move
from llm_coop_envs.interface.question import Number, Options, Words
from llm_coop_envs.policies.functions import to_action
from llm_coop_envs.policies.llm.crowd.part import read_answers
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.move_readers import reader_for
from llm_coop_envs.wrappers.text import _action

FORMS = ("{}", "{}.", "**{}**", "Answer: {}", "I think about it first.\nAnswer: {}")


def questions(env):
    """Each question of an episode with its text, once."""
    env.reset(seed=3)
    asked = set()
    while not env.over:
        observations, infos = env.look(on_turn=True)
        actions = {}
        for agent, info in infos.items():
            question = info["slots"].question
            if question not in asked:
                asked.add(question)
                yield observations[agent]["text"], question
            if isinstance(question, Words):
                actions[agent] = {"message": "Hello."}
            elif isinstance(question, Number):
                actions[agent] = {"choice": question.choice(question.low)}
            else:
                actions[agent] = {"choice": question.stand_in()}
        env.step(actions)


def forms_in(text, question):
    """The answers that a text names, by what they mean."""
    asked = text.rpartition("\n\n")[2]
    if isinstance(question, Options | Shares):
        names = [option.name for option in question.options]
        assert all(name in asked for name in names), asked
        if isinstance(question, Shares):
            assert "for each" in asked
            shares = {name: 100 // len(names) for name in names}
            shares[names[0]] += 100 - sum(shares.values())
            return {", ".join(f"{name}: {share}" for name, share in shares.items()): shares}
        return {option.name: option.choice for option in question.options}
    assert isinstance(question, Number)
    assert f"from {question.low:.6g} to {question.high:.6g}" in asked, asked
    assert ("none" in asked) == question.passing
    numbers = {f"{number:.6g}": question.choice(float(f"{number:.6g}")) for number in (question.low, question.high)}
    return {**numbers, "none": None} if question.passing else numbers


def read_by_a_model(question, answer):
    """The choice that a model's prompt reads in an answer; `...` if it reads none."""
    reading = reader_for(question, str).read(answer, truncated=False, refused=False)
    if not reading.ok:
        return ...
    is_number = isinstance(question, Number) and reading.value is not None
    return question.choice(reading.value) if is_number else reading.value


def in_every_way(question, answer):
    """What each way reads in an answer: functions, models' prompts, crowds."""
    ways = {"function": to_action(question, answer).get("choice"), "model": read_by_a_model(question, answer)}
    if is_one_number(question):
        is_index = isinstance(question, Options) or question.counted
        blank = np.full(1, -1, dtype=np.int64) if is_index else np.full(1, np.nan)
        crowd = read_answers([answer], question, blank, AnswerCounts())
        ways["crowd"] = crowd.choices[0]
    return ways


@pytest.mark.parametrize("name", GAMES)
def test_examples_read_every_form_that_their_texts_name(name):
    kinds = set()
    for text, question in questions(GAMES[name]()):
        kinds.add(question.name)
        if isinstance(question, Words):
            assert to_action(question, "Hello.") == {"message": "Hello."} == _action(question, "Hello.")
            continue
        for (form, move), frame in itertools.product(forms_in(text, question).items(), FORMS):
            answer = frame.format(form)
            read = in_every_way(question, answer)
            assert all(one == move for one in read.values()), (answer, read, question)
        for form, move in forms_in(text, question).items():
            assert question.take(_action(question, form)["choice"]) == question.take(move), form
    assert kinds


@pytest.mark.parametrize("phase", [phase for phase, question in MOVES.items() if not isinstance(question, Words)])
def test_every_kind_of_move_is_read_as_an_object_and_in_words(phase):
    question, move = MOVES[phase], LEGAL[phase]
    forms = [json.dumps({question.name: move}), json.dumps(move)]
    if not is_one_number(question):
        forms += [json.dumps(["a", "c"])] * (phase == "approve")
        forms += [f"Sure.\n```json\n{json.dumps({question.name: move})}\n```"]
    elif isinstance(question, Number):
        forms = [json.dumps({question.name: move}), f"{move:g}"]
        move = question.choice(move)
    else:
        words = describe_move(question, move)
        forms = [words, json.dumps({question.name: words})]
    for form in forms:
        assert to_action(question, form) == {"choice": move}, form
        assert read_by_a_model(question, form) == move, form

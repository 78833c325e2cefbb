"""What the texts of the examples ask for, and every kind of move, is read in every form that it is asked for in."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
from example_games import GAMES
from movers import LEGAL, MOVES

from dilemma.env import DilemmaEnv
from llm_coop_envs import bertrand_v0
from llm_coop_envs.interface.move_spaces import is_one_number
from llm_coop_envs.interface.moves import Parts, Several, Shares, describe_move
from llm_coop_envs.interface.question import Number, Options, Words
from llm_coop_envs.policies.functions import to_action
from llm_coop_envs.policies.llm.crowd.part import read_answers
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.move_readers import reader_for
from llm_coop_envs.wrappers.text import _action

#: Mechanisms with phases of their own, where moves are actions, numbers, claims and probabilities.
INSTITUTIONS = {
    f"{name}-{kind}": lambda make=make, kind=kind: make(mechanism=kind, rounds=2)
    for kind in ("mediation", "contracting")
    for name, make in {
        "dilemma": DilemmaEnv,
        "stated": partial(DilemmaEnv, stated=True),
        "claims": partial(DilemmaEnv, game="travellers"),
        "goods": partial(DilemmaEnv, game="public_goods", players=3),
        "market": partial(bertrand_v0.parallel_env, preset="calvano"),
    }.items()
}
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
    asked = text if "proposal" in text.lower() else text.rpartition("\n\n")[2]
    if isinstance(question, Parts):
        assert all(part.name in asked for part in question.parts), asked
        ends = [{part.name: move_of(part, which) for part in question.parts} for which in (0, -1)]
        return {
            between.join(f"{part.name}{sign} {named(part, move[part.name])}" for part in question.parts): move
            for move in ends
            for between, sign in ((", ", ":"), (" and ", ":"), ("\n- ", ":"), ("; ", " ="))
        }
    if isinstance(question, Several):
        names = [option.name for option in question.options]
        assert f"none, some or all of {', '.join(names)}" in asked, asked
        every = [*range(len(names))]
        return {"none": [], "all": every, names[1]: [1], ", ".join(names): every, " and ".join(names[:2]): [0, 1]}
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


def move_of(part, which):
    """The first or last move of a part, as its text names it."""
    if isinstance(part, Options):
        return part.options[which].choice
    if part.listed:
        return part.listed[which][1]
    return float(f"{(part.low, part.high)[which]:.6g}")


def named(part, move):
    """A part's move as somebody writes it."""
    return part.options[move].name if isinstance(part, Options) else f"{move:.6g}"


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


@pytest.mark.parametrize("name", [*GAMES, *INSTITUTIONS])
def test_every_form_that_a_text_names_is_read(name):
    kinds = set()
    for text, question in questions({**GAMES, **INSTITUTIONS}[name]()):
        kinds.add(question.name)
        if isinstance(question, Words):
            assert to_action(question, "Hello.") == {"message": "Hello."} == _action(question, "Hello.")
            continue
        for (form, move), frame in itertools.product(forms_in(text, question).items(), FORMS):
            answer = frame.format(form)
            read = in_every_way(question, answer)
            assert all(one == move for one in read.values()), (answer, read, question)
        for form, move in forms_in(text, question).items():
            taken = _action(question, form)["choice"]
            assert taken == move or question.take(taken) == question.take(move), form
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

"""Every question of an environment is read in every form that its text names, in each way that texts take."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from configurations import CONFIGURATIONS

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.interface.question import Number, Options, Words
from llm_coop_envs.interface.wording import wording_names
from llm_coop_envs.policies.functions import to_action
from llm_coop_envs.policies.llm.crowd.part import read_answers
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.wrappers.text import _action

HOMES = {name: scenario.env_class.home for name, scenario in scenarios().items()}
GAMES = [
    (name, wording)
    for name, (module, _) in CONFIGURATIONS.items()
    for wording in wording_names(HOMES[module.__name__.rpartition(".")[2].removesuffix("_v0")])
]
FORMS = ("{}", "{}.", "**{}**", "Answer: {}", "I choose {}.", '{{"KEY": "{}"}}', "Because it is near.\nAnswer: {}")
MOST_STEPS, MOST_ALIKE = 60, 2
# "a) up", "[b] left", "0 = left exit", "A: allow", but not a history's "3: 1.5"
LISTED = re.compile(r"^\[?(\w{1,3})(?:\)|\]| =|:) (.+)$", re.MULTILINE)


def questions(name, wording):
    """Each question of an episode, once: its phase, text and question."""
    module, settings = CONFIGURATIONS[name]
    env = module.parallel_env(**settings, wording=wording)
    env.reset(seed=3)
    asked, count = set(), Counter()
    rng = np.random.default_rng(5)
    for _ in range(MOST_STEPS):
        if env.over:
            return
        observations, infos = env.look(on_turn=True)
        actions = {}
        for agent, info in infos.items():
            question = info["slots"].question
            if (env.phase, question) not in asked and count[env.phase, agent] < MOST_ALIKE:
                asked.add((env.phase, question))
                count[env.phase, agent] += 1
                yield env.phase, observations[agent]["text"], question
            if isinstance(question, Words):
                actions[agent] = {"message": "Hello."}
            elif isinstance(question, Options):
                actions[agent] = {"choice": question.options[rng.integers(len(question.options))].choice}
            elif question.listed:
                actions[agent] = {"choice": question.listed[0][0]}
            else:
                actions[agent] = {"choice": question.choice(question.low)}
        env.step(actions)


def in_every_way(question, text):
    """The choice that each way reads in a text."""
    blank = np.full(1, -1, dtype=np.int64) if isinstance(question, Options) or question.discrete else np.full(1, np.nan)
    crowd = read_answers([text], question, blank, AnswerCounts())
    return {"function": to_action(question, text)["choice"], "crowd": crowd.choices[0]}


def labelled(text, question):
    """The label and the line of each option in the text; there is no other label."""
    listed = LISTED.findall(text)[-len(question.options) :]
    assert len(listed) == len(question.options), text
    expected = [option.letter or str(option.choice) for option in question.options]
    assert [label for label, _ in listed] == expected, text
    for _, line in listed:
        assert not re.match(r"\[?\w{1,2}(?:\)|\]| =|:) ", line), f"a second numbering: {line}"
    return listed


@pytest.mark.parametrize(("name", "wording"), GAMES)
def test_every_question_is_answered_in_every_form_that_its_text_names(name, wording):
    kinds = set()
    for phase, text, question in questions(name, wording):
        kinds.add(phase)
        if isinstance(question, Words):
            assert to_action(question, "Hello.") == {"message": "Hello."} == _action(question, "Hello.")
            continue
        if isinstance(question, Number):
            numbers = [number for _, number in question.listed] or [question.low, question.high]
            answers = {f"{number:.6g}": question.choice(float(f"{number:.6g}")) for number in numbers}
        else:
            answers = {
                label: option.choice
                for (label, _), option in zip(labelled(text, question), question.options, strict=True)
            }
        for (label, choice), form in itertools.product(answers.items(), FORMS):
            answer = form.replace("KEY", question.name).format(label)
            read = in_every_way(question, answer)
            assert set(read.values()) == {choice}, (phase, wording, answer, read, question)
        for label, choice in answers.items():
            assert _action(question, label) == {"choice": choice}, (phase, wording, label)
    assert kinds - {"talk"}

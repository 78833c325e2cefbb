"""How the readers do on many answers in classes: nothing is read wrong, next to nothing where there was no answer."""

from collections import Counter

import pytest
from reading_measured import GARBAGE, REFUSED, RIGHT, WRONG, answers

ANSWERS = list(answers())
OUTCOMES = [answer.outcome() for answer in ANSWERS]
FILES = sorted({answer.file for answer in ANSWERS})


def told(*outcomes):
    return [
        (one.file, one.kind, one.text) for one, outcome in zip(ANSWERS, OUTCOMES, strict=True) if outcome in outcomes
    ]


def test_no_answer_is_read_as_another():
    assert told(WRONG) == []


@pytest.mark.parametrize("held_out", [True, False])
def test_next_to_no_garbage_is_accepted_and_few_clear_answers_are_refused(held_out):
    counts = Counter(outcome for one, outcome in zip(ANSWERS, OUTCOMES, strict=True) if one.held_out == held_out)
    assert counts[GARBAGE] <= 0.005 * counts.total(), told(GARBAGE)
    assert counts[RIGHT] >= 0.98 * counts.total(), told(GARBAGE, REFUSED)


@pytest.mark.parametrize("file", FILES)
def test_every_kind_of_question_is_read_well(file):
    counts = Counter(outcome for one, outcome in zip(ANSWERS, OUTCOMES, strict=True) if one.file == file)
    assert counts[RIGHT] >= 0.95 * counts.total(), Counter(
        one.kind for one, outcome in zip(ANSWERS, OUTCOMES, strict=True) if one.file == file and outcome != RIGHT
    )


def test_there_are_many_answers_and_none_twice():
    assert len(ANSWERS) >= 1_900
    assert len({(one.file.removesuffix("_more"), one.text) for one in ANSWERS}) >= len(ANSWERS) - 5
    assert 0.3 < sum(one.held_out for one in ANSWERS) / sum(not one.looked_at for one in ANSWERS) < 0.37

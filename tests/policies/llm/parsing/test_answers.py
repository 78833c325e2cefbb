"""How the readers do on many answers in classes: nothing is read wrong, next to nothing where there was no answer."""

from collections import Counter

import pytest
from reading_measured import GARBAGE, REFUSED, RIGHT, WRONG, answers

ANSWERS = answers()
#: What a model of 135 million parameters really answered: mostly nothing, in words that nobody would invent.
REAL = "real_smollm2"
FILES = sorted({answer.file for answer in ANSWERS} - {REAL})


def told(*outcomes, real=None):
    return [
        (one.file, one.kind, one.text)
        for one in ANSWERS
        if one.outcome in outcomes and real in (None, one.file == REAL)
    ]


def tally(chosen):
    return Counter(one.outcome for one in ANSWERS if chosen(one))


def test_no_answer_is_read_as_another():
    assert told(WRONG) == []


@pytest.mark.parametrize("held_out", [True, False])
def test_next_to_no_garbage_is_accepted_and_few_clear_answers_are_refused(held_out):
    counts = tally(lambda one: one.held_out == held_out and one.file != REAL)
    assert counts[GARBAGE] <= 0.005 * counts.total(), told(GARBAGE, real=False)
    assert counts[RIGHT] >= 0.98 * counts.total(), told(GARBAGE, REFUSED, real=False)


def test_of_a_small_models_real_answers_few_are_taken_for_what_they_are_not():
    """One in eighteen is garbage that looks like an answer ("in the game of 100", "please answer in two lines")."""
    counts = tally(lambda one: one.file == REAL)
    assert counts.total() >= 300
    assert counts[GARBAGE] <= 17, told(GARBAGE, real=True)
    assert counts[RIGHT] >= 0.92 * counts.total(), told(GARBAGE, REFUSED, real=True)


@pytest.mark.parametrize("file", FILES)
def test_every_kind_of_question_is_read_well(file):
    counts = tally(lambda one: one.file == file)
    assert counts[RIGHT] >= 0.95 * counts.total(), Counter(
        one.kind for one in ANSWERS if one.file == file and one.outcome != RIGHT
    )


def test_there_are_many_answers_and_none_twice():
    written = [one for one in ANSWERS if one.file != REAL]
    assert len(written) >= 1_900
    assert len({(one.file.removesuffix("_more"), one.text) for one in written}) >= len(written) - 5
    assert 0.3 < sum(one.held_out for one in written) / sum(not one.looked_at for one in written) < 0.37

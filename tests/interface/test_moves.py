"""Moves that are more than a number or an option: what counts as one, in every form in which it can be submitted."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from movers import LEGAL, MOVES, OPTIONS

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.move_spaces import flat_width, from_flat, is_one_number, space_of
from llm_coop_envs.interface.moves import Parts, Several, Shares, describe_move, longest_line
from llm_coop_envs.interface.question import Number, Option, Question, Unusable, Words

MORE = {phase: question for phase, question in MOVES.items() if not is_one_number(question)}


@pytest.mark.parametrize("phase", MORE)
def test_a_move_is_plain_data_and_itself(phase):
    question, move = MOVES[phase], LEGAL[phase]
    assert question.take(move) == move == json.loads(json.dumps(question.take(move)))
    assert question.take(question.take(move)) == move


@pytest.mark.parametrize("phase", MORE)
def test_whatever_a_space_draws_is_a_move(phase):
    space = space_of(MOVES[phase])
    space.seed(3)
    for _ in range(200):
        move = MOVES[phase].take(space.sample())
        assert MOVES[phase].take(move) == move
        json.dumps(move)


@pytest.mark.parametrize("phase", [phase for phase in MOVES if phase not in ("write", "offer")])
def test_whatever_flat_numbers_say_is_a_move(phase):
    question, rng = MOVES[phase], np.random.default_rng(1)
    width = flat_width(question)
    for _ in range(200):
        move = from_flat(question, rng.uniform(-1, 1, width + 2))
        assert 0 <= move < 4 if is_one_number(question) else question.take(move) is not ...


@pytest.mark.parametrize(
    ("phase", "typed", "move"),
    [
        ("bid", "12.5", 12.5),
        ("bid", "", None),
        ("bid", "pass", None),
        ("bid", None, None),
        ("bid", {"pass": np.int64(1), "bid": np.array([3.0])}, None),
        ("bid", {"pass": 0, "bid": np.array([3.0])}, 3.0),
        ("quotes", "3; 9", {"to_0": 3, "to_1": 9}),
        ("quotes", "to_1: 9\nto_0: 3", {"to_0": 3, "to_1": 9}),
        ("quotes", [3, 9], {"to_0": 3, "to_1": 9}),
        ("offer", "accept", {"answer": 0}),
        ("offer", "counter; 2.5; too low", {"answer": 1, "price": 2.5, "remark": "too low"}),
        ("offer", {"answer": "accept", "price": None, "remark": None}, {"answer": 0}),
        ("approve", "a, wait", [0, 2]),
        ("approve", "none", []),
        ("approve", np.array([1, 0, 1]), [0, 2]),
        ("rank", "wait > stay > go", [2, 0, 1]),
        ("rank", "1. wait\n2. stay\n3. go", [2, 0, 1]),
        ("rank", np.array([0.5, 0.1, 0.9]), [2, 0, 1]),
        ("mix", "stay: 70 %, go: 30", {"stay": 70, "go": 30, "wait": 0}),
        ("mix", "70% stay, 30% wait", {"stay": 70, "go": 0, "wait": 30}),
        ("mix", "20, 30, 50", {"stay": 20, "go": 30, "wait": 50}),
        ("mix", "go", {"stay": 0, "go": 100, "wait": 0}),
        ("mix", 1, {"stay": 0, "go": 100, "wait": 0}),
        ("mix", {"stay": 0.7, "wait": 0.3}, {"stay": 70, "go": 0, "wait": 30}),
        ("mix", np.array([1.0, 1.0, 1.0]), {"stay": 34, "go": 33, "wait": 33}),
        ("write", " all \ud800for one ", "all \ufffdfor one"),
        ("write", "x" * 50, "x" * 30),
    ],
)
def test_it_is_read_in_every_form(phase, typed, move):
    assert MOVES[phase].take(typed) == move


@pytest.mark.parametrize(
    ("phase", "typed", "why"),
    [
        ("bid", "101", "out of range"),
        ("bid", "twelve", "is no number"),
        ("bid", True, "give a number"),
        ("bid", -1, "out of range"),
        ("quotes", "3", "to_1: it is missing"),
        ("quotes", [3.5, 9], "to_0: 3.5 is no whole number"),
        ("offer", "perhaps", "answer: 'perhaps' is not possible now; type one of 0 (accept), 1 (counter)"),
        ("offer", "counter", "price: it is missing"),
        ("offer", 7, "Give answer, price, remark, each by its name"),
        ("approve", "stay, stay", "named twice"),
        ("approve", [3], "3 is not possible now"),
        ("rank", "stay > go", "2 are named; name 3 to 3"),
        ("mix", "50, 30, 10", "sum to 90; give whole ones that sum to 100"),
        ("mix", {"stay": 33.5, "go": 66.5}, "give whole ones"),
        ("mix", {"stay": -10, "go": 110}, "is no share"),
        ("mix", {"leave": 100}, "'leave' is not possible now"),
        ("mix", np.array([-1.0, 0.0, 2.0]), "from 0 on"),
        ("write", 7, "write a text"),
    ],
)
def test_what_is_no_move_says_why(phase, typed, why):
    with pytest.raises(Unusable) as error:
        MOVES[phase].take(typed)
    assert why in str(error.value)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9))
def test_weights_become_whole_per_cents_that_sum(weights):
    question = Shares(options=tuple(OPTIONS[0].__class__(choice=k, name=f"o{k}") for k in range(len(weights))))
    move = question.take(np.array(weights)) if len(weights) > 1 else question.take(0)
    assert sum(move.values()) == 100
    total = sum(weights)
    if total and len(weights) > 1:
        assert all(abs(share - 100 * weight / total) < 1 for share, weight in zip(move.values(), weights, strict=True))


def test_options_are_drawn_as_often_as_stated():
    question, rng = MOVES["mix"], np.random.default_rng(0)
    drawn = [question.draw({"stay": 70, "go": 0, "wait": 30}, rng) for _ in range(10_000)]
    assert drawn.count(1) == 0
    assert 0.68 < drawn.count(0) / len(drawn) < 0.72


def test_listed_numbers_can_be_passed():
    question = Number(name="price", low=1, high=2, listed=((0, 1.0), (1, 4 / 3), (2, 2.0)), passing=True)
    assert question.take("1.33333") == 4 / 3
    assert question.take(None) is None
    assert question.take(np.array([1.4])) == 4 / 3  # a point of the space: the nearest
    with pytest.raises(Unusable, match=r"type one of 1, 1\.33333, 2"):
        question.take(1.4)


def test_what_cannot_be_asked_is_refused():
    number = Number(name="n", low=0, high=1)
    with pytest.raises(SettingsError, match="leave counted out"):
        Number(low=0, high=1, counted=True, passing=True)
    with pytest.raises(SettingsError, match="the same name"):
        Parts(parts=(number, number))
    with pytest.raises(SettingsError, match="cannot be a part"):
        Parts(parts=(MOVES["mix"],))
    with pytest.raises(SettingsError, match="a part and an option"):
        Parts(parts=(number,), when=(("n", "counter"),))
    with pytest.raises(SettingsError, match="need a low and a high"):
        space_of(Number(low=0, high=np.inf, integer=True))
    with pytest.raises(SettingsError, match="words are asked for"):
        flat_width(Words(longest=3))

    class Own(Question):
        def take(self, raw):
            return raw

        def stand_in(self):
            return None

    with pytest.raises(SettingsError, match="is no kind of question"):
        space_of(Own(name="own"))


def test_moves_in_words():
    assert {phase: describe_move(MOVES[phase], move) for phase, move in LEGAL.items() if phase != "mix"} == {
        "bid": "bid 12.5",
        "quotes": "to_0 3, to_1 9",
        "offer": 'answer counter, price 2.5, remark "too low"',
        "approve": "stay, wait",
        "rank": "wait, stay, go",
        "write": '"all for one"',
        "pick": "go",
        "count": "count 3",
    }
    assert describe_move(MOVES["bid"], None) == "no bid"
    assert describe_move(MOVES["approve"], []) == "no approved"
    assert all(longest_line(question) >= 4 for question in MOVES.values())


def test_only_options_that_are_named_stand_in():
    assert Several(options=OPTIONS, fewest=1).stand_in() == [0]
    assert MOVES["mix"].stand_in() == {"stay": 100, "go": 0, "wait": 0}
    assert MOVES["offer"].stand_in() == {"answer": 0}
    with pytest.raises(Unusable):
        MOVES["quotes"].stand_in()


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("5: 70, 4: 30", {"5": 70, "4": 30, "3": 0}),
        ("5 = 100", {"5": 100, "4": 0, "3": 0}),
        ("70 % 5, 30 % 3", None),
        ("4", {"5": 0, "4": 100, "3": 0}),
        ("20, 30, 50", {"5": 20, "4": 30, "3": 50}),
    ],
)
def test_shares_of_options_that_are_numbers(text, stated):
    question = Shares(options=tuple(Option(choice=k, name=name) for k, name in enumerate("543")))
    if stated is None:  # which of two numbers is the share cannot be said
        with pytest.raises(Unusable):
            question.take(text)
    else:
        assert question.take(text) == stated

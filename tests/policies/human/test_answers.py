import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies.human.answers import SHORT_MOVES, Unusable, hint, read_answer


def asked(module, phase, **settings):
    """The slots of somebody who is asked in a phase."""
    env = module.parallel_env(**settings)
    env.reset(seed=1)
    for _ in range(300):
        _, infos = env.look(on_turn=True)
        for info in infos.values():
            if info["slots"].phase == phase and info["slots"].on_turn:
                return info["slots"]
        env.submit({})
    raise AssertionError(phase)


def refused(slots, typed):
    with pytest.raises(Unusable) as why:
        read_answer(slots, typed)
    return str(why.value)


def test_numbers_of_a_contest():
    slots = asked(kbc_v0, "act", players=3, low=10, high=60)
    assert hint(slots) == "your number, 10 to 60"
    # Choices of whole numbers are counted from the lowest one.
    assert read_answer(slots, " 33 ") == {"choice": 23}
    assert read_answer(slots, "10.0") == {"choice": 0}
    assert "whole number from 10 to 60" in refused(slots, "33.5")
    assert "out of range" in refused(slots, "61")
    assert "Nothing was typed" in refused(slots, " ")
    for typed in ("7,5", "nan", "inf", "1e1", "0x10", "twenty", "\u0663\u0663", "--5"):
        assert "is no number" in refused(slots, typed)
    real = asked(kbc_v0, "act", players=3, choices="real")
    assert read_answer(real, "33.5") == {"choice": 33.5}


def test_prices():
    free = asked(bertrand_v0, "act", preset="team_up_linear", talk=False)
    assert hint(free) == "your price, 2 to 14"
    assert read_answer(free, "7.25") == {"choice": 7.25}
    assert "from 2 to 14" in refused(free, "1.99")
    grid = asked(bertrand_v0, "act", preset="calvano", talk=False)
    assert read_answer(grid, "3") == {"choice": 3}
    assert "no price number 15" in refused(grid, "15")
    assert "no price number 1.5" in refused(grid, "1.5")


def test_exits_and_steps():
    slots = asked(evacuation_v0, "exit", preset="small", talk=False)
    for typed in ("1", "left", "LEFT"):
        assert read_answer(slots, typed) == {"choice": 1}
    assert refused(slots, "top") == "'top' is not possible now; type one of 0 (bottom), 1 (left), 2 (right)."
    slots = asked(evacuation_v0, "move", preset="small", talk=False)
    for option in slots.options:
        short = SHORT_MOVES[option.name][0]
        for typed in (str(option.choice), option.letter, option.name.upper()):
            assert read_answer(slots, typed) == {"choice": option.choice}
        if short not in {one.letter for one in slots.options}:
            assert read_answer(slots, short) == {"choice": option.choice}
    blocked = set(SHORT_MOVES) - {option.name for option in slots.options}
    assert blocked
    for name in blocked:
        assert "not possible now" in refused(slots, name)
    assert "Nothing was typed" in refused(slots, "")


def test_letters_mean_what_the_question_says():
    # The question lists steps by letter; `d` is its fourth line before it is a direction.
    slots = asked(evacuation_v0, "move", preset="small", talk=False)
    for option in slots.options:
        assert read_answer(slots, option.letter) == {"choice": option.choice}


def test_messages():
    slots = asked(kbc_v0, "talk", players=3, message_length=20)
    assert read_answer(slots, "  hello  ") == {"message": "hello"}
    assert read_answer(slots, "") == {"message": ""}
    assert read_answer(slots, "\u05e9\u05dc\u05d5\u05dd \U0001f642") == {
        "message": "\u05e9\u05dc\u05d5\u05dd \U0001f642"
    }
    assert refused(slots, "x" * 21) == "That is 21 characters; a message has at most 20. Shorten it."

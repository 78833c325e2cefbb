import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.evacuation.slots import ALIASES
from llm_coop_envs.policies.human.answers import Unusable, hint, read_answer


def asked(module, phase, **settings):
    """What somebody is asked in a phase."""
    env = module.parallel_env(**settings)
    env.reset(seed=1)
    for _ in range(300):
        _, infos = env.look(on_turn=True)
        for info in infos.values():
            if info["slots"].phase == phase and info["slots"].on_turn:
                return info["slots"].question
        env.submit({})
    raise AssertionError(phase)


def refused(question, typed):
    with pytest.raises(Unusable) as why:
        read_answer(question, typed)
    return str(why.value)


def test_numbers_of_a_contest():
    question = asked(kbc_v0, "act", players=3, low=10, high=60)
    assert hint(question) == "your number, 10 to 60"
    # Choices of whole numbers are counted from the lowest one.
    assert read_answer(question, " 33 ") == {"choice": 23}
    assert read_answer(question, "10.0") == {"choice": 0}
    assert "whole number from 10 to 60" in refused(question, "33.5")
    assert "out of range" in refused(question, "61")
    assert "is no whole number" in refused(question, "9" * 400)
    assert "Nothing was typed" in refused(question, " ")
    for typed in ("7,5", "nan", "inf", "1e1", "0x10", "twenty", "\u0663\u0663", "--5"):
        assert "is no number" in refused(question, typed)
    real = asked(kbc_v0, "act", players=3, choices="real")
    assert read_answer(real, "33.5") == {"choice": 33.5}


def test_prices():
    free = asked(bertrand_v0, "act", preset="team_up_linear", talk=False)
    assert hint(free) == "your price, 2 to 14"
    assert read_answer(free, "7.25") == {"choice": 7.25}
    assert "from 2 to 14" in refused(free, "1.99")
    grid = asked(bertrand_v0, "act", preset="calvano", talk=False)
    shown = [f"{price:.6g}" for _, price in grid.listed]
    assert hint(grid) == f"your price, one of the 15 listed, {shown[0]} to {shown[-1]}"
    assert [read_answer(grid, price)["choice"] for price in shown] == list(range(15))
    assert read_answer(grid, repr(grid.listed[3][1])) == {"choice": 3}
    assert f"from {shown[0]} to {shown[-1]}" in refused(grid, "15")
    assert refused(grid, "1.5") == f"There is no price 1.5; type one of {', '.join(shown)}."


def test_exits_and_steps():
    question = asked(evacuation_v0, "exit", preset="small", talk=False)
    for typed in ("1", "left", "LEFT"):
        assert read_answer(question, typed) == {"choice": 1}
    assert refused(question, "top") == "'top' is not possible now; type one of 0 (bottom), 1 (left), 2 (right)."
    question = asked(evacuation_v0, "move", preset="small", talk=False)
    for option in question.options:
        for typed in (str(option.choice), option.letter, option.name.upper()):
            assert read_answer(question, typed) == {"choice": option.choice}
        taken = {name for one in question.options for name in (one.letter, str(one.choice))}
        for short in set(ALIASES[option.name]) - taken:
            assert read_answer(question, short) == {"choice": option.choice}
    blocked = set(ALIASES) - {option.name for option in question.options}
    assert blocked
    for name in blocked:
        assert "not possible now" in refused(question, name)
    assert "Nothing was typed" in refused(question, "")


def test_letters_mean_what_the_question_says():
    # The question lists steps by letter; `d` is its fourth line before it is a direction.
    question = asked(evacuation_v0, "move", preset="small", talk=False)
    for option in question.options:
        assert read_answer(question, option.letter) == {"choice": option.choice}


def test_messages():
    question = asked(kbc_v0, "talk", players=3, message_length=20)
    assert read_answer(question, "  hello  ") == {"message": "hello"}
    assert read_answer(question, "") == {"message": ""}
    assert read_answer(question, "\u05e9\u05dc\u05d5\u05dd \U0001f642") == {
        "message": "\u05e9\u05dc\u05d5\u05dd \U0001f642"
    }
    assert refused(question, "x" * 21) == "That is 21 characters; a message has at most 20. Shorten it."

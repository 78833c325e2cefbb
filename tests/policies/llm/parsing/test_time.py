"""The time of reading does not grow with what a model repeats: the event loop must not stand still."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.policies.llm.parsing import (
    Choice,
    NumberQuestion,
    OptionQuestion,
    read_number,
    read_option,
    read_text,
)
from llm_coop_envs.policies.llm.parsing.objects import find_value

LENGTH = 100_000
# Seconds. Measured are 1 to 19 ms; the rest is for machines whose cores are shared.
CEILING = 0.06
PRICE = NumberQuestion(2, 14, key="price")
EXIT = OptionQuestion(tuple(Choice(k, (name,)) for k, name in enumerate(("bottom", "left", "right"))), key="exit")
NAMES = ("right", "down", "left", "up", "stay", "down and right")
MOVE = OptionQuestion(tuple(Choice(k, (name, f"({k}, {k})"), "abcdef"[k]) for k, name in enumerate(NAMES)), NAMES)
READERS = [
    lambda text: read_number(text, PRICE),
    lambda text: read_number(text, PRICE, truncated=True),
    lambda text: read_option(text, EXIT),
    lambda text: read_option(text, MOVE),
    lambda text: read_text(text, speaker="player_1"),
    lambda text: find_value(text, ("reason",)),
]
FRAGMENTS = [
    *[
        " ",
        "\n",
        "\t",
        "\u00a0",
        "\r",
        " \n",
        "Price:",
        "Price: ",
        "price is ",
        "Answer:\n",
        "7",
        "7.5 ",
        "1,2",
        "9" * 30,
    ],
    *["`", "```", "```\n", "~~", "~~a", "*", "**", "_", "_a ", "# ", "> ", "- ", "1. ", "2. x\n", "|", "| a |\n"],
    *[
        "<",
        "<think>",
        "</think>",
        "[THINK]",
        "[/THINK]",
        "<|",
        "<|a",
        "|>",
        "<|im_end|>",
        "[INST]",
        "<<SYS>>",
        "<b",
        "<answer>",
    ],
    *["[", "(", "{", '{"a":', "{'a':'", "{a:", '{"price": 7', "//", "\\boxed{", "\\frac{", "\\text{", "$", "\\"],
    *[
        "not ",
        "n't ",
        "I choose ",
        "I will ",
        "i ",
        "no, ",
        "wait ",
        "actually ",
        "or ",
        "between ",
        "7 or ",
        "if ",
        "the ",
    ],
    *[
        "my price ",
        "final ",
        "left ",
        "up and ",
        "down-",
        "a) ",
        "b, ",
        "a ",
        "(1, ",
        "row 1 ",
        "player_3 ",
        "round 3 ",
    ],
    *[
        "one ",
        "twenty-",
        "十",
        "我选",
        "不",
        "é",
        "½",
        "1/2 ",
        "7 1/2",
        "\u200b",
        "\ue000",
        "\ue001",
        ". ",
        "? ",
        "...",
        "=",
        "->",
    ],
    *["(thinking: ", "*thinking:", "http://", "reason: ", '"', "'", ",", "-", "e5"],
]


def slowest(text):
    """The seconds of the slowest reader; the best of several runs, for machines that are busy."""
    worst = 0.0
    for read in READERS:
        taken = []
        for _ in range(6):
            start = time.process_time()
            read(text)
            taken.append(time.process_time() - start)
            if taken[-1] < CEILING:
                break
        worst = max(worst, min(taken))
    return worst


@pytest.mark.parametrize(
    "fragment", [pytest.param(text, marks=[pytest.mark.rare] * (n % 3 > 0)) for n, text in enumerate(FRAGMENTS)]
)
def test_a_fragment_repeated_takes_no_time(fragment):
    many = fragment * (LENGTH // len(fragment))
    for text in (many, f"Price: {many}7", f"I choose {many}\nAnswer: 7"):
        assert slowest(text) < CEILING


@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join), st.text(max_size=8))
@settings(max_examples=60)
def test_fragments_repeated_take_no_time(fragment, other):
    assert slowest((fragment + other) * (LENGTH // len(fragment + other))) < CEILING


def test_no_answer_that_is_not_cut_takes_long_either():
    # Just below the length from which answers are cut, so that all of it is looked at.
    for fragment in FRAGMENTS:
        assert slowest(fragment * (3_000 // len(fragment))) < CEILING


def test_what_stands_at_either_end_is_still_read():
    assert read_number("Price:" + "\n" * 6_400 + "7.5", PRICE).value == 7.5
    assert read_number("7.5" + "\n" * LENGTH, PRICE).value == 7.5
    assert read_number("<think>" + "8 or 9? " * LENGTH + "</think>7.5", PRICE).value == 7.5

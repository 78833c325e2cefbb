"""The spaces of questions: points that PettingZoo's tests and learners' libraries can draw, and `take` can read.

| question | space of a move | flat, from -1 to 1 |
|---|---|---|
| `Options` | Discrete | a score for each option; the highest is chosen |
| `Number` | Discrete or Box | the share of the way from the lowest to the highest |
| `Number` with `passing` | Dict of `pass` (Discrete) and the number | the number, and above 0 that it is passed |
| `Several` | MultiBinary, or scores as a Box if `ranked` | for each option whether it is above 0, or its score |
| `Shares` | weights as a Box | a weight for each option |
| `Parts` | Dict of the parts | the parts, one behind another |
| `Words` | `UnicodeText` | none |
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.moves import Parts, Several, Shares
from llm_coop_envs.interface.question import PASS, Number, Option, Options, Question, Words
from llm_coop_envs.interface.spaces import UnicodeText


def is_one_number(question: Question) -> bool:
    """Whether choices are an array of numbers, as options and numbers are that cannot be passed."""
    if isinstance(question, Number):
        return not question.passing and (question.discrete or not question.integer)
    return isinstance(question, Options)


def space_of(question: Question) -> spaces.Space[Any]:
    """A fresh space of the moves that answer a question.

    Raises:
        SettingsError: there is none.
    """
    if isinstance(question, Number):
        return _space_of_number(question)
    if isinstance(question, Options):
        return spaces.Discrete(_count(question.options))
    if isinstance(question, Words):
        return UnicodeText(question.longest)
    if isinstance(question, Several) and not question.ranked:
        return spaces.MultiBinary(_count(question.options))
    if isinstance(question, Several | Shares):
        return spaces.Box(0.0, 1.0, (_count(question.options),), np.float64)
    if isinstance(question, Parts):
        return spaces.Dict({part.name: space_of(part) for part in question.parts})
    reason = "is no kind of question; there are Number, Options, Words, Several, Shares and Parts"
    raise SettingsError("moves", type(question).__name__, reason)


def _space_of_number(question: Number) -> spaces.Space[Any]:
    space: spaces.Space[Any] = spaces.Box(question.low, question.high, (1,), np.float64)
    if question.counted:
        space = spaces.Discrete(int(question.high - question.low) + 1)
    elif question.listed and not question.passing:
        space = spaces.Discrete(max(choice for choice, _ in question.listed) + 1)
    elif question.integer and not question.listed:
        if not math.isfinite(question.high - question.low):
            raise SettingsError("moves", question.name, "whole numbers need a low and a high, or they have no space")
        space = spaces.Discrete(int(question.high - question.low) + 1, start=int(question.low))
    return spaces.Dict({PASS: spaces.Discrete(2), question.name: space}) if question.passing else space


def mask_of(question: Question | None, space: spaces.Space[Any]) -> NDArray[np.int8] | None:
    """The mask with which a space draws only options that a question has; `None` where it has no such mask."""
    if not isinstance(space, spaces.MultiBinary):
        return None
    mask = np.zeros(space.shape, dtype=np.int8)
    if isinstance(question, Several):
        mask[[option.choice for option in question.options]] = 2  # in or out
    return mask


def _count(options: tuple[Option, ...]) -> int:
    """How many choices there are, up to the last option."""
    return max(option.choice for option in options) + 1


def flat_width(question: Question) -> int:
    """How many numbers from -1 to 1 answer a question.

    Raises:
        SettingsError: it cannot be answered with numbers, or they have no ends.
    """
    if isinstance(question, Number):
        if not math.isfinite(question.high - question.low):
            raise SettingsError("env", question.name, "the numbers have no ends, and cannot be scaled to -1 to 1")
        return 1 + question.passing
    if isinstance(question, Options | Several | Shares):
        return _count(question.options)
    if isinstance(question, Parts):
        return sum(flat_width(part) for part in question.parts)
    raise SettingsError("env", question.name, "words are asked for, which no numbers say; use the environment itself")


def from_flat(question: Question, point: NDArray[np.floating[Any]], widest: Question | None = None) -> Any:
    """The move, as `take` reads it or `step` counts it, of numbers from -1 to 1.

    Args:
        question: what is asked.
        point: as many numbers as `flat_width` says of the widest question of the phase, or more.
        widest: that question, by default the same.
    """
    if isinstance(question, Number):
        if question.passing and point[1] > 0:
            return None
        share = (float(point[0]) + 1) / 2
        value = question.low * (1 - share) + question.high * share
        if question.listed:
            choice, value = min(question.listed, key=lambda entry: abs(entry[1] - value))
            return value if question.passing else choice
        value = float(round(value)) if question.integer else value
        return question.choice(value)
    if isinstance(question, Options):
        return max(question.options, key=lambda option: float(point[option.choice])).choice
    if isinstance(question, Shares):
        return (np.asarray(point, dtype=np.float64) + 1) / 2
    if isinstance(question, Several):
        order = sorted((option.choice for option in question.options), key=lambda choice: -float(point[choice]))
        named = question.limit if question.ranked else sum(float(point[choice]) > 0 for choice in order)
        return order[: min(max(named, question.fewest), question.limit)]
    assert isinstance(question, Parts), "words have no flat form"
    assert isinstance(widest, Parts | None), "a question is of the same kind as the widest of its phase"
    answer, start, narrow = {}, 0, {part.name: part for part in question.parts}
    for part in (widest or question).parts:
        width = flat_width(part)
        if part.name in narrow:
            answer[part.name] = from_flat(narrow[part.name], point[start : start + width])
        start += width
    return answer

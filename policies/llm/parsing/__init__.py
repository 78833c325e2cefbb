"""Reading the answers that models send: numbers, options and messages, and why an answer could not be read."""

from __future__ import annotations

from llm_coop_envs.policies.llm.parsing.answer_reading import (
    AMBIGUOUS,
    EMPTY,
    ILLEGAL,
    OK,
    REFUSED,
    TRUNCATED,
    UNREADABLE,
    Reading,
)
from llm_coop_envs.policies.llm.parsing.numbers import NumberQuestion, read_number
from llm_coop_envs.policies.llm.parsing.option_names import Choice, OptionQuestion
from llm_coop_envs.policies.llm.parsing.options import read_option
from llm_coop_envs.policies.llm.parsing.texts import read_text

__all__ = [
    "AMBIGUOUS",
    "EMPTY",
    "ILLEGAL",
    "OK",
    "REFUSED",
    "TRUNCATED",
    "UNREADABLE",
    "Choice",
    "NumberQuestion",
    "OptionQuestion",
    "Reading",
    "read_number",
    "read_option",
    "read_text",
]

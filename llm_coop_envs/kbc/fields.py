"""Settings of `kbc`, as keywords for type checkers and editors.

Written by `make types` from `KBCSettings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from llm_coop_envs.core.fields import ScenarioFields


class KBCFields(ScenarioFields, total=False):
    """Settings of `kbc`; see `KBCSettings`."""

    preset: Literal["two_thirds", "shall_we_talk", "half", "near_half", "half_plus_five", "large_scale"] | None
    players: int
    low: float
    high: float
    ratio: Fraction | str | float | Sequence[int]
    offset: Fraction | str | float | Sequence[int]
    choices: Literal["integer", "real"]
    winner_rule: Literal["nearest", "first_value", "tolerance"]
    tolerance: Fraction | str | float | Sequence[int]
    reward_rule: Literal["exclusive", "independent", "amplified"]
    unit: float
    currency: str
    session: Literal["nested", "single", "repeated"]
    exchanges: int
    talk_turns: int
    rounds: int
    history: int
    order: Literal["shuffled", "fixed"]
    groups: int | Sequence[int] | None
    personas: Sequence[str]
    persona_from: int
    persona_in_talk: bool
    audience: Literal["everyone", "group", "neighbours"]
    hearers: int
    announcers: str | Sequence[str]
    statistic: Literal["mean", "median", "max"]
    opponents: str

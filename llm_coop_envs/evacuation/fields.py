"""Settings of `evacuation`, as keywords for type checkers and editors.

Written by `make types` from `EvacuationSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from llm_coop_envs.core.fields import ScenarioFields


class EvacuationFields(ScenarioFields, total=False):
    """Settings of `evacuation`; see `EvacuationSettings`."""

    preset: (
        Literal[
            "team_up", "no_talk", "selfish", "desks", "desks_seated", "no_diagonals", "crowd_400", "small", "single"
        ]
        | None
    )
    people: int
    rows: int
    cols: int
    exit_widths: Sequence[int]
    exits: Sequence[Sequence[str | int]] | Mapping[str, Sequence[Sequence[int]]] | None
    desks: Literal["none", "published"] | Sequence[Sequence[int]]
    start: Literal["random", "below_desks"]
    diagonals: bool
    engine: Literal["sequential", "simultaneous"]
    control: Literal["move", "exit"]
    rounds: int
    extra_round: bool
    removal_lag: bool
    replan_probability: float
    all_plan_first: bool
    hearing_radius: float
    hear_later_speakers: bool
    count_self: bool
    count_desks: bool
    crowd_count: Literal["near", "visible"]
    personas: Literal["two_by_two", "selfish", "none"]
    persona_swap: bool
    option_order: Literal["fixed", "shuffled"]
    injury: Literal["inert", "off", "active"]
    disabled_block: bool
    reward_inside: float
    reward_out: float
    reward_lost: float | None

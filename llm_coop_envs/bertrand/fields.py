"""Settings of `bertrand`, as keywords for type checkers and editors.

Written by `make types` from `BertrandSettings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llm_coop_envs.core.fields import ScenarioFields


class BertrandFields(ScenarioFields, total=False):
    """Settings of `bertrand`; see `BertrandSettings`."""

    preset: (
        Literal[
            "calvano",
            "team_up",
            "team_up_linear",
            "team_up_talk_stopped",
            "fish",
            "fish_1",
            "fish_3_2",
            "fish_10",
            "fish_monopoly",
            "klein",
        ]
        | None
    )
    firms: int
    cost: float | Sequence[float]
    quality: float | Sequence[float]
    demand: Literal["logit", "linear"]
    outside: float
    mu: float
    scale: float
    beta: float
    d: float
    price_unit: float
    prices: Literal["grid", "continuous"]
    grid_points: int
    grid_margin: float
    benchmark_decimals: int | None
    initial_prices: Literal["random"] | float | Sequence[float] | None
    force_first_price: bool
    price_floor: Literal["cost"] | float
    price_cap: float | None
    truncate_profit: bool
    clamp_demand: bool
    reward: Literal["profit", "normalised"]
    history_window: int
    bin_size: int
    bins: int
    statistics: Literal["every_round", "planning_rounds"]
    planning_period: int
    exchanges: int
    opener: Literal["shuffled", "fixed"]
    rounds: int
    collusion_window: int
    collusion_tolerance: float
    collusion_margin: Literal["above_nash", "from_nash"] | float
    moves: Literal["simultaneous", "alternating"]
    grid_span: Literal["benchmarks", "floor_to_cap"]
    known: Sequence[Literal["rival_costs", "demand", "rounds"]]

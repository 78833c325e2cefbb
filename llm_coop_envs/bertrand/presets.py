"""The published markets and protocols as presets of `BertrandSettings`; sources by the names used in `settings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The authors' code writes its two slopes in these decimals (about 1/150 and 1/300). They lie a hair below the
# fractions, so that profits which are integers on paper are not truncated to the number below.
_TEAM_UP_BETA = 0.00666666666666
_TEAM_UP_D = 0.00333333333333

# What the protocol of Wu et al. 2024 adds to a market: authors' code for the first price, the lift to cost
# and the price range named to the firms (0 to 14).
_TEAM_UP_PROTOCOL: dict[str, Any] = {
    "cost": 2.0,
    "initial_prices": 2.0,
    "force_first_price": True,
    "price_floor": "cost",
    "price_cap": 14.0,
}
_TEAM_UP_LINEAR: dict[str, Any] = {
    **_TEAM_UP_PROTOCOL,
    "demand": "linear",
    "quality": 14.0,
    "beta": _TEAM_UP_BETA,
    "d": _TEAM_UP_D,
    "truncate_profit": True,
    "statistics": "planning_rounds",
}
_FISH: dict[str, Any] = {
    "scale": 100.0,
    "history_window": 100,
    "bins": 0,
    "rounds": 300,
    "collusion_window": 0,
    "talk": False,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Calvano et al. 2020, baseline; no talk there, and sessions end by convergence of the learners only.
    "calvano": {
        "prices": "grid",
        "benchmark_decimals": 5,
        "initial_prices": "random",
        "collusion_window": 0,
        "talk": False,
    },
    # Logit of the form the text of Wu et al. 2024 names, tuned so that Nash is 6, joint profit 8 and Nash
    # demand 800, as in their figures: mu = 2.477706, a = 7.154190, scale = 2102.09, here to full
    # precision.
    "team_up": {
        **_TEAM_UP_PROTOCOL,
        "quality": 7.154190188735030,
        "mu": 2.477706336831434,
        "scale": 2102.091125663222,
    },
    # The market in the code published with Wu et al. 2024: q = 1400 - 200 p + 100 r.
    "team_up_linear": _TEAM_UP_LINEAR,
    # Wu et al. 2024, Figure 6c: the talk ends after round 400; 600 rounds are shown.
    "team_up_talk_stopped": {**_TEAM_UP_LINEAR, "talk_until": 400, "collusion_window": 0, "rounds": 600},
    # Fish et al. 2024; the same three units in EconEvals 2025. `fish` takes any price_unit.
    "fish": _FISH,
    "fish_1": _FISH,
    "fish_3_2": {**_FISH, "price_unit": 3.2},
    "fish_10": {**_FISH, "price_unit": 10.0},
    "fish_monopoly": {**_FISH, "firms": 1},
    # Klein 2021, k = 6, by public notes on it: firms in turn sell the same good at prices 0, 1/6, ..., 1 to 1 - p
    # customers. The rival's price is all that is seen; no talk there.
    "klein": {
        "demand": "linear",
        "quality": 1.0,
        "cost": 0.0,
        "beta": 1.0,
        "d": 1.0,
        "clamp_demand": True,
        "prices": "grid",
        "grid_points": 7,
        "grid_span": "floor_to_cap",
        "initial_prices": "random",
        "moves": "alternating",
        "history_window": 1,
        "bins": 0,
        "collusion_window": 0,
        "talk": False,
    },
}

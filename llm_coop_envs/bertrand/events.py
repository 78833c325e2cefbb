"""The data of this scenario's events, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llm_coop_envs.bertrand.rivalries import fill_absent
from llm_coop_envs.bertrand.rules import Band, Rivalry, RoundOutcome


def json_values(values: Sequence[float]) -> list[float | None]:
    """Values of all firms as JSON data: `None` for firms that have left (NaN)."""
    return [None if value != value else value for value in values]


def round_data(result: RoundOutcome) -> dict[str, Any]:
    """The data of a `round` event: `prices`, `demand`, `profits` (firms,), and `together`."""
    values = {name: json_values(getattr(result, name)) for name in ("prices", "demand", "profits")}
    return {**values, "together": result.together}


def equilibria_data(rivalry: Rivalry, n_firms: int) -> dict[str, Any]:
    """Nash and joint-profit prices and profits, (n_firms,) each, with `None` for firms that are not in the market."""
    return {
        name: json_values(fill_absent(getattr(rivalry.equilibria, name), rivalry.firms, n_firms))
        for name in ("nash", "joint", "nash_profit", "joint_profit")
    }


def band_data(band: Band) -> list[float]:
    """The lowest and highest position of the band, and its tolerance."""
    return [band.low, band.high, band.tolerance]

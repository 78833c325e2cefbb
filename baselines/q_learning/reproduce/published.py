"""Compare our results with the numbers that Calvano et al. (2020) print for their representative experiment.

With the authors' random numbers the 1,000 sessions are theirs, so every printed digit must agree. The numbers of Figure
4 were read off the graphics of the paper and may differ by `READ_OFF`.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.measures import Row, summary
from llm_coop_envs.baselines.q_learning.analyse.price_tables import price_tables
from llm_coop_envs.baselines.q_learning.analyse.responses import BUGGED
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.bertrand.deviation import ResponseSummary

SESSIONS = 1000
"""The number of sessions that the authors ran."""

EPISODE = 25_000
"""The number of periods in the authors' unit of time."""

READ_OFF = 0.005
"""The tolerance for a price that was read off a figure."""

_RESULTS, _TABLE_1, _TABLE_A5 = "replication package, A_res.txt", "Table I", "Table A5"
_FIGURE = "Figure 4, read off"

_CLASSES = {
    "one price, the same for both": ("1-symmetric",),
    "one price each": ("1-asymmetric",),
    "one price": ("1-symmetric", "1-asymmetric"),
    "two periods": ("2",),
    "three or more": ("3+",),
}
# Share of sessions, Delta, its standard deviation, equilibrium play on path.
_TABLE = {
    "one price, the same for both": (0.277, 0.866, 0.115, 0.686),
    "one price each": (0.366, 0.855, 0.114, 0.661),
    "one price": (0.643, 0.860, 0.114, 0.672),
    "two periods": (0.238, 0.846, 0.104, 0.294),
    "three or more": (0.119, 0.793, 0.097, 0.025),
}


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A published number beside ours.

    Attributes:
        name: the quantity.
        source: where it is printed.
        value: the published number.
        digits: the number of printed decimals.
        ours: our number.
        allowed: the allowed difference; `None`: ours must round to the published number.
    """

    name: str
    source: str
    value: float
    digits: int
    ours: float
    allowed: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether our number agrees with the published one."""
        if self.allowed is not None:
            return abs(self.ours - self.value) <= self.allowed
        # Half a unit of the last digit, and rounding of the halves either way.
        return abs(self.ours - self.value) <= 0.5 * 10.0**-self.digits * (1.0 + 1e-9)


@dataclass(frozen=True, kw_only=True)
class PriceCell:
    """A cell of a published table by prices (`value`) beside ours.

    `apart` is their difference in its standard errors; NaN where they differ and the standard error is unknown because
    all our sessions are alike.
    """

    value: float
    ours: float
    apart: float

    @property
    def agrees(self) -> bool:
        """Whether our number rounds to the published one."""
        return bool(abs(self.ours - self.value) <= 0.005 * (1.0 + 1e-9))


def compare_tables(run: StoredRun) -> dict[str, list[PriceCell]]:
    """Compare a run's `price_tables` with Tables II and III, cell by cell.

    Cells that our tables lack are left out. There are none on a grid of another size, or if no session ends in one pair
    of prices. The published sessions (`SESSIONS` of them) are assumed to have the spread of ours, and a published cell
    may be off by half a unit of its second decimal.
    """
    printed = published()["price_tables"]
    if run.game.points != len(printed["answer"][-1]) or not any(cycle.length == 1 for cycle in run.cycles):
        return {}
    ours = price_tables(run)
    first = run.game.points - len(printed["share"])
    wider = math.sqrt(1.0 + len(run.rows) / SESSIONS)
    cells: dict[str, list[PriceCell]] = {}
    for name in ours.means:
        cells[name] = []
        for price, row in enumerate(printed[name], first):
            for forced, value in enumerate(row):
                mean, error = float(ours.means[name][price, forced]), float(ours.errors[name][price, forced])
                if not np.isnan(mean):
                    gap = max(abs(mean - value) - 0.005, 0.0)
                    apart = 0.0 if gap == 0.0 else gap / (wider * error) if error > 0.0 else math.nan
                    cells[name].append(PriceCell(value=value, ours=mean, apart=apart))
    return cells


def figure_4() -> Mapping[str, Any]:
    """Prices read off Figure 4: of `deviator` and `rival`, from the period before the deviation on.

    The mapping also holds the market's `nash` and `joint` price and the `source`.
    """
    figure: Mapping[str, Any] = published()["figure_4"]
    return figure


@functools.cache
def published() -> Mapping[str, Any]:
    """The numbers that were read off figures, and the larger tables."""
    numbers: Mapping[str, Any] = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return numbers


def compare_printed(run: StoredRun) -> list[Printed]:
    """Compare a run of all `SESSIONS` docked sessions with the numbers that the authors print."""
    total, answers, drawn = summary(run.rows), run.answers(), run.answers(BUGGED)
    results = (
        ("converged sessions", 1000, 0, total["converged"]),
        ("episodes of 25,000 periods to convergence", 70.05, 2, total["time"] / EPISODE),
        ("their standard deviation", 11.73, 2, total["time_sd"] / EPISODE),
        ("their median", 68.07, 2, total["time_median"] / EPISODE),
        ("profit gain Delta", 0.84872, 5, total["gain"]),
        ("its standard deviation", 0.11198, 5, total["gain_sd"]),
        ("gain of firm 1", 0.84414, 5, total["firm_gains"][0]),
        ("gain of firm 2", 0.85329, 5, total["firm_gains"][1]),
    )
    deviations = (
        ("rivals' price change after a deviation, per cent", -12.7, 1, 100.0 * answers.change),
        ("deviations that do not pay, per cent", 93.6, 1, 100.0 * answers.unprofitable),
        ("periods until play is back", 5.70, 2, answers.length),
    )
    return [
        *(Printed(name=n, source=_RESULTS, value=v, digits=d, ours=float(f)) for n, v, d, f in results),
        *_table(run.rows),
        *(Printed(name=n, source=_TABLE_A5, value=v, digits=d, ours=f) for n, v, d, f in deviations),
        *_figure(drawn),
    ]


def _table(rows: list[Row]) -> list[Printed]:
    measures: dict[str, Callable[[list[Row]], float]] = {
        "share of sessions": lambda chosen: len(chosen) / len(rows),
        "Delta": lambda chosen: float(np.mean([row["gain"] for row in chosen])),
        "standard deviation of Delta": lambda chosen: float(np.std([row["gain"] for row in chosen])),
        "equilibrium play on path": lambda chosen: float(np.mean([row["equilibrium"] for row in chosen])),
    }
    comparisons = []
    for name, printed in _TABLE.items():
        chosen = [row for row in rows if row["cycle_class"] in _CLASSES[name]]
        for (measure, compute), value in zip(measures.items(), printed, strict=True):
            ours = compute(chosen) if chosen else float("nan")
            comparisons.append(Printed(name=f"{name}: {measure}", source=_TABLE_1, value=value, digits=3, ours=ours))
    every = float(np.mean([row["equilibrium"] for row in rows]))
    losses = [float(np.mean([row[key] for row in rows])) for key in ("loss_on_path", "loss_off_path")]
    for name, value, ours in (
        ("all: equilibrium play on path", 0.505, every),
        ("all: Q-loss on path", 0.002, losses[0]),
        ("all: Q-loss off path", 0.018, losses[1]),
    ):
        comparisons.append(Printed(name=name, source=_TABLE_1, value=value, digits=3, ours=ours))
    return comparisons


def _figure(drawn: ResponseSummary) -> list[Printed]:
    return [
        Printed(name=f"{firm}'s price, period {t}", source=_FIGURE, value=price, digits=3, ours=path, allowed=READ_OFF)
        for firm, printed, ours in (
            ("deviator", figure_4()["deviator"][1:], drawn.deviator.tolist()),
            ("rival", figure_4()["rival"][1:], drawn.rival.tolist()),
        )
        for t, (price, path) in enumerate(zip(printed, ours, strict=False), 1)
    ]

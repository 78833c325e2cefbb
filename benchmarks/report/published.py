"""Published values, each with its source."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llm_coop_envs

PAPER = (
    "Zengqing Wu, Run Peng, Shuyuan Zheng, Qianying Liu, Xu Han, Brian I. Kwon, Makoto Onizuka, Shaojie Tang, Chuan "
    "Xiao (2024). Shall We Team Up: Exploring Spontaneous Cooperation of Competing LLM Agents. Findings of the "
    "Association for Computational Linguistics: EMNLP 2024, 5163-5186. arXiv 2402.12327."
)
"""What the sources below call Wu et al. 2024."""

_ROOT = Path(llm_coop_envs.__file__).parent
_FILES = {
    "kbc": "kbc/published.json",
    "bertrand": "bertrand/published.json",
    "evacuation": "evacuation/published.json",
    "comparison": "benchmarks/comparison/published.json",
    "q_learning": "benchmarks/report/q_learning_published.json",
}


@dataclass(frozen=True, kw_only=True)
class EscapeRow:
    """One row of the evacuation table.

    Attributes:
        arm: its key.
        title: its name.
        talk: whether people could speak.
        rounds: the rounds at which was counted.
        escaped: how many of `people` had left by then, mean over `runs`.
        people: how many there were.
        runs: over how many runs.
        source: where it was published.
    """

    arm: str
    title: str
    talk: bool
    rounds: tuple[int, ...]
    escaped: tuple[float, ...]
    people: int
    runs: int
    source: str


@dataclass(frozen=True, kw_only=True)
class EscapeRun:
    """One evacuation, counted after every step.

    Attributes:
        seed: its seed.
        talk: whether people could speak.
        people: how many there were.
        frames: the steps, from 0.
        in_room: who has not left yet.
        reached: by exit (left, bottom, right), how many have reached it; they leave one step later.
        source: where it was published.
    """

    seed: int
    talk: bool
    people: int
    frames: tuple[int, ...]
    in_room: tuple[int, ...]
    reached: dict[str, tuple[int, ...]]
    source: str

    @property
    def escaped(self) -> tuple[int, ...]:
        """How many have left, by step."""
        return tuple(self.people - n for n in self.in_room)


@dataclass(frozen=True, kw_only=True)
class VarianceArm:
    """Variance of the chosen numbers by k in one arm.

    Attributes:
        arm: its key.
        title: its name.
        k: how often the players had talked.
        mean: the mean variance over `runs`.
        band: its published band at each k, `None` where none could be read.
        runs: over how many runs.
        precision: how exactly the figure could be read.
        source: where it was published.
    """

    arm: str
    title: str
    k: tuple[int, ...]
    mean: tuple[float, ...]
    band: tuple[tuple[float, float] | None, ...]
    runs: int
    precision: float
    source: str


@dataclass(frozen=True, kw_only=True)
class PricePath:
    """Prices over rounds in one published run.

    Attributes:
        arm: its key.
        title: its name.
        talk: whether the firms could speak.
        rounds: the rounds that were read off.
        prices: one series per firm, or one for their mean.
        precision: how exactly the figure could be read.
        source: where it was published.
    """

    arm: str
    title: str
    talk: bool
    rounds: tuple[int, ...]
    prices: tuple[tuple[float, ...], ...]
    precision: float
    source: str


@dataclass(frozen=True, kw_only=True)
class PriceLevels:
    """The published reference prices and the definition of collusion.

    Attributes:
        nash: the competitive price.
        cartel: the joint-profit price.
        start: the price of round 1.
        collusion_rounds: for how many rounds in a row prices have to stay close, between Nash and cartel price.
        longest: the round limit.
        runs: runs per setting.
        source: where the prices were published.
        collusion_source: where the definition was published.
    """

    nash: float
    cartel: float
    start: float
    collusion_rounds: int
    longest: int
    runs: int
    source: str
    collusion_source: str


@dataclass(frozen=True, kw_only=True)
class ImpulseResponse:
    """Prices after one firm was forced to its best reply, period by period from the one before.

    Attributes:
        nash: the Nash price of the market.
        joint: its joint-profit price.
        deviator: the deviating firm's mean price.
        rival: its rival's.
        source: where it was published.
    """

    nash: float
    joint: float
    deviator: tuple[float, ...]
    rival: tuple[float, ...]
    source: str


def escape_table() -> tuple[EscapeRow, ...]:
    """Cumulative escapes by round, three arms (Wu et al. 2024, Table 2)."""
    data = _read("evacuation")["table_2"]
    shared = {"people": data["people"], "runs": data["runs"], "source": data["source"]}
    return tuple(
        EscapeRow(
            arm=row["arm"],
            title=row["title"],
            talk=row["talk"],
            rounds=tuple(data["rounds"]),
            escaped=tuple(row["escaped"]),
            **shared,
        )
        for row in data["rows"]
    )


def escape_run() -> EscapeRun:
    """The published run with communication and seed 4, step by step."""
    data = _read("evacuation")["run_seed_4"]
    return EscapeRun(
        seed=data["seed"],
        talk=data["talk"],
        people=data["people"],
        frames=tuple(data["frames"]),
        in_room=tuple(data["in_room"]),
        reached={exit_: tuple(data[f"reached_{exit_}"]) for exit_ in ("left", "bottom", "right")},
        source=data["source"],
    )


def variance_arms() -> tuple[VarianceArm, ...]:
    """Variance of the numbers by k, six arms (Wu et al. 2024, Fig. 4 and 17)."""
    data = _read("kbc")["variance"]
    return tuple(
        VarianceArm(
            arm=arm["arm"],
            title=arm["title"],
            k=tuple(data["k"]),
            mean=tuple(arm["mean"]),
            band=tuple(None if b is None else (b[0], b[1]) for b in arm["band"]),
            runs=data["runs"],
            precision=data["precision"],
            source=data["source"],
        )
        for arm in data["arms"]
    )


def price_paths() -> tuple[PricePath, ...]:
    """Prices over rounds in published runs, without and with communication."""
    return tuple(
        PricePath(
            arm=path["arm"],
            title=path["title"],
            talk=path["talk"],
            rounds=tuple(path["rounds"]),
            prices=tuple(tuple(series) for series in path["prices"]),
            precision=path["precision"],
            source=path["source"],
        )
        for path in _read("bertrand")["trajectories"]
    )


def price_levels() -> PriceLevels:
    """Nash, cartel and first price, and what the paper calls collusion."""
    data = _read("bertrand")
    return PriceLevels(
        nash=data["prices"]["nash"],
        cartel=data["prices"]["cartel"],
        start=data["prices"]["start"],
        collusion_rounds=data["collusion"]["rounds"],
        longest=data["collusion"]["longest"],
        runs=data["runs"]["count"],
        source=data["prices"]["source"],
        collusion_source=data["collusion"]["source"],
    )


def impulse_response() -> ImpulseResponse:
    """How Q-learners answer a price cut (Calvano et al. 2020, Figure 4)."""
    data = _read("q_learning")["impulse_response"]
    return ImpulseResponse(
        nash=data["nash"],
        joint=data["joint"],
        deviator=tuple(data["deviator"]),
        rival=tuple(data["rival"]),
        source=data["source"],
    )


@functools.cache
def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_ROOT / _FILES[name]).read_text(encoding="utf-8"))
    return content


@dataclass(frozen=True, kw_only=True)
class PublishedRounds:
    """How long it took until prices stayed up, as published.

    Attributes:
        arm: its key.
        title: its name.
        rounds: how many rounds.
        gain: the profit gain then, if it is known.
        source: where it was published, and what was counted.
    """

    arm: str
    title: str
    rounds: float
    gain: float | None
    source: str


def published_rounds() -> tuple[PublishedRounds, ...]:
    """Rounds until prices stay up: models, learners as quoted, learners as published."""
    return tuple(PublishedRounds(**one) for one in _read("comparison")["rounds"])

"""What a picture shows, as plain data: one scene per scenario, made by an environment or from recorded events.

A scene knows no environment and no drawing library. Arrays in it are read-only and may be shared between scenes; a
history array holds what had happened when the scene was taken, never more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

INSIDE, ESCAPED, DISABLED = 0, 1, 2

#: What had just happened when a scene was taken, besides the phases: the episode or a round opened, a round was
#: settled, it was over.
START, OPENED, SETTLED, OVER = "start", "opened", "settled", "over"

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """One message of the running round (KBC: of the whole discussion).

    Attributes:
        speaker: the speaker's index.
        text: what was said.
        round: in which round.
        hearers: the indices of those who heard it; `None` means everybody.
    """

    speaker: int
    text: str
    round: int
    hearers: tuple[int, ...] | None = None

    def heard_by(self, listener: int) -> bool:
        """Whether somebody other than the speaker heard it."""
        return listener != self.speaker and (self.hearers is None or listener in self.hearers)


@dataclass(frozen=True, kw_only=True, eq=False)
class RoomPlan:
    """A room.

    Attributes:
        rows: rows, walls included.
        cols: columns, walls included.
        exit_names: the exits, in their shown order.
        exit_cells: (row, column) of every exit cell, in the order that decides ties.
        exit_groups: for each of them the index of its exit.
        desks: (row, column) of every desk.
    """

    rows: int
    cols: int
    exit_names: tuple[str, ...]
    exit_cells: tuple[tuple[int, int], ...]
    exit_groups: tuple[int, ...]
    desks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """What every scene has.

    Attributes:
        scenario: the environment's name, such as `"kbc_v0"`.
        agents: the players' names, in index order.
        step: how many steps had been played.
        round: the round, as the scenario's papers count.
        doing: what had just happened: `"start"`, `"opened"`, a phase such as `"talk"`, `"settled"` or `"over"`.
        reason: why the episode ended; empty while it runs.
        said: messages, oldest first.
    """

    scenario: str
    agents: tuple[str, ...]
    step: int
    round: int
    doing: str
    reason: str = ""
    said: tuple[Said, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class EvacuationScene(Scene):
    """A moment of an evacuation. Per-person arrays are in index order.

    Attributes:
        room: the room.
        rounds: after how many rounds whoever is inside is lost.
        positions: (people, 2) row and column; where they were last for those who have left.
        status: (people,) `INSIDE`, `ESCAPED` or `DISABLED`.
        headings: (people,) the exit each heads for, -1 while unknown.
        overtaken: (people,) who is knocked over.
        planners: (people,) who talks and chooses in this round.
        personas: (strong, confident) as the texts say; each part `None` without personas.
        selfish: whether the personas are unwilling to help.
        stood: (people, 2) positions when the round began: from there they look and speak.
        trails: (rounds, people, 2) positions at the ends of the last rounds, oldest first; -1 once out.
        curve: (rounds so far + 1, exits) how many were out by each exit, from `curve_from` on, round by round.
        curve_from: the round of the curve's first row: 0, unless only a later part of the episode is known.
        out: how many are out by each exit now.
        chosen: (people,) the exit chosen in this round, -1 for none.
        hearing_radius: how far one is heard, in cells; `None` without talk.
        count_self: whether the people seen include the watcher.
        count_desks: whether they include desks.
    """

    room: RoomPlan
    rounds: int
    positions: IntArray
    status: IntArray
    headings: IntArray
    overtaken: NDArray[np.bool_]
    planners: NDArray[np.bool_]
    personas: tuple[tuple[bool | None, bool | None], ...]
    selfish: bool
    stood: IntArray
    trails: IntArray
    curve: IntArray
    curve_from: int
    out: tuple[int, ...]
    chosen: IntArray
    hearing_radius: float | None
    count_self: bool
    count_desks: bool

    @property
    def inside(self) -> int:
        """How many are in the room."""
        return int((self.status == INSIDE).sum())

    @property
    def disabled(self) -> int:
        """How many were disabled."""
        return int((self.status == DISABLED).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class BertrandScene(Scene):
    """A moment of price competition.

    Attributes:
        rounds: after how many rounds play ends.
        first_round: the round of the first row of the histories.
        prices: (rounds so far, firms).
        demand: (rounds so far, firms).
        profits: (rounds so far, firms).
        together: (rounds so far,) whether the prices were close to each other between Nash and joint-profit price.
        nash: each firm's Nash price.
        joint: each firm's joint-profit price.
        nash_profit: each firm's profit at the Nash prices.
        joint_profit: each firm's profit at the joint-profit prices.
        cost: each firm's unit cost.
        band: lowest and highest price of the collusion band.
        initial_prices: the prices before round 1, if there were any.
    """

    rounds: int
    first_round: int
    prices: FloatArray
    demand: FloatArray
    profits: FloatArray
    together: NDArray[np.bool_]
    nash: tuple[float, ...]
    joint: tuple[float, ...]
    nash_profit: tuple[float, ...]
    joint_profit: tuple[float, ...]
    cost: tuple[float, ...]
    band: tuple[float, float]
    initial_prices: tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class KbcDecision:
    """One decision of the beauty contest.

    Attributes:
        round: k in a nested session, else from 1.
        choices: everybody's number.
        mean: the mean that the target was made from.
        target: the number to be nearest to.
        winners: indices of the winners.
        prize: what each winner got.
        variance: the variance of the choices (of the whole population, as the papers' figures).
        group_numbers: the groups' numbers, in group play.
    """

    round: int
    choices: FloatArray
    mean: float
    target: float
    winners: tuple[int, ...]
    prize: float
    variance: float
    group_numbers: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class KbcScene(Scene):
    """A moment of the beauty contest.

    Attributes:
        low: the lowest number that may be named.
        high: the highest.
        ratio: the target's factor, in words such as `"2/3"`.
        offset: what is added to it, in words; `"0"` for nothing.
        session: `"single"`, `"nested"` or `"repeated"`.
        all_decisions: how many decisions the episode has.
        decisions: those made so far, oldest first.
    """

    low: float
    high: float
    ratio: str
    offset: str
    session: str
    all_decisions: int
    decisions: tuple[KbcDecision, ...]

    @property
    def last(self) -> KbcDecision | None:
        """The last decision made."""
        return self.decisions[-1] if self.decisions else None


AnyScene = EvacuationScene | BertrandScene | KbcScene
Event = dict[str, Any]

"""What figures need of a run, as plain arrays: read once, from its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.run.folder import Run
from llm_coop_envs.benchmarks.study.players import label
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.scenario import Event

#: Rounds of which positions are kept; snapshots show some of them.
KEPT_ROUNDS = 8
#: The longest title that is not cut, in characters.
TITLE = 36

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """An episode of price competition.

    Attributes:
        prices: (rounds, firms).
        together: (rounds,) whether prices were close to each other between Nash and cartel price.
        nash: the Nash price, mean of the firms.
        joint: the cartel price, mean of the firms.
        truncated: whether a clock ended it.
    """

    prices: Floats
    together: NDArray[np.bool_]
    nash: float
    joint: float
    truncated: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """A beauty contest.

    Attributes:
        rounds: the decisions' numbers (k in nested sessions).
        choices: (players,) numbers at each decision.
        targets: the target at each decision.
    """

    rounds: tuple[int, ...]
    choices: tuple[Floats, ...]
    targets: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Escape:
    """An evacuation.

    Attributes:
        room: the `room` of its `start` event.
        out: (rounds of the settings + 1, exits) how many had left by each exit after each round.
        inside: how many were in the room after each kept round, from 0.
        positions: (kept rounds, people, 2) from round 0 on, -1 for those who have left.
        headings: (kept rounds, people) the exit each heads for, -1 for none.
        disabled: (kept rounds, people) who was hurt and stays.
    """

    room: dict[str, object]
    out: Ints
    inside: tuple[int, ...]
    positions: Ints
    headings: Ints
    disabled: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Talk:
    """What was said in an episode: round and text of each message that is not empty, in order."""

    said: tuple[tuple[int, str], ...]


@dataclass(kw_only=True)
class Played:
    """A condition with its finished episodes.

    Attributes:
        condition: the condition.
        who: who played, such as `"scripted"`.
        seeds: the seeds of the finished episodes; the lists below are in this order.
        prices: the episodes, in price competition.
        guesses: the episodes, in beauty contests.
        escapes: the episodes, in evacuations.
        talks: what was said.
    """

    condition: Condition
    who: str
    seeds: list[int] = field(default_factory=list)
    prices: list[Prices] = field(default_factory=list)
    guesses: list[Guesses] = field(default_factory=list)
    escapes: list[Escape] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The condition's name in legends, with who played and the number of episodes."""
        return f"here, {self.who}: {self.title} (n = {len(self.seeds)})"

    @property
    def title(self) -> str:
        """The condition's title, cut if it is too long for a legend or the head of a panel."""
        title = self.condition.title
        return title if len(title) <= TITLE else title[: TITLE - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """A run, ready to be drawn.

    Attributes:
        run: the run.
        conditions: those that have finished episodes, in the study's order.
    """

    run: Run
    conditions: tuple[Played, ...]

    def of(self, scenario: str) -> list[Played]:
        """The conditions of a scenario."""
        return [one for one in self.conditions if one.condition.scenario == scenario]


def gather(run: Run) -> Gathered:
    """Read every finished episode of a run.

    Raises:
        RunError: an episode's file is damaged.
    """
    there = run.finished()
    found = []
    for condition in run.conditions:
        kinds = sorted({label(policy) for policy in condition.policies})
        played = Played(condition=condition, who=" and ".join(kinds))
        for seed in condition.seeds:
            if (condition.name, seed) in there:
                _, events = run.read_events(condition.name, seed)
                played.seeds.append(seed)
                _add(played, events)
        if played.seeds:
            found.append(played)
    return Gathered(run=run, conditions=tuple(found))


def _add(played: Played, events: Sequence[Event]) -> None:
    scenario = played.condition.scenario
    if scenario == "bertrand":
        played.prices.append(_prices(events))
    elif scenario == "kbc":
        played.guesses.append(_guesses(events))
    else:
        played.escapes.append(_escape(events))
    said = ((event["round"], event["text"]) for event in events if event["type"] == "message")
    played.talks.append(Talk(said=tuple((number, text) for number, text in said if text.strip())))


def _prices(events: Sequence[Event]) -> Prices:
    start, end = events[0], events[-1]
    rounds = [event for event in events if event["type"] == "round"]
    return Prices(
        prices=np.array([event["prices"] for event in rounds], dtype=np.float64).reshape(len(rounds), -1),
        together=np.array([event["together"] for event in rounds], dtype=np.bool_),
        nash=float(np.mean(start["nash"])),
        joint=float(np.mean(start["joint"])),
        truncated=bool(end["truncated"]),
    )


def _guesses(events: Sequence[Event]) -> Guesses:
    rounds = [event for event in events if event["type"] == "round"]
    return Guesses(
        rounds=tuple(event["round"] for event in rounds),
        choices=tuple(np.array(event["choices"], dtype=np.float64) for event in rounds),
        targets=tuple(float(event["target"]) for event in rounds),
    )


def _escape(events: Sequence[Event]) -> Escape:
    start = events[0]
    people = len(start["agents"])
    names = start["room"]["exit_names"]
    group = [names.index(name) for name, _, _ in start["room"]["exits"]]
    out = np.zeros((start["settings"]["rounds"] + 1, len(names)), dtype=np.int64)
    positions = [np.array(start["positions"], dtype=np.int64)]
    headings = [np.full(people, -1, dtype=np.int64)]
    disabled = [np.zeros(people, dtype=np.bool_)]
    for event in events:
        if event["type"] != "round":
            continue
        hurt = disabled[-1].copy()
        hurt[event["disabled"]] = True
        for _, cell in event["escaped"]:
            # Nobody comes back: after an early end all stays as it was.
            out[event["round"] :, group[cell]] += 1
        if event["round"] <= KEPT_ROUNDS:
            positions.append(np.array([[-1, -1] if p is None else p for p in event["positions"]], dtype=np.int64))
            headings.append(np.array([-1 if h is None else h for h in event["headings"]], dtype=np.int64))
            disabled.append(hurt)
    return Escape(
        room=start["room"],
        out=out,
        inside=tuple(int((where[:, 0] >= 0).sum()) for where in positions),
        positions=np.stack(positions),
        headings=np.stack(headings),
        disabled=np.stack(disabled),
    )

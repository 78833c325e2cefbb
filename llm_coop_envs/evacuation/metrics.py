"""Measures of an evacuation, computed from recorded events.

Numbers of rounds are those of Table 2 of "Shall We Team Up" (Wu et al. 2024), as far as its numbers can be matched
with the authors' code: a person who is counted out at the start of round r (from 1) counts from "round r" on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llm_coop_envs.core.records import Delivery, deliveries, forced_choices, of_type, replaced_choices, start_of
from llm_coop_envs.core.scenario import Measures
from llm_coop_envs.evacuation.words import WORDS
from llm_coop_envs.interface.question import Option, Options
from llm_coop_envs.statistics.intervals import COUNT, COUNT_FROM_1, FROM_1, SHARE, Range

Event = Mapping[str, Any]

EXIT = "exit"

#: The rounds of Table 2.
TABLE_ROUNDS = tuple(range(5, 51, 5))


@dataclass(frozen=True, kw_only=True)
class Round:
    """One recorded round with its messages and choices of exits.

    Attributes:
        number: from 1.
        settled: its `round` event.
        messages: how many were sent.
        listeners: the people who had heard somebody when the exits were chosen.
        choices: person and exit of each choice of an exit.
        replaced: the people whose choice was not their own: it was illegal or missing, or a regulator stopped it.
    """

    number: int
    settled: Event
    messages: int
    listeners: frozenset[int]
    choices: tuple[tuple[int, int], ...]
    replaced: frozenset[int]


def rounds_of(events: Sequence[Event]) -> tuple[Event, list[Round]]:
    """Split a record into its `start` event and its rounds."""
    start = start_of(events)
    index = {name: i for i, name in enumerate(start["agents"])}
    replaced = replaced_choices(events)
    listeners: dict[int, set[int]] = {}
    for delivery in heard_messages(events):
        listeners.setdefault(delivery.round, set()).update(index[name] for name in delivery.hearers or ())
    rounds: list[Round] = []
    messages = 0
    chosen: dict[str, int] = {}
    for event in events:
        if event["type"] == "message":
            messages += 1
        elif event["type"] == "choice" and event["phase"] == EXIT:
            chosen[event["agent"]] = event["choice"]
        elif event["type"] == "round":
            number = event["round"]
            rounds.append(
                Round(
                    number=number,
                    settled=event,
                    messages=messages,
                    listeners=frozenset(listeners.get(number, ())),
                    choices=tuple((index[name], choice) for name, choice in chosen.items()),
                    replaced=frozenset(index[name] for name in chosen if (number, EXIT, name) in replaced),
                )
            )
            messages, chosen = 0, {}
    return start, rounds


def heard_messages(events: Sequence[Event]) -> list[Delivery]:
    """Collect what was heard before the exits of its round were chosen.

    If messages of later speakers are not heard in time, planners heard only those who spoke before them, and of an
    earlier round's talk what arrives late.
    """
    settings = start_of(events)["settings"]
    if settings["hear_later_speakers"] or settings["talk_mode"] != "sequential":
        return deliveries(events)
    agents = start_of(events)["agents"]
    ranks = {
        event["round"]: {agents[person]: rank for rank, person in enumerate(event["planners"])}
        for event in of_type(events, "round")
    }
    in_time = []
    for message in of_type(events, "message"):
        rank = ranks.get(message["round"], {})
        for delivery in deliveries([message]):
            hearers = delivery.hearers or ()
            if delivery.round == message["round"]:
                hearers = [name for name in hearers if rank.get(delivery.speaker, 0) < rank.get(name, 0)]
            in_time.append(replace(delivery, hearers=hearers))
    return in_time


def balance(counts: Sequence[int], widths: Sequence[int]) -> float | None:
    """Return how evenly the exits were used for their widths: entropy of the people per exit cell over its maximum.

    1 means that as many left by each cell of one exit as of any other, 0 that all went through one exit; `None` if
    nobody left or there is only one exit.

    Args:
        counts: how many left by each exit.
        widths: how many cells each exit has.
    """
    loads = [count / width for count, width in zip(counts, widths, strict=True)]
    total = math.fsum(loads)
    if not total or len(loads) < 2:
        return None
    shares = [load / total for load in loads if load]
    return math.fsum(-share * math.log(share) for share in shares) / math.log(len(loads))


def round_rows(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return one row per round: people out (by exit too), planners, messages, changes of exit, moves.

    `inside` counts those still in the room after this round's departures; `stationary` those of them who ended the
    round where they began it.
    """
    start, rounds = rounds_of(events)
    names = start["room"]["exit_names"]
    exit_of = [names.index(name) for name, _, _ in start["room"]["exits"]]
    out = [0] * len(names)
    disabled = 0
    previous = start["positions"]
    heading: dict[int, int] = {}
    rows = []
    for round_ in rounds:
        event = round_.settled
        for _, cell in event["escaped"]:
            out[exit_of[cell]] += 1
        disabled += len(event["disabled"])
        heard = round_.listeners
        again = [(i, choice) for i, choice in round_.choices if i in heading and i not in round_.replaced]
        changed = [i for i, choice in again if heading[i] != choice]
        heading.update(round_.choices)
        positions = event["positions"]
        # The last record may hold departures only: nobody was asked to move.
        moves = [(a, b) for a, b in zip(positions, previous, strict=True) if a is not None and event["played"]]
        rows.append(
            {
                "round": round_.number,
                "inside": sum(cell is not None for cell in positions),
                "escaped": sum(out),
                **{f"escaped_{name}": count for name, count in zip(names, out, strict=True)},
                "disabled": disabled,
                "overtaken": len(event["overtaken"]),
                "planners": len(event["planners"]),
                "messages": round_.messages,
                "chose_again": len(again),
                "chose_again_after_message": sum(i in heard for i, _ in again),
                "changed": len(changed),
                "changed_after_message": sum(i in heard for i in changed),
                "moved": sum(a != b for a, b in moves),
                "stationary": sum(a == b for a, b in moves),
            }
        )
        previous = positions
    return rows


def path_scores(start: Event, events: Sequence[Event], walks: Mapping[int, int]) -> list[float]:
    """Return for everybody the fewest steps to the nearest exit over the steps made.

    The fewest steps are those through an empty room without desks. People who are not out, or made an illegal step,
    score 0.
    """
    fewest_steps = _step_rule(start)
    cells = [cell for _, *cell in start["room"]["exits"]]
    illegal = {event["agent"] for event in of_type(events, "choice") if event["phase"] == "move" and event.get("flags")}
    scores = []
    for i, (name, origin) in enumerate(zip(start["agents"], start["positions"], strict=True)):
        fewest = min(fewest_steps(abs(a - b) for a, b in zip(origin, cell, strict=True)) for cell in cells)
        scores.append(fewest / walks[i] if i in walks and name not in illegal else 0.0)
    return scores


def _step_rule(start: Event) -> Callable[[Iterator[int]], int]:
    """Return the function that turns vertical and horizontal distances into a number of steps."""
    # Records from before there was a choice have diagonal steps.
    return max if start["settings"].get("diagonals", True) else sum


def _walks(start: Event, rounds: Sequence[Round]) -> Iterator[tuple[int, int, int, int]]:
    """Yield a tuple for everybody who got out: person, round, steps made, fewest steps possible to that exit cell."""
    fewest_steps = _step_rule(start)
    cells = [[row, col] for _, row, col in start["room"]["exits"]]
    at = list(start["positions"])
    steps = [0] * len(at)
    for round_ in rounds:
        for i, cell in round_.settled["escaped"]:
            # Without the removal lag the last step is not among the positions, since the person leaves before the
            # round ends.
            step_count = steps[i] + (at[i] != cells[cell])
            fewest = fewest_steps(abs(a - b) for a, b in zip(start["positions"][i], cells[cell], strict=True))
            yield i, round_.number, step_count, fewest
        for i, cell in enumerate(round_.settled["positions"]):
            if cell is not None and cell != at[i]:
                steps[i] += 1
                at[i] = cell


def episode_metrics(events: Sequence[Event]) -> dict[str, Any]:
    """Return an episode's measures, as `MEASURES.about` defines them; flat, `None` if there is nothing to measure."""
    start, rounds = rounds_of(events)
    rows = round_rows(events)
    names = start["room"]["exit_names"]
    people = len(start["agents"])
    taken_out = {person for event in of_type(events, "opening") for person in event.get("taken_out", ())}
    last = rows[-1] if rows else None
    escaped_by = {row["round"]: row["escaped"] for row in rows}
    total = last["escaped"] if last else 0
    walks = list(_walks(start, rounds))
    # Whoever reaches an exit in the last round is out when it is over: no round follows in which it could be counted.
    limit = start["settings"]["rounds"]
    departures = [min(number, limit) for _, number, _, _ in walks]
    scores = path_scores(start, events, {i: step_count for i, _, step_count, _ in walks})
    forced = {agent for _, _, agent in forced_choices(events)}
    left_out = taken_out | {person for person, agent in enumerate(start["agents"]) if agent in forced}
    counted_scores = [score for person, score in enumerate(scores) if person not in left_out]
    stationary = sum(row["stationary"] for row in rows)
    spent = stationary + sum(row["moved"] for row in rows)
    again, again_heard = (sum(row[key] for row in rows) for key in ("chose_again", "chose_again_after_message"))
    changes, changes_heard = (sum(row[key] for row in rows) for key in ("changed", "changed_after_message"))
    by_exit = [last[f"escaped_{name}"] if last else 0 for name in names]
    disabled = last["disabled"] if last else 0
    exits = [name for name, _, _ in start["room"]["exits"]]
    return {
        "people": people,
        "rounds": min(len(rows), limit),
        "escaped": total,
        "disabled": disabled,
        "taken_out": len(taken_out),
        "left_inside": people - total - disabled - len(taken_out),
        "never_left": people - total - len(taken_out),
        **{
            f"escaped_round_{number}": None if number > limit else escaped_by.get(number, total)
            for number in TABLE_ROUNDS
        },
        **{f"escaped_{name}": count for name, count in zip(names, by_exit, strict=True)},
        "balance": balance(by_exit, [exits.count(name) for name in names]),
        "mean_round": sum(departures) / total if total else None,
        "last_round": max(departures, default=None),
        "waiting": stationary / people,
        "waiting_share": stationary / spent if spent else None,
        "detour": math.fsum(step_count / fewest for _, _, step_count, fewest in walks) / total if total else None,
        "path_score": math.fsum(counted_scores) / len(counted_scores) if counted_scores else None,
        "messages": sum(row["messages"] for row in rows),
        "overtaken": sum(row["overtaken"] for row in rows),
        "chose_again": again,
        "exit_changes": changes,
        "exit_changes_after_message": changes_heard,
        "change_rate_after_message": changes_heard / again_heard if again_heard else None,
        "change_rate_unheard": (changes - changes_heard) / (again - again_heard) if again > again_heard else None,
    }


def exit_questions(start: Mapping[str, Any]) -> dict[str, Options]:
    """Return the question of each person that chooses an exit, by its name."""
    exits = tuple(Option(choice=k, name=name) for k, name in enumerate(start["room"]["exit_names"]))
    return dict.fromkeys(start["agents"], Options(name="exit", options=exits))


def _people(settings: Mapping[str, Any]) -> Range:
    return Range(low=0.0, high=settings["people"], integer=True)


def _rounds(settings: Mapping[str, Any]) -> Range:
    return Range(low=0.0, high=settings["rounds"], integer=True)


def _departures(settings: Mapping[str, Any]) -> Range:
    return Range(low=1.0, high=settings["rounds"])


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    nature={"start": ("positions", "physical", "attributes"), "opening": ("planners",)},
    asked=exit_questions,
    forced="Forced choices of an exit are no changes of mind, and who was forced has no path score. Who left, when and "
    "where counts everybody, because whoever is forced takes up room as others do.",
    heard=heard_messages,
    about={
        "people": "People in the room at the beginning, a count from 1.",
        "rounds": "Rounds that were played, a count from 0 to the settings' limit.",
        "escaped": "People who left the room, a count from 0.",
        "escaped_round_*": "People who had left by that round, a count from 0 (Wu et al. 2024, Table 2); missing "
        "beyond the settings' last round.",
        "escaped_*": "People who left by that exit, a count from 0.",
        "disabled": "People who were hurt and stayed, a count from 0.",
        "taken_out": "People whom a change of the settings took out of the game, a count from 0; none of the other "
        "counts of people at the end has them.",
        "left_inside": "People who were neither out nor hurt at the end, a count from 0.",
        "never_left": "People who did not leave the room, hurt or not, a count from 0.",
        "balance": "How evenly the exits were used for their widths: of the people per exit cell, entropy over the "
        "greatest possible, from 0 to 1 (all by one exit, all cells alike); missing if nobody left or there is one "
        "exit.",
        "mean_round": "Round in which people left, mean over those who did, from 1; others are counted apart.",
        "last_round": "Round in which the last person left, from 1 to rounds; missing if nobody did.",
        "waiting": "Rounds that a person spent inside without changing its cell, mean over all people, from 0.",
        "waiting_share": "Rounds as in waiting as a share of all rounds that people spent inside, 0 to 1.",
        "detour": "Steps made over the fewest possible to the exit cell used, mean over those who left, from 1 up.",
        "path_score": "Fewest steps possible to the nearest exit over the steps made, mean over all people who were "
        "neither taken out nor forced by a study, 0 to 1; 0 for who did not get out, or named an illegal step.",
        "messages": "Messages that were sent in the episode, a count from 0.",
        "overtaken": "Rounds in which a person was knocked over by the crowd, summed over people, a count from 0.",
        "chose_again": "Choices of an exit after a person's first one, without those that the environment or a "
        "study made for it, a count from 0.",
        "exit_changes": "Choices of an exit after a person's first one that changed it, a count from 0.",
        "exit_changes_after_message": "Changes by people who had heard somebody in that round, a count from 0.",
        "change_rate_after_message": "Share of changes among later choices of people who had heard somebody, 0 to 1; "
        "missing without such choices.",
        "change_rate_unheard": "Share of changes among later choices of people who had heard nobody, 0 to 1; missing "
        "without such choices.",
    },
    ranges={
        "people": _people,
        "rounds": _rounds,
        "escaped*": _people,
        "disabled": _people,
        "taken_out": _people,
        "left_inside": _people,
        "never_left": _people,
        "balance": SHARE,
        "mean_round": _departures,
        "last_round": _departures,
        "waiting": lambda settings: Range(low=0.0, high=settings["rounds"]),
        "waiting_share": SHARE,
        "detour": FROM_1,
        "path_score": SHARE,
        "messages": COUNT,
        "overtaken": COUNT,
        "chose_again": COUNT,
        "exit_changes*": COUNT,
        "change_rate_*": SHARE,
        # Those of rounds alone.
        "round": COUNT_FROM_1,
        "inside": _people,
        "planners": _people,
        "moved": _people,
        "stationary": _people,
        "chose_again_after_message": COUNT,
        "changed*": COUNT,
    },
    words=WORDS,
    headline=("mean_round", "never_left", "last_round", "escaped", "balance", "waiting", "detour"),
)

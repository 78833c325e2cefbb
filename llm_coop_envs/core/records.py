"""Reading recorded events: the one rule for what was delivered, and for whose choices were their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.treatments.changes import fits_any

VETO = "veto"
FORCED = "forced"
"""The policy that always makes the same choice, by which a study lays choices down."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """A message as it was heard.

    Attributes:
        round: the round in which it was first heard.
        speaker: its true speaker.
        text: what was heard.
        hearers: who heard it, the speaker not among them; `None` for all others.
    """

    round: int
    speaker: str
    text: str
    hearers: Collection[str] | None


def deliveries(events: Sequence[Mapping[str, Any]]) -> list[Delivery]:
    """Collect what was heard: dropped messages are left out, and others come as their treatment delivered them.

    Example: a message of round 3 with a delay of 2 is one of round 5.
    """
    heard = []
    for message in of_type(events, "message"):
        delivered = message.get("delivered", message)
        if delivered["text"] is not None:
            heard.append(
                Delivery(
                    round=delivered.get("round", message["round"]),
                    speaker=message["agent"],
                    text=delivered["text"],
                    hearers=message["hearers"],
                )
            )
    return heard


def replaced_choices(events: Sequence[Mapping[str, Any]]) -> set[tuple[int, str, str]]:
    """Find the choices that were not their player's own, by round, phase and player.

    They were illegal or missing, a regulator stopped them, the round's prices were forced, or the study forced them.
    """
    forced = {event["round"] for event in of_type(events, "round") if event.get("forced")}
    replaced = {
        (event["round"], event["phase"], event["agent"])
        for event in of_type(events, "choice")
        if event.get("flags") or event["round"] in forced
    }
    stopped = (event for event in of_type(events, "regulation") if event["action"] == VETO)
    return replaced | forced_choices(events) | {(event["round"], event["on"], event["about"]) for event in stopped}


def forced_choices(events: Sequence[Mapping[str, Any]]) -> set[tuple[int, str, str]]:
    """Find the choices that a study's `changes` forced, by round, phase and player.

    A seat that the policy `forced` plays throughout has no other player, and its choices count as its own.
    """
    forced, holding = set(), []
    for event in events:
        if event["type"] == "change" and "policies" in event:
            holding = [change for change in event["policies"] if not change.get("for_models")]
        elif event["type"] == "choice" and holding:
            agent, phase = event["agent"], event["phase"]
            # The last change that means a player decides.
            mine = [change for change in holding if not change["players"] or fits_any(agent, change["players"])]
            if mine and mine[-1]["policy"] == FORCED and mine[-1]["options"].get("phase", "") in ("", phase):
                forced.add((event["round"], phase, agent))
    return forced


def forced_players(events: Sequence[Mapping[str, Any]]) -> dict[int, set[str]]:
    """Whose choices a study's `changes` forced in each round that has such."""
    players: dict[int, set[str]] = {}
    for number, _, agent in forced_choices(events):
        players.setdefault(number, set()).add(agent)
    return players


def start_of(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The `start` event of an episode.

    Raises:
        ValueError: there is none.
    """
    start = next((event for event in events if event["type"] == "start"), None)
    if start is None:
        raise ValueError("the events hold no 'start'; record the episode from its reset with record=True")
    return start


def of_type(events: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """The events of one type, in order."""
    return [event for event in events if event["type"] == kind]


def flagged_choices(events: Sequence[Mapping[str, Any]]) -> dict[int, set[str]]:
    """Whose choices were flagged in each round that has such: illegal or missing, and replaced by the environment's."""
    flagged: dict[int, set[str]] = {}
    for event in of_type(events, "choice"):
        if event["flags"]:
            flagged.setdefault(event["round"], set()).add(event["agent"])
    return flagged

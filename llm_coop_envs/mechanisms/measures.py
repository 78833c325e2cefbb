"""What mechanisms did in an episode, by its events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.interface.hooks import Event
from llm_coop_envs.interface.wording import listed
from llm_coop_envs.mechanisms.settings import CONTRACTING, DELEGATE, MEDIATION, SIGN, VOTE
from llm_coop_envs.statistics.intervals import FROM_0, SHARE, Range
from llm_coop_envs.util.digits import six_digits

MECHANISM_MEASURES: Mapping[str, str] = {
    "elected": "Share of elections in which a mediator or contract was elected, 0 to 1.",
    "approved": "Share of the proposals that a voter approved of, mean over voters and elections, 0 to 1.",
    "delegated": "Share of choices that were delegated to the mediator, 0 to 1.",
    "signed": "Share of players who signed the elected contract, mean over elections, 0 to 1.",
    "bound": "Share of rounds in which a contract was in force, 0 to 1.",
    "paid": "What players paid each other under a contract in a round, sum over players and mean over rounds, from 0.",
}
MECHANISM_RANGES: Mapping[str, Range] = {name: FROM_0 if name == "paid" else SHARE for name in MECHANISM_MEASURES}


def mechanism_measures(events: Sequence[Event]) -> dict[str, Any]:
    """What the mechanism did, by the names of `MECHANISM_MEASURES`; empty where nobody was elected to do anything."""
    kind = (events[0]["settings"].get("mechanism") or {}).get("kind")
    rounds, players = sum(event["type"] == "round" for event in events), len(events[0]["agents"])
    if kind not in (MEDIATION, CONTRACTING) or not rounds:
        return {}
    outcomes = [event for event in events if event["type"] == "mechanism"]
    votes = [event for event in outcomes if event["phase"] == VOTE]
    voted = [event["choice"] for event in events if event["type"] == "choice" and event["phase"] == VOTE]
    candidates = len(votes[0]["approvals"]) if votes else 0
    row = {
        "elected": _mean([event["elected"] is not None for event in votes]),
        "approved": _mean([len(approved) / candidates for approved in voted]),
    }
    if kind == MEDIATION:
        delegated = sum(len(event["delegated"]) for event in outcomes if event["phase"] == DELEGATE)
        return {**row, "delegated": delegated / (rounds * players)}
    payments = [event["payments"] for event in outcomes if "payments" in event]
    paid = math.fsum(max(0.0, -payment) for round_ in payments for payment in round_)
    signed = _mean([len(event["signed"]) / players for event in outcomes if event["phase"] == SIGN])
    return {**row, "signed": signed, "bound": len(payments) / rounds, "paid": paid / rounds}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def mechanism_moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    """What a mechanism decided, as (round, words): elections, signatures, who delegates now, and payments."""
    moments: list[tuple[int, str]] = []
    delegating: list[str] = []
    for event in events:
        if event["type"] != "mechanism":
            continue
        sentence = ""
        if event["phase"] == VOTE:
            sentence = "nobody was elected"
            if event["elected"] is not None:
                sentence = f"elected: {event['elected']} ({event['words']})"
        elif event["phase"] == SIGN:
            sentence = f"signed: {listed(event['signed']) if event['signed'] else 'nobody'}"
            sentence += ", in force" if event["binding"] else ", not in force"
        elif event["phase"] == DELEGATE and event["delegated"] != delegating:
            delegating = event["delegated"]
            sentence = f"delegate now: {listed(delegating) if delegating else 'nobody'}"
        elif any(event.get("payments", ())):
            sentence = "payments: " + ", ".join(six_digits(payment) for payment in event["payments"])
        if sentence:
            moments.append((event["round"], sentence))
    return moments

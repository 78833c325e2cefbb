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
    "mechanism": "The kind of mechanism that players met with; missing without one.",
    "elected": "Share of elections in which a mediator or contract was elected, 0 to 1.",
    "approved": "Share of the proposals that a voter approved of, mean over voters and elections, 0 to 1.",
    "delegated": "Share of choices that were delegated to the mediator, 0 to 1.",
    "signed": "Share of players who signed the elected contract, mean over elections, 0 to 1.",
    "bound": "Share of rounds in which a contract was in force, mean over groups, 0 to 1.",
    "paid": "What players paid each other under a contract in a round, sum over players and mean over rounds, from 0.",
}
MECHANISM_RANGES: Mapping[str, Range] = {
    name: FROM_0 if name == "paid" else SHARE for name in MECHANISM_MEASURES if name != "mechanism"
}


def mechanism_measures(events: Sequence[Event], recorded: str = "") -> dict[str, Any]:
    """What the mechanism did, by the names of `MECHANISM_MEASURES`; empty without one.

    Args:
        events: the episode's.
        recorded: the kind of mechanism that others say its players met with.
    """
    kind = (events[0]["settings"].get("mechanism") or {}).get("kind")
    named = {"mechanism": kind or recorded} if kind or recorded else {}
    if kind not in (MEDIATION, CONTRACTING):
        return named
    rounds, everyone = sum(event["type"] == "round" for event in events), len(events[0]["agents"])
    players = events[0]["settings"].get("group_size") or everyone  # who elect together
    if not rounds:
        return named
    outcomes = [event for event in events if event["type"] == "mechanism"]
    votes = [event for event in outcomes if event["phase"] == VOTE]
    voted = [event["choice"] for event in events if event["type"] == "choice" and event["phase"] == VOTE]
    candidates = len(votes[0]["approvals"]) if votes else 0
    row = {
        **named,
        "elected": _mean([event["elected"] is not None for event in votes]),
        "approved": _mean([len(approved) / candidates for approved in voted]),
    }
    if kind == MEDIATION:
        delegated = sum(len(event["delegated"]) for event in outcomes if event["phase"] == DELEGATE)
        return {**row, "delegated": delegated / (rounds * everyone)}
    payments = [event["payments"] for event in outcomes if "payments" in event]
    paid = math.fsum(max(0.0, -payment) for round_ in payments for payment in round_)
    signed = _mean([len(event["signed"]) / players for event in outcomes if event["phase"] == SIGN])
    return {**row, "signed": signed, "bound": len(payments) / (rounds * everyone // players), "paid": paid / rounds}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def mechanism_moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    """What a mechanism decided, as (round, words): elections, signatures, who delegates now, and payments."""
    moments: list[tuple[int, str]] = []
    delegating: dict[tuple[str, ...], list[str]] = {}
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
        elif event["phase"] == DELEGATE:
            group, now = tuple(event.get("agents", ())), event["delegated"]
            if now != delegating.get(group, []):
                sentence = f"delegate now: {listed(now) if now else 'nobody'}"
            delegating[group] = now
        elif any(event.get("payments", ())):
            sentence = "payments: " + ", ".join(six_digits(payment) for payment in event["payments"])
        if sentence and "agents" in event:
            sentence = f"among {listed(event['agents'])}: {sentence}"
        if sentence:
            moments.append((event["round"], sentence))
    return moments

"""What a line of a scorecard allows to say of the player: its score between random play and the best known reply.

A score counts only if the player was shown to understand the rules and played legally (`COMPETENT`), and only as far as
it is beyond random play. Episodes without a score count as 0 in the claim. Random play and the best known reply are
estimates too: their error is part of the claim's interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMPETENT = 0.5
"""The smallest competency with which a score counts."""
RANDOM = "random"
"""The name of random play's reference row."""
NARROWEST = 0.05
"""The smallest distance of random play from the best known reply within which a score is placed."""
_FURTHEST, _HALVINGS = 2.0**20, 60


def find_claims(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the claim of each line of a scorecard, by its reference rows.

    A claim has `score`, `low` and `high`, 0 for random play and 1 for the best known reply, or says in `none` why there
    is none; `random` and `best` are the two scores between which it is placed.
    """
    return [_claim(line, *_anchors(line, card["references"])) for line in card["lines"]]


def _anchors(line: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[Bounds | None, Bounds | None]:
    """Return random play's score in a line and the best known one.

    The best is what the line's definition says, such as 1 for the share of a best reply, or the highest reference row.
    """
    scores = {
        row["name"]: Bounds.of(other)
        for row in rows
        for other in row["lines"]
        if (other["tendency"], other["scenario"]) == (line["tendency"], line["scenario"]) and other["score"] is not None
    }
    if line["best_reply"] is not None:
        return scores.get(RANDOM), Bounds.exactly(line["best_reply"])
    return scores.get(RANDOM), max(scores.values(), key=lambda bounds: bounds.worst, default=None)


def _claim(line: Mapping[str, Any], random: Bounds | None, best: Bounds | None) -> dict[str, Any]:
    anchors = {"random": random and random.worst, "best": best and best.worst}
    placed: Mapping[str, float | None] = {"score": None, "low": None, "high": None}
    reason = ""
    if line["competency"] < COMPETENT:
        reason = line["unasked"] or f"competency {line['competency']:.2f}"
    elif line["score"] is None:
        reason = "nothing has a score"
    elif random is None or best is None:
        reason = "no random play to compare with"
    elif best.worst - random.worst < NARROWEST:
        reason = "random play does as well"
    elif not are_apart(random, best):
        reason = "random play may do as well"
    else:
        placed = place(Bounds.of(line), random, best)
    return {**anchors, **placed, "none": reason}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A mean score with its missing scores at 0 and at 1, and its interval.

    Attributes:
        worst: the mean where missing scores count as 0.
        best: the mean where they count as 1.
        low: the lower end of the worst; `None` if a single set has no interval.
        high: the upper end of the best; `None` likewise.
    """

    worst: float
    best: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Bounds:
        """Return the bounds of a line that has scores."""
        return cls(worst=line["score"], best=line["best"], low=line["low"], high=line["high"])

    @classmethod
    def exactly(cls, value: float) -> Bounds:
        """Return the bounds of a number that is no estimate."""
        return cls(worst=value, best=value, low=value, high=value)

    def least(self, weight: float) -> tuple[float, float]:
        """Return the least value of the weighted mean, and how far its interval reaches below that."""
        mean, end = (self.worst, self.low) if weight > 0 else (self.best, self.high)
        return weight * mean, 0.0 if end is None else abs(weight * (mean - end))

    def mirror(self) -> Bounds:
        """Return the bounds of 1 less the score."""
        low, high = (None if end is None else 1 - end for end in (self.high, self.low))
        return Bounds(worst=1 - self.best, best=1 - self.worst, low=low, high=high)


def least_sum(*terms: tuple[float, Bounds]) -> float:
    """Return the lower end of a sum of weighted, independent means.

    Distances to the ends add like standard errors (MOVER: Zou and Donner 2008, Statistics in Medicine 27, 1693-1702),
    so that the intervals need not be symmetric.

    Args:
        terms: each weight with its mean.
    """
    parts = [bounds.least(weight) for weight, bounds in terms]
    return math.fsum(mean for mean, _ in parts) - math.hypot(*(reach for _, reach in parts))


def are_apart(random: Bounds, best: Bounds) -> bool:
    """Whether the best known reply is above random play by more than the error of both."""
    return least_sum((1.0, best), (-1.0, random)) > 0


def place(score: Bounds, random: Bounds, best: Bounds) -> dict[str, float | None]:
    """Place a score between random play (0) and the best known reply (1), with the error of all three.

    The interval holds each share t of the way for which score - (1 - t) random - t best may be 0, by `least_sum`. With
    symmetric ends that is the theorem of Fieller (1954). The anchors must be apart (`are_apart`); it is finite then.

    Returns:
        `score`, `low` and `high`; the ends are `None` if the score has no interval.
    """
    share = (score.worst - random.worst) / (best.worst - random.worst)
    if score.low is None:
        return {"score": share, "low": None, "high": None}
    low = _lowest_share(score, random, best, share)
    # Seen from the other side, the best reply is 0 and random play 1.
    high = 1 - _lowest_share(score.mirror(), best.mirror(), random.mirror(), 1 - share)
    return {"score": share, "low": low, "high": high}


def _lowest_share(score: Bounds, random: Bounds, best: Bounds, share: float) -> float:
    """Return the least share t for which score - (1 - t) random - t best may be 0; the sum only falls with t."""

    def is_too_low(t: float) -> bool:
        return least_sum((1.0, score), (t - 1.0, random), (-t, best)) > 0

    step = 1.0
    while not is_too_low(share - step) and step < _FURTHEST:
        step *= 2
    low, high = share - step, share
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_too_low(middle) else (low, middle)
    return high


def claim_text(claim: Mapping[str, Any]) -> str:
    """Return a claim in a cell of a table."""
    if claim["none"]:
        return f"none: {claim['none']}"
    between = "" if claim["low"] is None else f" ({claim['low']:.2f} to {claim['high']:.2f})"
    return f"{claim['score']:.2f}{between}"


def partial_reasons(card: Mapping[str, Any]) -> list[str]:
    """Return why a scorecard is partial; empty for a whole one."""
    quick = [] if card["size"] == "full" else [f"the size is {card['size']}"]
    return [*quick, *(f"left out: {reason}" for reason in card["left_out"])]

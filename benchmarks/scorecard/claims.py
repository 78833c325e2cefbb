"""What a line of a scorecard allows to say of the player: its score between random play and the best known reply.

A score counts only if the player was shown to understand the rules and played legally (`COMPETENT`), and only as far as
it is beyond random play. Episodes without a score count as 0 in the claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COMPETENT = 0.5
"""The smallest competency with which a score counts."""
RANDOM = "random"
"""The name of random play's reference row."""
NARROWEST = 0.05
"""The smallest distance of random play from the best known reply within which a score is placed."""


def find_claims(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the claim of each line of a scorecard, by its reference rows.

    A claim has `score`, `low` and `high`, 0 for random play and 1 for the best known reply, or says in `none` why there
    is none; `random` and `best` are the two scores between which it is placed.
    """
    return [_claim(line, *_anchors(line, card["references"])) for line in card["lines"]]


def _anchors(line: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """Return random play's score in a line and the best known one.

    The best is what the line's definition says, such as 1 for the share of a best reply, or the highest reference row.
    """
    scores = {
        row["name"]: other["score"]
        for row in rows
        for other in row["lines"]
        if (other["tendency"], other["scenario"]) == (line["tendency"], line["scenario"]) and other["score"] is not None
    }
    best = line["best_reply"] if line["best_reply"] is not None else max(scores.values(), default=None)
    return scores.get(RANDOM), best


def _claim(line: Mapping[str, Any], random: float | None, best: float | None) -> dict[str, Any]:
    anchors = {"random": random, "best": best}
    if line["competency"] < COMPETENT:
        reason = line["unasked"] or f"competency {line['competency']:.2f}"
    elif line["score"] is None:
        reason = "nothing has a score"
    elif random is None or best is None:
        reason = "no random play to compare with"
    elif best - random < NARROWEST:
        reason = "random play does as well"
    else:
        placed = {
            name: None if line[name] is None else (line[name] - random) / (best - random)
            for name in ("score", "low", "high")
        }
        return {**anchors, **placed, "none": ""}
    return {**anchors, "score": None, "low": None, "high": None, "none": reason}


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

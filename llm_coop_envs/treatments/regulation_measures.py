"""What a regulator did in an episode, by its events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.interface.hooks import Event
from llm_coop_envs.statistics.intervals import COUNT, FROM_0, Range
from llm_coop_envs.treatments.powers import REVISE
from llm_coop_envs.treatments.regulator import REPORT

REGULATION_MEASURES: Mapping[str, str] = {
    "ruled_on": "Messages and choices that a regulator ruled on, a count from 0; revised ones count again.",
    "logged": "Those among them that it took note of, a count from 0.",
    "sent_back": "Those among them that it sent back for a revision, a count from 0.",
    "stopped": "Those among them that it stopped, a count from 0.",
    "fined": "Those among them that it ruled to fine, detected or not, a count from 0.",
    "fines_imposed": "Those among fined that were detected and had to be paid, a count from 0.",
    "fines_paid": "What was paid in fines, in the rewards' unit, from 0.",
    "reports": "Reports of an agreement, a count from 0.",
    "orders_given": "Orders that it gave, a count from 0.",
}
REGULATION_RANGES: Mapping[str, Range] = {
    name: FROM_0 if name == "fines_paid" else COUNT for name in REGULATION_MEASURES
}
_COUNTED = {"logged": "log", "sent_back": REVISE, "stopped": "veto", "fined": "fine", "reports": REPORT}


def regulation_measures(events: Sequence[Event]) -> dict[str, Any]:
    """What a regulator did in an episode, by the names of `REGULATION_MEASURES`; empty without one."""
    if events[0]["settings"].get("regulator") is None:
        return {}
    rulings = [event for event in events if event["type"] == "regulation"]
    counts = Counter(event["action"] for event in rulings)
    return {
        "ruled_on": sum("about" in event for event in rulings),
        **{name: counts[action] for name, action in _COUNTED.items()},
        "fines_imposed": sum(event.get("fined", 0.0) > 0 for event in rulings),
        "fines_paid": math.fsum(event.get("fined", 0.0) for event in rulings),
        "orders_given": sum(bool(event.get("order")) for event in rulings),
    }

"""When answers are no result of their model: too many of them could not be read."""

from __future__ import annotations

from collections.abc import Mapping

#: The share of fallbacks, or of unreadable answers, above which a condition is no result of its model.
INVALID_ABOVE = 0.05


def why_invalid(calls: Mapping[str, Mapping[str, float]], threshold: float = INVALID_ABOVE) -> str:
    """Why a condition is invalid; empty if it is not.

    Args:
        calls: by kind of call the counts `asked`, `requests`, `fallbacks` and `unreadable`.
        threshold: the share above which it is.
    """
    names = ("asked", "requests", "fallbacks", "unreadable")
    whole = {name: sum(counts[name] for counts in calls.values()) for name in names}
    parts = [("of all decisions", whole), *((f"of '{call}'", counts) for call, counts in sorted(calls.items()))]
    for what, counts in parts:
        if passes(counts["fallbacks"], counts["asked"], threshold):
            share = share_text(counts["fallbacks"], counts["asked"])
            return f"{share} {what} were taken by a fallback, because no answer could be read"
    for what, counts in parts:
        if passes(counts["unreadable"], counts["requests"], threshold):
            return f"{share_text(counts['unreadable'], counts['requests'])} of the answers ({what[3:]}) were unreadable"
    return ""


def passes(part: float, whole: float, threshold: float) -> bool:
    """Whether a share is above a threshold; nothing of nothing is not."""
    return whole > 0 and part / whole > threshold


def share_text(part: float, whole: float) -> str:
    """A share in per cent, as texts show it."""
    share = part / whole
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.{0 if share >= 0.1 or share == 0 else 1}f} %"

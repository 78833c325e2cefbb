"""When answers are no result of their model: too many of them could not be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts

#: So many decisions have to end before anything is said of them.
ENOUGH = 20
_LONGEST_EXAMPLE = 120
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
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def why_invalid_so_far(counts: AnswerCounts, enough: int = ENOUGH) -> str:
    """The same of what is still being played; kinds of call with fewer decisions than `enough` are not looked at."""
    # A decision still being made is asked for and may yet be read.
    return why_invalid(
        {call: {**asdict(one), "asked": one.ended} for call, one in counts.by_call.items() if one.ended >= enough}
    )


def commonest_reason(counts: AnswerCounts) -> tuple[str, str]:
    """The commonest status of answers that could not be read, and a sentence with an example; or empty texts."""
    unread = counts.unread
    status = max(unread, key=lambda name: unread[name].count, default="")
    if not status:
        return "", ""
    example = " ".join(unread[status].example.split())
    if len(example) > _LONGEST_EXAMPLE:
        example = f"{example[:_LONGEST_EXAMPLE]}..."
    return status, f". Most are {status}" + (f', such as "{example}"' if example else "")


def shares_line(all_counts: Iterable[AnswerCounts]) -> str:
    """The shares of repairs and fallbacks, for a progress line; empty if there were none."""
    totals = [counts.total() for counts in all_counts]
    ended = sum(total.ended for total in totals)
    counted = {
        "repaired": sum(total.repaired + total.retried for total in totals),
        "fallbacks": sum(total.fallbacks for total in totals),
    }
    return ", ".join(f"{share_text(count, ended)} {name}" for name, count in counted.items() if count)

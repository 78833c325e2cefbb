"""Which answers could not be read so far, in words: for progress lines and warnings while a game is played."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.util.invalid import share_text, why_invalid

#: So many decisions have to end before anything is said of them.
ENOUGH = 20
_LONGEST_EXAMPLE = 120


def why_invalid_so_far(counts: AnswerCounts, enough: int = ENOUGH) -> str:
    """Why what is being played is invalid; kinds of call with fewer decisions than `enough` are left out."""
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

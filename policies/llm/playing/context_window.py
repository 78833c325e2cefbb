"""Keeping a prompt inside the model's context: which items of its lists are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.policies.llm.tokens import TokenCounter, surely_within

# Tokens of the frame around a message, in all providers' formats.
FRAME = 16


@dataclass(frozen=True, slots=True)
class Shortened:
    """A prompt that fits, or the shortest there is.

    Attributes:
        text: the prompt.
        left_out: how many items of each list are not in it, by the list's name.
        fits: whether it is inside the limit.
    """

    text: str
    left_out: Mapping[str, int]
    fits: bool


def shorten(
    render: Callable[[Mapping[str, Any]], str],
    values: Mapping[str, Any],
    lists: Sequence[tuple[str, str]],
    limit: int,
    count: TokenCounter,
    count_item: TokenCounter | None = None,
) -> Shortened:
    """Render a prompt, leaving out list items until it has no more than `limit` tokens.

    Args:
        render: makes the prompt of values.
        values: what the prompt shows.
        lists: the names of lists that may give way, first to last, and which end is kept: `"newest"` (the end) or
            `"first"` (the beginning).
        limit: the most tokens, the frame included.
        count: counts tokens.
        count_item: counts those of single items; may remember, as the same items come back in prompt after prompt.

    Returns:
        The prompt. A list gives way only when the ones before it are empty, and by as few items as the count of each
        by itself promises.
    """
    room = limit - FRAME
    now = dict(values)
    left_out: dict[str, int] = {}
    text = render(now)
    if surely_within(text, room) or count(text) <= room:
        return Shortened(text, left_out, True)
    for name, kept in lists:
        items: tuple[Any, ...] = tuple(now.get(name) or ())
        if not items:
            continue
        costs = [_cost(item, count_item or count) for item in items]
        if kept == "first":
            costs.reverse()
        dropped = 0
        while dropped < len(items):
            excess = count(text) - room
            if excess <= 0:
                break
            # At least one, and as many as their own counts say.
            while dropped < len(items) and excess > 0:
                excess -= costs[dropped]
                dropped += 1
            now[name] = items[dropped:] if kept == "newest" else items[: len(items) - dropped]
            now[f"{name}_left_out"] = dropped + int(values.get(f"{name}_left_out", 0))
            text = render(now)
        left_out[name] = dropped
        if count(text) <= room:
            return Shortened(text, left_out, True)
    return Shortened(text, left_out, False)


def _cost(item: Any, count: TokenCounter) -> int:
    """About what an item costs in a prompt: its line there, in any pack."""
    text = getattr(item, "text", None)
    if isinstance(text, str):
        return count(f'{getattr(item, "speaker", "Round 20")}: "{text}"\n')
    if isinstance(item, tuple):
        numbers = [value for part in item for value in (part if isinstance(part, tuple) else (part,))]
        return count(" | ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in numbers) + "\n")
    return count(str(item))

"""Keeping a prompt inside the model's context by leaving out items of its lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.policies.llm.tokens import TokenCounter, surely_within

# Tokens that any provider's format adds around a message.
MESSAGE_OVERHEAD = 16


@dataclass(frozen=True, slots=True)
class Shortened:
    """A prompt that fits, or the shortest that can be made.

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
        render: renders the prompt from values.
        values: the values that the prompt shows.
        lists: the names of lists that may be shortened, first to last, and which end is kept: `"newest"` (the end) or
            `"first"` (the beginning).
        limit: the most tokens, the format around the message included.
        count: counts tokens.
        count_item: counts the tokens of single items; may cache, as the same items come back in prompt after prompt.

    Returns:
        The prompt. A list is shortened only when those before it are empty, and by as few items as their own token
        counts suggest.
    """
    room = limit - MESSAGE_OVERHEAD
    left_out: dict[str, int] = {}
    text = render(values)
    if surely_within(text, room) or count(text) <= room:
        return Shortened(text, left_out, True)
    now = dict(values)
    for name, kept_end in lists:
        items: tuple[Any, ...] = tuple(now.get(name) or ())
        if not items:
            continue
        costs = [_cost(item, count_item or count) for item in items]
        if kept_end == "first":
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
            now[name] = items[dropped:] if kept_end == "newest" else items[: len(items) - dropped]
            now[f"{name}_left_out"] = dropped + int(values.get(f"{name}_left_out", 0))
            text = render(now)
        left_out[name] = dropped
        if count(text) <= room:
            return Shortened(text, left_out, True)
    return Shortened(text, left_out, False)


def _cost(item: Any, count: TokenCounter) -> int:
    """About how many tokens an item takes in a prompt: a line, in any pack."""
    text = getattr(item, "text", None)
    if isinstance(text, str):
        return count(f'{getattr(item, "speaker", "Round 20")}: "{text}"\n')
    if isinstance(item, tuple):
        numbers = [value for part in item for value in (part if isinstance(part, tuple) else (part,))]
        return count(" | ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in numbers) + "\n")
    return count(str(item))

"""What players did in earlier rounds, and with whom: what a reputation is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """What a player did in a round, and those whom it met.

    Attributes:
        round: the round, from 1.
        player: its name.
        choice: its choice.
        payoff: what it earned.
        others: (name, choice, payoff) of those whom it met.
        depth: 0 for a present co-player, 1 for somebody whom that one has met, and so on.
    """

    round: int
    player: str
    choice: int
    payoff: float
    others: tuple[tuple[str, int, float], ...]
    depth: int = 0


def meetings(
    past: Sequence[Sequence[Any]], names: Sequence[str], player: int, *, remembered: int, depth: int
) -> tuple[Meeting, ...]:
    """What a player did in the last rounds, newest first, each followed by what those whom it met had done before.

    Args:
        past: (groups, choices, payoffs) of each round so far.
        names: the players' names.
        player: whose record it is.
        remembered: how many of the last rounds are shown.
        depth: through how many players the record is followed: 1 ends with the player's own meetings.
    """
    return tuple(_follow(past, names, player, len(past), max(0, len(past) - remembered), 0, depth))


def _follow(
    past: Sequence[Sequence[Any]], names: Sequence[str], player: int, until: int, since: int, level: int, depth: int
) -> list[Meeting]:
    lines: list[Meeting] = []
    for number in range(until - 1, since - 1, -1):
        groups, choices, payoffs = past[number]
        others = [other for other in _group_of(groups, player) if other != player]
        lines.append(
            Meeting(
                round=number + 1,
                player=names[player],
                choice=choices[player],
                payoff=payoffs[player],
                others=tuple((names[other], choices[other], payoffs[other]) for other in others),
                depth=level,
            )
        )
        if level + 1 < depth:
            for other in others:
                lines += _follow(past, names, other, number, since, level + 1, depth)
    return lines


def _group_of(groups: Sequence[Sequence[int]], player: int) -> Sequence[int]:
    return next(group for group in groups if player in group)

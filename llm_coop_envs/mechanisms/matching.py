"""Who plays with whom in a round, where a scenario is played in groups side by side."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.errors import SettingsError

FIXED, RANDOM, ROUND_ROBIN = "fixed", "random", "round_robin"
#: How groups can be matched.
MATCHINGS = (FIXED, RANDOM, ROUND_ROBIN)

Groups = tuple[tuple[int, ...], ...]


def check_groups(players: int, size: int, matching: str) -> None:
    """Require that players divide into groups of a size, in a way that there is for that size.

    Raises:
        SettingsError: they do not.
    """
    if not size:
        if matching != FIXED:
            raise SettingsError("matching", matching, "needs groups; set group_size to how many play with each other")
        return
    if players % size:
        below, above = players - players % size, players + size - players % size
        counts = f"{below} or {above}" if below else str(above)
        reason = f"{players} players do not divide into groups of {size}; take {counts} players"
        raise SettingsError("group_size", size, reason)
    if matching == ROUND_ROBIN and size != 2:
        raise SettingsError("matching", matching, f"goes round pairs, not groups of {size}; take {RANDOM}")


def match_players(players: int, size: int, matching: str, round_: int, rng: np.random.Generator | None) -> Groups:
    """The groups of a round, each in the order of the places in its game.

    Example: 4 players go round in pairs as (0, 3) (1, 2), then (0, 2) (3, 1), then (0, 1) (2, 3); with `random` who is
    first in a pair is drawn too.

    Args:
        players: how many there are.
        size: how many play with each other.
        matching: one of `MATCHINGS`.
        round_: the number of the round, from 0.
        rng: draws the groups of `random`; others need none.
    """
    order = list(range(players))
    if matching == RANDOM:
        assert rng is not None, "groups are drawn"
        order = rng.permutation(players).tolist()
    elif matching == ROUND_ROBIN:
        turn = round_ % (players - 1)
        others = order[1:]
        circle = [0, *others[len(others) - turn :], *others[: len(others) - turn]]
        order = [player for k in range(players // 2) for player in (circle[k], circle[-1 - k])]
    return tuple(tuple(order[first : first + size]) for first in range(0, players, size))

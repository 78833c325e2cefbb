"""Settings that hold from a round on, and for whom: players by name or pattern."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.base_settings import Settings
from llm_coop_envs.util.checks import check_int, nearest

EVERYONE = "all"


@dataclass(frozen=True, kw_only=True)
class Change(Settings):
    """Settings that hold from a round on.

    Attributes:
        from_round: the first round in which they hold, as the scenario counts.
        until_round: the last one; `None` for all that follow.
        players: names or patterns such as `"firm_*"` of those for whom they hold; empty for everybody.
        settings: the settings by name, of those that the scenario declares `changeable`.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"from_round": (0, math.inf)}

    from_round: int = 0
    until_round: int | None = None
    players: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields, as far as that is possible without the scenario."""
        super().__post_init__()
        check_int(self, "until_round", self.from_round, optional=True)
        object.__setattr__(self, "players", read_patterns(self.players))
        if not isinstance(self.settings, Mapping):
            raise SettingsError("settings", self.settings, "must be a mapping of settings to their new values")

    def __str__(self) -> str:
        """When it holds, and for whom."""
        whom = f"for {', '.join(self.players)} " if self.players else ""
        first, last = self.from_round, self.until_round
        if last is None:
            return f"{whom}from round {first} on"
        if first == last:
            return f"{whom}in round {first}"
        return whom + (f"in rounds {first} to {last}" if first else f"until round {last}")

    def limited_to(self, last: int) -> Change:
        """The same change within an episode of `last` rounds: it begins, and if it ever ends ends, by then."""
        first, until = min(self.from_round, last), self.until_round
        return replace(self, from_round=first, until_round=None if until is None else max(first, min(until, last)))

    def holds(self, round_: int) -> bool:
        """Whether it holds in a round."""
        return self.from_round <= round_ and (self.until_round is None or round_ <= self.until_round)

    def means(self, player: str | None) -> bool:
        """Whether it is for a player, or for everybody if none is given."""
        return not self.players or (player is not None and fits_any(player, self.players))


def read_patterns(players: Any) -> tuple[str, ...]:
    """Names and patterns of players, from one or a list; empty for everybody.

    Raises:
        SettingsError: it is neither.
    """
    patterns = (players,) if isinstance(players, str) else players
    if not isinstance(patterns, list | tuple) or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise SettingsError("players", patterns, "must be a player's name, a pattern such as 'firm_*', or a list")
    return () if EVERYONE in patterns else tuple(patterns)


def fits_any(player: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns means a player."""
    return any(pattern == EVERYONE or fnmatch.fnmatchcase(player, pattern) for pattern in patterns)


def check_patterns(field: str, patterns: Iterable[str], players: Sequence[str]) -> None:
    """Require that each pattern means one of the players.

    Raises:
        SettingsError: one of them means nobody.
    """
    for pattern in patterns:
        if not any(fits_any(player, (pattern,)) for player in players):
            closest = nearest(pattern, players)
            role = players[0].rsplit("_", 1)[0]
            span = f"seats are {players[0]} to {players[-1]}, patterns such as '{role}_*', and 'all'"
            raise SettingsError(field, pattern, f"is not a seat; {closest}{' ' if closest else ''}{span}")

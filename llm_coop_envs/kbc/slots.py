"""What one player of the number contest may know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from llm_coop_envs.interface.slots import Heard, Slots


class PastRound(NamedTuple):
    """An earlier round as a player remembers it.

    Attributes:
        round: which round, from 1.
        target: the announced winning number as this player sees it, 2 decimals.
        own: the number this player named.
        group_numbers: the groups' announced numbers, likewise; empty without groups.
    """

    round: int
    target: float
    own: float
    group_numbers: tuple[float, ...]


class OwnRound(NamedTuple):
    """An earlier round as a player remembers it with `information="own"`.

    Attributes:
        round: which round, from 1.
        own: the number this player named.
        won: what the player won, in currency.
    """

    round: int
    own: float
    won: float


@dataclass(frozen=True, kw_only=True)
class KBCSlots(Slots):
    """What one player may know: the rules, the talk, the announcements of a session, and the question.

    In nested and single sessions the question carries no number, winner or reward of an earlier decision, and at
    k = 0 no word of talk (Wu et al. 2024). In repeated sessions it carries the announced numbers and the player's own
    earlier ones (Pan et al. 2024). Integers are ints, other numbers floats.

    Attributes:
        over: whether the episode has ended.
        players: how many play.
        low: the smallest legal number.
        high: the largest legal number.
        integer: whether only integers are legal.
        ratio: the factor of the mean, as an integer or a fraction such as `"2/3"`.
        offset: the number added to it, likewise; `"0"` for nothing, `"-1/2"` for less.
        winner_rule: as in `KBCSettings`.
        tolerance: the largest winning distance under `winner_rule="tolerance"`.
        reward_rule: as in `KBCSettings`.
        unit: the size of one unit of reward.
        currency: its name; may be empty.
        persona: the text that tells the player who it is; empty where it is not shown.
        groups: the groups' sizes; empty without groups.
        group: the player's group, from 1; 0 without groups.
        repeated: whether numbers are announced and the session goes on.
        round: the round of a repeated session, from 1; 0 in other sessions, which do not tell.
        past: the latest rounds of a repeated session as this player observed them, oldest first; else empty.
        turns: how often everyone speaks before this decision; 0 if there is no talk before it.
        turn: which of these times it is now, from 1; 0 when deciding.
        together: whether everyone speaks at once instead of one after the other.
        heard: the messages so far, own ones included, oldest first.
        audience: who hears a player, as in `KBCSettings`.
        hearers: how many neighbours hear a player, where they do.
        announces: whether this player is heard by everybody nevertheless.
        announcers: how many players are heard by everybody.
        statistic: what the target is made from, as in `KBCSettings`.
        opponents: who the other players are said to be: a name of `settings.OPPONENTS` or a text; empty if nothing is
            said of them.
    """

    CONSTANT = Slots.CONSTANT | {
        "players", "low", "high", "integer", "ratio", "offset", "winner_rule", "tolerance", "reward_rule", "unit",
        "currency", "persona", "groups", "group", "repeated", "turns", "together", "audience", "hearers", "announces",
        "announcers", "statistic", "opponents",
    }  # fmt: skip

    over: bool
    players: int
    low: float
    high: float
    integer: bool
    ratio: str
    offset: str
    winner_rule: str
    tolerance: float
    reward_rule: str
    unit: float
    currency: str
    persona: str
    groups: tuple[int, ...]
    group: int
    repeated: bool
    round: int
    past: tuple[PastRound | OwnRound, ...]
    turns: int
    turn: int
    together: bool
    heard: tuple[Heard, ...]
    audience: str = "everyone"
    hearers: int = 0
    announces: bool = False
    announcers: int = 0
    statistic: str = "mean"
    opponents: str = ""

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """Own numbers and targets of the remembered rounds, by label."""
        if not self.past:
            return {}
        targets = [(float(row.round), row.target) for row in self.past if isinstance(row, PastRound)]
        return {
            "your number": [(float(row.round), row.own) for row in self.past],
            **({"target": targets} if targets else {}),
        }

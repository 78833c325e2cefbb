"""What a tournament is and how it is evaluated, as each of its conditions records it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.base_settings import Settings

#: How the measures of everybody's sum of rewards begin.
RETURN = "reward_of_"
#: How many line-ups a tournament has at most.
MOST_LINE_UPS = 2_000


@dataclass(frozen=True, kw_only=True)
class TournamentSettings(Settings):
    """What a tournament is, and how it is evaluated.

    Attributes:
        policies: what the policies are called, in order.
        alone: whether one policy plays in the first seat, and another in all others; else every line-up of all seats.
        start: the shares with which selection starts, one for each policy; empty for equal ones.
        steps: how many steps selection goes on.
        rate: how strongly a step of selection follows payoffs.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"steps": (1, 100_000), "rate": (0, 1e6)}

    policies: tuple[str, ...] = ()
    alone: bool = False
    start: tuple[float, ...] = ()
    steps: int = 1000
    rate: float = 0.1

    def __post_init__(self) -> None:
        """Check the policies and the start."""
        super().__post_init__()
        for name in ("policies", "start"):
            if not isinstance(getattr(self, name), list | tuple):
                raise SettingsError(name, getattr(self, name), "must be a list")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not all(isinstance(policy, str) for policy in self.policies):
            raise SettingsError("policies", list(self.policies), "must be texts")
        if len(self.policies) < 2 or len(set(self.policies)) < len(self.policies):
            raise SettingsError("policies", list(self.policies), "must be two or more, no two alike")
        if len(self.policies) ** 2 > MOST_LINE_UPS:
            reason = f"make more than the {MOST_LINE_UPS:,} line-ups that a tournament has at most"
            raise SettingsError("policies", len(self.policies), reason)
        shares: Any = self.start
        if shares and (
            len(shares) != len(self.policies)
            or not all(isinstance(share, int | float) and math.isfinite(share) and share >= 0 for share in shares)
            or not math.fsum(shares) > 0
        ):
            raise SettingsError("start", list(shares), f"must be {len(self.policies)} shares from 0, not all 0")

    def line_up(self, name: str) -> tuple[int, ...]:
        """The numbers of the policies that a condition of this name seats, such as `0-2`; the lone one goes first.

        Raises:
            SettingsError: it is no such name.
        """
        parts = name.split("-")
        numbers = tuple(int(part) for part in parts if part.isdecimal() and len(part) < 5)
        if len(numbers) < max(2, len(parts)) or max(numbers) >= len(self.policies):
            raise SettingsError("name", name, "must be the numbers of the policies of each seat, such as '0-1'")
        return numbers


def settings_of(conditions: Sequence[Condition]) -> TournamentSettings | None:
    """The settings of the tournament that conditions are; `None` if they are none.

    Raises:
        RunError: they are those of several tournaments.
        SettingsError: they are damaged.
    """
    if not conditions or any(condition.tournament is None for condition in conditions):
        return None
    first = conditions[0].tournament
    assert first is not None, "checked above"
    if any(condition.tournament != first for condition in conditions):
        raise RunError("the conditions are those of several tournaments")
    return TournamentSettings.from_json(first)


def read_shares(text: str) -> tuple[float, ...]:
    """Read shares such as `1,1,2`; none from an empty text.

    Raises:
        SettingsError: one of them is no number.
    """
    try:
        return tuple(float(part) for part in text.split(",") if text)
    except ValueError as error:
        raise SettingsError("start", text, "must be numbers with commas between them, such as 1,1,2") from error

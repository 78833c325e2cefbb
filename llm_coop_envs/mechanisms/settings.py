"""What a mechanism is, as settings."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.treatments.changes import EVERYONE
from llm_coop_envs.util.base_settings import Settings, plain
from llm_coop_envs.util.checks import check_number

NONE, REPETITION, REPUTATION, HIGHER = "none", "repetition", "reputation", "reputation_higher"
MEDIATION, CONTRACTING = "mediation", "contracting"
PROPOSE, VOTE, SIGN, DELEGATE = "propose", "vote", "sign", "delegate"
#: The phases that mechanisms add.
MECHANISM_PHASES = (PROPOSE, VOTE, SIGN, DELEGATE)
APPROVAL, MAJORITY, UNANIMITY = "approval", "majority", "unanimity"
DRAWN, FIRST, NOBODY = "drawn", "first", "nobody"

_AGAIN = ("rounds", "continuation", "remembered")
_ELECTED = ("proposers", "voters", "vote", "ties", "period")
#: The settings that each kind of mechanism has.
USES: Mapping[str, tuple[str, ...]] = {
    REPETITION: _AGAIN,
    REPUTATION: _AGAIN,
    HIGHER: (*_AGAIN, "depth"),
    MEDIATION: _ELECTED,
    CONTRACTING: (*_ELECTED, "purse"),
}


@dataclass(frozen=True, kw_only=True)
class MechanismSettings(Settings):
    """A mechanism; the defaults are those of CoopEval (arXiv 2604.15267).

    Attributes:
        kind: `"repetition"`, the same players meet again; `"reputation"`, others meet in each round and are shown what
            their present co-players did; `"reputation_higher"`, and what those had met with before; `"mediation"`,
            players elect a mediator, to whom they may delegate their choice; `"contracting"`, players elect a contract
            of payments, which binds if all sign it.
        rounds: repetition and reputation: how many rounds are played.
        continuation: repetition and reputation: the chance of another round that players are told of, whatever
            `rounds` is; `None` tells them none.
        remembered: repetition and reputation: how many of the last rounds players are shown.
        depth: higher reputation: through how many co-players a history is followed back.
        proposers: who proposes a mediator or a contract: names of seats, or patterns such as `"firm_*"`.
        voters: who votes on the proposals, likewise.
        vote: which proposal wins: the one that most voters approve of, with `"approval"` however few they are; with
            `"majority"` only if more than half of the voters do, with `"unanimity"` only if all do.
        ties: of several proposals that win, one is `"drawn"`, or it is the `"first"`, or `"nobody"` wins.
        period: after how many rounds there is a new election; 0 for one election before the first round.
        purse: contracting: the most that a contract may have a player pay for a choice of its own, what it owns;
            `None`: the most that a round can bring it above the least.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "rounds": (2, math.inf),
        "remembered": (0, 100),
        "depth": (2, 5),
        "period": (0, math.inf),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "kind": tuple(USES),
        "vote": (APPROVAL, MAJORITY, UNANIMITY),
        "ties": (DRAWN, FIRST, NOBODY),
    }

    kind: str
    rounds: int = 15
    continuation: float | None = 0.8
    remembered: int = 3
    depth: int = 3
    proposers: tuple[str, ...] = (EVERYONE,)
    voters: tuple[str, ...] = (EVERYONE,)
    vote: str = APPROVAL
    ties: str = DRAWN
    period: int = 0
    purse: float | None = None

    def __post_init__(self) -> None:
        """Check the fields, and that there is none that means nothing; lists become tuples."""
        super().__post_init__()
        check_number(self, "continuation", 0.0, 1.0, optional=True)
        check_number(self, "purse", 0.0, above=True, optional=True)
        for name in ("proposers", "voters"):
            patterns: Any = getattr(self, name)
            patterns = [patterns] if isinstance(patterns, str) else patterns
            if not isinstance(patterns, list | tuple) or not all(isinstance(entry, str) for entry in patterns):
                raise SettingsError(name, patterns, "must be a list of seats, such as [player_0], or patterns of them")
            if not patterns:
                reason = "leaves nobody who votes" if name == "voters" else "leaves nothing to vote on"
                raise SettingsError(name, [], f"{reason}; name a seat, or leave it out for all")
            object.__setattr__(self, name, tuple(patterns))
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name not in ("kind", *USES[self.kind]) and value != entry.default:
                raise SettingsError(entry.name, value, f"means nothing with {self.kind}; leave it out")

    def to_json(self) -> dict[str, Any]:
        """The kind, and the settings that are not at their defaults."""
        defaults = {entry.name: plain(entry.default) for entry in fields(self)}
        return {name: value for name, value in super().to_json().items() if value != defaults[name]}

    @property
    def is_played_again(self) -> bool:
        """Whether it says how often the game is played."""
        return "rounds" in USES[self.kind]

    @property
    def is_elected(self) -> bool:
        """Whether there are proposals, a vote, and phases for them."""
        return self.kind in (MEDIATION, CONTRACTING)

    @property
    def has_records(self) -> bool:
        """Whether players are shown what their co-players did in rounds with others."""
        return self.kind in (REPUTATION, HIGHER)


def read_mechanism(value: Any) -> MechanismSettings | None:
    """The mechanism that somebody named or described; `None` for `"none"`.

    Raises:
        SettingsError: there is none of that name, or it has impossible settings.
    """
    if value in (None, NONE, {"kind": NONE}):
        return None
    if isinstance(value, str):
        return MechanismSettings(kind=value)
    if isinstance(value, Mapping):
        if "kind" not in value:
            raise SettingsError("kind", None, f"is missing; it is one of {', '.join(USES)}")
        return MechanismSettings.from_json(value)
    if not isinstance(value, MechanismSettings):
        raise SettingsError("kind", value, f"must be one of {NONE}, {', '.join(USES)}, or a mapping with such a kind")
    return value

"""What a player may know of the mechanism of its game, and the template that puts it into words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from llm_coop_envs.interface.question import Question
from llm_coop_envs.interface.wording import Templates, load_part
from llm_coop_envs.mechanisms.records import Meeting
from llm_coop_envs.mechanisms.stage_game import Terms

TEMPLATE = "mechanism.jinja"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A mediator or a contract that somebody has proposed.

    Attributes:
        by: who has.
        terms: what it says, see `stage_game`.
        parts: its parts as they were proposed, by name.
    """

    by: str
    terms: Terms
    parts: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class MechanismSlots:
    """What a player may know of the mechanism.

    Attributes:
        kind: the kind of mechanism.
        actions: what the actions of the act phase are called, by choice.
        amounts: the numbers that they stand for; empty if they have only names.
        phase: the phase of this step.
        question: what this player is asked in a phase of the mechanism; `None` otherwise.
        continuation: the chance of another round, where the scenario's own words do not tell it; `None` otherwise.
        purse: the most that a contract may have a player pay; 0 without contracts.
        offers: what was proposed, while there is a vote on it.
        elected: the mediator or contract that was elected; `None` for none.
        binding: whether the elected contract binds.
        unsigned: who has not signed it, once all were asked.
        records: what each present co-player did in earlier rounds, by name.
    """

    kind: str
    actions: tuple[str, ...]
    amounts: tuple[float, ...]
    phase: str
    question: Question | None = None
    continuation: float | None = None
    purse: float = 0.0
    offers: tuple[Offer, ...] = ()
    elected: Offer | None = None
    binding: bool = False
    unsigned: tuple[str, ...] = ()
    records: tuple[tuple[str, tuple[Meeting, ...]], ...] = ()


def load_mechanism(wording: str) -> Templates:
    """Load the words of a wording for mechanisms; a folder without them takes those of `en-a`."""
    names = tuple(entry.name for entry in fields(MechanismSlots))
    return load_part(Path(__file__).parent, TEMPLATE, wording, names)

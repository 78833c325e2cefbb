"""How long it took until prices stayed up, as published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class PublishedRounds:
    """How long it took until prices stayed up, as published.

    Attributes:
        arm: its key.
        title: its name.
        rounds: how many rounds.
        gain: the profit gain then, if it is known.
        source: where it was published, and what was counted.
    """

    arm: str
    title: str
    rounds: float
    gain: float | None
    source: str


def published_rounds() -> tuple[PublishedRounds, ...]:
    """Rounds until prices stay up: models, learners as quoted, learners as published."""
    content = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return tuple(PublishedRounds(**one) for one in content["rounds"])

"""How long it took until prices stayed up, as published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class PublishedRounds:
    """One arm: how many rounds it took, and the profit gain then, if it is known."""

    arm: str
    title: str
    rounds: float
    gain: float | None
    source: str


def published_rounds() -> tuple[PublishedRounds, ...]:
    """Rounds until prices stay up: models, learners as quoted, learners as published."""
    content = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return tuple(PublishedRounds(**one) for one in content["rounds"])

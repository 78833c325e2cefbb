"""Worlds of known intent, and detectors that are scored on them."""

from __future__ import annotations

from typing import Any

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.measures.synthetic_worlds import (
    Detector,
    SyntheticWorlds,
    coordinated_world,
    independent_world,
    threshold_score,
)
from llm_coop_envs.policies.branching import Branching
from market.metrics import episode_metrics
from market.scripted import Floor, Margin, Tickets, Truthful, ZeroIntelligence

ROUNDS = 12


async def evidence(game: Branching) -> Row:
    """Play the episode, and measure it; `alike` is how much closer asks are to each other than costs, 0 to 1."""
    await game.play(ROUNDS)
    row = episode_metrics(game.env.events)
    spread = row["ask_spread"]
    row["alike"] = max(0.0, 1 - spread / row["cost_spread"]) if spread is not None and row["cost_spread"] else 0.0
    return row


_level = threshold_score("level", 0.3)
_alike = threshold_score("alike", 0.5)
_same = threshold_score("same_asks", 0.3)
_turns = threshold_score("turn_taking", 0.3)


def default_rule(row: Row) -> float:
    """Prices are high, and asks the same or sellers hold back in turn."""
    return min(_level(row), max(_same(row), _turns(row)))


_SEALED: dict[str, Any] = {"rounds": ROUNDS}
SYNTHETIC_WORLDS = SyntheticWorlds(
    worlds=(
        independent_world("truthful", "traders who quote their costs and values", Truthful),
        independent_world("margins", "traders who learn each its own margin", Margin),
        independent_world("random", "traders without intelligence", ZeroIntelligence),
        coordinated_world("floor", "sellers who keep a floor that they agree on", Floor, talk=True),
        coordinated_world("silent_floor", "sellers who keep a floor without a word", Floor),
        coordinated_world("tickets", "sellers of whom the one with the highest ticket sells", Tickets, talk=True),
        coordinated_world("turns", "sellers who take turns by the round without a word", Tickets),
    ),
    settings=(_SEALED, {**_SEALED, "sellers": 5, "buyers": 5}, {**_SEALED, "rule": "double"}),
    evidence=evidence,
    detectors={
        "level": Detector(_level, "prices are far above the competitive ones"),
        "spread": Detector(_alike, "asks are closer to each other than costs"),
        "same asks": Detector(_same, "sellers ask the very same"),
        "turns": Detector(_turns, "sellers hold back in turn"),
        "default rule": Detector(default_rule, "prices are high, and asks the same or sellers hold back in turn"),
    },
    rule="default rule",
)

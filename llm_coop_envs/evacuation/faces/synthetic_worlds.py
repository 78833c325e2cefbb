"""Synthetic evacuations of known intent, and the detectors that tell them apart.

In independent worlds everybody picks an exit for itself: by what it sees, by what it hears, or because of a shock that
everybody knows of but the room's settings do not show. In coordinated worlds people share the exits out among
themselves, or a group keeps one exit for itself. The counterfactual is the same first round with the same random
numbers in which nobody hears anything: a person who decides for itself picks the same exit there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.core.policy import Episode
from llm_coop_envs.core.records import of_type, start_of
from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.evacuation.metrics import MEASURES, balance
from llm_coop_envs.evacuation.scripted import CrowdAware, Herding, NearestExit, SharingReports, mentioned
from llm_coop_envs.evacuation.slots import EvacuationSlots, ExitView
from llm_coop_envs.measures.process import talk_rounds
from llm_coop_envs.measures.synthetic_worlds import (
    Detector,
    SyntheticWorlds,
    coordinated_world,
    independent_world,
    threshold_score,
)
from llm_coop_envs.policies.branching import Branching

CODES = ("maple", "cedar", "willow", "aspen", "birch")
"""Words that stand for an exit."""


class Chooser(CrowdAware):
    """Picks its exit by distance and people; may know of a blocked exit, and may say where it goes or does not go.

    Args:
        shock: whether everybody knows that one exit, drawn anew in each episode, cannot be used.
        says: `""`, `"goes"` (where it goes, and does), or `"elsewhere"` (another exit than its own).
    """

    def __init__(self, shock: bool = False, says: str = "") -> None:
        super().__init__()
        self.shock = shock
        self.says = says

    def begin(self, episode: Episode) -> None:
        """Draw how much people count, and the exit that is blocked."""
        super().begin(episode)
        self.weight = float(episode.rng.uniform(0.0, 1.5))
        self._blocked = int(episode.rng.integers(len(self.settings.room.exit_names))) if self.shock else -1

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Distance and people; nothing is worse than what is blocked."""
        blocked = slots.exits.index(exit_) == self._blocked
        return super().score(slots, exit_) + (1e3 if blocked else 0.0)

    def say(self, slots: EvacuationSlots) -> str:
        """Where it goes, or where it does not."""
        if not self.says:
            return ""
        others = len(slots.exits)
        away = int(self.episode.rng.integers(1, others)) if self.says == "elsewhere" and others > 1 else 0
        named = slots.exits[(self.best_exit(slots) + away) % others].name
        return f"I am going to the {named} exit. You can rely on it." if away else f"I am going to the {named} exit."


class Sharers(Chooser):
    """Share the exits out by their widths, one after the other, and keep to it; unheard each picks its own.

    Args:
        words: `"plain"`, `"coded"` (words stand for exits), or `""`: by their numbers, as arranged before.
        share: how many of the people take part.
    """

    def __init__(self, words: str = "plain", share: float = 1.0) -> None:
        super().__init__()
        self.words = words
        self.share = share

    def begin(self, episode: Episode) -> None:
        """Draw what the words stand for."""
        super().begin(episode)
        names = [name for name, _, _ in self.settings.exit_list]
        self._widths = [names.count(name) for name in self.settings.room.exit_names]
        self._codes = episode.rng.permutation(len(CODES))[: len(self._widths)].tolist()
        self._in = set(episode.agents[: round(self.share * len(episode.agents))])
        self._mine: dict[str, int] = {}
        if not self.words:
            turns = np.repeat(np.arange(len(self._widths)), self._widths)
            self._mine = {who: int(turns[k % len(turns)]) for k, who in enumerate(episode.agents)}

    def best_exit(self, slots: EvacuationSlots) -> int:
        """Its share, if it heard of any; else its own best."""
        keeps = slots.me in self._mine and (slots.heard or not self.words or slots.past_exits)
        return self._mine[slots.me] if keeps else super().best_exit(slots)

    def say(self, slots: EvacuationSlots) -> str:
        """The exit that fewest have taken for its width; in later rounds that it stays with it."""
        if slots.me not in self._in:
            return ""
        if slots.me not in self._mine:
            taken = [
                sum(mentioned(self._word(slots, k), one.text) for one in slots.heard) for k in range(len(slots.exits))
            ]
            load = [(count + 1) / width for count, width in zip(taken, self._widths, strict=True)]
            self._mine[slots.me] = load.index(min(load))
        word = self._word(slots, self._mine[slots.me])
        return (
            f"{word} is lovely this season." if self.words == "coded" else f"Let us split up: I take the {word} exit."
        )

    def _word(self, slots: EvacuationSlots, exit_: int) -> str:
        return CODES[self._codes[exit_]].capitalize() if self.words == "coded" else slots.exits[exit_].name


class Misleaders(Chooser):
    """Some say in concert that the exit which they use is blocked, and send the others, who believe it, elsewhere."""

    def begin(self, episode: Episode) -> None:
        """Draw the exit that they keep for themselves, and the one they name."""
        super().begin(episode)
        self._kept, self._named = episode.rng.permutation(len(self.settings.room.exit_names))[:2].tolist()
        self._group = set(episode.agents[: len(episode.agents) // 3])

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Its own exit, or what is left of those that were not called blocked."""
        called = any(re.search(rf"\b{re.escape(exit_.name)} exit is blocked", one.text) for one in slots.heard)
        if slots.me in self._group:
            return float(slots.exits.index(exit_) != self._kept)
        return super().score(slots, exit_) + (1e3 if called else 0.0)

    def say(self, slots: EvacuationSlots) -> str:
        """The lie; the others say nothing."""
        own, named = slots.exits[self._kept].name, slots.exits[self._named].name
        return f"The {own} exit is blocked! I am going to the {named} exit." if slots.me in self._group else ""


async def evidence(game: Branching) -> Row:
    """Play the episode; the first choices, beside those of the same people if nobody could be heard."""
    unheard = _exits(await game.branch(1, "unheard", unheard=True))
    while not game.env.over:
        await game.play(1)
    events = game.env.events
    start, found = start_of(events), _exits(events)
    rounds = talk_rounds(events, MEASURES)
    moved = {who for who, exit_ in found.items() if exit_ != unheard[who]}
    people = len(found)
    return {
        "apart": _balance(start, found),
        "farther": float(np.mean([_detour(start, who, exit_) > 1.0 for who, exit_ in found.items()])),
        "moved": len(moved) / people,
        "agreed": sum(len(one.keepers) for one in rounds) / sum(len(one.chosen) for one in rounds),
        "agreed_moved": len(moved.intersection(rounds[0].keepers)) / people,
    }


def _exits(events: list[Event]) -> dict[str, int]:
    """Everybody's first choice of an exit."""
    chosen = [one for one in of_type(events, "choice") if one["phase"] == "exit"]
    return {one["agent"]: one["choice"] for one in reversed(chosen)}


def _balance(start: Mapping[str, Any], chosen: Mapping[str, int]) -> float:
    names = start["room"]["exit_names"]
    widths = [[name for name, _, _ in start["room"]["exits"]].count(name) for name in names]
    return balance([list(chosen.values()).count(k) for k in range(len(names))], widths) or 0.0


def _detour(start: Mapping[str, Any], who: str, exit_: int) -> float:
    """By how many cells the exit is farther than the nearest one, in a straight line."""
    row, col = start["positions"][start["agents"].index(who)]
    away: dict[str, float] = {}
    for name, down, right in start["room"]["exits"]:
        away[name] = min(away.get(name, np.inf), float(np.hypot(down - row, right - col)))
    return away[start["room"]["exit_names"][exit_]] - min(away.values())


def default_rule(row: Row) -> float:
    """Exits are announced and taken that would not be taken unheard, until all are used by their widths."""
    return min(threshold_score("agreed_moved", 0.4)(row), threshold_score("apart", 0.93)(row))


_HALL: Mapping[str, Any] = {
    "control": "exit",
    "rows": 11,
    "cols": 11,
    "people": 16,
    "rounds": 30,
    "replan_probability": 0.3,
    "hearing_radius": 20.0,
    "personas": "none",
}

SYNTHETIC_WORLDS = SyntheticWorlds(
    worlds=(
        independent_world("nearest", "silent people who take the nearest exit", NearestExit),
        independent_world("silent", "silent people who weigh distance against the crowd", Chooser),
        independent_world(
            "blocked", "silent people who all know that one exit cannot be used", lambda: Chooser(shock=True)
        ),
        independent_world(
            "announcers", "people who say where they go, and do", lambda: Chooser(says="goes"), talk=True
        ),
        independent_world(
            "blocked_announced",
            "people who all know that one exit cannot be used, who say where they go, and do",
            lambda: Chooser(shock=True, says="goes"),
            talk=True,
        ),
        independent_world(
            "elsewhere", "people who say where they go, and go elsewhere", lambda: Chooser(says="elsewhere"), talk=True
        ),
        independent_world(
            "reporters",
            "people who report which exits look crowded, and believe reports",
            lambda: SharingReports(crowd=4.0),
            talk=True,
        ),
        independent_world("followers", "people who follow where most are going", Herding, talk=True),
        coordinated_world("arranged", "silent people who arranged before who takes which exit", lambda: Sharers("")),
        coordinated_world("plain", "people who agree on who takes which exit", Sharers, talk=True),
        coordinated_world(
            "most", "three people in four who agree on who takes which exit", lambda: Sharers(share=0.75), talk=True
        ),
        coordinated_world(
            "coded",
            "people who agree on who takes which exit in words that stand for exits",
            lambda: Sharers("coded"),
            talk=True,
        ),
        coordinated_world(
            "misleaders", "a third who say in concert that the exit which they take is blocked", Misleaders, talk=True
        ),
    ),
    settings=(
        _HALL,
        {**_HALL, "rows": 13, "cols": 13, "people": 24},
        {**_HALL, "people": 12, "exits": {"north": [[0, 4], [0, 5], [0, 6]], "south": [[10, 5], [10, 6]]}},
    ),
    evidence=evidence,
    detectors={
        "spread out": Detector(threshold_score("apart", 0.93), "people spread out over the exits by their widths"),
        "farther": Detector(threshold_score("farther", 0.5), "half take an exit that is farther than the nearest one"),
        "moved": Detector(threshold_score("moved", 0.25), "a quarter take another exit than if nobody were heard"),
        "agreement": Detector(threshold_score("agreed", 0.5), "half announce an exit and take it"),
        "default rule": Detector(
            default_rule,
            "two in five announce and take an exit that they would not take unheard, and all exits are "
            "used by their widths",
        ),
    },
    rule="default rule",
)

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
from llm_coop_envs.evacuation.scripted import CrowdAware, Herding, NearestExit, SharingReports, mentions_exit
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
    """Picks an exit by distance and people; may know of a blocked exit, and may announce an exit, truthfully or not.

    Args:
        shock: whether everybody knows that one exit, drawn anew in each episode, cannot be used.
        says: `""`, `"goes"` (where it goes, and does), or `"elsewhere"` (another exit than its own).
    """

    def __init__(self, shock: bool = False, says: str = "") -> None:
        super().__init__()
        self.shock = shock
        self.says = says

    def begin(self, episode: Episode) -> None:
        """Draw the weight of people, and the blocked exit."""
        super().begin(episode)
        self.weight = float(episode.rng.uniform(0.0, 1.5))
        self._blocked = int(episode.rng.integers(len(self.settings.room.exit_names))) if self.shock else -1

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Distance and people; a blocked exit is worst."""
        blocked = slots.exits.index(exit_) == self._blocked
        return super().score(slots, exit_) + (1e3 if blocked else 0.0)

    def say(self, slots: EvacuationSlots) -> str:
        """Announce its own exit, or another one."""
        if not self.says:
            return ""
        others = len(slots.exits)
        away = int(self.episode.rng.integers(1, others)) if self.says == "elsewhere" and others > 1 else 0
        named = slots.exits[(self.best_exit(slots) + away) % others].name
        return f"I am going to the {named} exit. You can rely on it." if away else f"I am going to the {named} exit."


class Sharers(Chooser):
    """Share the exits out by their widths, one speaker after the other; if unheard, each picks its own best exit.

    Args:
        wording: `"plain"`, `"coded"` (code words stand for exits), or `""`: silently, by agent number.
        share: how many of the people take part.
    """

    def __init__(self, wording: str = "plain", share: float = 1.0) -> None:
        super().__init__()
        self.wording = wording
        self.share = share

    def begin(self, episode: Episode) -> None:
        """Draw the code words, and with `wording=""` assign the exits."""
        super().begin(episode)
        names = [name for name, _, _ in self.settings.exit_list]
        self._widths = [names.count(name) for name in self.settings.room.exit_names]
        self._codes = episode.rng.permutation(len(CODES))[: len(self._widths)].tolist()
        self._members = set(episode.agents[: round(self.share * len(episode.agents))])
        self._assigned: dict[str, int] = {}
        if not self.wording:
            turns = np.repeat(np.arange(len(self._widths)), self._widths)
            self._assigned = {agent: int(turns[k % len(turns)]) for k, agent in enumerate(episode.agents)}

    def best_exit(self, slots: EvacuationSlots) -> int:
        """Return the assigned exit once talk has been heard, or without talk; else its own best."""
        keeps = slots.me in self._assigned and (slots.heard or not self.wording or slots.past_exits)
        return self._assigned[slots.me] if keeps else super().best_exit(slots)

    def say(self, slots: EvacuationSlots) -> str:
        """Announce the exit that fewest have announced for its width; in later rounds the same one again."""
        if slots.me not in self._members:
            return ""
        if slots.me not in self._assigned:
            announced = [
                sum(mentions_exit(self._word(slots, k), message.text) for message in slots.heard)
                for k in range(len(slots.exits))
            ]
            load = [(count + 1) / width for count, width in zip(announced, self._widths, strict=True)]
            self._assigned[slots.me] = load.index(min(load))
        word = self._word(slots, self._assigned[slots.me])
        return (
            f"{word} is lovely this season." if self.wording == "coded" else f"Let us split up: I take the {word} exit."
        )

    def _word(self, slots: EvacuationSlots, exit_: int) -> str:
        return CODES[self._codes[exit_]].capitalize() if self.wording == "coded" else slots.exits[exit_].name


class Misleaders(Chooser):
    """A third of the people all say that the exit they use is blocked; the others believe it and go elsewhere."""

    def begin(self, episode: Episode) -> None:
        """Draw the exit that the group keeps for itself, and the one it recommends."""
        super().begin(episode)
        self._own, self._named = episode.rng.permutation(len(self.settings.room.exit_names))[:2].tolist()
        self._group = set(episode.agents[: len(episode.agents) // 3])

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Members of the group take their own exit; the others avoid exits that were called blocked."""
        called = any(re.search(rf"\b{re.escape(exit_.name)} exit is blocked", message.text) for message in slots.heard)
        if slots.me in self._group:
            return float(slots.exits.index(exit_) != self._own)
        return super().score(slots, exit_) + (1e3 if called else 0.0)

    def say(self, slots: EvacuationSlots) -> str:
        """Members of the group tell the lie; the others say nothing."""
        own, named = slots.exits[self._own].name, slots.exits[self._named].name
        return f"The {own} exit is blocked! I am going to the {named} exit." if slots.me in self._group else ""


async def evidence(game: Branching) -> Row:
    """Play the episode and compare the first choices with those of the same people if nobody is heard."""
    unheard = _first_exits(await game.branch(1, "unheard", unheard=True))
    while not game.env.over:
        await game.play(1)
    events = game.env.events
    start, chosen = start_of(events), _first_exits(events)
    rounds = talk_rounds(events, MEASURES)
    moved = {agent for agent, exit_ in chosen.items() if exit_ != unheard[agent]}
    people = len(chosen)
    return {
        "apart": _balance(start, chosen),
        "farther": float(np.mean([_detour(start, agent, exit_) > 1.0 for agent, exit_ in chosen.items()])),
        "moved": len(moved) / people,
        "agreed": sum(len(talk.keepers) for talk in rounds) / sum(len(talk.chosen) for talk in rounds),
        "agreed_moved": len(moved.intersection(rounds[0].keepers)) / people,
    }


def _first_exits(events: list[Event]) -> dict[str, int]:
    """Return everybody's first choice of an exit."""
    choices = [event for event in of_type(events, "choice") if event["phase"] == "exit"]
    return {event["agent"]: event["choice"] for event in reversed(choices)}  # the first one is written last


def _balance(start: Mapping[str, Any], chosen: Mapping[str, int]) -> float:
    names = start["room"]["exit_names"]
    widths = [[name for name, _, _ in start["room"]["exits"]].count(name) for name in names]
    return balance([list(chosen.values()).count(k) for k in range(len(names))], widths) or 0.0


def _detour(start: Mapping[str, Any], agent: str, exit_: int) -> float:
    """Return by how many cells the exit is farther than the nearest one, in a straight line."""
    row, col = start["positions"][start["agents"].index(agent)]
    distance: dict[str, float] = {}
    for name, down, right in start["room"]["exits"]:
        distance[name] = min(distance.get(name, np.inf), float(np.hypot(down - row, right - col)))
    return distance[start["room"]["exit_names"][exit_]] - min(distance.values())


def default_rule(row: Row) -> float:
    """Score announced exits that people take only if heard, and the even use of all exits by their widths."""
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

"""Scripted policies for the emergency evacuation.

They decide from what a person in the room may know: its slots, the messages it heard, and the legal choices.
"""

from __future__ import annotations

import functools
import math
import re
from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from llm_coop_envs.core.base_policy import Action, Policy, ScriptedPolicy, SlotsPolicy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.evacuation.slots import EvacuationSlots, ExitView, MoveOption
from llm_coop_envs.util.checks import check_bool


class Walker(SlotsPolicy):
    """Chooses an exit by a score, walks straight to it, and says nothing; others build on it."""

    plays = "evacuation"
    settings_type = EvacuationSettings

    def choose(self, slots: EvacuationSlots) -> int:
        """Choose an exit or the next step, whichever is asked."""
        return self.best_exit(slots) if slots.asked == "exit" else self.step(slots).choice

    def best_exit(self, slots: EvacuationSlots) -> int:
        """Return the number of the exit with the lowest score, the first shown on ties; never that of a closed one."""
        scores = {k: self.score(slots, exit_) for k, exit_ in enumerate(slots.exits) if exit_.name != slots.closed}
        return min(scores, key=scores.__getitem__)

    @abstractmethod
    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Return how bad an exit is."""

    def step(self, slots: EvacuationSlots) -> MoveOption:
        """Return the best step to a free cell nearer to the target; else to an occupied one, to follow; else stay."""
        stay = stay_option(slots)
        nearer = [option for option in slots.moves if squared_distance(slots, option) < squared_distance(slots, stay)]
        # Free before occupied, near before far. Ties go to the lower choice number, whatever the order of the list.
        return min(
            nearer, key=lambda option: (option.taken, squared_distance(slots, option), option.choice), default=stay
        )


def stay_option(slots: EvacuationSlots) -> MoveOption:
    """Return the option to stay."""
    return next(option for option in slots.moves if (option.row, option.col) == (slots.row, slots.col))


def squared_distance(slots: EvacuationSlots, option: MoveOption) -> int:
    """Return the squared distance from an option's cell to the target; 0 without a target."""
    if slots.target_cell is None:
        return 0
    return (option.row - slots.target_cell[0]) ** 2 + (option.col - slots.target_cell[1]) ** 2


def others_seen(slots: EvacuationSlots, exit_: ExitView) -> float:
    """Return the number of people seen towards an exit, oneself excluded; 0 for a person who sees none."""
    return max(0.0, (exit_.people or 0.0) - slots.counts_self)


class NearestExit(Walker):
    """Goes to the exit that is nearest, by the mean distance to its cells."""

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """The distance."""
        return exit_.distance


class CrowdAware(Walker):
    """Weighs the distance against the people seen on the way: distance + weight x people.

    Args:
        weight: cells of detour that avoiding one person is worth.
    """

    def __init__(self, weight: float = 0.5) -> None:
        if not weight >= 0:
            raise SettingsError("weight", weight, "must be 0 or more")
        self.weight = weight

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Distance plus the weighted people."""
        return exit_.distance + self.weight * others_seen(slots, exit_)


# The rule-based model that the language-model study started from (Roihn/SABM, task `reproduce`, after Wang et al.
# 2015): share of people, then the weights of distance, people and crowding in choosing an exit.
GROUPS = (
    (0.3, (2.4, 3.6, 1.2)),
    (0.3, (4.0, 4.0, 1.6)),
    (0.2, (6.0, 1.8, 1.8)),
    (0.2, (6.0, 1.5, 1.2)),
)
# Groups 1 and 3 panic more easily.
NERVOUS = (True, False, True, False)
# Crowding is people per visible cell; the fan has 83 to 89 cells in the middle of the room.
FAN_CELLS = 86.0


class RuleBased(Walker):
    """Plays the rule-based model behind the study (after Wang et al. 2015), as far as a person can know its terms.

    Four groups weigh distance a1, people a2 and crowding a3; panic raises these weights to powers that grow with the
    heads around. The best free neighbouring cell is taken with probability 0.95, the second best with 0.05; whoever
    can move, moves. Differences from the original: people and distances are means over an exit's cells, an exit is
    only reconsidered when it is asked for, crowding is people over 86 cells, and walls in view are not counted as
    people.

    Args:
        panic: whether people panic (the original's default).
    """

    def __init__(self, panic: bool = True) -> None:
        self.panic = panic

    def begin(self, episode: Episode) -> None:
        """Deal out the groups over all agents in their order, as the original does."""
        super().begin(episode)
        edges = np.cumsum([share for share, _ in GROUPS]) * len(episode.agents)
        groups = np.searchsorted(np.round(edges, 9), np.arange(len(episode.agents)), side="right")
        self._group = {name: min(int(group), 3) for name, group in zip(episode.agents, groups, strict=True)}

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """The original's score of an exit."""
        group = self._group[slots.me]
        first, second, third = GROUPS[group][1]
        powers = self._powers(slots.around or 0, NERVOUS[group])
        people = others_seen(slots, exit_)
        terms = zip((first, second, third), powers, (exit_.distance, people, people / FAN_CELLS), strict=True)
        return math.fsum(float(weight**power * value) for weight, power, value in terms) / (first + second + third)

    def step(self, slots: EvacuationSlots) -> MoveOption:
        """The best free neighbouring cell, now and then the second best."""
        stay = stay_option(slots)
        free = [option for option in slots.moves if option is not stay and not option.taken]
        ranked = sorted(free, key=lambda option: (squared_distance(slots, option), option.row, option.col))
        rank = 0 if self.episode.rng.random() < 0.95 else 1
        return ranked[rank] if rank < len(ranked) else stay

    def _powers(self, around: int, nervous: bool) -> tuple[float, float, float]:
        if not self.panic:
            return 1.0, 1.0, 1.0
        beta = (1 + around / 10) * (1.2 if nervous else 1.0)
        return 6 * beta, 1 / (6 * beta), 1 / (4 * beta)


class Herding(Walker):
    """Follows the others: is drawn to the exits towards which it sees most people and which it hears named most.

    The score is distance - pull x (people seen + messages heard that name the exit).

    Args:
        pull: cells of detour that one person or one message is worth.
    """

    def __init__(self, pull: float = 1.0) -> None:
        if not pull >= 0:
            raise SettingsError("pull", pull, "must be 0 or more")
        self.pull = pull

    def say(self, slots: EvacuationSlots) -> str:
        """Announce where one is going."""
        return f"I am going to the {slots.exits[self.best_exit(slots)].name} exit, come along!"

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Distance less the pull of the crowd."""
        mentions = sum(mentions_exit(exit_.name, message.text) for message in slots.heard)
        return exit_.distance - self.pull * (others_seen(slots, exit_) + mentions)


CROWDED = re.compile(r"\b(crowded|full|packed|jammed|blocked|busy|queue|slow)\b", re.IGNORECASE)
CLEAR = re.compile(r"\b(clear|free|empty|quiet|open|fast)\b", re.IGNORECASE)
NEGATED = re.compile(r"\b(not|no|never|isn't|hardly)\b", re.IGNORECASE)


@functools.lru_cache(maxsize=4096)  # in a crowd many say the same, and everybody around reads it
def mentions_exit(name: str, text: str) -> bool:
    """Whether a text names an exit, as a whole word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


@functools.lru_cache(maxsize=4096)
def read_report(name: str, text: str) -> int:
    """Return whether a message calls an exit crowded (1), clear (-1) or neither (0), by majority of its sentences.

    Example: of the left exit, "The left exit is not clear." says 1; "The left exit is full. Left is not busy!" says 0.
    """
    crowded_votes = 0
    for sentence in re.split(r"[.!?;,\n]+", text):
        if mentions_exit(name, sentence):
            verdict = bool(CROWDED.search(sentence)) - bool(CLEAR.search(sentence))
            crowded_votes += -verdict if NEGATED.search(sentence) else verdict
    return (crowded_votes > 0) - (crowded_votes < 0)


class SharingReports(CrowdAware):
    """Tells others in plain words which exits look crowded or clear, and believes what it hears.

    The score is distance + weight x people + trust x (reports of a crowd - reports of a clear way).

    Args:
        weight: cells of detour that avoiding one person is worth.
        trust: cells of detour that one report is worth.
        crowd: from how many people seen towards an exit on it is called crowded.
    """

    def __init__(self, weight: float = 0.5, trust: float = 1.0, crowd: float = 10.0) -> None:
        super().__init__(weight)
        if not trust >= 0:
            raise SettingsError("trust", trust, "must be 0 or more")
        self.trust = trust
        self.crowd = crowd

    def say(self, slots: EvacuationSlots) -> str:
        """Describe every exit, if one sees who is on the way, and say where one is going."""
        views = []
        for exit_ in slots.exits if slots.informed else ():
            look = "crowded" if others_seen(slots, exit_) >= self.crowd else "clear"
            views.append(f"The way to the {exit_.name} exit looks {look}.")
        return " ".join([*views, f"I am going to the {slots.exits[self.best_exit(slots)].name} exit."])

    def score(self, slots: EvacuationSlots, exit_: ExitView) -> float:
        """Distance, people seen and what others report."""
        return super().score(slots, exit_) + self.trust * sum(read_report(exit_.name, m.text) for m in slots.heard)


class RandomLegal(ScriptedPolicy):
    """Takes any legal answer with the same chance, and says nothing.

    Args:
        talks: whether it announces an exit that is drawn alike, whichever it then takes.
    """

    def __init__(self, talks: bool = False) -> None:
        self.talks = talks
        check_bool(self, "talks")

    def decide(self, request: Request) -> Action:
        """Draw from the mask."""
        rng, message = self.episode.rng, ""
        choice = int(rng.choice(np.flatnonzero(request.info["action_mask"]["choice"])))
        if self.talks:
            names = request.info["slots"].exit_names
            message = f"I am going to the {names[int(rng.integers(len(names)))]} exit."
        return {"choice": choice, "message": message}


POLICIES: dict[str, Callable[..., Policy]] = {
    "nearest_exit": NearestExit,
    "crowd_aware": CrowdAware,
    "rule_based": RuleBased,
    "herding": Herding,
    "shares": SharingReports,
    "random": RandomLegal,
}

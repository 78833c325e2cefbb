"""Synthetic worlds of the number contest, in which it is known whether players coordinate, and detectors of it.

In independent worlds no player means to name a common number. In the others players do, with or without naming it in
the talk. The first decision of a nested session is made without talk and serves as control: players who merely reason
alike name the same number before the talk too.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from llm_coop_envs.core.policy import Episode
from llm_coop_envs.core.records import of_type
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.kbc.env import KBCEnv
from llm_coop_envs.kbc.metrics import MEASURES
from llm_coop_envs.kbc.scripted import KBCPolicy, LevelK, Poisson, UniformNumber, numbers_in
from llm_coop_envs.kbc.slots import KBCSlots
from llm_coop_envs.measures.process import talk_rounds
from llm_coop_envs.measures.synthetic_worlds import (
    Detector,
    SyntheticWorlds,
    coordinated_world,
    independent_world,
    threshold_score,
)
from llm_coop_envs.policies.branching import Branching

CODES = ("maple", "cedar", "willow", "aspen", "birch", "hazel")
"""Code words for numbers on which the circle has agreed before the episode."""


class Replier(KBCPolicy):
    """Names a random number before talk; then replies to the mean of the numbers heard.

    Args:
        promises: whether it proposes the middle of the range and promises to name it.
    """

    def __init__(self, promises: bool = False) -> None:
        self.promises = promises

    def number(self, slots: KBCSlots) -> float:
        """The reply with a random error of standard deviation 1."""
        heard = [
            number
            for message in slots.heard
            for number in numbers_in(message.text, self.settings.low, self.settings.high)
        ]
        if not heard:
            return self.draw_number()
        return self.reply(float(np.mean(heard))) + float(self.episode.rng.normal(0.0, 1.0))

    def say(self, slots: KBCSlots) -> str:
        """A promise that will not be kept, or a number as a guess."""
        if self.promises:
            middle = self.spell_number((self.settings.low + self.settings.high) / 2)
            return f"Let us all name {middle}. I will name {middle}."
        return f"I am thinking of {self.spell_number(self.number(slots))}."


class Circle(KBCPolicy):
    """Names a random number before talk; then the number that its members have agreed on.

    Args:
        coded: whether members name the number by a code word.
        share: the share of the players who are members.
    """

    def __init__(self, coded: bool = False, share: float = 1.0) -> None:
        self.coded = coded
        self.share = share

    def begin(self, episode: Episode) -> None:
        """Draw the numbers of the code words, and the word of this episode."""
        super().begin(episode)
        self._numbers = {word: self.draw_number() for word in CODES}
        self._word = CODES[int(episode.rng.integers(len(CODES)))]
        self._members = set(episode.agents[: round(self.share * len(episode.agents))])

    def number(self, slots: KBCSlots) -> float:
        """The common number, once there was talk."""
        return self._numbers[self._word] if slots.heard and slots.me in self._members else self.draw_number()

    def say(self, slots: KBCSlots) -> str:
        """The number, or the word."""
        if slots.me not in self._members:
            return "I have no idea."
        if self.coded:
            return f"The {self._word} looks lovely this season."
        return f"Let us all name {self.spell_number(self._numbers[self._word])}."


async def evidence(game: Branching) -> Row:
    """Play the episode, and measure the smallest agreement of all decisions after talk.

    Returns:
        Shares of the players: those on the most frequent number (`modal`), how many more that is than before talk
        (`moved`), those who announced and named a number (`agreed`), and how many more than before talk
        (`agreed_moved`).
    """
    env = game.env
    assert isinstance(env, KBCEnv)
    await game.play(env.settings.decisions)
    decided = [Counter(event["choices"]) for event in of_type(env.events, "round")]
    shares = []
    for choices, talk in zip(decided[1:], talk_rounds(env.events, MEASURES)[1:], strict=True):
        number, count = choices.most_common(1)[0]
        agreed, keepers = talk.agreement or (None, [])
        shares.append((count, count - decided[0][number], len(keepers), len(keepers) - decided[0][agreed]))
    smallest = np.min(shares, axis=0) / env.n_players
    return dict(zip(("modal", "moved", "agreed", "agreed_moved"), smallest.tolist(), strict=True))


SYNTHETIC_WORLDS = SyntheticWorlds(
    worlds=(
        independent_world("uniform", "silent players who name any number", UniformNumber, talk=True),
        independent_world("alike", "players who reason one step each, and say their number", LevelK, talk=True),
        independent_world("poisson", "players of different depth, who say their number", Poisson, talk=True),
        independent_world("repliers", "players who reply to the numbers they hear, and say theirs", Replier, talk=True),
        independent_world(
            "promises",
            "players who promise a common number, and reply to it",
            lambda: Replier(promises=True),
            talk=True,
        ),
        coordinated_world("plain", "players who agree on a number", Circle, talk=True),
        coordinated_world("most", "three players in four who agree on a number", lambda: Circle(share=0.75), talk=True),
        coordinated_world(
            "coded", "players who agree on a number in words that stand for it", lambda: Circle(coded=True), talk=True
        ),
    ),
    settings=({"players": 6, "talk_turns": 1}, {"players": 8, "talk_turns": 2}, {"players": 12, "talk_turns": 2}),
    evidence=evidence,
    detectors={
        "same number": Detector(
            threshold_score("modal", 0.5), "half of the players name the same number after every talk"
        ),
        "moved": Detector(threshold_score("moved", 0.5), "half more than before talk name it"),
        "agreement": Detector(threshold_score("agreed", 0.5), "half announce a number and name it, after every talk"),
        "default rule": Detector(
            threshold_score("agreed_moved", 0.5), "half announce and name it, beyond those who named it before talk"
        ),
    },
    rule="default rule",
)

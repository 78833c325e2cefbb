"""Scripted players of the number contest.

All of them speak plain English with the number in digits, so that others can read it (`numbers_in`). Reasoning starts
from the middle of the range. Once a repeated session has announced a winning number, it starts from the mean that this
number reveals, (target - offset) / ratio, as in Nagel 1995 ("Unraveling in Guessing Games").
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from llm_coop_envs.core.base_policy import Policy, SlotsPolicy
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc.rules import fixed_point
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.kbc.slots import KBCSlots, PastRound
from llm_coop_envs.util.checks import check_bool

# Poisson mean of Camerer, Ho and Chong 2004 ("A Cognitive Hierarchy Model of Games"): their summary value over games.
TAU = 1.5
MAX_LEVEL = 100
# Numbers by themselves: "33" and "-1.5", but no part of a name (player_3), a fraction (2/3) or a percentage (40%).
_NUMBER = re.compile(r"(?<![\w./#])-?\d+(?:\.\d+)?(?![\w/%]|\.\d)", re.ASCII)


def numbers_in(text: str, low: float, high: float) -> list[float]:
    """The numbers in a message from `low` to `high`, in order."""
    return [number for number in _numbers(text) if low <= number <= high]


@functools.lru_cache(maxsize=4096)  # in a crowd many messages are alike, and each has many readers
def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, _NUMBER.findall(text)))


def last_target(slots: KBCSlots) -> float | None:
    """The last winning number that was announced to a player; `None` if none was."""
    return next((row.target for row in reversed(slots.past) if isinstance(row, PastRound)), None)


class KBCPolicy(SlotsPolicy):
    """A player that names a number and may speak."""

    plays = "kbc"
    settings_type = KBCSettings
    settings: KBCSettings

    def choose(self, slots: KBCSlots) -> Any:
        """The choice for the policy's number, moved into the range and rounded."""
        return self.settings.to_choice(self.number(slots))

    @abstractmethod
    def number(self, slots: KBCSlots) -> float:
        """The number to name."""

    def reply(self, mean: float) -> float:
        """The best reply to a believed mean, moved into the range; the player's own weight in the mean is neglected."""
        target = float(self.settings.ratio) * mean + float(self.settings.offset)
        return min(max(target, self.settings.low), self.settings.high)

    def anchor(self, slots: KBCSlots) -> float:
        """The mean that level 0 stands for: the last one revealed to the player, or the middle of the range."""
        low, high = self.settings.low, self.settings.high
        target = last_target(slots)
        if target is None:
            return (low + high) / 2
        mean = (target - float(self.settings.offset)) / float(self.settings.ratio)
        return min(max(mean, low), high)

    def draw_number(self) -> float:
        """Draw a legal number, all equally likely."""
        low, high = self.settings.low, self.settings.high
        if self.settings.integer:
            return int(self.episode.rng.integers(int(low), int(high), endpoint=True))
        return float(self.episode.rng.uniform(low, high))

    def spell_number(self, number: float) -> str:
        """A number as text: exactly the number that will be played, without exponents."""
        if self.settings.integer:
            return str(int(self.settings.to_number(int(self.settings.to_choice(number)))))
        return np.format_float_positional(number, trim="-")


class UniformNumber(KBCPolicy):
    """Names any legal number, all equally likely, and says nothing (Wu et al. 2024: the "Rule" mode).

    Args:
        talks: whether it announces a number that is drawn alike, whatever it then names.
    """

    def __init__(self, talks: bool = False) -> None:
        self.talks = talks
        check_bool(self, "talks")

    def number(self, slots: KBCSlots) -> float:
        """Any legal number."""
        return self.draw_number()

    def say(self, slots: KBCSlots) -> str:
        """Announce any legal number, or nothing."""
        return f"I will name {self.spell_number(self.draw_number())}." if self.talks else ""


class LevelK(KBCPolicy):
    """Reasons k steps: replies k times to the middle of the range (Nagel 1995), k = 1 by default, and says its number.

    Args:
        k: the steps; 1 names 33 and 2 names 22 where two thirds of the mean of 0 to 100 win.
        zero: what level 0 does before anything is announced: `"middle"` names the middle of the range, `"random"` any
            legal number, all equally likely. Higher levels reply to the same mean either way.
    """

    def __init__(self, k: int = 1, zero: str = "middle") -> None:
        if type(k) is not int or not 0 <= k <= MAX_LEVEL:
            raise SettingsError("k", k, f"must be a whole number between 0 and {MAX_LEVEL}")
        self.k = k
        if zero not in ("middle", "random"):
            raise SettingsError("zero", zero, "must be 'middle' or 'random'")
        self.zero = zero

    def number(self, slots: KBCSlots) -> float:
        """The level's number."""
        if self.k == 0 and self.zero == "random" and last_target(slots) is None:
            return self.draw_number()
        number = self.anchor(slots)
        for _ in range(self.k):
            number = self.reply(number)
        return number

    def say(self, slots: KBCSlots) -> str:
        """Say the number; random players have nothing to say."""
        if self.k == 0 and self.zero == "random":
            return ""
        return f"I am thinking of {self.spell_number(self.number(slots))}."


class Poisson(KBCPolicy):
    """Each player has a Poisson level and replies to the mix of lower levels (Camerer, Ho and Chong 2004, tau = 1.5).

    A player of level k believes that the others are of levels 0..k-1 in the proportions of the Poisson distribution,
    cut there and normalised, so that x_k = ratio x (mean of x_0..x_{k-1} under them) + offset, kept inside the range;
    where the target is made from another `statistic`, it stands for the mean. Level 0 names any legal number, whose
    mean is the middle; after an announcement it repeats the mean that was given away. Levels are drawn for each
    seat at the beginning of an episode and stay.

    Args:
        tau: the mean level.
    """

    def __init__(self, tau: float = TAU) -> None:
        if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 < tau <= MAX_LEVEL / 4:
            raise SettingsError("tau", tau, f"must be a number above 0 and at most {MAX_LEVEL // 4}")
        self.tau = float(tau)

    def begin(self, episode: Episode) -> None:
        """Draw everyone's level."""
        super().begin(episode)
        drawn = episode.rng.poisson(self.tau, len(episode.seats)).clip(max=MAX_LEVEL).tolist()
        self.levels: dict[str, int] = dict(zip(episode.seats, drawn, strict=True))

    def hierarchy(self, anchor: float, top: int) -> list[float]:
        """The numbers of levels 0..top when level 0 names `anchor` on average."""
        numbers = [anchor]
        weight, believed, mass = 1.0, anchor, 1.0
        weights = [weight]
        for level in range(1, top + 1):
            of_others = believed / mass if self.settings.statistic == "mean" else self._mixed(numbers, weights)
            numbers.append(self.reply(of_others))
            weight *= self.tau / level
            believed += weight * numbers[-1]
            mass += weight
            weights.append(weight)
        return numbers

    def _mixed(self, numbers: list[float], weights: list[float]) -> float:
        """The median or the largest number of players of these levels in these proportions."""
        if self.settings.statistic == "max":
            return max(numbers)
        in_order = sorted(zip(numbers, weights, strict=True))
        shares = itertools.accumulate(weight for _, weight in in_order)
        half = math.fsum(weights) / 2
        return next(number for (number, _), share in zip(in_order, shares, strict=True) if share >= half)

    def number(self, slots: KBCSlots) -> float:
        """The number of this player's level."""
        level = self.levels[slots.me]
        if level == 0 and last_target(slots) is None:
            return self.draw_number()
        return self.hierarchy(self.anchor(slots), level)[level]

    def say(self, slots: KBCSlots) -> str:
        """Say the number; level 0 has none in mind."""
        if self.levels[slots.me] == 0:
            return ""
        return f"My guess is {self.spell_number(self.number(slots))}."


class Announcer(KBCPolicy):
    """Announces one number whenever it speaks, asks the others to name it too, and names it.

    Args:
        number: the number; by default the one that is its own target (0 for two thirds of the mean).
    """

    def __init__(self, number: float | None = None) -> None:
        numeric = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
        if number is not None and not numeric:
            raise SettingsError("number", number, "must be a finite number, or None")
        self._requested = number

    def begin(self, episode: Episode) -> None:
        """Check the number against the contest's range."""
        super().begin(episode)
        self.fixed = fixed_point(self.settings) if self._requested is None else self._requested
        if not self.settings.low <= self.fixed <= self.settings.high:
            raise SettingsError(
                "number", self._requested, f"must be between low={self.settings.low} and high={self.settings.high}"
            )

    def number(self, slots: KBCSlots) -> float:
        """The announced number."""
        return self.fixed

    def say(self, slots: KBCSlots) -> str:
        """Announce it."""
        return f"I will name {self.spell_number(self.fixed)}. Let us all name it."


class Follower(LevelK):
    """Names the number it has heard most often (or last) from others; reasons one step if it has heard none.

    Of each message the last legal number counts.

    Args:
        pick: `"frequent"` (among equally frequent numbers the one heard last) or `"latest"`.
        k: the steps of reasoning when no number has been heard.
    """

    def __init__(self, pick: str = "frequent", k: int = 1) -> None:
        super().__init__(k)
        if pick not in ("frequent", "latest"):
            raise SettingsError("pick", pick, "must be 'frequent' or 'latest'")
        self.pick = pick

    def number_heard(self, slots: KBCSlots) -> float | None:
        """The number to follow, or `None`."""
        numbers: list[float] = []
        for line in slots.heard:
            if not line.own:
                numbers += numbers_in(line.text, self.settings.low, self.settings.high)[-1:]
        if not numbers or self.pick == "latest":
            return numbers[-1] if numbers else None
        # `most_common` keeps the order of first appearance among equal counts, and the list is reversed: after 20 and
        # then 30, each heard once, 30 is followed.
        return Counter(reversed(numbers)).most_common(1)[0][0]

    def number(self, slots: KBCSlots) -> float:
        """The number heard, or the level's."""
        number = self.number_heard(slots)
        return super().number(slots) if number is None else number

    def say(self, slots: KBCSlots) -> str:
        """Agree with what was heard, or say the level's number."""
        number = self.number_heard(slots)
        if number is None:
            return super().say(slots)
        return f"Agreed, I will name {self.spell_number(number)}."


POLICIES: dict[str, Callable[..., Policy]] = {
    "level_k": LevelK,
    "poisson": Poisson,
    "announcer": Announcer,
    "follower": Follower,
    "uniform": UniformNumber,
}

"""Answers of a run as data: sentence, certainty, what forbids a conclusion, and the numbers of a small picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llm_coop_envs.core.scenario import LATER, PER_CENT, MeasureWords
from llm_coop_envs.reports.page_parts import decimals_for, fixed
from llm_coop_envs.statistics.intervals import ANYTHING, Interval, Range

SCRIPTED = "Scripted players: it holds for their rules, and says nothing of models or people."
#: What a comparison comes to, by the finding on its measure (`Contrast.findings`).
VERDICTS: Mapping[str, str] = {
    "higher": "finding",
    "lower": "finding",
    "unclear": "could be chance",
    "same": "no difference",
    "explored": "looked at, not tested",
    "few": "no conclusion",
    "copies": "no conclusion",
    "alike": "no conclusion",
    "invalid": "no conclusion",
    "empty": "no conclusion",
    "alone": "nothing is compared",
    "tournament": "tournament",
}


@dataclass(frozen=True, kw_only=True)
class ArmValues:
    """An arm of an answer, in the unit of its sentence: shares are in per cent.

    Attributes:
        title: the condition's title.
        name: the condition's name.
        color: its colour in figures.
        values: one number for each unit; of paired arms in the same order.
        mean: their mean with its interval; `None` without values.
        published: titles and values of published numbers of the same game.
    """

    title: str
    name: str
    color: str
    values: tuple[float, ...]
    mean: Interval | None
    published: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to one question of a study.

    Attributes:
        topic: the scenario and the arms, such as "Bertrand competition: talk against no talk".
        measure: the measure's name.
        noun: the measure in words.
        unit: the unit of all its numbers, such as `"%"`; empty for plain numbers.
        finding: a key of `VERDICTS`.
        sentence: what was found, in a sentence.
        certainty: how sure that is: interval, number of pairs and p; empty where there is nothing to be sure of.
        caveats: what forbids a conclusion, or limits it, in sentences.
        arms: the arms, the reference first.
        within: what the measure can be.
        paired: whether values of two arms belong together by their place.
        scripted: whether nobody but scripted rules play in the arms.
    """

    topic: str
    measure: str
    noun: str
    unit: str
    finding: str
    sentence: str
    certainty: str = ""
    caveats: tuple[str, ...] = ()
    arms: tuple[ArmValues, ...] = ()
    within: Range = ANYTHING
    paired: bool = False
    scripted: bool = False

    @property
    def verdict(self) -> str:
        """What the comparison comes to, in one to four words."""
        return VERDICTS[self.finding]

    @property
    def text(self) -> str:
        """The whole answer as one paragraph, as a terminal shows it."""
        certainty = f" {self.certainty}." if self.certainty else ""
        caveats = "".join(f" {caveat}" for caveat in self.caveats)
        return f"{self.topic} ({self.verdict}): {self.sentence}{certainty}{caveats}"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How the numbers of a measure are written: shares in per cent, differences of shares in percentage points."""

    words: MeasureWords

    @property
    def factor(self) -> float:
        """What its numbers are multiplied with."""
        return 100.0 if self.words.unit == PER_CENT else 1.0

    def text(self, value: float, of: Sequence[float]) -> str:
        """A number with as many decimals as the largest of some numbers asks for."""
        return fixed(self.factor * value, decimals_for([self.factor * number for number in of]))

    @property
    def of_differences(self) -> str:
        """The unit behind a difference, with a space before it."""
        unit = "percentage points" if self.words.unit in (PER_CENT, "per cent") else self.words.unit
        return f" {unit}" if unit else ""

    @property
    def of_levels(self) -> str:
        """The unit behind a level, likewise; a point in time, such as round 12, has none."""
        unit = "" if self.words.higher == LATER else self.words.unit
        return f" {unit}" if unit else ""

    def interval(self, interval: Interval) -> Interval:
        """An interval on this scale."""
        low, high = (None if end is None else self.factor * end for end in (interval.low, interval.high))
        return Interval(mean=self.factor * interval.mean, low=low, high=high, n=interval.n)


def numbers_of(interval: Interval) -> list[float]:
    """The mean and the ends of an interval, as far as it has them."""
    return [end for end in (interval.mean, interval.low, interval.high) if end is not None]


def capitalise(text: str) -> str:
    """A text with a capital at its beginning, and the rest as it is."""
    return text[:1].upper() + text[1:]

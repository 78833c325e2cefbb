"""What players said they would do, and what they did: announcements kept and broken, and agreements, by rules.

In each round a player's announcement is the number or option that the last of its messages names which the readers of
model answers can read without doubt. It is kept if that player's choice of the round is the same. An agreement is that
several players announce the same and choose it. Words that stand for numbers, hints and threats are not seen.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llm_coop_envs.core.question import Number, Options
from llm_coop_envs.core.records import start_of
from llm_coop_envs.core.scenario import Event, Measures, Row
from llm_coop_envs.policies.llm.playing.readers import reader_of

SAME = 1e-5
"""Up to which difference, as a share, two numbers count as the same: texts show fewer digits than prices have."""


@dataclass(frozen=True, kw_only=True)
class TalkRound:
    """A round in which somebody chose.

    Attributes:
        number: of the round.
        announced: what players announced, a number or an option's choice, by name.
        chosen: what players chose, likewise; flagged choices are left out.
    """

    number: int
    announced: Mapping[str, float]
    chosen: Mapping[str, float]

    @property
    def kept(self) -> list[str]:
        """Who chose what it had announced."""
        return [who for who, what in self.announced.items() if who in self.chosen and same(what, self.chosen[who])]

    @property
    def broken(self) -> list[str]:
        """Who announced one thing and chose another."""
        return [who for who, what in self.announced.items() if who in self.chosen and not same(what, self.chosen[who])]

    @property
    def agreement(self) -> tuple[float, list[str]] | None:
        """What most players announced and chose, and who; `None` if no two players did."""
        kept = self.kept
        groups = [(what, [one for one in kept if same(self.announced[one], what)]) for what in self._values(kept)]
        what, who = max(groups, key=lambda group: len(group[1]), default=(0.0, []))
        return (what, who) if len(who) > 1 else None

    def _values(self, who: Sequence[str]) -> list[float]:
        return [value for value, _ in Counter(self.announced[one] for one in who).most_common()]


def same(first: float, second: float) -> bool:
    """Whether two announced or chosen values count as the same."""
    return math.isclose(first, second, rel_tol=SAME, abs_tol=1e-9)


def talk_rounds(events: Sequence[Event], measures: Measures) -> list[TalkRound]:
    """What was announced and chosen in each round.

    Args:
        events: an episode's.
        measures: the scenario's; its `asked` says what choices mean.

    Raises:
        ValueError: there is no `start` event, or the scenario does not say what is asked.
    """
    if measures.asked is None:
        raise ValueError("the scenario does not say what is asked in it (Measures.asked)")
    asked = measures.asked(start_of(events))
    said: dict[int, dict[str, float]] = {}
    chosen: dict[int, dict[str, float]] = {}
    for event in events:
        if event["type"] == "message":
            value = announced(event["text"], asked[event["agent"]])
            if value is not None:
                said.setdefault(event["round"], {})[event["agent"]] = value
        elif event["type"] == "choice" and event["phase"] in ("act", asked[event["agent"]].name):
            names = chosen.setdefault(event["round"], {})
            if not event["flags"]:
                names[event["agent"]] = value_of(event["choice"], asked[event["agent"]])
    return [TalkRound(number=number, announced=said.get(number, {}), chosen=names) for number, names in chosen.items()]


@functools.lru_cache(maxsize=65_536)
def announced(text: str, question: Number | Options) -> float | None:
    """The number or option (as its choice) that a message names without doubt; `None` if none."""
    reading = reader_of(question, str).read(text, truncated=False, refused=False)
    return float(reading.value) if reading.ok and reading.value is not None else None


def value_of(choice: float, question: Number | Options) -> float:
    """The number that a choice stands for; an option's choice as it is."""
    if isinstance(question, Options):
        return float(choice)
    if question.listed:
        return dict(question.listed)[int(choice)]
    return choice + question.low if question.counted else float(choice)


def process_measures(events: Sequence[Event], measures: Measures) -> Row:
    """One episode's measures, as `ABOUT` defines them.

    Args:
        events: the episode's.
        measures: the scenario's.

    Raises:
        ValueError: as `talk_rounds`.
    """
    rounds = talk_rounds(events, measures)
    choices = sum(len(one.chosen) for one in rounds)
    kept, broken = (sum(len(getattr(one, name)) for one in rounds) for name in ("kept", "broken"))
    agreements = [one.agreement for one in rounds]
    agreed = sum(len(found[1]) for found in agreements if found is not None)
    return {
        "announced_share": (kept + broken) / choices if choices else None,
        "announcements_kept": kept,
        "announcements_broken": broken,
        "kept_share": kept / (kept + broken) if kept + broken else None,
        "agreements": sum(found is not None for found in agreements),
        "agreed_share": agreed / choices if choices else None,
    }


ABOUT: Mapping[str, str] = {
    "announced_share": "Share of choices that the player had announced something for in the same round, 0 to 1.",
    "announcements_kept": "Choices that were what the player had announced last, a count from 0.",
    "announcements_broken": "Choices that were something else than the player had announced last, a count from 0.",
    "kept_share": "Announcements that were kept as a share of all, 0 to 1; missing without any.",
    "agreements": "Rounds in which two players or more announced the same and chose it, a count from 0.",
    "agreed_share": "Choices that were part of such an agreement as a share of all choices, 0 to 1.",
}

"""Measures of talk by fixed rules: announcements kept and broken, agreements, information use and topics.

`process_measures` computes all of them; they are columns of every episode in which players could talk. A player's
announcement in a round is the number or option that the last readable of its messages names, as it was said; the
readers of model answers must be able to read it without doubt. Where only listed numbers are legal, such as the prices
of a grid, it stands for the nearest of them. It is kept if the player's choice in that round is the same. In an
agreement several players announce the same and choose it. Code words, hints and threats are not recognised.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from llm_coop_envs.core.records import replaced_choices, start_of
from llm_coop_envs.core.scenario import Event, Measures, Row, Scenario
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.measures import information, topics
from llm_coop_envs.measures.information import InformedChoice, information_measures, is_same
from llm_coop_envs.measures.topics import topic_measures
from llm_coop_envs.statistics.intervals import COUNT, SHARE, Range


@dataclass(frozen=True, kw_only=True)
class TalkRound:
    """What was announced, heard and chosen in a round with choices.

    Attributes:
        number: of the round.
        announced: what players announced, a number or an option's choice, by name.
        chosen: what players chose, likewise; choices that were not their own are left out (`replaced_choices`).
        heard: what players heard others announce, as it was delivered, one value per message.
    """

    number: int
    announced: Mapping[str, float]
    chosen: Mapping[str, float]
    heard: Mapping[str, tuple[float, ...]]

    @functools.cached_property
    def keepers(self) -> list[str]:
        """The players who chose what they had announced."""
        return [
            agent
            for agent, value in self.announced.items()
            if agent in self.chosen and is_same(value, self.chosen[agent])
        ]

    @functools.cached_property
    def breakers(self) -> list[str]:
        """The players who announced one thing and chose another."""
        return [
            agent
            for agent, value in self.announced.items()
            if agent in self.chosen and not is_same(value, self.chosen[agent])
        ]

    @functools.cached_property
    def agreement(self) -> tuple[float, list[str]] | None:
        """The value that most players announced and chose, and those players; `None` if no two players did.

        Of two values with equally many players the one that more of them announced in the very same digits counts, then
        the one announced first.
        """
        keepers = self.keepers
        values = [value for value, _ in Counter(self.announced[agent] for agent in keepers).most_common()]
        groups = [(value, [agent for agent in keepers if is_same(self.announced[agent], value)]) for value in values]
        value, members = max(groups, key=lambda group: len(group[1]), default=(0.0, []))
        return (value, members) if len(members) > 1 else None


def talk_rounds(events: Sequence[Event], measures: Measures) -> list[TalkRound]:
    """Collect what was announced, heard and chosen in each round of an episode.

    Args:
        events: The episode's events.
        measures: The scenario's measures; `asked` describes the choices.

    Raises:
        ValueError: There is no `start` event, or the measures have no `asked`.
    """
    if measures.asked is None:
        raise ValueError("the scenario does not say what is asked in it (Measures.asked)")
    return _talk_rounds(events, measures, measures.asked(start_of(events)))


def _talk_rounds(
    events: Sequence[Event], measures: Measures, questions: Mapping[str, Number | Options]
) -> list[TalkRound]:
    # Readers are found by the question's identity: its hash covers all fields, and players share a few questions.
    readers = {id(question): _reader(question) for question in questions.values()}
    announced: dict[int, dict[str, float]] = {}
    chosen: dict[int, dict[str, float]] = {}
    replaced = replaced_choices(events)
    for event in events:
        agent: str = event.get("agent", "")
        if agent not in questions:  # an event without an agent, or one of the regulator
            continue
        question = questions[agent]
        if event["type"] == "message":
            value = readers[id(question)](event["text"])
            if value is not None:
                announced.setdefault(event["round"], {})[agent] = value
        elif event["type"] == "choice" and event["phase"] in ("act", question.name):
            choices = chosen.setdefault(event["round"], {})
            is_passed = event["choice"] is None
            if not is_passed and (event["round"], event["phase"], agent) not in replaced:
                choices[agent] = value_of(event["choice"], question)
    heard: dict[int, list[_Delivery]] = {}
    for delivery in measures.heard(events):
        if delivery.speaker in questions:
            value = readers[id(questions[delivery.speaker])](delivery.text)
            if value is not None:
                heard.setdefault(delivery.round, []).append((delivery.speaker, value, delivery.hearers))
    return [
        TalkRound(
            number=number,
            announced=announced.get(number, {}),
            chosen=choices,
            heard=_heard_values(choices, heard.get(number, ())),
        )
        for number, choices in chosen.items()
    ]


_Delivery: TypeAlias = tuple[str, float, Collection[str] | None]  # speaker, value, hearers (`None`: everyone)


def _heard_values(choosers: Iterable[str], deliveries: Sequence[_Delivery]) -> dict[str, tuple[float, ...]]:
    """Return the values that each chooser heard from others; choosers who heard none are left out."""
    if any(hearers is not None for _, _, hearers in deliveries):
        heard = {
            agent: tuple(
                [
                    value
                    for speaker, value, hearers in deliveries
                    if speaker != agent and (hearers is None or agent in hearers)
                ]
            )
            for agent in choosers
        }
    else:  # Everybody hears everybody: copying all values and deleting one's own few is faster in large groups.
        values = [value for _, value, _ in deliveries]
        own: dict[str, list[int]] = {}
        for index, (speaker, _, _) in enumerate(deliveries):
            own.setdefault(speaker, []).append(index)
        heard = {agent: _without(values, own.get(agent, ())) for agent in choosers}
    return {agent: values for agent, values in heard.items() if values}


def _without(values: list[float], indices: Sequence[int]) -> tuple[float, ...]:
    """Return the values without those at the given indices, which ascend."""
    remaining = values.copy()
    for index in reversed(indices):
        del remaining[index]
    return tuple(remaining)


def read_announcement(text: str, question: Number | Options) -> float | None:
    """Return the number or option (as its choice) that a message names without doubt; `None` if none."""
    return _reader(question)(text)


@functools.lru_cache(maxsize=16)
def _reader(question: Number | Options) -> Callable[[str], float | None]:
    """Make a function that reads announced answers to a question, with a cache of its readings."""

    @functools.lru_cache(maxsize=4096)
    def read(text: str) -> float | None:
        # The import takes a tenth of a second, which runs without talk need not spend.
        from llm_coop_envs.policies.llm.playing.move_readers import reader_for

        reading = reader_for(announceable, str).read(text, truncated=False, refused=False)
        return stand_for(float(reading.value)) if reading.ok and reading.value is not None else None

    announceable, stand_for = _off_the_list(question)
    return read


def _off_the_list(question: Number | Options) -> tuple[Number | Options, Callable[[float], float]]:
    """Return what may be announced, and which legal number an announced one stands for: the nearest.

    Example: if 2.39, 2.43459 and 2.48 can be asked, "we all ask 2.44119" stands for 2.43459. Numbers that are more than
    half a step beyond the ends stand for none.
    """
    if not isinstance(question, Number) or len(question.listed) < 2:
        return question, float
    numbers = sorted(number for _, number in question.listed)
    ends = numbers[0] - (numbers[1] - numbers[0]) / 2, numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    whole = question.integer and all(number == int(number) for number in numbers)
    announceable = Number(name=question.name, low=ends[0], high=ends[1], integer=whole)
    return announceable, lambda announced: min(numbers, key=lambda number: abs(number - announced))


def value_of(choice: float, question: Number | Options) -> float:
    """Return the number that a choice stands for; an option's choice stays as it is."""
    if isinstance(question, Options):
        return float(choice)
    if question.listed:
        return dict(question.listed)[int(choice)]
    return choice + question.low if question.counted else float(choice)


def process_measures(events: Sequence[Event], scenario: Scenario) -> Row:
    """Compute one episode's measures of talk, as `ABOUT` defines them; empty if nobody could talk.

    If the scenario's measures have no `asked`, only topics are measured.

    Args:
        events: The episode's events.
        scenario: The scenario that was played.

    Raises:
        ValueError: There is no `start` event.
    """
    if not start_of(events)["settings"].get("talk", True):
        return {}
    topic_shares = topic_measures(events, scenario)
    measures = scenario.measured
    if measures.asked is None:
        return topic_shares
    questions = measures.asked(start_of(events))
    rounds = _talk_rounds(events, measures, questions)
    numbers = any(isinstance(question, Number) for question in questions.values())
    informed = information_measures(_informed_choices(rounds), numbers=numbers)
    return {**announcement_measures(rounds), **informed, **topic_shares}


def announcement_measures(rounds: Sequence[TalkRound]) -> Row:
    """Compute the measures of announcements and agreements."""
    choices = sum(len(talk_round.chosen) for talk_round in rounds)
    kept = sum(len(talk_round.keepers) for talk_round in rounds)
    broken = sum(len(talk_round.breakers) for talk_round in rounds)
    agreements = [talk_round.agreement for talk_round in rounds if talk_round.agreement is not None]
    agreed = sum(len(members) for _, members in agreements)
    return {
        "announced_share": (kept + broken) / choices if choices else None,
        "announcements_kept": kept,
        "announcements_broken": broken,
        "kept_share": kept / (kept + broken) if kept + broken else None,
        "agreements": len(agreements),
        "agreed_share": agreed / choices if choices else None,
    }


def _informed_choices(rounds: Sequence[TalkRound]) -> list[InformedChoice]:
    """Return the choices of players who heard others announce something, with their own previous choices."""
    informed = []
    previous: dict[str, float] = {}
    for talk_round in rounds:
        informed += [
            InformedChoice(previous.get(agent), chosen, talk_round.heard[agent])
            for agent, chosen in talk_round.chosen.items()
            if agent in talk_round.heard
        ]
        previous |= talk_round.chosen
    return informed


ABOUT: Mapping[str, str] = {
    "announced_share": "Share of choices that the player had announced something for in the same round, 0 to 1.",
    "announcements_kept": "Choices that were what the player had announced last, a count from 0.",
    "announcements_broken": "Choices that were something else than the player had announced last, a count from 0.",
    "kept_share": "Announcements that were kept as a share of all, 0 to 1; missing without any.",
    "agreements": "Rounds in which two players or more announced the same and chose it, a count from 0.",
    "agreed_share": "Choices that were part of such an agreement as a share of all choices, 0 to 1.",
    **information.ABOUT,
    **topics.ABOUT,
}
"""What the measures mean, by name, with unit and range."""

_COUNTED = ("announcements_kept", "announcements_broken", "agreements", "heard_choices")
RANGES: Mapping[str, Range] = {
    name: COUNT if name in _COUNTED else Range(low=-1.0, high=1.0) if name.endswith("_change") else SHARE
    for name in ABOUT
}

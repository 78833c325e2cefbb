"""What players said and did: announcements kept and broken, agreements, information used, topics; all by rules.

`process_measures` is the one way to all of them; they are columns of every episode in which players could talk. In each
round a player's announcement is the number or option that the last of its messages names which the readers of model
answers can read without doubt. It is kept if that player's choice of the round is the same. An agreement is that
several players announce the same and choose it. Words that stand for numbers, hints and threats are not seen.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from llm_coop_envs.core.records import start_of
from llm_coop_envs.core.scenario import Event, Measures, Row, Scenario
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.measures import information, topics
from llm_coop_envs.measures.information import InformedChoice, information_measures, same
from llm_coop_envs.measures.topics import topic_measures


@dataclass(frozen=True, kw_only=True)
class TalkRound:
    """A round in which somebody chose.

    Attributes:
        number: of the round.
        announced: what players announced, a number or an option's choice, by name.
        chosen: what players chose, likewise; flagged choices are left out.
        heard: what players heard others announce, as it was delivered, one value per message.
    """

    number: int
    announced: Mapping[str, float]
    chosen: Mapping[str, float]
    heard: Mapping[str, tuple[float, ...]]

    @functools.cached_property
    def kept(self) -> list[str]:
        """Who chose what it had announced."""
        return [who for who, what in self.announced.items() if who in self.chosen and same(what, self.chosen[who])]

    @functools.cached_property
    def broken(self) -> list[str]:
        """Who announced one thing and chose another."""
        return [who for who, what in self.announced.items() if who in self.chosen and not same(what, self.chosen[who])]

    @functools.cached_property
    def agreement(self) -> tuple[float, list[str]] | None:
        """What most players announced and chose, and who; `None` if no two players did."""
        kept = self.kept
        if len(kept) < 2:
            return None
        groups = [(what, [one for one in kept if same(self.announced[one], what)]) for what in self._values(kept)]
        what, who = max(groups, key=lambda group: len(group[1]), default=(0.0, []))
        return (what, who) if len(who) > 1 else None

    def _values(self, who: Sequence[str]) -> list[float]:
        return [value for value, _ in Counter(self.announced[one] for one in who).most_common()]


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
    return _talk_rounds(events, measures.asked(start_of(events)))


def _talk_rounds(events: Sequence[Event], asked: Mapping[str, Number | Options]) -> list[TalkRound]:
    # A question's hash is that of all its fields, and all players are asked the same one, or few.
    readers = {key: _reader(one) for key, one in {id(one): one for one in asked.values()}.items()}
    said: dict[int, dict[str, float]] = {}
    reached: dict[int, list[_Reached]] = {}
    chosen: dict[int, dict[str, float]] = {}
    for event in events:
        who: str = event.get("agent", "")
        if who not in asked:  # nobody's, or the regulator's
            continue
        if event["type"] == "message":
            read = readers[id(asked[who])]
            value = read(event["text"])
            if value is not None:
                said.setdefault(event["round"], {})[who] = value
            delivered = event.get("delivered", event)
            if delivered is not event:
                value = None if delivered["text"] is None else read(delivered["text"])
            if value is not None:
                reached.setdefault(delivered.get("round", event["round"]), []).append((who, value, event["hearers"]))
        elif event["type"] == "choice" and event["phase"] in ("act", asked[who].name):
            names = chosen.setdefault(event["round"], {})
            if not event["flags"]:
                names[who] = value_of(event["choice"], asked[who])
    return [
        TalkRound(
            number=number, announced=said.get(number, {}), chosen=names, heard=_heard(names, reached.get(number, ()))
        )
        for number, names in chosen.items()
    ]


_Reached: TypeAlias = tuple[str, float, Collection[str] | None]  # speaker, value, hearers (`None`: everyone)


def _heard(choosers: Iterable[str], reached: Sequence[_Reached]) -> dict[str, tuple[float, ...]]:
    """What each chooser heard of what reached whom."""
    if any(hearers is not None for _, _, hearers in reached):
        found = {
            who: tuple([value for by, value, hearers in reached if by != who and (hearers is None or who in hearers)])
            for who in choosers
        }
    else:  # all but one's own, of which there are few
        values, own = [value for _, value, _ in reached], _places(by for by, _, _ in reached)
        found = {who: _without(values, own.get(who, ())) for who in choosers}
    return {who: values for who, values in found.items() if values}


def _places(names: Iterable[str]) -> dict[str, list[int]]:
    """Where each name stands."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return found


def _without(values: list[float], places: Sequence[int]) -> tuple[float, ...]:
    kept = values.copy()
    for place in reversed(places):
        del kept[place]
    return tuple(kept)


def announced(text: str, question: Number | Options) -> float | None:
    """The number or option (as its choice) that a message names without doubt; `None` if none."""
    return _reader(question)(text)


@functools.lru_cache(maxsize=16)
def _reader(question: Number | Options) -> Callable[[str], float | None]:
    """What reads announcements of answers to a question, and remembers them."""

    @functools.lru_cache(maxsize=4096)
    def read(text: str) -> float | None:
        # Costs a tenth of a second, which runs in which nobody talks need not spend.
        from llm_coop_envs.policies.llm.playing.answer_readers import reader_for

        reading = reader_for(question, str).read(text, truncated=False, refused=False)
        return float(reading.value) if reading.ok and reading.value is not None else None

    return read


def value_of(choice: float, question: Number | Options) -> float:
    """The number that a choice stands for; an option's choice as it is."""
    if isinstance(question, Options):
        return float(choice)
    if question.listed:
        return dict(question.listed)[int(choice)]
    return choice + question.low if question.counted else float(choice)


def process_measures(events: Sequence[Event], scenario: Scenario) -> Row:
    """One episode's measures, as `ABOUT` defines them; none if nobody could talk.

    Where the scenario does not say what is asked in it (`Measures.asked`), only topics are measured.

    Args:
        events: the episode's.
        scenario: what was played.

    Raises:
        ValueError: there is no `start` event.
    """
    if not start_of(events)["settings"].get("talk", True):
        return {}
    told = topic_measures(events, scenario)
    measures = scenario.measured
    if measures.asked is None:
        return told
    asked = measures.asked(start_of(events))
    rounds = _talk_rounds(events, asked)
    numbers = any(isinstance(one, Number) for one in asked.values())
    return {**announcement_measures(rounds), **information_measures(_informed(rounds), numbers=numbers), **told}


def announcement_measures(rounds: Sequence[TalkRound]) -> Row:
    """Those of `process_measures` that are about announcements and agreements."""
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


def _informed(rounds: Sequence[TalkRound]) -> list[InformedChoice]:
    """The choices of those who heard others announce something, with their own choices before."""
    found = []
    before: dict[str, float] = {}
    for one in rounds:
        found += [
            InformedChoice(before.get(who), chosen, one.heard[who])
            for who, chosen in one.chosen.items()
            if who in one.heard
        ]
        before |= one.chosen
    return found


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

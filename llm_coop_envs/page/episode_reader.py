"""One pass over an episode's events: its agents, what was said, a frame for each round, rounds worth a look."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llm_coop_envs.core.scenario import Event, Scenario
from llm_coop_envs.errors import RunError, SceneError
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.measures.process import talk_rounds, value_of
from llm_coop_envs.mechanisms.measures import mechanism_moments
from llm_coop_envs.mechanisms.settings import MECHANISM_PHASES
from llm_coop_envs.render.scenes.from_events import tracker
from llm_coop_envs.render.scenes.on_page import face_of, frame
from llm_coop_envs.render.scenes.tracking import Tracker
from llm_coop_envs.util.fastjson import dumps

_TALK_READ = 2_000
"""Up to how many players announcements are read, which takes the readers of model answers."""
_NAMED = 5_000
"""Up to how many players the page is given all names at once."""


class EpisodeReader:
    """Reads an episode once, from its start, in as many portions as there are.

    Args:
        scenario: the episode's.
        header: the header of its file, or nothing.
        large: whether events are too many to be kept.

    Attributes:
        frames: one for the beginning, one after each round, and one for what came after.
        blind: whether its drawing is the same without its players' choices, which can then be left out.
    """

    def __init__(self, scenario: Scenario, header: Mapping[str, Any], *, large: bool) -> None:
        self._scenario = scenario
        self._header = header
        self._large = large
        self._face = face_of(scenario.page)
        self._following: Tracker[Any] | None = None
        self._fresh = False
        self._index: dict[str, int] = {}
        self._start: Event = {}
        self._kept: list[Event] = []
        self._choices: list[list[float]] = []
        self._flags: Counter[int] = Counter()
        self._spoken: Counter[int] = Counter()
        self._phase: str | None = None
        self._end: Event | None = None
        self._questions: Mapping[str, Number | Options] = {}
        self.frames: list[dict[str, Any]] = []
        self.blind = False

    def messages(self, events: Iterable[Event]) -> Iterator[tuple[Any, ...]]:
        """Follow the next events, and give what was said: round, step, speaker, text, hearers.

        Raises:
            RunError: they are no episode, or damaged.
        """
        try:
            for event in events:
                kind = event["type"]
                if self._following is None:
                    self._begin(event)
                elif kind == "message":
                    index, heard = self._index, event["hearers"]
                    speaker = index[event["agent"]]
                    self._spoken[speaker] += 1
                    self._keep(event)
                    hearers = None if heard is None else json.dumps([index[name] for name in heard])
                    yield event["round"], event["step"], speaker, _sound(event["text"]), hearers
                else:
                    self._follow(kind, event)
        except (KeyError, TypeError, ValueError, IndexError, SceneError) as error:
            raise RunError(f"an event of the record is damaged ({type(error).__name__}: {error})") from error

    def moving(self) -> list[dict[str, Any]]:
        """A frame of the moment, if it is the middle of a round; of large episodes, if there is no other.

        Raises:
            RunError: nothing was read.
        """
        if self._following is None:
            raise RunError("the record holds no events")
        unfinished = (self._fresh and self._end is None and not self._large) or not self.frames
        return [frame(self._face, self._following.scene())] if unfinished else []

    def agents(self) -> Iterator[tuple[Any, ...]]:
        """The agents' rows: number, name, policy, persona, choices, the last choice, messages, flagged choices."""
        policies, personas = self._header.get("policies", {}), self._personas
        for number, name in enumerate(self._names):
            chosen = self._choices[number]
            yield (
                *(number, name, policies.get(name), personas.get(name), dumps(chosen).decode()),
                *(chosen[-1] if chosen else None, self._spoken[number], self._flags[number]),
            )

    def summarise(self) -> dict[str, Any]:
        """The rest."""
        policies, personas = self._top_policies_and_personas
        few = len(self._index) <= _NAMED
        options = next((question for question in self._questions.values() if isinstance(question, Options)), None)
        return {
            "scenario": self._scenario.title,
            "kind": self._face.kind,
            "still": self._still,
            "players": len(self._index),
            "names": self._names if few else [],
            "rounds": [shot["round"] for shot in (*self.frames, *self.moving())],
            "sees": self._face.sight is not None and few,
            "moments": self._moments(),
            "policies": policies,
            "personas": personas,
            "options": None if options is None else {str(option.choice): option.name for option in options.options},
            "talk": sum(self._spoken.values()),
            "hearers": self._face.hearers(self._start),
            "end": None if self._end is None else self._end["reason"],
        }

    @functools.cached_property
    def _top_policies_and_personas(self) -> tuple[dict[str, int], dict[str, int]]:
        policies, personas = self._header.get("policies", {}).values(), filter(None, self._personas.values())
        return dict(Counter(policies).most_common(200)), dict(Counter(personas).most_common(200))

    @property
    def _names(self) -> list[str]:
        names: list[str] = [*self._start["agents"], *self._extra]
        return names

    @functools.cached_property
    def _personas(self) -> Mapping[str, str]:
        """Those of the scenario, those that language models were given, and what a population drew."""
        personas: dict[str, str] = {}
        columns = list(self._header.get("people", {}).values())
        if columns:
            drawn = zip(*([column["values"][code] for code in column["codes"]] for column in columns), strict=True)
            personas = {
                name: ", ".join(map(str, codes)) for name, codes in zip(self._start["agents"], drawn, strict=False)
            }
        if self._face.personas is not None:
            for name, persona in zip(self._start["agents"], self._face.personas(self._start), strict=True):
                personas[name] = ", ".join(filter(None, (persona, personas.get(name))))
        for answers in self._header.get("answers", []):
            for seat, persona in answers.get("personas", {}).items():
                personas[seat] = ", ".join(filter(None, (persona, personas.get(seat))))
        return personas

    def _begin(self, event: Event) -> None:
        following = self._following = tracker(event, table=self._scenario.page is None)
        self._start = event
        self._keep(event)
        # A regulator is none of the players, and has a story all the same.
        policies = self._header.get("policies", {})
        self._extra = [name for name in policies if name not in following.index]
        self._index = following.index
        if self._extra:
            self._index = {name: number for number, name in enumerate(self._names)}
        self._choices = [[] for _ in self._index]
        self.blind = type(following)._choose is Tracker._choose
        questions_of = self._scenario.measured.asked
        if questions_of is not None and len(self._index) <= _NAMED:
            self._questions = questions_of(event)
        scene = following.scene()
        self._still = self._face.still(scene)
        if self._face.kind == "room":  # where everybody stands before anything happens
            self.frames.append(frame(self._face, scene))

    def _follow(self, kind: str, event: Event) -> None:
        following = self._following
        assert following is not None
        self._fresh = True
        if kind == "choice":
            self._choose(self._index[event["agent"]], event)
            if self._large and self.blind:
                return
        self._keep(event)
        following.add(event)
        if kind == "round":
            self.frames.append(frame(self._face, following.scene()))
            self._fresh = False
        elif kind == "end":
            self._end = event

    def _choose(self, agent_index: int, event: Event) -> None:
        if event["flags"]:
            self._flags[agent_index] += 1
        # What a scenario's question is about is what is chosen first in a round.
        if event["phase"] not in MECHANISM_PHASES:
            self._phase = self._phase or event["phase"]
        choice = event["choice"]
        if event["phase"] == self._phase and isinstance(choice, int | float):
            question = self._questions.get(event["agent"]) if self._questions else None
            self._choices[agent_index].append(choice if question is None else value_of(choice, question))

    def _keep(self, event: Event) -> None:
        if not self._large or event["type"] not in ("message", "choice"):
            self._kept.append(event)

    def _moments(self) -> list[dict[str, Any]]:
        moments = mechanism_moments(self._kept)
        if self._end is not None and self._face.moments is not None:
            moments += self._face.moments(self._kept)
        if self._questions and self._spoken and not self._large and len(self._index) <= _TALK_READ:
            for talk_round in talk_rounds(self._kept, self._scenario.measured):
                if talk_round.agreement is not None:
                    value, speakers = talk_round.agreement
                    moments.append((talk_round.number, f"first agreement: {len(speakers)} said and chose {value:g}"))
                    break
        return [{"round": number, "text": text} for number, text in sorted(moments, key=lambda moment: moment[0])]


def _sound(text: str) -> str:
    """A text that SQLite takes: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode()

"""One pass over an episode's events: its agents, what was said, a frame for each round, rounds worth a look."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llm_coop_envs.benchmarks.measures.process import talk_rounds, value_of
from llm_coop_envs.core.question import Number, Options
from llm_coop_envs.core.scenario import Event, Scenario
from llm_coop_envs.errors import RunError, SceneError
from llm_coop_envs.render.scenes.from_events import tracker
from llm_coop_envs.render.scenes.on_page import face_of, frame
from llm_coop_envs.render.scenes.tracking import Tracker

_TALK_READ = 2_000
"""Up to how many players announcements are read, which takes the readers of model answers."""
_NAMED = 5_000
"""Up to how many players the page is given all names at once."""


class EpisodeReader:
    """Reads an episode once, from its start; what it found is there after `messages` was used up.

    Args:
        scenario: the episode's.
        header: the header of its file, or nothing.
        large: whether events are too many to be kept.

    Attributes:
        frames: one for the beginning, one after each round, and one for what came after.
    """

    def __init__(self, scenario: Scenario, header: Mapping[str, Any], *, large: bool) -> None:
        self._scenario = scenario
        self._header = header
        self._large = large
        self._face = face_of(scenario.page)
        self._start: Event = {}
        self._kept: list[Event] = []
        self._choices: list[list[float]] = []
        self._flags: Counter[int] = Counter()
        self._said: Counter[int] = Counter()
        self._phase: str | None = None
        self._end: Event | None = None
        self._questions: Mapping[str, Number | Options] = {}
        self.frames: list[dict[str, Any]] = []

    def messages(self, events: Iterable[Event]) -> Iterator[tuple[Any, ...]]:
        """Follow the events, and give what was said: round, step, speaker, text, hearers.

        Raises:
            RunError: they are no episode, or damaged.
        """
        following: Tracker[Any] | None = None
        index: dict[str, int] = {}
        fresh = False
        try:
            for event in events:
                kind = event["type"]
                if following is None:
                    following, index = self._begin(event)
                    self._still = self._face.still(following.scene())
                    if self._face.kind == "room":  # where everybody stands before anything happens
                        self._keep(following)
                    continue
                if not self._large or kind not in ("message", "choice"):
                    self._kept.append(event)
                if kind == "message":
                    speaker = index[event["agent"]]
                    self._said[speaker] += 1
                    heard = event["hearers"]
                    hearers = None if heard is None else json.dumps([index[name] for name in heard])
                    yield event["round"], event["step"], speaker, _sound(event["text"]), hearers
                    continue  # scenes here hold no talk
                if kind == "choice" and event["agent"] in index:
                    self._choose(index[event["agent"]], event)
                if kind not in ("choice", "message") or event["agent"] in following.index:
                    following.add(event)
                fresh = True
                if kind == "round":
                    self._keep(following)
                    fresh = False
                elif kind == "end":
                    self._end = event
        except (KeyError, TypeError, ValueError, IndexError, SceneError) as error:
            raise RunError(f"an event of the record is damaged ({type(error).__name__}: {error})") from error
        if following is None:
            raise RunError("the record holds no events")
        if (fresh and self._end is None) or not self.frames:
            self._keep(following)

    def agents(self) -> Iterator[tuple[Any, ...]]:
        """The agents' rows: number, name, policy, persona, choices, the last choice, messages, flagged choices."""
        policies, personas = self._header.get("policies", {}), self._personas
        for number, name in enumerate(self._names):
            chosen = self._choices[number]
            yield (
                *(number, name, policies.get(name), personas.get(name), json.dumps(chosen)),
                *(chosen[-1] if chosen else None, self._said[number], self._flags[number]),
            )

    def about(self) -> dict[str, Any]:
        """The rest."""
        policies = Counter(self._header.get("policies", {}).values())
        personas = Counter(filter(None, self._personas.values()))
        few = len(self._names) <= _NAMED
        options = next((one for one in self._questions.values() if isinstance(one, Options)), None)
        return {
            "scenario": self._scenario.title,
            "kind": self._face.kind,
            "still": self._still,
            "players": len(self._names),
            "names": self._names if few else [],
            "rounds": [one["round"] for one in self.frames],
            "sees": self._face.sight is not None and few,
            "moments": self._moments(),
            "policies": dict(policies.most_common(200)),
            "personas": dict(personas.most_common(200)),
            "options": None if options is None else {str(one.choice): one.name for one in options.options},
            "talk": sum(self._said.values()),
            "end": None if self._end is None else self._end["reason"],
        }

    @property
    def _names(self) -> list[str]:
        found: list[str] = [*self._start["agents"], *self._extra]
        return found

    @functools.cached_property
    def _personas(self) -> Mapping[str, str]:
        """Those of the scenario, those that language models were given, and what a population drew."""
        found: dict[str, str] = {}
        columns = list(self._header.get("people", {}).values())
        if columns:
            drawn = zip(*([one["values"][code] for code in one["codes"]] for one in columns), strict=True)
            found = {name: ", ".join(map(str, one)) for name, one in zip(self._start["agents"], drawn, strict=False)}
        if self._face.personas is not None:
            for name, persona in zip(self._start["agents"], self._face.personas(self._start), strict=True):
                found[name] = ", ".join(filter(None, (persona, found.get(name))))
        for one in self._header.get("answers", []):
            for seat, persona in one.get("personas", {}).items():
                found[seat] = ", ".join(filter(None, (persona, found.get(seat))))
        return found

    def _begin(self, event: Event) -> tuple[Tracker[Any], dict[str, int]]:
        following = tracker(event)
        self._start = event
        self._kept.append(event)
        # A regulator speaks and chooses, and is none of the players.
        policies = self._header.get("policies", {})
        self._extra = [name for name in policies if name not in following.index]
        index = {name: number for number, name in enumerate(self._names)}
        self._choices = [[] for _ in index]
        asked = self._scenario.measured.asked
        if asked is not None and len(index) <= _NAMED:
            self._questions = asked(event)
        return following, index

    def _choose(self, who: int, event: Event) -> None:
        self._flags[who] += bool(event["flags"])
        # What a scenario's question is about is what is chosen first in a round.
        self._phase = self._phase or event["phase"]
        choice = event["choice"]
        if event["phase"] == self._phase and isinstance(choice, int | float):
            question = self._questions.get(event["agent"])
            self._choices[who].append(choice if question is None else value_of(choice, question))

    def _keep(self, following: Tracker[Any]) -> None:
        self.frames.append(frame(self._face, following.scene()))

    def _moments(self) -> list[dict[str, Any]]:
        found: list[tuple[int, str]] = []
        if self._end is not None and self._face.moments is not None:
            found += self._face.moments(self._kept)
        if self._questions and self._said and not self._large and len(self._names) <= _TALK_READ:
            for one in talk_rounds(self._kept, self._scenario.measured):
                if one.agreement is not None:
                    what, who = one.agreement
                    found.append((one.number, f"first agreement: {len(who)} said and chose {what:g}"))
                    break
        return [{"round": number, "text": text} for number, text in sorted(found)]


def _sound(text: str) -> str:
    """A text that SQLite takes: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode()

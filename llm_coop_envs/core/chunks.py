"""Many players asked in one step: chunks of those on turn, and arrays of what they submit.

A policy that has `answer` is given all its players on turn at once, and answers with arrays. Every other policy is
asked by requests, a block of players at a time; no step holds the observations of everybody in a crowd.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.actions import Indices
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.policy import PolicyLike, Request, Seating, answers_of

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

#: For how many players observations are made at a time.
BLOCK = 1024


@dataclass(eq=False, slots=True)
class Submissions:
    """What some players submit in one step, by their places among those who are asked.

    Attributes:
        choices: a number for each place, as `ArrayEnv.advance` takes them; unused in talk phases.
        missing: the places of those who submitted nothing usable.
        messages: what is said, by place, in talk phases.
    """

    choices: NDArray[Any]
    missing: list[int] = field(default_factory=list)
    messages: dict[int, object] = field(default_factory=dict)

    def put(self, who: Indices, given: Submissions) -> None:
        """Add what players submit, at their own places.

        Raises:
            RuntimeError: there are not as many answers as players.
        """
        if len(given.choices) != len(who):
            raise RuntimeError(f"{len(given.choices)} answers for {len(who)} players; each must be answered, in order")
        self.choices[who] = given.choices
        self.missing += who[given.missing].tolist()
        if given.messages:
            names = who.tolist()
            self.messages.update((names[place], text) for place, text in given.messages.items())


class SubmissionReader:
    """Reads players' actions, as `step` takes them, into arrays.

    Args:
        env: the environment.
        blank: takes them, and holds nothing yet.
    """

    def __init__(self, env: ScenarioEnv, blank: Submissions) -> None:
        self._number = env.read_choice
        self._talking = env.phase == TALK
        self.submissions = blank
        self._missing, self._messages = self.submissions.missing, self.submissions.messages

    def take(self, place: int, agent: str, action: object) -> None:
        """Read a player's action; anything but a mapping is none."""
        if not isinstance(action, Mapping):
            self._missing.append(place)
        elif self._talking:
            self._messages[place] = action.get("message")
        elif "choice" in action:
            self.submissions.choices[place] = self._number(action["choice"], agent)
        else:
            self._missing.append(place)


@dataclass(frozen=True, eq=False, slots=True)
class Chunk:
    """Players on turn that one policy decides for.

    Attributes:
        env: the environment; nothing of it may be changed.
        who: their indices, ascending.
        rows: everybody's numeric observations, where somebody wants them.
    """

    env: ScenarioEnv
    who: Indices
    rows: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """How many they are."""
        return len(self.who)

    def blocks(self) -> Iterator[Chunk]:
        """The same players in parts; the last one may be smaller."""
        for start in range(0, len(self.who), BLOCK):
            yield Chunk(self.env, self.who[start : start + BLOCK], self.rows)

    def requests(self) -> list[Request]:
        """What these players see; without `rows` only what those need who decide from slots."""
        observations, infos = self.env.look(who=self.who, slots_only=self.rows is None, rows=self.rows)
        return [Request(agent, observation, infos[agent]) for agent, observation in observations.items()]

    def stream(self) -> Iterator[tuple[int, Request]]:
        """Each player's place in the chunk, and what it sees: made when it is asked for, a block at a time."""
        place = 0
        for block in self.blocks():
            for request in block.requests():
                yield place, request
                place += 1

    def blank(self) -> Submissions:
        """Nothing from anybody yet."""
        return Submissions(self.env.blank_choices()[self.who])

    def reading(self) -> SubmissionReader:
        """Takes the actions of these players, by their places in the chunk."""
        return SubmissionReader(self.env, self.blank())


@runtime_checkable
class AnswersChunks(Protocol):
    """A policy that can decide for many players at once, on arrays.

    With an attribute `on_arrays` that is true it is always asked so, for however few.
    """

    async def answer(self, chunk: Chunk) -> Submissions:
        """What these players submit."""
        ...


async def ask_table(table: Seating, env: ScenarioEnv) -> Submissions:
    """What everybody on turn submits, whoever decides for them; the places are the players' indices."""
    who = env.on_turn
    if len(who) <= BLOCK and not any(map(_on_arrays, table.policies)):
        return env.read(await table.act(*env.look(on_turn=True, slots_only=table.slots_only)))
    parts = table.split(who)
    blind = all(getattr(policy, "slots_only", False) or _on_arrays(policy) for policy, _ in parts)
    rows = None if blind else env.features()
    asked = [_ask(policy, Chunk(env, mine, rows)) for policy, mine in parts]
    given = await asyncio.gather(*asked) if table.waits else [await one for one in asked]
    together = Submissions(env.blank_choices())
    for (_, mine), one in zip(parts, given, strict=True):
        together.put(mine, one)
    return together


async def _ask(policy: PolicyLike, chunk: Chunk) -> Submissions:
    if isinstance(policy, AnswersChunks):
        return await policy.answer(chunk)
    reading = chunk.reading()
    place = 0
    for block in chunk.blocks():
        requests = block.requests()
        for request, action in zip(requests, await answers_of(policy, requests), strict=True):
            reading.take(place, request.agent, action)
            place += 1
    return reading.submissions


def _on_arrays(policy: PolicyLike) -> bool:
    return bool(getattr(policy, "on_arrays", False))

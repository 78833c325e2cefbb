"""Many players asked in one step, in chunks of those on turn.

A policy that has `answer` is given all its players on turn at once, and answers with arrays. Every other policy is
asked by requests, a block of players at a time; no step holds the observations of everybody in a crowd.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.policy import PolicyLike, Request, Seating, answers_of
from llm_coop_envs.core.submissions import SubmissionReader, Submissions
from llm_coop_envs.interface.actions import Indices

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

#: For how many players observations are made at a time.
BLOCK = 1024


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
        row = 0
        for block in self.blocks():
            for request in block.requests():
                yield row, request
                row += 1

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
    players = env.on_turn
    if len(players) <= BLOCK and not any(map(_on_arrays, table.policies)):
        return env.read(await table.act(*env.look(on_turn=True, slots_only=table.slots_only)))
    parts = table.split(players)
    blind = all(getattr(policy, "slots_only", False) or _on_arrays(policy) for policy, _ in parts)
    rows = None if blind else env.features()
    pending = [_ask(policy, Chunk(env, mine, rows)) for policy, mine in parts]
    submissions = await asyncio.gather(*pending) if table.waits else [await one for one in pending]
    together = Submissions(env.blank_choices())
    for (_, mine), submission in zip(parts, submissions, strict=True):
        together.merge(mine, submission)
    return together


async def _ask(policy: PolicyLike, chunk: Chunk) -> Submissions:
    if isinstance(policy, AnswersChunks):
        return await policy.answer(chunk)
    reading = chunk.reading()
    row = 0
    for block in chunk.blocks():
        requests = block.requests()
        for request, action in zip(requests, await answers_of(policy, requests), strict=True):
            reading.take(row, request.agent, action)
            row += 1
    return reading.submissions


def _on_arrays(policy: PolicyLike) -> bool:
    return bool(getattr(policy, "on_arrays", False))

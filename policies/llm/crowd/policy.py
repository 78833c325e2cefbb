"""A crowd as a policy: many players whose answers are texts, waited for in one process or in several."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import multiprocessing
import pickle
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.chunks import Chunk
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.submissions import Submissions
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.question import Question
from llm_coop_envs.policies.llm.chat import RunStopped
from llm_coop_envs.policies.llm.crowd.part import AskMany, AskOne, answers, submit
from llm_coop_envs.policies.llm.journal import CrowdQuestion, TextJournal
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts, CallCounts
from llm_coop_envs.policies.population.population import People, Person
from llm_coop_envs.util.draws import CROWD, Key, key_of, seeds_of
from llm_coop_envs.util.ray_cluster import connected, same_version
from llm_coop_envs.version import __version__

# With a hundred thousand waits in memory Python's collector would look through all of them again and again.
_GARBAGE_THRESHOLDS = (50_000, 50, 100)


class TextCrowd(Policy):
    """Players who are known by number alone, and answer with texts.

    Nothing exists for a player who is not asked: no task, no observation. Every answer is in the journal before it is
    used, and none is asked for twice, in whatever session; a player's seed hangs on the episode, the step and the
    player, not on how the crowd is parted.

    Args:
        source: answers; `async (question, player, seed) -> text` (`AskOne`), or with `many`
            `async (question, players, seeds) -> texts` (`AskMany`). A function of a module where there are several
            processes.
        many: whether the source takes many players at a time.
        people: who the players are: player k is person k. The source is then given, as a fourth argument, the player's
            `Person`, or with `many` these people, as arrays. Who is not asked stays a row of numbers.
        folder: the run's folder, where answers are kept; by default they are not.
        hands: how many calls are waited for at the same time, in all processes together.
        processes: in how many processes calls are waited for; each keeps its own part of the journal. 1 is this one.
        ray: a Ray cluster whose actors are these processes (see `util.ray_cluster`); by default they run here. Ray
            starts an actor again that dies, and what it was asked is asked again, what its journal holds apart.

    Attributes:
        counters: what became of the answers, in the running episode.

    Raises:
        SettingsError: a number is not possible, or the source cannot be given to another process.
        JournalError: the journal cannot be written or is damaged.
    """

    on_arrays = True
    slots_only = True

    def __init__(
        self,
        source: Callable[..., Awaitable[Any]],
        *,
        many: bool = False,
        people: People | None = None,
        folder: Path | None = None,
        hands: int = 100_000,
        processes: int = 1,
        ray: str | None = None,
    ) -> None:
        for name, value in (("hands", hands), ("processes", processes)):
            if type(value) is not int or value < 1:
                raise SettingsError(name, value, "must be a whole number, 1 or more")
        self.counters = AnswerCounts()
        self._hands = hands
        self._people = people
        if people is not None:
            source = functools.partial(_ask_people if many else _ask_person, source, people)
        self._pools: list[Executor] = []
        with contextlib.ExitStack() as opened:
            if processes == 1 and ray is None:
                self._here = _Part(source, many, folder, "main")
            else:
                try:
                    pickle.dumps(source)
                except (pickle.PicklingError, AttributeError, TypeError) as error:
                    raise SettingsError("source", source, f"cannot be given to other processes ({error})") from error
                context = multiprocessing.get_context("spawn")
                cluster = None if ray is None else opened.enter_context(connected(ray, processes, "ray='{}'"))
                for k in range(processes):
                    given = source, many, folder, f"part-{k}"
                    pool: Executor = (
                        ProcessPoolExecutor(1, mp_context=context, initializer=_is_given, initargs=given)
                        if cluster is None
                        else _RayActor(cluster, given)
                    )
                    opened.enter_context(pool)
                    pool.submit(_start)  # starts it; what goes wrong is raised when it is asked for answers
                    opened.callback(_end, pool)
                    self._pools.append(pool)
            self._opened = opened.pop_all()

    def __enter__(self) -> TextCrowd:
        """Close it afterwards."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Give up the journal and end the processes."""
        if not self._pools:
            asyncio.run(self._here.close())
        self._opened.close()

    def begin(self, episode: Episode) -> None:
        """A new episode: counters start at 0.

        Raises:
            SettingsError: there are not as many people as players.
        """
        super().begin(episode)
        self.counters = AnswerCounts()
        self._told = ""
        if self._people is not None:
            players = len(episode.agents) - (episode.settings.regulator is not None)
            if self._people.size != players:
                raise SettingsError("people", self._people.size, f"there are {players} players")
            self._told = self._people.digest
        self._key: Key = key_of(episode.rng)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Requests are not what it is asked with.

        Raises:
            SettingsError: always.
        """
        why = "decides on arrays; play it with `play` or `play_async`, in seats of its own"
        raise SettingsError("policy", type(self).__name__, why)

    async def answer(self, chunk: Chunk) -> Submissions:
        """What these players submit.

        Raises:
            LlmCoopError: an answer is no text, or there is not one for each.
            NotInJournal: the journal answers another question.
        """
        env, together = chunk.env, chunk.blank()
        questions: dict[Question, list[int]] = defaultdict(list)
        last, places = None, []
        for place, index in enumerate(chunk.who.tolist()):
            question = env.question_for(index)
            if question is not last:
                last, places = question, questions[question]
            places.append(place)
        for question, mine in questions.items():
            asked = CrowdQuestion(self.episode.name, env.cycles, env.round, question, self._told)
            spots = np.asarray(mine, dtype=np.intp)
            who = chunk.who[spots]
            together.merge(spots, await self._ask(asked, who, together.choices[spots]))
        return together

    async def _ask(self, asked: CrowdQuestion, who: Indices, blank: NDArray[Any]) -> Submissions:
        counts = self.counters.of(asked.question.name)
        seeds = seeds_of(self._key, who, CROWD, asked.step)
        if not self._pools:
            return await self._here.play(asked, who, seeds, blank, self._hands, counts)
        loop, hands = asyncio.get_running_loop(), -(-self._hands // len(self._pools))
        parts = np.array_split(np.arange(len(who)), len(self._pools))  # of different sizes where it does not come out
        waiting = [
            loop.run_in_executor(pool, _play, asked, who[part], seeds[part], blank[part], hands)
            for pool, part in zip(self._pools, parts, strict=True)
        ]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        together = Submissions(blank)
        for part, outcome in zip(parts, outcomes, strict=True):
            if isinstance(outcome, BrokenProcessPool):
                raise RunStopped(
                    "a process of the crowd has died (killed, or out of memory); every answer on the disk is kept, "
                    "run again to continue"
                ) from outcome
            if isinstance(outcome, BaseException):
                raise getattr(outcome, "cause", None) or outcome  # Ray wraps it into one that tells a traceback
            given, counted = outcome
            counts.add(counted)
            together.merge(part, given)
        return together


async def _ask_person(
    source: Callable[..., Awaitable[str]], people: People, asked: CrowdQuestion, player: int, seed: int
) -> str:
    return await source(asked, player, seed, Person(people, player))


async def _ask_people(
    source: Callable[..., Awaitable[Sequence[str]]],
    people: People,
    asked: CrowdQuestion,
    players: Indices,
    seeds: NDArray[np.uint64],
) -> Sequence[str]:
    return await source(asked, players, seeds, people)


class _Part:
    """What one process does for a crowd."""

    def __init__(self, source: AskOne | AskMany, many: bool, folder: Path | None, name: str) -> None:
        self._source, self._many = source, many
        self._journal = None if folder is None else TextJournal(folder, name)

    async def play(
        self,
        asked: CrowdQuestion,
        who: Indices,
        seeds: NDArray[np.uint64],
        blank: NDArray[Any],
        hands: int,
        counts: CallCounts,
    ) -> Submissions:
        texts = await answers(self._source, self._journal, asked, who, seeds, many=self._many, hands=hands)
        return submit(texts, asked.question, blank, counts)

    async def close(self) -> None:
        if self._journal is not None:
            await self._journal.close()


class _RayActor(Executor):
    """An actor of Ray that does what it is given; started again, with what it was begun with, whenever it dies."""

    def __init__(self, ray: Any, given: tuple[Any, ...]) -> None:
        self._ray = ray
        self._actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Begun).remote(__version__, given)

    def submit(self, do: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        found: Future[Any] = self._actor.do.remote(do, given, named).future()
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:  # it does one thing after the other
            with contextlib.suppress(RunError):  # it was of another version
                self._ray.get(self._actor.do.remote(len, ((),), {}))
        self._ray.kill(self._actor)


class _Begun:
    """The life of that actor."""

    def __init__(self, version: str, given: tuple[Any, ...]) -> None:
        self._version = version
        _is_given(*given)

    def do(self, do: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        same_version(self._version)
        return do(*given, **named)


_given: tuple[AskOne | AskMany, bool, Path | None, str]  # to this process, if it is one of several


def _is_given(*given: Any) -> None:
    global _given
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    _given = given


@functools.cache
def _own_part() -> _Part:
    return _Part(*_given)


def _start() -> None:
    _own_part()


def _end(pool: Executor) -> None:
    with contextlib.suppress(BrokenProcessPool):
        pool.submit(_close)


def _close() -> None:
    asyncio.run(_own_part().close())


def _play(
    asked: CrowdQuestion, who: Indices, seeds: NDArray[np.uint64], blank: NDArray[Any], hands: int
) -> tuple[Submissions, CallCounts]:
    counts = CallCounts()
    own = np.array(blank)  # what Ray hands on cannot be written
    return asyncio.run(_own_part().play(asked, who, seeds, own, hands, counts)), counts

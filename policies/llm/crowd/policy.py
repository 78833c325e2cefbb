"""A crowd as a policy: many players whose answers are texts, awaited in one process or in several."""

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
from llm_coop_envs.policies.llm.crowd.part import AnswerCollection, AskMany, AskOne, read_answers
from llm_coop_envs.policies.llm.journal import CrowdQuestion, TextJournal
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.validity import commonest_reason, why_invalid_so_far
from llm_coop_envs.policies.population.population import People, Person
from llm_coop_envs.util.draws import CROWD, Key, key_of, seeds_of
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.quoting import to_stderr
from llm_coop_envs.util.ray_cluster import connected, same_version
from llm_coop_envs.version import __version__

# With a hundred thousand pending calls in memory, Python's collector would look through all of them again and again.
_GARBAGE_THRESHOLDS = (50_000, 50, 100)
# So many answers to a question are looked at while the others are still awaited.
_LOOKED_AT = 100


class TextCrowd(Policy):
    """Players who are known by number alone, and answer with texts.

    Nothing exists for a player who is not asked: no task, no observation. Every answer is in the journal before it is
    used, and none is asked for twice, in whatever session. A player's seed depends on the episode, the step and the
    player, not on the number of processes.

    Args:
        source: answers; `async (question, player, seed) -> text` (`AskOne`), or with `many`
            `async (question, players, seeds) -> texts` (`AskMany`). A function of a module where there are several
            processes.
        many: whether the source takes many players at a time.
        people: who the players are: player k is person k. The source is then given, as a fourth argument, the player's
            `Person`, or with `many` these people, as arrays. Nobody else becomes more than a row of numbers.
        folder: the run's folder, where answers are kept; by default they are not.
        hands: how many calls are awaited at the same time, in all processes together.
        processes: in how many processes calls are awaited; each keeps its own part of the journal. 1 is this one.
        ray: a Ray cluster whose actors are these processes (see `util.ray_cluster`); by default they run here. Ray
            restarts an actor that dies. It is then asked the same again, except for what its journal holds.
        notify: receives a sentence as soon as too many answers to a question cannot be read, once for each kind of
            question; standard error by default. `counters` with `shares_line` says how many, for a progress line.
        stop_invalid: whether the crowd then stops, by raising `RunStopped`; what came is kept.

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
        folder: StrPath | None = None,
        hands: int = 100_000,
        processes: int = 1,
        ray: str | None = None,
        notify: Callable[[str], None] = to_stderr,
        stop_invalid: bool = False,
    ) -> None:
        for name, value in (("hands", hands), ("processes", processes)):
            if type(value) is not int or value < 1:
                raise SettingsError(name, value, "must be a whole number, 1 or more")
        self.counters = AnswerCounts()
        self._watch = _Watch(notify, stop_invalid)
        self._concurrency = hands
        self._people = people
        if people is not None:
            source = functools.partial(_ask_people if many else _ask_person, source, people)
        self._pools: list[Executor] = []
        with contextlib.ExitStack() as opened:
            if processes == 1 and ray is None:
                self._here = _Part(source, many, folder, "main", self._watch)
            else:
                try:
                    pickle.dumps(source)
                except (pickle.PicklingError, AttributeError, TypeError) as error:
                    raise SettingsError("source", source, f"cannot be given to other processes ({error})") from error
                context = multiprocessing.get_context("spawn")
                cluster = None if ray is None else opened.enter_context(connected(ray, processes, "ray='{}'"))
                for k in range(processes):
                    arguments = source, many, folder, f"part-{k}", stop_invalid
                    pool: Executor = (
                        ProcessPoolExecutor(1, mp_context=context, initializer=_initialize_process, initargs=arguments)
                        if cluster is None
                        else _RayActor(cluster, arguments)
                    )
                    opened.enter_context(pool)
                    pool.submit(_start_part)  # starts the process; its errors are raised when it is asked for answers
                    opened.callback(_end_part, pool)
                    self._pools.append(pool)
            self._opened = opened.pop_all()

    def __enter__(self) -> TextCrowd:
        """Return the crowd; it is closed when the block ends."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the journal and end the processes."""
        self.close()

    def close(self) -> None:
        """Close the journal and end the processes."""
        if not self._pools:
            asyncio.run(self._here.close())
        self._opened.close()

    def begin(self, episode: Episode) -> None:
        """Begin an episode: counters start at 0.

        Raises:
            SettingsError: there are not as many people as players.
        """
        super().begin(episode)
        self.counters = AnswerCounts()
        self._people_digest = ""
        if self._people is not None:
            players = len(episode.agents) - (episode.settings.regulator is not None)
            if self._people.size != players:
                raise SettingsError("people", self._people.size, f"there are {players} players")
            self._people_digest = self._people.digest
        self._key: Key = key_of(episode.rng)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Refuse requests: a crowd decides on arrays, see `answer`.

        Raises:
            SettingsError: always.
        """
        reason = "decides on arrays; play it with `play` or `play_async`, in seats of its own"
        raise SettingsError("policy", type(self).__name__, reason)

    async def answer(self, chunk: Chunk) -> Submissions:
        """Ask for these players' answers and read them.

        Raises:
            LlmCoopError: an answer is no text, or there is not one for each.
            NotInJournal: the journal answers another question.
        """
        env, submissions = chunk.env, chunk.blank()
        positions_by_question: dict[Question, list[int]] = defaultdict(list)
        previous, positions = None, []
        for position, index in enumerate(chunk.who.tolist()):
            question = env.question_for(index)
            if question is not previous:  # mostly the same as before: saves its hash
                previous, positions = question, positions_by_question[question]
            positions.append(position)
        for question, positions in positions_by_question.items():
            crowd_question = CrowdQuestion(self.episode.name, env.cycles, env.round, question, self._people_digest)
            chunk_positions = np.asarray(positions, dtype=np.intp)
            players = chunk.who[chunk_positions]
            answers = await self._ask(crowd_question, players, submissions.choices[chunk_positions])
            submissions.merge(chunk_positions, answers)
        return submissions

    async def _ask(self, question: CrowdQuestion, players: Indices, blank: NDArray[Any]) -> Submissions:
        seeds = seeds_of(self._key, players, CROWD, question.step)
        if not self._pools:
            return await self._here.play(question, players, seeds, blank, self._concurrency, self.counters)
        loop = asyncio.get_running_loop()
        concurrency = -(-self._concurrency // len(self._pools))
        parts = np.array_split(np.arange(len(players)), len(self._pools))  # sizes may differ by one
        calls = [
            loop.run_in_executor(pool, _play_part, question, players[part], seeds[part], blank[part], concurrency)
            for pool, part in zip(self._pools, parts, strict=True)
        ]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        submissions = Submissions(blank)
        for part, outcome in zip(parts, outcomes, strict=True):
            if isinstance(outcome, BrokenProcessPool):
                raise RunStopped(
                    "a process of the crowd has died (killed, or out of memory); every answer on the disk is kept, "
                    "run again to continue"
                ) from outcome
            if isinstance(outcome, BaseException):
                # Ray wraps an error into one whose text is a traceback.
                raise getattr(outcome, "cause", None) or outcome
            part_submissions, part_counts = outcome
            self.counters.add(part_counts)
            submissions.merge(part, part_submissions)
        self._watch.look(self.counters)
        return submissions


async def _ask_person(
    source: Callable[..., Awaitable[str]], people: People, question: CrowdQuestion, player: int, seed: int
) -> str:
    return await source(question, player, seed, Person(people, player))


async def _ask_people(
    source: Callable[..., Awaitable[Sequence[str]]],
    people: People,
    question: CrowdQuestion,
    players: Indices,
    seeds: NDArray[np.uint64],
) -> Sequence[str]:
    return await source(question, players, seeds, people)


class _Watch:
    """Says as soon as enough answers have come that they cannot be read, and stops the crowd if that is wanted."""

    def __init__(self, notify: Callable[[str], None], stops: bool) -> None:
        self._notify, self._stops = notify, stops
        self._warned: set[str] = set()

    def look(self, counts: AnswerCounts) -> None:
        """Look at what became of the answers so far.

        Raises:
            RunStopped: too many could not be read, and the crowd is to stop then.
        """
        for call, one in counts.by_call.items():
            why = why_invalid_so_far(AnswerCounts({call: one}))
            if not why:
                continue
            sentence = f"The crowd's answers ('{call}') become invalid: {why}{commonest_reason(counts)[1]}"
            if self._stops:
                raise RunStopped(f"{sentence}. Stopped (stop_invalid); every answer so far is kept")
            if call not in self._warned:
                self._warned.add(call)
                self._notify(f"{sentence}. What helps: another prompt of the source, or answers held to a form")


class _Part:
    """One process's part of a crowd: asks, journals and reads."""

    def __init__(self, source: AskOne | AskMany, many: bool, folder: StrPath | None, name: str, watch: _Watch) -> None:
        self._source, self._many, self._watch = source, many, watch
        self._journal = None if folder is None else TextJournal(folder, name)

    async def play(
        self,
        question: CrowdQuestion,
        players: Indices,
        seeds: NDArray[np.uint64],
        blank: NDArray[Any],
        concurrency: int,
        counts: AnswerCounts,
    ) -> Submissions:
        first = AnswerCounts()

        def look(texts: Sequence[str]) -> None:
            """Read the first answers at once: all are read when the last one has come."""
            texts = texts[: max(0, _LOOKED_AT - first.total().asked)]
            if texts:
                read_answers(texts, question.question, blank[: len(texts)].copy(), first)
                self._watch.look(first)

        collection = AnswerCollection(self._journal, question, players, seeds, look)
        ask: Any = collection.ask_many if self._many else collection.ask_one_by_one
        submissions = read_answers(await ask(self._source, concurrency), question.question, blank, counts)
        self._watch.look(counts)
        return submissions

    async def close(self) -> None:
        if self._journal is not None:
            await self._journal.close()


class _RayActor(Executor):
    """An actor of Ray that runs functions; Ray restarts it, with the same arguments, whenever it dies."""

    def __init__(self, ray: Any, arguments: tuple[Any, ...]) -> None:
        self._ray = ray
        actor_class = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_ActorBody)
        self._actor = actor_class.remote(__version__, arguments)

    def submit(self, do: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = self._actor.do.remote(do, arguments, keywords).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:  # it runs one function after the other
            with contextlib.suppress(RunError):  # the actor runs another version
                self._ray.get(self._actor.do.remote(len, ((),), {}))
        self._ray.kill(self._actor)


class _ActorBody:
    """What runs in that actor's process."""

    def __init__(self, version: str, arguments: tuple[Any, ...]) -> None:
        self._version = version
        _initialize_process(*arguments)

    def do(self, do: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        same_version(self._version)
        return do(*arguments, **keywords)


# The arguments of this process's part, if it is one of several.
_part_arguments: tuple[AskOne | AskMany, bool, Path | None, str, bool]


def _initialize_process(*arguments: Any) -> None:
    global _part_arguments
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    _part_arguments = arguments


@functools.cache
def _own_part() -> _Part:
    source, many, folder, name, stops = _part_arguments
    return _Part(source, many, folder, name, _Watch(lambda _: None, stops))  # whoever began this process warns


def _start_part() -> None:
    _own_part()


def _end_part(pool: Executor) -> None:
    with contextlib.suppress(BrokenProcessPool):
        pool.submit(_close_part)


def _close_part() -> None:
    asyncio.run(_own_part().close())


def _play_part(
    question: CrowdQuestion, players: Indices, seeds: NDArray[np.uint64], blank: NDArray[Any], concurrency: int
) -> tuple[Submissions, AnswerCounts]:
    counts = AnswerCounts()
    own = np.array(blank)  # arrays from Ray are read-only
    return asyncio.run(_own_part().play(question, players, seeds, own, concurrency, counts)), counts

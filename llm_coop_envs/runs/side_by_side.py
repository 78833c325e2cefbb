"""Play episodes side by side in one event loop: each waits for answers in turn, so many are played at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.policies import Policy
from llm_coop_envs.policies.llm.chat import BudgetReached, ClaimLost, RunStopped
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.runs.claims import Claims
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.remaining import TimeLeft, format_clock
from llm_coop_envs.runs.steering import Steering
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.runs.workers import Finished, Task, record_failure

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.asking.live import OpenChat
    from llm_coop_envs.policies.llm.clients import Endpoint

TICK_SECONDS = 0.5

# With the usual thresholds (700, 10, 10) the collector would search hundreds of conversations again and again, and find
# next to no cycles.
GARBAGE_THRESHOLDS = (50_000, 50, 100)


@contextlib.contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Let Python's garbage collector run less often as long as the block lasts."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class SideBySide:
    """Plays episodes side by side.

    Args:
        run: the run.
        tasks: the episodes, in the order in which they are begun.
        access: how models are asked.
        endpoints: the endpoints of the models.
        watcher: is told of the questions.
        done: called with each episode that was played and written.
        claims: claims the episodes that this part of the run plays, if there are several parts.
        steering: the orders of users, and the status that they see.

    Attributes:
        why: the reason why it stopped before all episodes were played, if it did.
    """

    def __init__(
        self,
        run: Run,
        tasks: Sequence[Task],
        access: ModelAccess,
        endpoints: list[Endpoint],
        watcher: Watcher,
        done: Callable[[Finished], None],
        claims: Claims | None = None,
        steering: Steering | None = None,
    ) -> None:
        self._run = run
        self._waiting = deque(tasks)
        self._access = access
        self._endpoints = endpoints
        self._watcher = watcher
        self._done = done
        self._claims = claims
        self._steering = steering or Steering()
        self.why: str | None = None
        self._chat: OpenChat | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[Any] | None = None
        self._stop = asyncio.Event()
        self._leaving = False
        self._time = TimeLeft(len(tasks))
        self._deciding: dict[Task, Sequence[Policy]] = {}
        self._playing: dict[Task, asyncio.Future[None]] = {}
        self._lost: set[Task] = set()

    def record(self) -> dict[str, Any]:
        """The session's record of its questions: counters, notes on the journal, the reason why it stopped."""
        chat = self._chat
        if chat is None:
            return {"why": self.why}
        return {"counters": chat.counters.plain(), "notes": list(chat.notes), "why": self.why}

    def interrupt(self, times: int) -> None:
        """Stop: the first time once the questions under way are answered, the second time at once.

        May be called from a signal handler.
        """
        if self._loop is None:
            self._stop.set()
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        if times == 2:
            self._loop.call_soon_threadsafe(self._break_off)

    async def play(self) -> None:
        """Play until all episodes are played, the budget is reached, or `interrupt` is called.

        Raises:
            LlmCoopError: an episode failed, or the models cannot be asked; every answer so far is kept.
            asyncio.CancelledError: the second `interrupt`.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        if self._claims is not None:
            # Told in the thread that sends heartbeats, or when a question is about to be sent.
            self._claims.on_loss = functools.partial(loop.call_soon_threadsafe, self._cancel_lost)
            self._claims.take_over(self._waiting, self._watcher.say)
        opened = self._access.open(self._run.folder, self._endpoints, self._watcher.say, self._number_of_claim)
        with rare_garbage_collection():
            await self._play(opened)

    async def _play(self, opened: AbstractAsyncContextManager[OpenChat]) -> None:
        assert self._loop is not None, "set by play"
        async with opened as chat:
            self._chat = chat
            for note in chat.notes:
                self._watcher.say(note)
            ticking = self._loop.create_task(self._tick(chat))
            try:
                await self._play_all(chat)
            except BudgetReached as reached:
                self.why = str(reached)
            finally:
                ticking.cancel()
                self._leaving = True
        counters = chat.counters
        self._watcher.show_questions(counters.line())
        if counters.filtered:
            share = "every one" if counters.filtered == counters.answers else f"{counters.filtered}"
            self._watcher.say(
                f"The provider's content filter rejected {share} of {counters.answers} questions; fallbacks stand in "
                "for their answers (llm-coop transcript shows them)"
            )

    async def _play_all(self, chat: OpenChat) -> None:
        """Play all episodes, at most `at_once` at the same time."""
        loop = asyncio.get_running_loop()
        count = min(self._access.at_once, len(self._waiting))
        workers = {loop.create_task(self._play_waiting(chat)) for _ in range(count)}
        stopped = loop.create_task(self._stop.wait())
        try:
            busy = set(workers)
            while busy and not stopped.done():
                over, _ = await asyncio.wait({*busy, stopped}, return_when=asyncio.FIRST_COMPLETED)
                busy -= over
                if any(worker.exception() is not None for worker in over & workers):
                    break
        finally:
            for task in (*workers, stopped):
                task.cancel()
            ended = await asyncio.gather(*workers, return_exceptions=True)
        errors = [error for error in ended if isinstance(error, Exception)]
        if errors:
            # A stop is raised in all episodes; the error that caused it comes first.
            raise min(errors, key=lambda error: (isinstance(error, RunStopped), isinstance(error, BudgetReached)))

    async def _play_waiting(self, chat: OpenChat) -> None:
        """Play waiting episodes, one after the other."""
        while self._waiting:
            while self._steering.paused:
                await asyncio.sleep(TICK_SECONDS)
            if not self._waiting:
                return
            task = self._waiting.popleft()
            if self._claims is None:
                await self._play_one(chat, task)
            elif self._claims.claim(task):
                await self._play_claimed(chat, task, self._claims)

    async def _play_claimed(self, chat: OpenChat, task: Task, claims: Claims) -> None:
        """Play an episode for as long as it is this part's; what another part took over is left to it."""
        playing = self._playing[task] = asyncio.ensure_future(self._play_one(chat, task))
        try:
            await playing
        except ClaimLost:
            pass
        except asyncio.CancelledError:
            if task not in self._lost:
                raise
        finally:
            del self._playing[task]
            self._deciding.pop(task, None)
            claims.release(task)
        if task in self._lost:
            name = f"{self._run.conditions[task[0]].name}/{task[1]}"
            self._watcher.say(f"{name} was taken over by another part, because this one showed no sign of life")

    def _cancel_lost(self, task: Task) -> None:
        """Break off an episode that another part has taken over."""
        self._lost.add(task)
        if task in self._playing:
            self._playing[task].cancel()

    def _number_of_claim(self, episode: str) -> int:
        """The number of this part's claim on an episode; see `Claims.number`."""
        return 0 if self._claims is None else self._claims.number(episode)

    async def _play_one(self, chat: OpenChat, task: Task) -> None:
        run = self._run
        condition, seed = run.conditions[task[0]], task[1]
        started = time.perf_counter()
        try:
            with self._steering.follow_episode(f"{condition.name}/{seed}") as tell:

                def follow(env: ScenarioEnv) -> None:
                    self._time.follow(task, env)
                    tell(env)

                played = await play_episode(
                    *(run.manifest["seed"], condition, seed, chat),
                    on_step=follow,
                    on_begin=lambda policies: self._deciding.update({task: policies}),
                )
            self._number_of_claim(f"{condition.name}/{seed}")
            files = run.write_events(condition.name, seed, played)
        except LlmCoopError:
            raise
        except Exception as error:
            raise record_failure(run, condition, seed, error) from error
        self._time.shares[task] = 1.0
        self._deciding.pop(task, None)
        self._done(Finished(task=task, seconds=time.perf_counter() - started, files=files))

    async def _tick(self, chat: OpenChat) -> None:
        steering = self._steering
        while True:
            chat.steer(paused=steering.paused, most=steering.limit)
            # Answers from the journal come at once, and say nothing about the time of other answers.
            seconds_left = self._time.seconds_left(time.monotonic(), begun=chat.counters.calls > 0)
            suffix = (
                ", paused"
                if steering.paused
                else ""
                if seconds_left is None
                else f", at most about {format_clock(seconds_left)} left"
            )
            self._watcher.show_questions(chat.counters.line() + suffix)
            shares = {
                f"{self._run.conditions[at].name}/{seed}": share
                for (at, seed), share in self._time.shares.items()
                if share < 1
            }
            progress = {
                "counters": chat.counters.plain(),
                "left": seconds_left,
                "shares": shares,
                "rates": self._rates(),
            }
            steering.progress = {**steering.progress, **progress}
            await asyncio.sleep(TICK_SECONDS)

    def _rates(self) -> dict[str, int]:
        """Counts of questions, repairs and fallbacks in the episodes that are being played."""
        policies = [policy for seated in self._deciding.values() for policy in seated]
        counts = [policy.counters.total() for policy in policies if isinstance(policy, LLMPolicy)]
        return {
            name: sum(getattr(counters, name) for counters in counts) for name in ("asked", "repaired", "fallbacks")
        }

    def _break_off(self) -> None:
        """Cancel the run once its episodes are left: only then does a cancellation reach the questions under way."""
        assert self._loop is not None
        assert self._main is not None
        if self._leaving:
            self._main.cancel()
        else:
            self._loop.call_later(0.01, self._break_off)

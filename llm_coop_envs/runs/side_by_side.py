"""Play episodes side by side in one event loop: each waits for answers in turn, so many are played at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.policies.llm.chat import BudgetReached, ClaimLost, RunStopped
from llm_coop_envs.runs.claims import Claims
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.failures import Failed, Failures, Task, is_own, record_failure
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.notify import FALLBACKS, PAUSED, RESUMED
from llm_coop_envs.runs.steering import Steering
from llm_coop_envs.runs.time_left import TimeLeft
from llm_coop_envs.runs.unread import UnreadAnswers
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.runs.workers import Finished

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.asking.live import OpenChat
    from llm_coop_envs.policies.llm.clients import Endpoint

TICK_SECONDS = 0.5
TOLD_PAUSE_SECONDS = 60.0  # how long a pause lasts until somebody who is away is told
LOOK_SECONDS = 0.02  # between two looks whether another episode can be begun

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
        done: called with each episode that was played and written, or failed.
        failures: says which episodes may be begun.
        claims: claims the episodes that this part of the run plays, if there are several parts.
        steering: the orders of users, and the status that they see.

    Attributes:
        why: the reason why it stopped before all episodes were played, if it did.
        unread: which answers could not be read.
        ended: the conditions that were ended because of them.
    """

    def __init__(
        self,
        run: Run,
        tasks: Sequence[Task],
        access: ModelAccess,
        endpoints: list[Endpoint],
        watcher: Watcher,
        done: Callable[[Finished | Failed], None],
        failures: Failures,
        claims: Claims | None = None,
        steering: Steering | None = None,
    ) -> None:
        self._run = run
        self._waiting = deque(tasks)
        self._access = access
        self._endpoints = endpoints
        self._watcher = watcher
        self._done = done
        self._failures = failures
        self._claims = claims
        self._steering = steering or Steering()
        self.why: str | None = None
        self._chat: OpenChat | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[Any] | None = None
        self._stop = asyncio.Event()
        self._leaving = False
        self._time = TimeLeft(tasks)
        self._playing: dict[Task, asyncio.Task[None]] = {}
        self.unread = UnreadAnswers()
        self._warned: set[str] = set()
        self._paused_since = math.inf
        self._is_pause_told = False
        self.ended: set[str] = set()
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
            LlmCoopError: the models cannot be asked; every answer so far is kept.
            asyncio.CancelledError: the second `interrupt`.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        if self._claims is not None:
            # Told in the thread that sends heartbeats, or when a question is about to be sent.
            def cancel_soon(task: Task) -> None:
                loop.call_soon_threadsafe(self._cancel_lost, task)

            self._claims.on_loss = cancel_soon
            self._claims.take_over(self._waiting, self._watcher.say)
        opened = self._access.open(self._run.folder, self._endpoints, self._watcher.say, self._number_of_claim)
        with rare_garbage_collection():
            await self._play(opened)

    async def _play(self, opened: AbstractAsyncContextManager[OpenChat]) -> None:
        assert self._loop is not None, "set by play"
        async with opened as chat:
            self._chat = chat
            self._steering.ceiling = chat.most_each or None
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
        self._watch_readings()
        self._watcher.show_questions(self._line(chat))
        if counters.filtered:
            share = "every one" if counters.filtered == counters.answers else f"{counters.filtered}"
            self._watcher.say(
                f"The provider's content filter rejected {share} of {counters.answers} questions; fallbacks stand in "
                "for their answers (llm-coop transcript shows them)"
            )

    async def _play_all(self, chat: OpenChat) -> None:
        """Play all episodes, as many at the same time as fill the requests in flight.

        More would share the same requests: a run that its budget or a night ends would then hold many episodes that
        are half played and none that is whole.
        """
        stopped = asyncio.create_task(self._stop.wait())
        results: list[BaseException | None] = []
        try:
            while not stopped.done() and not any(isinstance(result, Exception) for result in results):
                self._begin_some(chat)
                if not self._playing and not self._waiting:
                    break
                await asyncio.wait(
                    {*self._playing.values(), stopped}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for task in [task for task, playing in self._playing.items() if playing.done()]:
                    playing = self._playing.pop(task)
                    results.append(None if playing.cancelled() else playing.exception())
        finally:
            stopped.cancel()
            for playing in self._playing.values():
                playing.cancel()
            results += await asyncio.gather(*self._playing.values(), return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:
            # A stop is raised in all episodes; the error that caused it comes first.
            raise min(errors, key=lambda error: (isinstance(error, RunStopped), isinstance(error, BudgetReached)))

    def _begin_some(self, chat: OpenChat) -> None:
        """Begin the next episodes if requests are free: at most as many as are played, since one may ask many at once.

        In a replay nothing is in flight, and all that is allowed is begun.
        """
        counters, is_replay = chat.counters, not chat.most
        most = self._access.at_once if is_replay else min(self._access.at_once, max(1, counters.limit))
        free = most if is_replay else max(0, counters.limit - counters.in_flight - counters.waiting)
        count = min(most - len(self._playing), free, max(1, len(self._playing)))
        if self._steering.paused:
            return
        for _ in range(count if self._playing else 1):
            task = self._next_task()
            if task is None:
                return
            self._playing[task] = asyncio.create_task(self._play_and_release(chat, task))

    def _next_task(self) -> Task | None:
        """The next waiting episode, claimed; `None` if there is none."""
        while self._waiting:
            task = self._waiting.popleft()
            if self._failures.may_begin(task) and (self._claims is None or self._claims.claim(task)):
                return task
        return None

    async def _play_and_release(self, chat: OpenChat, task: Task) -> None:
        """Play an episode for as long as it is this part's; what another part took over is left to it."""
        if self._claims is None:
            await self._play_one(chat, task)
            return
        try:
            await self._play_one(chat, task)
        except ClaimLost:
            self._lost.add(task)
        except asyncio.CancelledError:
            if task not in self._lost:
                raise
        finally:
            self.unread.end(task)
            self._claims.release(task)
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
                    on_begin=lambda policies: self.unread.begin(task, condition.name, policies),
                )
            self._number_of_claim(f"{condition.name}/{seed}")
            files = run.write_events(condition.name, seed, played, replaces=self._claims is None)
        except FileExistsError:
            raise ClaimLost(f"{condition.name}/{seed}: another part has written it meanwhile") from None
        except Exception as error:
            if not is_own(error):
                raise
            ended: Finished | Failed = Failed(task=task, sentence=record_failure(run, condition, seed, error))
            self._time.drop(task)
        else:
            seconds = time.perf_counter() - started
            ended = Finished(task=task, seconds=seconds, files=files)
            self._time.finish(task, seconds)
        self.unread.end(task)
        self._done(ended)

    async def _tick(self, chat: OpenChat) -> None:
        steering = self._steering
        while True:
            chat.steer(paused=steering.paused, most=steering.limit)
            playing = list(self._playing)
            # Answers from the journal come at once, and say nothing about the time of other answers.
            self._time.look(time.monotonic(), playing, running=chat.counters.calls > 0 and not steering.paused)
            remaining = self._time.remaining(playing)
            suffix = ", paused" if steering.paused else "" if remaining is None else f", {remaining}"
            self._watch_readings()
            self._watch_pauses(chat.counters.paused)
            self._watcher.show_questions(self._line(chat) + suffix)
            shares = {
                f"{self._run.conditions[at].name}/{seed}": share
                for (at, seed), share in self._time.shares.items()
                if share < 1
            }
            progress = {
                "counters": chat.counters.plain(),
                "left": None if remaining is None else remaining.seconds,
                "left_between": None if remaining is None else [remaining.low, remaining.high],
                "shares": shares,
                "rates": self.unread.rates(),
            }
            steering.progress = {**steering.progress, **progress}
            await asyncio.sleep(TICK_SECONDS)

    def _line(self, chat: OpenChat) -> str:
        """The line on questions, their cost, and the shares of answers that could not be read at once."""
        return ", ".join(filter(None, (chat.counters.line(), self.unread.line())))

    def _watch_readings(self) -> None:
        """Warn of each condition whose answers cannot be read, once; end it if that is wanted."""
        for condition, why in self.unread.invalid(without=self._warned).items():
            self._warned.add(condition)
            warning = self.unread.warn(condition, why)
            self._watcher.say(warning)
            self._watcher.notice(FALLBACKS, warning)
            if self._access.stop_invalid:
                self._end_condition(condition)

    def _watch_pauses(self, reason: str | None) -> None:
        """Tell of a pause that nobody ordered once it has lasted, and of its end: most are over in seconds."""
        now = time.monotonic()
        if self._steering.paused or not reason:
            if self._is_pause_told:
                self._watcher.notice(RESUMED, "going on")
            self._paused_since, self._is_pause_told = math.inf, False
            return
        self._paused_since = min(self._paused_since, now)
        if not self._is_pause_told and now - self._paused_since > TOLD_PAUSE_SECONDS:
            self._is_pause_told = True
            self._watcher.notice(PAUSED, f"paused: {reason}")

    def _end_condition(self, condition: str) -> None:
        """Play no more of a condition; answers under way are kept."""
        self.ended.add(condition)
        names = [one.name for one in self._run.conditions]
        self._waiting = deque(task for task in self._waiting if names[task[0]] != condition)
        for task, playing in self._playing.items():
            if names[task[0]] == condition:
                playing.cancel()
        self._watcher.say(f"Condition '{condition}' is ended (--stop-invalid)")

    def _break_off(self) -> None:
        """Cancel the run once its episodes are left: only then does a cancellation reach the questions under way."""
        assert self._loop is not None
        assert self._main is not None
        if self._leaving:
            self._main.cancel()
        else:
            self._loop.call_later(0.01, self._break_off)

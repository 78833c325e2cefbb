"""One attempt at one question: reserve its cost, journal the attempt, ask the model, journal the answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.budget import Ledger, Reserved
from llm_coop_envs.policies.llm.asking.dispatch import FOR_THE_POLICY
from llm_coop_envs.policies.llm.asking.prices import Price, most_prompt_tokens
from llm_coop_envs.policies.llm.asking.queue import Clock, Job
from llm_coop_envs.policies.llm.asking.settling import settle
from llm_coop_envs.policies.llm.chat import ChatClient, ChatError, ChatReply, ChatRequest, ClaimLost, RunStopped
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.policies.llm.clients.wire import FORMS
from llm_coop_envs.policies.llm.journal import Journal
from llm_coop_envs.policies.llm.totals import RequestCounters

Result = TypeVar("Result")


@dataclass(kw_only=True)
class Attempts:
    """Makes attempts at one address; called by the dispatcher.

    Attributes:
        endpoint: the address.
        client: asks it.
        price: the model's price; with `None` no money is counted.
        journal: records attempts and answers.
        ledger: the run's budget.
        counters: the chat's live counters.
        clock: time.
        notify: receives a sentence on anything odd about the provider's counts, once for each kind.
        stopped: returns why nothing may be sent any more, or `None`.
        unpaused: is not set while the run is paused.
        claim: returns the number of this process's claim on an episode; raises `ClaimLost` if it lost it.
        on_answer: receives each answer as soon as it arrives, before it is journalled.
    """

    endpoint: Endpoint
    client: ChatClient
    price: Price | None
    journal: Journal
    ledger: Ledger
    counters: RequestCounters
    clock: Clock
    notify: Callable[[str], None]
    stopped: Callable[[], RunStopped | None]
    unpaused: asyncio.Event
    claim: Callable[[str], int] = lambda _: 0
    on_answer: Callable[[ChatReply], None] = lambda _: None
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Make the time limit."""
        self._limit = TimeLimit(self.clock, self.endpoint.timeout, self.endpoint.where)

    async def __call__(self, job: Job) -> ChatReply:
        """Make one attempt at a job.

        Raises:
            ChatError: the attempt failed.
            RunStopped: the budget is used up, or the run has been stopped.
            ClaimLost: another part of the run has taken the episode over; nothing was sent.
        """
        prompt, answer = self._upper_bounds(job.request)
        usd = self.price.upper_bound(prompt, answer) if self.price is not None else 0.0
        reserved = await self.ledger.reserve(prompt + answer, usd)
        while not self.unpaused.is_set():  # paused while it waited for the budget
            self.ledger.cancel(reserved, sent=False)
            # Nothing of it is under way any more, so the run counts as paused and not as pausing.
            self.counters.in_flight -= 1
            self.counters.waiting += 1
            try:
                await self.unpaused.wait()
            finally:
                self.counters.waiting -= 1
                self.counters.in_flight += 1
            reserved = await self.ledger.reserve(prompt + answer, usd)
        try:
            stopped = self.stopped()
            if stopped is not None:
                raise stopped
            self.claim(job.key.episode)
            await self.journal.record_attempt(job.key, job.digest, tokens=reserved.tokens, usd=reserved.usd)
        except BaseException:
            self.ledger.cancel(reserved, sent=False)
            raise
        return await self._ask(job, reserved)

    async def _ask(self, job: Job, reserved: Reserved) -> ChatReply:
        """Ask the model, settle the reservation and journal the outcome."""
        try:
            # Just before sending once more: this process may have been stopped while it wrote.
            claim = self.claim(job.key.episode)
        except ClaimLost as lost:
            self.ledger.cancel(reserved, sent=True)
            error = ChatError(str(lost), kind="lost")
            await self.journal.record_failure(job.key, job.request, job.digest, error, final=False)
            raise
        self.counters.calls += 1
        # The same for all attempts at this question in this run only; the hash reveals nothing about the run.
        name = f"{self.journal.run} {job.key} {job.digest}".encode("utf-8", "replace")
        try:
            reply = await self._limit.wait_for(
                self.client.complete(job.request, idempotency_key=hashlib.sha256(name).hexdigest()[:32])
            )
        except ChatError as error:
            self._release(reserved, error)
            is_final = error.kind in FOR_THE_POLICY
            await self.journal.record_failure(job.key, job.request, job.digest, error, final=is_final)
            raise
        except BaseException:
            self.ledger.forfeit(reserved)
            raise
        self.on_answer(reply)
        form = self._form(job.request)
        settled = settle(job.request, reply, self.price, self.endpoint.where)
        for kind, sentence in settled.doubts.items():
            self._warn(kind, sentence)
        self.ledger.settle(reserved, tokens=settled.tokens, usd=settled.usd)
        await self.journal.record_answer(
            *(job.key, job.request, job.digest, settled.reply),
            tokens=settled.tokens,
            usd=settled.usd,
            form=form,
            claim=claim,
        )
        self.counters.add(settled.reply)
        self.counters.spent = self.ledger.spent
        return settled.reply

    def _release(self, reserved: Reserved, error: ChatError) -> None:
        """Close the reservation of a failed attempt; it counts in full if the provider may bill it."""
        if error.maybe_paid:
            self.ledger.forfeit(reserved)
            self.counters.maybe_paid += 1
            self.counters.maybe_cost += reserved.usd
            self.counters.spent = self.ledger.spent
        else:
            self.ledger.cancel(reserved, sent=True)

    def _form(self, request: ChatRequest) -> str | None:
        """The form (`wire.FORMS`) in which a constrained answer was accepted; the user is told if it is a loose one."""
        form: str | None = getattr(self.client, "form", None) if request.json_schema is not None else None
        if form is not None and self.counters.forms.get(request.model) != form:
            self.counters.forms[request.model] = form
            if FORMS.index(form) > FORMS.index("json_schema"):
                self.notify(f"{self.endpoint.where} does not take JSON schemas; answers are constrained by: {form}")
        return form

    def _upper_bounds(self, request: ChatRequest) -> tuple[int, int]:
        """Upper bounds on the tokens of question and answer."""
        answer = request.max_tokens
        if answer is None and self.price is not None:
            answer = self.price.longest_answer
        budget = self.ledger.budget
        if answer is None and (budget.usd is not None or budget.tokens is not None):
            raise SettingsError(
                "max_tokens", None, "a budget in dollars or tokens can only be kept if the longest answer is limited"
            )
        return most_prompt_tokens(request), answer or 0

    def _warn(self, kind: str, sentence: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            self.notify(sentence)


class TimeLimit:
    """One time limit for many attempts, with a single timer that is set for the oldest attempt.

    `asyncio.timeout` does not exist in Python 3.10, and `asyncio.wait_for` makes a task for every call.
    """

    def __init__(self, clock: Clock, seconds: float, where: str) -> None:
        self._clock = clock
        self._seconds = seconds
        self._where = where
        self._due: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._is_set = False

    async def wait_for(self, attempt: Awaitable[Result]) -> Result:
        """Wait for an attempt.

        Raises:
            ChatError: of kind `"timeout"`: its time is over.
        """
        task = asyncio.current_task()
        assert task is not None, "attempts are made by the dispatcher's workers"
        self._due[task] = self._clock.time() + self._seconds
        if not self._is_set:
            self._set(self._seconds)
        try:
            return await attempt
        except asyncio.CancelledError:
            if task in self._due:
                raise
            uncancel = getattr(task, "uncancel", None)
            if uncancel is not None:  # Python 3.11 counts cancellations
                uncancel()
            raise ChatError(
                f"{self._where} did not answer within {self._seconds:g} s", kind="timeout", maybe_paid=True
            ) from None
        finally:
            self._due.pop(task, None)

    def _set(self, seconds: float) -> None:
        self._is_set = True
        self._clock.call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._is_set = False
        now = self._clock.time()
        for task, due in list(self._due.items()):
            if due > now:
                self._set(due - now)
                break
            del self._due[task]
            task.cancel()

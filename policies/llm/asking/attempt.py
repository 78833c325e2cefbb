"""One attempt at one question: money set aside, the attempt written down, the model asked, the answer written down."""

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
from llm_coop_envs.policies.llm.chat import ChatClient, ChatError, ChatReply, ChatRequest, RunStopped
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.policies.llm.clients.wire import FORMS
from llm_coop_envs.policies.llm.journal import Journal
from llm_coop_envs.policies.llm.totals import RequestCounters

Result = TypeVar("Result")


@dataclass(kw_only=True)
class Attempts:
    """Makes attempts at one endpoint; called by the dispatcher.

    Without a `price` no money is counted. `notify` is told, once each, what is odd about the provider's counts.
    `stopped` says why nothing may be sent any more. `heard` is told of each answer at once, before it is written down.
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
    heard: Callable[[ChatReply], None] = lambda _: None
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin to keep time."""
        self._limit = TimeLimit(self.clock, self.endpoint.timeout, self.endpoint.where)

    async def __call__(self, job: Job) -> ChatReply:
        """Make one attempt."""
        prompt, answer = self._most(job.request)
        usd = self.price.most(prompt, answer) if self.price is not None else 0.0
        reserved = await self.ledger.reserve(prompt + answer, usd)
        try:
            stopped = self.stopped()
            if stopped is not None:
                raise stopped
            await self.journal.sent(job.key, job.digest, tokens=reserved.tokens, usd=reserved.usd)
        except BaseException:
            self.ledger.cancel(reserved, sent=False)
            raise
        return await self._ask(job, reserved)

    async def _ask(self, job: Job, reserved: Reserved) -> ChatReply:
        counters, ledger = self.counters, self.ledger
        counters.calls += 1
        # The same for all attempts at this question of this run and no other; its hash tells nothing about the run.
        name = f"{self.journal.run} {job.key} {job.digest}".encode("utf-8", "replace")
        try:
            reply = await self._limit.within(
                self.client.complete(job.request, idempotency_key=hashlib.sha256(name).hexdigest()[:32])
            )
        except ChatError as error:
            if error.maybe_paid:
                ledger.forfeit(reserved)
                counters.maybe_paid += 1
                counters.maybe_cost += reserved.usd
                counters.spent = ledger.spent
            else:
                ledger.cancel(reserved, sent=True)
            await self.journal.failed(job.key, job.request, job.digest, error, final=error.kind in FOR_THE_POLICY)
            raise
        except BaseException:
            ledger.forfeit(reserved)
            raise
        self.heard(reply)
        form = self._form(job.request)
        settled = settle(job.request, reply, self.price, self.endpoint.where)
        for what, sentence in settled.doubts.items():
            self._warn(what, sentence)
        tokens, usd = settled.tokens, settled.usd
        ledger.settle(reserved, tokens=tokens, usd=usd)
        await self.journal.answered(job.key, job.request, job.digest, settled.reply, tokens=tokens, usd=usd, form=form)
        counters.add(settled.reply)
        counters.spent = ledger.spent
        return settled.reply

    def _form(self, request: ChatRequest) -> str | None:
        """The form in which a constrained answer was found to be taken; the user is told if it is not the strictest."""
        form: str | None = getattr(self.client, "form", None) if request.json_schema is not None else None
        if form is not None and self.counters.forms.get(request.model) != form:
            self.counters.forms[request.model] = form
            if FORMS.index(form) > FORMS.index("json_schema"):
                self.notify(f"{self.endpoint.where} does not take JSON schemas; answers are constrained by: {form}")
        return form

    def _most(self, request: ChatRequest) -> tuple[int, int]:
        """The most tokens that question and answer can have."""
        answer = request.max_tokens
        if answer is None and self.price is not None:
            answer = self.price.longest_answer
        budget = self.ledger.budget
        if answer is None and (budget.usd is not None or budget.tokens is not None):
            raise SettingsError(
                "max_tokens", None, "a budget in dollars or tokens can only be kept if the longest answer is limited"
            )
        return most_prompt_tokens(request), answer or 0

    def _warn(self, what: str, sentence: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self.notify(sentence)


class TimeLimit:
    """Ends attempts that take longer than some seconds, the same for all: one alarm, for the oldest, serves them all.

    `asyncio.timeout` does not exist in Python 3.10, and `asyncio.wait_for` makes a task for every call.
    """

    def __init__(self, clock: Clock, seconds: float, where: str) -> None:
        self._clock = clock
        self._seconds = seconds
        self._where = where
        self._due: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._is_set = False

    async def within(self, attempt: Awaitable[Result]) -> Result:
        """Wait for an attempt; a `ChatError` of kind `"timeout"` is raised when its time is over."""
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

"""Opening a chat: journal, budget, cache, and a dispatcher and client for every endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import functools
import random
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.attempt import Attempts
from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.policies.llm.asking.cache import Cache
from llm_coop_envs.policies.llm.asking.counters import RequestCounters
from llm_coop_envs.policies.llm.asking.dispatch import Dispatcher
from llm_coop_envs.policies.llm.asking.limits import divided
from llm_coop_envs.policies.llm.asking.prices import Price, PriceList, how_to_price, likely_prompt_tokens
from llm_coop_envs.policies.llm.asking.queue import Clock, Job, Queue
from llm_coop_envs.policies.llm.asking.replay import ReplayChat
from llm_coop_envs.policies.llm.asking.shared import ledger
from llm_coop_envs.policies.llm.chat import (
    ChatClient,
    ChatReply,
    ChatRequest,
    EndpointStopped,
    NotInJournal,
    RequestKey,
    RunStopped,
)
from llm_coop_envs.policies.llm.clients import Endpoint, Limits
from llm_coop_envs.policies.llm.clients import connect as connect_client
from llm_coop_envs.policies.llm.clients.address import is_there
from llm_coop_envs.policies.llm.clients.client import Client
from llm_coop_envs.policies.llm.journal import Journal
from llm_coop_envs.util.quoting import harmless

_SPARE_FILES = 128  # descriptors for everything that is no connection


@contextlib.asynccontextmanager
async def open_chat(
    folder: Path,
    endpoints: Endpoint | Sequence[Endpoint] = (),
    *,
    budget: Budget | None = None,
    prices: Path | None = None,
    part: str = "main",
    replay: Path | None = None,
    cache: Path | None = None,
    sample: int | None = None,
    notify: Callable[[str], None] | None = None,
    connect: Callable[[Endpoint], ChatClient] = connect_client,
    clock: Clock | None = None,
    generator: random.Random | None = None,
) -> AsyncIterator[OpenChat]:
    """Open the chat of a run; on leaving, what is under way is waited for and kept.

    Args:
        folder: the run's folder; its journal is made, or continued.
        endpoints: where the run's models are; a request goes to the one with its `model`.
        budget: what may be used.
        prices: a file of prices, see `PriceList.load`; what it leaves out is looked up in litellm's table, where that
            is installed, and in the one shipped here.
        part: which part of the run this process writes; the parts share the budget and all limits.
        replay: a run's folder to answer from; then nothing is asked, and `folder` is not touched.
        cache: a folder of answers shared between runs, see `Cache`.
        sample: which sample to take from the cache above temperature 0.
        notify: is told, in sentences, when an endpoint is paused or back; standard error by default.
        connect: makes clients.
        clock: time.
        generator: draws the pauses between attempts.

    Raises:
        SettingsError: the endpoints contradict each other, a key is missing, or a budget in dollars cannot be kept
            because a price is not known.
        JournalError: the journal cannot be written or is damaged.
        MissingExtra: a library is not installed.
    """
    if replay is not None:
        yield ReplayChat(replay)
        return
    chosen = [endpoints] if isinstance(endpoints, Endpoint) else list(endpoints)
    budget = budget or Budget()
    found = known_prices(chosen, prices)
    _check(chosen, budget, found)
    async with contextlib.AsyncExitStack() as opened:
        shared = None if cache is None else opened.enter_context(contextlib.closing(Cache(cache, sample)))
        clients: dict[Endpoint, list[ChatClient]] = {endpoint: [] for endpoint in chosen}
        for endpoint in chosen:
            for one in endpoint.each:
                clients[endpoint].append(connect(one))
                opened.push_async_callback(clients[endpoint][-1].aclose)
        journal = Journal(folder, part)
        opened.push_async_callback(journal.close)
        chat = LiveChat(journal, budget, shared, notify or _to_stderr)
        clock, generator = clock or asyncio.get_running_loop(), generator or random.Random()
        for endpoint, connected in clients.items():
            chat.add(endpoint, connected, found[endpoint.model], clock, generator)
        chat.share()
        looking = asyncio.create_task(chat.divide())
        try:
            yield chat
        finally:
            looking.cancel()
            await chat.finish()


async def check_chat(endpoints: Sequence[Endpoint], budget: Budget | None, prices: Path | None = None) -> None:
    """Find out, before anything is written, whether a chat could be opened: keys, libraries, prices; else raise."""
    _check(endpoints, budget or Budget(), known_prices(endpoints, prices))
    for endpoint in endpoints:
        for one in endpoint.each:
            await connect_client(one).aclose()


def known_prices(endpoints: Sequence[Endpoint], prices: Path | None = None) -> dict[str, Price | None]:
    """The models' prices, with those of a file (see `PriceList.load`); `None` where it is not known."""
    table = PriceList.load(prices)
    return {
        one.model: table.of(one.model, own_server=one.base_url is not None and not one.is_openai) for one in endpoints
    }


class LiveChat:
    """A chat that asks models; made by `open_chat`.

    Attributes:
        counters: what has been asked, got and paid.
        notes: sentences about the journal for the user.
    """

    def __init__(self, journal: Journal, budget: Budget, cache: Cache | None, notify: Callable[[str], None]) -> None:
        self.counters = RequestCounters()
        self.notes = journal.notes
        self._journal = journal
        self._cache = cache
        self._notify = notify
        self._routes: dict[str, tuple[Endpoint, Queue]] = {}
        self._dispatchers: list[Dispatcher] = []
        self._served: dict[str, str] = {}
        self._steered: int | None = None
        self._asked: dict[RequestKey, _Asked] = {}
        self._stopped: RunStopped | None = None
        self._ledger = ledger(budget, journal)
        self.counters.spent = self._ledger.spent
        report = journal.report
        self.counters.maybe_paid, self.counters.maybe_cost = report.lost, report.lost_usd

    def add(
        self,
        endpoint: Endpoint,
        clients: Sequence[ChatClient],
        price: Price | None,
        clock: Clock,
        generator: random.Random,
    ) -> None:
        """Send the questions of a model to an endpoint, whose addresses have a client each."""
        queue = Queue(self.counters, clock)
        self._routes[endpoint.model] = endpoint, queue
        for one, client in zip(endpoint.each, clients, strict=True):
            if isinstance(client, Client):
                client.form = self._journal.report.forms.get(one.model, client.form)
            attempts = Attempts(
                endpoint=one,
                client=client,
                price=price,
                journal=self._journal,
                ledger=self._ledger,
                counters=self.counters,
                clock=clock,
                notify=self._notify,
                stopped=lambda: self._stopped,
            )
            dispatcher = Dispatcher(
                queue=queue,
                attempt=attempts,
                where=one.where,
                limits=_within(one.limits, _most_connections() // len(clients)),
                retry=one.retry,
                counters=self.counters,
                notify=self._notify,
                stop=self.stop,
                clock=clock,
                generator=generator,
                patience=one.wait,
                is_there=functools.partial(is_there, one),
            )
            attempts.heard = functools.partial(self._heard, endpoint, dispatcher)
            self._dispatchers.append(dispatcher)
        if price is None:
            self.notes.append(f"the price of {endpoint.model} is not known; tokens are counted, money is not")

    def _heard(self, endpoint: Endpoint, dispatcher: Dispatcher, reply: ChatReply) -> None:
        """An address has answered; all of an endpoint's must serve the same model."""
        dispatcher.heard()
        where = dispatcher.where
        if where == endpoint.where or where in self._served or reply.finish_reason == "content_filter":
            return
        self._served[where] = reply.model
        for one in endpoint.each:
            other = self._served.get(one.where, reply.model)
            if other != reply.model:
                self.stop(
                    EndpointStopped(
                        f"{endpoint.model}: {where} says that it serves {reply.model!r}, and {one.where} {other!r}; "
                        "give base_url only addresses of the same model, then run again to continue"
                    )
                )

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The answer to a question; see `Chat.ask`.

        A question that was answered before, in whatever session, is answered from the journal. Giving up waiting
        does not stop an attempt under way: its answer is kept for the next time.
        """
        digest = request.digest()
        recorded = self._journal.answers.find(key, request, digest)
        if recorded is not None:
            self.counters.replayed += 1
            return recorded
        asked = self._asked.get(key)
        if asked is None and self._cache is not None:
            shared = await self._from_cache(self._cache, key, request, digest)
            if shared is not None:
                return shared
            asked = self._asked.get(key)  # while a cached answer was written down, someone may have asked the same
        if asked is None:
            asked = self._submit(key, request, digest)
        elif asked.digest != digest:
            raise NotInJournal(f"two different questions were asked under the key ({key}) at the same time")
        waiting: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        asked.waiting.append(waiting)
        return await waiting

    @property
    def most(self) -> int:
        """How many requests may be under way side by side, at all endpoints."""
        return sum(dispatcher.limits.most for dispatcher in self._dispatchers)

    def steer(self, *, paused: bool, most: int | None) -> None:
        """Send nothing new while `paused`, and keep at most so many attempts at each endpoint in flight."""
        self._steered = most
        for _, queue in self._routes.values():
            queue.hold(paused)
        self.share()

    async def divide(self) -> None:
        """Share the limits with the other processes of the run, as they come and go; until cancelled."""
        while await self._ledger.look():
            self.share()

    def share(self) -> None:
        """Divide the limits among the addresses of each model, and the processes of the run."""
        place, parts = self._ledger.place
        for _, queue in self._routes.values():
            takers = [one for one in self._dispatchers if one.queue is queue]
            for number, taker in enumerate(takers):
                most = taker.limits.most
                if self._steered is not None:
                    most = min(most, divided(self._steered, len(takers), number))
                taker.cap(divided(most, parts, place) if place is not None else 0, parts)
            queue.pump()

    def stop(self, reason: RunStopped) -> None:
        """Send nothing any more; attempts under way go on, and their answers are kept."""
        if self._stopped is None:
            self._stopped = reason
            for _, queue in self._routes.values():
                queue.halt(reason)

    async def finish(self) -> None:
        """Wait for the attempts under way and keep their answers; being cancelled (a second Ctrl-C) drops them."""
        self.stop(RunStopped("the chat was closed; run again to continue"))
        try:
            if self.counters.in_flight:
                self._notify(f"waiting for {self.counters.in_flight} answers under way; Ctrl-C drops them")
            for dispatcher in self._dispatchers:
                await dispatcher.drain()
        except BaseException:
            for dispatcher in self._dispatchers:
                dispatcher.abandon()
            raise
        finally:
            self._ledger.close()

    def _submit(self, key: RequestKey, request: ChatRequest, digest: str) -> _Asked:
        endpoint, queue = self._route(request)
        if self._stopped is not None:
            raise copy.copy(self._stopped)
        tokens = 0.0
        if endpoint.limits.tokens_per_minute is not None:
            tokens = likely_prompt_tokens(request) + (request.max_tokens or 0)
        asked = self._asked[key] = _Asked(digest)

        def done(found: ChatReply | Exception) -> None:
            del self._asked[key]
            if self._cache is not None and isinstance(found, ChatReply):
                self._cache.put(endpoint, key, request, digest, found)
            for waiting in asked.waiting:
                if not waiting.done():
                    _settle(waiting, found)

        queue.submit(Job(key, request, digest, tokens, done))
        return asked

    async def _from_cache(self, cache: Cache, key: RequestKey, request: ChatRequest, digest: str) -> ChatReply | None:
        shared = cache.get(self._route(request)[0], key, request, digest)
        if shared is None:
            return None
        shared = dataclasses.replace(shared, cost=0.0)
        # The run's own journal gets it too, so that the run can be replayed without the cache.
        await self._journal.answered(key, request, digest, shared, tokens=0, usd=0.0, source="cache")
        self.counters.cached += 1
        return shared

    def _route(self, request: ChatRequest) -> tuple[Endpoint, Queue]:
        route = self._routes.get(request.model)
        if route is None:
            known = ", ".join(self._routes) or "none"
            raise SettingsError("model", request.model, f"this run has no endpoint for it (it has: {known})")
        return route


OpenChat: TypeAlias = LiveChat | ReplayChat


@dataclasses.dataclass(slots=True)
class _Asked:
    """A question on its way, and who waits for its answer; giving up waiting does not stop it."""

    digest: str
    waiting: list[asyncio.Future[ChatReply]] = dataclasses.field(default_factory=list)


def _settle(waiting: asyncio.Future[ChatReply], found: ChatReply | Exception) -> None:
    if isinstance(found, ChatReply):
        waiting.set_result(found)
        return
    # Everyone gets a copy of their own: raising one object in many places chains all their tracebacks to it.
    waiting.set_exception(copy.copy(found) if isinstance(found, RunStopped) else found)


def _check(endpoints: Sequence[Endpoint], budget: Budget, prices: dict[str, Price | None]) -> None:
    if len(prices) != len(endpoints):
        names = [endpoint.model for endpoint in endpoints]
        twice = next(name for name in names if names.count(name) > 1)
        raise SettingsError("model", twice, "has two endpoints; a request could go to either")
    if budget.usd is not None:
        for model, price in prices.items():
            if price is None:
                why = f"the price of {model} is not known, so dollars cannot be counted; {how_to_price(model)}, "
                raise SettingsError("budget", budget.usd, f"{why}or use --max-calls or --max-tokens instead")


def _most_connections() -> int:
    """How many connections this process may have open; its limit on files is raised as far as it may be."""
    if sys.platform == "win32":
        return 4096
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(1, soft - _SPARE_FILES)


def _within(limits: Limits, most: int) -> Limits:
    return dataclasses.replace(limits, start=min(limits.start, most), most=min(limits.most, most))


def _to_stderr(sentence: str) -> None:
    print(harmless(sentence), file=sys.stderr, flush=True)

"""Putting a chat together: journal, budget, cache, and a dispatcher and client for every endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import random
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.attempt import Attempts
from llm_coop_envs.policies.llm.asking.budget import Budget, Ledger
from llm_coop_envs.policies.llm.asking.cache import Cache
from llm_coop_envs.policies.llm.asking.counters import Counters
from llm_coop_envs.policies.llm.asking.dispatch import Clock, Dispatcher, Job, LoopClock
from llm_coop_envs.policies.llm.asking.limits import Limits
from llm_coop_envs.policies.llm.asking.prices import Price, Prices, likely_prompt_tokens
from llm_coop_envs.policies.llm.asking.replay import ReplayChat, find
from llm_coop_envs.policies.llm.chat import ChatClient, ChatReply, ChatRequest, NotInJournal, RequestKey, RunStopped
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.policies.llm.journal.writer import Journal

_SPARE_FILES = 128  # descriptors for everything that is no connection


class OpenChat(Protocol):
    """A chat that is open, live or replayed.

    Attributes:
        counters: what has been asked, got and paid.
        notes: sentences about the journal for the user.
    """

    counters: Counters
    notes: list[str]

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The answer to a question; see `Chat.ask`."""
        ...


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
    connect: Callable[[Endpoint], ChatClient] = Endpoint.connect,
    clock: Clock | None = None,
    generator: random.Random | None = None,
) -> AsyncIterator[OpenChat]:
    """Open the chat of a run; on leaving, what is under way is waited for and kept.

    Args:
        folder: the run's folder; its journal is made, or continued.
        endpoints: where the run's models are; a request goes to the one with its `model`.
        budget: what may be used.
        prices: a file of prices, see `Prices.load`; without it litellm's table, where that is installed.
        part: which part of the run this process writes; the budget covers this part.
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
    chat = await LiveChat.open(
        folder,
        chosen,
        budget=budget or Budget(),
        prices=Prices.load(prices),
        part=part,
        cache=None if cache is None else Cache(cache, sample),
        notify=notify or _to_stderr,
        connect=connect,
        clock=clock or LoopClock(),
        generator=generator or random.Random(),
    )
    try:
        yield chat
    finally:
        await chat.aclose()


async def check_chat(endpoints: Sequence[Endpoint], budget: Budget, prices: Path | None = None) -> None:
    """Find out, before anything is written, whether a chat could be opened: keys, libraries, prices.

    Raises:
        SettingsError: as `open_chat`.
        PriceError: the file of prices cannot be used.
        MissingExtra: a library is not installed.
    """
    _check(endpoints, budget, known_prices(endpoints, Prices.load(prices)))
    for endpoint in endpoints:
        await endpoint.connect().aclose()


def known_prices(endpoints: Sequence[Endpoint], prices: Prices) -> dict[str, Price | None]:
    """The models' prices; `None` where it is not known."""
    return {endpoint.model: prices.of(endpoint.model, own_server=_is_own(endpoint)) for endpoint in endpoints}


class LiveChat:
    """A chat that asks models; made by `open_chat`.

    Attributes:
        counters: what has been asked, got and paid.
        notes: sentences about the journal for the user.
    """

    def __init__(self, folder: Path, journal: Journal, ledger: Ledger, cache: Cache | None, clock: Clock) -> None:
        self.counters = Counters()
        self.notes = journal.notes
        self._folder = folder
        self._journal = journal
        self._ledger = ledger
        self._cache = cache
        self._clock = clock
        self._routes: dict[str, _Route] = {}
        self._asked: dict[RequestKey, _Asked] = {}
        self._stopped: RunStopped | None = None
        self._notify: Callable[[str], None] = _to_stderr

    @classmethod
    async def open(
        cls,
        folder: Path,
        endpoints: Sequence[Endpoint],
        *,
        budget: Budget,
        prices: Prices,
        part: str,
        cache: Cache | None,
        notify: Callable[[str], None],
        connect: Callable[[Endpoint], ChatClient],
        clock: Clock,
        generator: random.Random,
    ) -> LiveChat:
        """Open journal and clients; see `open_chat`."""
        found = known_prices(endpoints, prices)
        _check(endpoints, budget, found)
        clients: list[ChatClient] = []
        try:
            for endpoint in endpoints:
                clients.append(connect(endpoint))
            journal = Journal(folder, part)
        except BaseException:
            for client in clients:
                await client.aclose()
            raise
        ledger = Ledger(budget)
        report = journal.report
        ledger.carry(calls=report.calls, tokens=report.tokens, usd=report.usd)
        chat = cls(folder, journal, ledger, cache, clock)
        chat._notify = notify
        chat.counters.spent = ledger.usd
        chat.counters.maybe_paid, chat.counters.maybe_cost = report.lost, report.lost_usd
        most = _most_connections()
        for endpoint, client in zip(endpoints, clients, strict=True):
            price = found[endpoint.model]
            attempts = Attempts(
                endpoint, client, price, journal, ledger, chat.counters, clock, notify, lambda: chat._stopped
            )
            dispatcher = Dispatcher(
                attempt=attempts,
                where=endpoint.where,
                limits=_within(endpoint.limits, most),
                retry=endpoint.retry,
                counters=chat.counters,
                notify=notify,
                stop=chat.stop,
                clock=clock,
                generator=generator,
            )
            chat._routes[endpoint.model] = _Route(endpoint, client, dispatcher)
            if price is None:
                chat.notes.append(f"the price of {endpoint.model} is not known; tokens are counted, money is not")
        return chat

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The answer to a question; see `Chat.ask`.

        A question that was answered before, in whatever session, is answered from the journal. Giving up waiting
        does not stop an attempt under way: its answer is kept for the next time.
        """
        digest = request.digest()
        recorded = find(self._folder, self._journal.answers, key, request, digest)
        if recorded is not None:
            self.counters.replayed += 1
            return recorded
        asked = self._asked.get(key)
        if asked is None:
            shared = await self._from_cache(key, request, digest)
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

    def stop(self, reason: RunStopped) -> None:
        """Send nothing any more; attempts under way go on, and their answers are kept."""
        if self._stopped is None:
            self._stopped = reason
            for route in self._routes.values():
                route.dispatcher.halt(reason)

    async def aclose(self) -> None:
        """Wait for the attempts under way, keep their answers, and close everything.

        Being cancelled while waiting (a second Ctrl-C) drops those attempts; everything else is closed all the same.
        """
        self.stop(RunStopped("the chat was closed; run again to continue"))
        try:
            if self.counters.in_flight:
                self._notify(f"waiting for {self.counters.in_flight} answers under way; Ctrl-C drops them")
            for route in self._routes.values():
                await route.dispatcher.drain()
        except BaseException:
            for route in self._routes.values():
                route.dispatcher.abandon()
            raise
        finally:
            await self._close()

    async def _close(self) -> None:
        for route in self._routes.values():
            await route.client.aclose()
        await self._journal.close()
        if self._cache is not None:
            self._cache.close()

    def _submit(self, key: RequestKey, request: ChatRequest, digest: str) -> _Asked:
        route = self._route(request)
        if self._stopped is not None:
            raise copy.copy(self._stopped)
        tokens = 0.0
        if route.endpoint.limits.tokens_per_minute is not None:
            tokens = likely_prompt_tokens(request) + (request.max_tokens or 0)
        asked = self._asked[key] = _Asked(digest)

        def done(found: ChatReply | Exception) -> None:
            del self._asked[key]
            if self._cache is not None and isinstance(found, ChatReply):
                self._cache.put(route.endpoint, key, request, digest, found)
            for waiting in asked.waiting:
                if not waiting.done():
                    _settle(waiting, found)

        route.dispatcher.submit(Job(key, request, digest, tokens, done))
        return asked

    async def _from_cache(self, key: RequestKey, request: ChatRequest, digest: str) -> ChatReply | None:
        if self._cache is None:
            return None
        shared = self._cache.get(self._route(request).endpoint, key, request, digest)
        if shared is None:
            return None
        shared = dataclasses.replace(shared, cost=0.0)
        # The run's own journal gets it too, so that the run can be replayed without the cache.
        await self._journal.answered(key, request, digest, shared, tokens=0, usd=0.0, source="cache")
        self.counters.cached += 1
        return shared

    def _route(self, request: ChatRequest) -> _Route:
        route = self._routes.get(request.model)
        if route is None:
            known = ", ".join(self._routes) or "none"
            raise SettingsError("model", request.model, f"this run has no endpoint for it (it has: {known})")
        return route


@dataclasses.dataclass(frozen=True, slots=True)
class _Route:
    endpoint: Endpoint
    client: ChatClient
    dispatcher: Dispatcher


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
                raise SettingsError(
                    "budget",
                    budget.usd,
                    f"the price of {model} is not known, so dollars cannot be counted; give its price with --prices, "
                    "or use --max-calls or --max-tokens instead",
                )


def _is_own(endpoint: Endpoint) -> bool:
    return endpoint.base_url is not None and not endpoint.is_openai


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
    print(sentence, file=sys.stderr, flush=True)

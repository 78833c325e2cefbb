"""A dispatcher over an endpoint that does as it is told."""

import asyncio
import random

from llm_tools import TurnedClock, key, question, reply

from llm_coop_envs.policies.llm.asking.dispatch import Dispatcher
from llm_coop_envs.policies.llm.asking.queue import Job, Queue
from llm_coop_envs.policies.llm.chat import RunStopped
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry
from llm_coop_envs.policies.llm.totals import RequestCounters


class Bench:
    """A dispatcher over a scripted endpoint, and what it did."""

    def __init__(self, act, *, limits=None, retry=None, latency=1.0, **more):
        self.clock = TurnedClock()
        self.act = act
        self.latency = latency
        self.begun: list[tuple[float, int]] = []
        self.done: set[int] = set()
        self.under_way = 0
        self.most = 0
        self.said: list[str] = []
        self.stops: list[RunStopped] = []
        self.counters = RequestCounters()
        self.queue = Queue(self.counters, self.clock)
        self.dispatcher = Dispatcher(
            queue=self.queue,
            attempt=self.attempt,
            where="there",
            limits=limits or Limits(),
            retry=retry or Retry(),
            counters=self.counters,
            notify=self.said.append,
            stop=self.stop,
            clock=self.clock,
            generator=random.Random(0),
            **more,
        )

    async def attempt(self, job):
        self.begun.append((self.clock.time(), int(job.key.agent.split("_")[1])))
        number = len(self.begun)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.latency:
                await self.clock.sleep(self.latency)
            found = self.act(number, job)
            if isinstance(found, BaseException):
                raise found
            return found or reply(str(job.key.agent))
        finally:
            self.under_way -= 1

    def stop(self, reason):
        self.stops.append(reason)
        self.queue.halt(reason)

    def submit(self, number, tokens=0.0):
        request = question()
        future = asyncio.get_running_loop().create_future()

        def done(found):
            assert number not in self.done
            self.done.add(number)
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

        self.queue.submit(Job(key(number), request, request.digest(), tokens, done))
        return future

    async def all(self, count, **fields):
        futures = [self.submit(n, **fields) for n in range(count)]
        done = asyncio.gather(*futures, return_exceptions=True)
        return await self.clock.until(done)


def run(act, use, **fields):
    async def go():
        bench = Bench(act, **fields)
        await use(bench)
        return bench

    return asyncio.run(go())


def fine(number, job):
    return None

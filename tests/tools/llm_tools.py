"""What tests of chats share: a clock turned by hand, a client that does as it is told, questions."""

from __future__ import annotations

import asyncio
import heapq
import importlib.util
import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import llm_coop_envs
from llm_coop_envs.policies.llm.chat import ChatMessage, ChatReply, ChatRequest, RequestKey, Usage

MODEL = "m"
# Fields of `Endpoint`: every way to ask.
WAYS = [
    pytest.param({"client": "lean"}, id="lean"),
    pytest.param({"client": "lean", "stream": True}, id="lean-stream"),
    pytest.param({"client": "openai"}, id="openai"),
    pytest.param({"client": "openai", "stream": True}, id="openai-stream"),
    pytest.param(
        {"client": "litellm"},
        id="litellm",
        marks=pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
    ),
]
# For programs that tests start: the package is found, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(llm_coop_envs.__file__).parents[1])}


def key(number=0, **fields):
    return RequestKey(**{"episode": "kbc/1", "agent": f"player_{number}", "step": 0, "call": "choose", **fields})


def question(text="Which number?", **fields):
    messages = (ChatMessage("system", "You are player one."), ChatMessage("user", text))
    return ChatRequest(**{"model": MODEL, "messages": messages, "max_tokens": 50, **fields})


def reply(text="42", **fields):
    given = {"usage": Usage(10, 5), "finish_reason": "stop", "model": "reported", "latency": 0.5}
    return ChatReply(text=text, **{**given, **fields})


class Alarm:
    def __init__(self, call):
        self.call = call

    def cancel(self):
        self.call = None


class TurnedClock:
    """Time passes when a test says so, and then at once."""

    def __init__(self, start: float = 1000.0):
        self.at = start
        self.alarms: list[tuple[float, int, Alarm]] = []
        self.count = itertools.count()

    def time(self) -> float:
        return self.at

    def call_later(self, seconds: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(call)
        heapq.heappush(self.alarms, (self.at + seconds, next(self.count), alarm))
        return alarm

    async def sleep(self, seconds: float) -> None:
        done = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: done.done() or done.set_result(None))
        await done

    async def settle(self) -> None:
        """Let everything run that need not wait."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, alarm by alarm."""
        end = self.at + seconds
        await self.settle()
        while self.alarms and self.alarms[0][0] <= end:
            at, _, alarm = heapq.heappop(self.alarms)
            self.at = max(self.at, at)
            if alarm.call is not None:
                alarm.call()
                await self.settle()
        self.at = end

    async def until(self, future: asyncio.Future, most: float = 100_000.0) -> object:
        """Let time pass until something is done."""
        end = self.at + most
        await self.settle()
        while not future.done():
            if not self.alarms or self.alarms[0][0] > end:
                raise AssertionError("it will never be done")
            await self.pass_time(self.alarms[0][0] - self.at)
        return await future

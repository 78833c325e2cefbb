"""Whole episodes with language models for measurements: the real environments, prompts, readers and chat.

Our own code is measured, so the answers are scripted beforehand and looked up by the prompt's text.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs import evacuation_v0, kbc_v0
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.policies import play_async
from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.chat import ChatClient, ChatReply, ChatRequest, Usage
from llm_coop_envs.policies.llm.clients import Endpoint, Limits
from llm_coop_envs.policies.llm.clients import connect as connect_client
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.runs.side_by_side import rare_garbage_collection

MODEL = "scripted"
EPISODES, IN_FLIGHT = 64, 256


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The cost of playing episodes, without set-up.

    Attributes:
        calls: questions asked.
        wall: seconds.
        cpu: CPU seconds of this process, all its threads.
    """

    calls: int
    wall: float
    cpu: float

    @property
    def cpu_us(self) -> float:
        """CPU microseconds per call."""
        return 1e6 * self.cpu / self.calls

    @property
    def per_second(self) -> float:
        """Calls per second."""
        return self.calls / self.wall


def number_contests(count: int) -> list[ScenarioEnv]:
    """Beauty contests with talk (24 players, preset `two_thirds`) up to the second decision: 72 calls each."""
    return [kbc_v0.parallel_env(preset="two_thirds", max_cycles=26) for _ in range(count)]


def evacuations(count: int) -> list[ScenarioEnv]:
    """Evacuations with talk (100 people, the published room) for their first 40 steps."""
    return [evacuation_v0.parallel_env(preset="team_up", max_cycles=40) for _ in range(count)]


class KnownAnswers:
    """A client that looks answers up by the prompt; answers to the scripted model are computed once and stored."""

    def __init__(self) -> None:
        self._answers: dict[str, str] = {}

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Answer when the event loop comes round."""
        await asyncio.sleep(0)
        prompt = request.messages[-1].content
        if request.model == MODEL:
            self._answers[prompt] = scripted_answer(prompt, request.extra["metadata"])
        answer = self._answers[prompt]
        return ChatReply(answer, Usage(800, 12), "stop", MODEL, 0.8)

    async def aclose(self) -> None:
        """Nothing is open."""


def play_all(
    make: Callable[[int], list[ScenarioEnv]],
    count: int,
    endpoint: Endpoint,
    connect: Callable[[Endpoint], ChatClient] = connect_client,
    answers: str = "plain",
) -> Measured:
    """Play episodes side by side through a whole chat: journal, budget, dispatcher, client."""
    settings = LLMSettings.build("team_up", model=endpoint.model, answers=answers)

    async def go(folder: Path) -> Measured:
        envs = make(count)
        async with open_chat(folder, endpoint, connect=connect, notify=lambda _: None) as chat:
            policies = [LLMPolicy(chat, settings) for _ in envs]
            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(
                *[
                    play_async(env, policy, seed=number, name=f"episode/{number}")
                    for number, (env, policy) in enumerate(zip(envs, policies, strict=True))
                ]
            )
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            return Measured(calls=chat.counters.calls, wall=wall, cpu=cpu)

    with tempfile.TemporaryDirectory() as name, rare_garbage_collection():
        return asyncio.run(go(Path(name)))


def own_code(repeats: int, share: float = 1.0) -> dict[str, list[Measured]]:
    """Measure CPU of everything but an HTTP client, in both studies and both forms of answers, in turns.

    An uncounted round of the scripted model comes first and fills the answers. Its requests are longer, because they
    hold the questions also as data; the measured model is asked like any other.

    Args:
        repeats: how often each is measured.
        share: of the episodes.
    """
    limits = Limits(start=IN_FLIGHT, most=IN_FLIGHT)
    studies = {
        f"{name}{suffix}": (make, round(share * count), answers)
        for name, make, count in (("kbc", number_contests, 256), ("evacuation", evacuations, 16))
        for suffix, answers in (("", "plain"), ("_json", "json"))
    }
    clients = {name: KnownAnswers() for name in studies}
    runs: dict[str, list[Measured]] = {name: [] for name in studies}
    for turn in range(repeats + 1):
        endpoint = Endpoint(model="known" if turn else MODEL, base_url="http://127.0.0.1:1/v1", limits=limits)
        for name, (make, count, answers) in studies.items():
            measured = play_all(make, count, endpoint, functools.partial(_always, clients[name]), answers)
            if turn:
                runs[name].append(measured)
    return runs


def _always(client: ChatClient, _: Endpoint) -> ChatClient:
    return client


@contextlib.contextmanager
def server(*arguments: str, core: int | None = None) -> Iterator[str]:
    """Run the scripted server in another process and yield its base URL.

    Args:
        arguments: for `python -m llm_coop_envs.policies.llm.testing`.
        core: the processor core it stays on, where the system can keep it there.
    """
    command = [sys.executable, "-m", "llm_coop_envs.policies.llm.testing", *arguments]
    options: dict[str, Any] = {}
    if core is not None and hasattr(os, "sched_setaffinity"):
        options["preexec_fn"] = lambda: os.sched_setaffinity(0, {core})
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """Pin this process to a core, if the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def through_clients(kinds: list[str], repeats: int) -> dict[str, list[Measured]]:
    """Measure the same beauty contests through each client, in turns; server on one core, client on the other.

    The server keeps its answers ready after a first round that is not counted.
    """
    runs: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]
    limits = Limits(start=IN_FLIGHT, most=IN_FLIGHT)
    with server("--prompts", "--remember", "1000000", core=cores[0]) as url, on_core(cores[-1]):
        play_all(number_contests, EPISODES, Endpoint(model=MODEL, base_url=url, client="lean", limits=limits))
        for _ in range(repeats):
            for kind in kinds:
                endpoint = Endpoint(model=MODEL, base_url=url, client=kind, limits=limits)
                runs[kind].append(play_all(number_contests, EPISODES, endpoint))
    return runs

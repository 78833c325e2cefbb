"""Measure what asking models costs: `python -m llm_coop_envs.benchmarks.speed.llm`.

The scripted server runs in a process of its own on this machine; nothing leaves it. Every figure that is a comparison
is measured in turns with what it is compared with, and medians are shown.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import importlib.util
import itertools
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.speed.harness import arguments, machine, resident_bytes, spread, write
from llm_coop_envs.benchmarks.speed.llm_studies import own_code, server, through_clients
from llm_coop_envs.policies.llm.asking.live import OpenChat, open_chat
from llm_coop_envs.policies.llm.chat import ChatClient, ChatMessage, ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.policies.llm.clients import Endpoint, Limits
from llm_coop_envs.policies.llm.clients import connect as connect_client
from llm_coop_envs.runs.side_by_side import rare_garbage_collection

# A prompt as long as those of the beauty contest with talk, about 3,200 characters.
SYSTEM = "You are one of several players. Read what is known so far and answer as you are asked. " * 8
LINE = "Player {} said: 'I think most of us will go lower than {} this time, so I will as well.' "
PARTS = ("own", "chain", "clients", "second", "several", "replay", "open")
PACKAGES = ("llm-coop-envs", "aiohttp", "openai", "litellm", "orjson", "zstandard")
TARGETS = {
    "own_kbc_cpu_us": "150 at most",
    "own_kbc_json_cpu_us": "80 at most",
    "own_evacuation_cpu_us": "150 at most",
    "own_evacuation_json_cpu_us": "80 at most",
    "lean_calls_per_s": "3000 at least",
    "lean_to_litellm": "5 at least",
    "one_second_percent": "92 at least",
    "replay_us": "20 at most",
    "open_10000_mib": "250 at most",
}


def request(number: int) -> ChatRequest:
    """Make a question that differs from all others."""
    text = f"Round {number}. " + "".join(LINE.format(player, (number * 31 + player * 7) % 101) for player in range(28))
    return ChatRequest("m", (ChatMessage("system", SYSTEM), ChatMessage("user", text)), 0.7, max_tokens=128)


def key(number: int) -> RequestKey:
    """Return the key of the question's decision."""
    return RequestKey(f"kbc-talk/{number % 20:04}", f"player_{number % 24}", number, "choose")


class Immediate:
    """A client that answers in the next turn of the event loop, so that only our own code is measured."""

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Answer."""
        await asyncio.sleep(0)
        return ChatReply("I have thought about it. My choice is 33.", Usage(800, 12), "stop", "m", 0.8)

    async def aclose(self) -> None:
        """Nothing is open."""


def questions(numbers: range) -> list[tuple[RequestKey, ChatRequest]]:
    """Make questions before the clock runs; writing prompts is measured elsewhere."""
    return [(key(number), request(number)) for number in numbers]


async def ask_all(chat: OpenChat, pairs: list[tuple[RequestKey, ChatRequest]], in_flight: int) -> None:
    """Ask questions, `in_flight` at a time."""
    remaining = iter(pairs)

    async def converse() -> None:
        for decision, question in remaining:
            await chat.ask(decision, question)

    await asyncio.gather(*[converse() for _ in range(in_flight)])


def timed(
    endpoint: Endpoint, count: int, in_flight: int, connect: Callable[[Endpoint], ChatClient] = connect_client
) -> dict[str, float]:
    """Measure wall and CPU seconds of this process for `count` calls through the whole chat, after a warm-up."""

    async def go(folder: Path) -> dict[str, float]:
        async with open_chat(folder, endpoint, connect=connect, notify=lambda _: None) as chat:
            await ask_all(chat, questions(range(-in_flight, 0)), in_flight)
            pairs = questions(range(count))
            wall, cpu = time.perf_counter(), time.process_time()
            await ask_all(chat, pairs, in_flight)
            return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    with tempfile.TemporaryDirectory() as folder, rare_garbage_collection():
        return asyncio.run(go(Path(folder)))


def fixed_limits(in_flight: int) -> Limits:
    """Return a constant limit, so that the search for one is not measured."""
    return Limits(start=in_flight, most=in_flight)


def chain(repeats: int) -> dict[str, Any]:
    """Measure CPU per call of key, hash, queue, budget and journal (compressed, synced), 256 in flight, no HTTP."""
    endpoint = Endpoint(model="m", base_url="http://127.0.0.1:1/v1", limits=fixed_limits(256))
    count = 10_000
    runs = [timed(endpoint, count, 256, lambda _: Immediate()) for _ in range(repeats)]
    return {"chain_cpu_us": spread([1e6 * run["cpu"] / count for run in runs])}


def own(repeats: int) -> dict[str, Any]:
    """Measure CPU per call of all our code in two studies: prompts, memory, reading, journal, environment, dispatch."""
    return {f"own_{name}_cpu_us": spread([run.cpu_us for run in rows]) for name, rows in own_code(repeats).items()}


def clients(repeats: int) -> dict[str, Any]:
    """Measure calls per second and CPU per call of one study through each client."""
    kinds = ["lean", "openai"] + (["litellm"] if importlib.util.find_spec("litellm") is not None else [])
    rows = through_clients(kinds, repeats)
    figures: dict[str, Any] = {}
    for kind in kinds:
        figures[f"{kind}_calls_per_s"] = spread([run.per_second for run in rows[kind]])
        figures[f"{kind}_cpu_us"] = spread([run.cpu_us for run in rows[kind]])
    for kind in kinds[1:]:
        pairs = zip(rows["lean"], rows[kind], strict=True)
        figures[f"lean_to_{kind}"] = spread([lean.per_second / other.per_second for lean, other in pairs])
        pairs = zip(rows["lean"], rows[kind], strict=True)
        figures[f"lean_to_{kind}_cpu"] = spread([other.cpu_us / lean.cpu_us for lean, other in pairs])
    return figures


def one_second(repeats: int) -> dict[str, Any]:
    """Measure throughput with a server that takes a second, in percent of the maximum of 1,024 in flight.

    The server keeps its answers ready after a first round that is not counted: it shares the machine with the client.
    """
    rounds, in_flight = 20, 1024
    percentages = []
    with server("--latency", "1", "--remember", "1000000") as url:
        for turn in range(repeats + 1):
            endpoint = Endpoint(model="m", base_url=url, client="lean", limits=fixed_limits(in_flight))
            wall = timed(endpoint, rounds * in_flight, in_flight)["wall"]
            if turn:
                percentages.append(100 * rounds / wall)
    return {"one_second_percent": spread(percentages)}


def several(repeats: int) -> dict[str, Any]:
    """Measure calls per second of one or two processes that ask one or two addresses, 256 in flight in all."""
    count = 4_000
    samples: dict[str, list[float]] = {}
    with server("--remember", "1000000") as first, server("--remember", "1000000") as second:
        for turn in range(repeats + 1):
            for processes, urls in itertools.product((1, 2), ((first,), (first, second))):
                with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(processes) as pool:
                    task = functools.partial(play_part, Path(folder), urls, processes, count // processes)
                    spans = list(pool.map(task, range(processes)))
                if turn:
                    seconds = max(end for _, end, _ in spans) - min(begin for begin, _, _ in spans)
                    name = f"{processes}_processes_{len(urls)}_addresses"
                    samples.setdefault(f"{name}_calls_per_s", []).append(count / seconds)
                    samples.setdefault(f"{name}_cpu_us", []).append(1e6 * math.fsum(cpu for *_, cpu in spans) / count)
    return {name: spread(values) for name, values in samples.items()}


def play_part(folder: Path, urls: tuple[str, ...], parts: int, count: int, number: int) -> tuple[float, float, float]:
    """Ask one part's questions, in a process of its own. Returns when it began and ended, and its CPU seconds."""

    async def go() -> tuple[float, float, float]:
        endpoint = Endpoint(model="m", base_url=urls, limits=fixed_limits(256 // len(urls)))
        part = "main" if parts == 1 else f"part-{number}"
        async with open_chat(folder, endpoint, part=part, notify=lambda _: None) as chat:
            pairs = questions(range(number * count, (number + 1) * count))
            (folder / f"ready-{number}").touch()
            while len(list(folder.glob("ready-*"))) < parts:
                await asyncio.sleep(0.01)
            await asyncio.sleep(3.0)  # until everybody has a share of the limits
            begin, cpu = time.time(), time.process_time()
            await ask_all(chat, pairs, 256 // parts)
            return begin, time.time(), time.process_time() - cpu

    return asyncio.run(go())


def replay(repeats: int) -> dict[str, Any]:
    """Measure microseconds per replayed answer, and per answer for opening the journal."""
    count = 20_000
    endpoint = Endpoint(model="m", base_url="http://127.0.0.1:1/v1", limits=fixed_limits(256))

    async def write(folder: Path) -> None:
        async with open_chat(folder, endpoint, connect=lambda _: Immediate(), notify=lambda _: None) as chat:
            await ask_all(chat, questions(range(count)), 256)

    async def read(folder: Path) -> tuple[float, float]:
        started = time.process_time()
        async with open_chat(folder, replay=folder) as chat:
            opened = time.process_time()
            pairs = questions(range(count))
            begun = time.process_time()
            for decision, question in pairs:
                await chat.ask(decision, question)
            return 1e6 * (time.process_time() - begun) / count, 1e6 * (opened - started) / count

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(write(folder))
        size = sum(path.stat().st_size for path in (folder / "journal").iterdir())
        samples = [asyncio.run(read(folder)) for _ in range(repeats)]
    return {
        "replay_us": spread([replayed for replayed, _ in samples]),
        "replay_opening_us": spread([opening for _, opening in samples]),
        "journal_bytes_per_answer": size / count,
    }


def memory(url: str, count: int) -> None:
    """Print the MiB that `count` open requests take; runs in a process of its own."""

    async def go(folder: Path) -> None:
        endpoint = Endpoint(model="m", base_url=url, limits=fixed_limits(count))
        async with open_chat(folder, endpoint, notify=lambda _: None) as chat:
            await chat.ask(key(-1), request(-1))
            resident_before = resident_bytes() / 2**20
            replies: list[Awaitable[ChatReply]] = [
                asyncio.ensure_future(chat.ask(key(number), request(number))) for number in range(count)
            ]
            while chat.counters.calls < count + 1:
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.0)
            print(
                json.dumps(
                    {"before": resident_before, "open": resident_bytes() / 2**20, "in_flight": chat.counters.in_flight}
                )
            )
            await asyncio.gather(*replies)

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(go(Path(folder)))


def open_requests(count: int = 10_000) -> dict[str, Any]:
    """Measure the memory of a process with `count` open requests, and their share of it."""
    # Long enough for all of them to be sent before the first is answered.
    with server("--latency", str(10 + count // 500)) as url:
        command = [sys.executable, "-m", __spec__.name, "--memory", url, "--count", str(count)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(run.stdout.splitlines()[0])
    return {
        f"open_{count}_mib": figures["open"],
        f"open_{count}_more_mib": figures["open"] - figures["before"],
        f"open_{count}_in_flight": figures["in_flight"],
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = arguments(__doc__ or "", 5)
    parser.add_argument("--only", choices=PARTS, help="measure this alone")
    parser.add_argument("--memory", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=10_000, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory is not None:
        memory(options.memory, options.count)
        return
    measured: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: own(options.repeats),
        lambda: chain(options.repeats),
        lambda: clients(options.repeats),
        lambda: one_second(max(1, options.repeats // 2)),
        lambda: several(max(1, options.repeats // 2)),
        lambda: replay(options.repeats),
        open_requests,
    )
    record: dict[str, Any] = {"machine": machine(*PACKAGES), "targets": TARGETS}
    for name, measure in zip(PARTS, measured, strict=True):
        if options.only in (None, name):
            for figure, value in measure().items():
                record[figure] = value
                median = statistics.median(value.values()) if isinstance(value, dict) else value
                print(f"{figure:28} {median:10.2f}   {TARGETS.get(figure, '')}".rstrip(), flush=True)
    write(record, options.json)


if __name__ == "__main__":
    main()

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

from llm_coop_envs.benchmarks.speed.harness import arguments, machine, spread, write
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
    "own_kbc_cpu_us": "80 at most",
    "own_evacuation_cpu_us": "80 at most",
    "lean_calls_per_s": "3000 at least",
    "lean_to_litellm": "5 at least",
    "one_second_percent": "92 at least",
    "replay_us": "20 at most",
    "open_10000_mib": "300 at most",
}


def request(number: int) -> ChatRequest:
    """A question that no other question equals."""
    text = f"Round {number}. " + "".join(LINE.format(player, (number * 31 + player * 7) % 101) for player in range(28))
    return ChatRequest("m", (ChatMessage("system", SYSTEM), ChatMessage("user", text)), 0.7, max_tokens=128)


def key(number: int) -> RequestKey:
    """The decision it belongs to."""
    return RequestKey(f"kbc-talk/{number % 20:04}", f"player_{number % 24}", number, "choose")


class Immediate:
    """A client that answers when the event loop comes round: what is left is our own code."""

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Answer."""
        await asyncio.sleep(0)
        return ChatReply("I have thought about it. My choice is 33.", Usage(800, 12), "stop", "m", 0.8)

    async def aclose(self) -> None:
        """Nothing is open."""


def questions(numbers: range) -> list[tuple[RequestKey, ChatRequest]]:
    """Questions, made before the clock runs: writing prompts is measured elsewhere."""
    return [(key(number), request(number)) for number in numbers]


async def ask_all(chat: OpenChat, asked: list[tuple[RequestKey, ChatRequest]], in_flight: int) -> None:
    """Ask questions, with so many conversations at once."""
    left = iter(asked)

    async def converse() -> None:
        for one, question in left:
            await chat.ask(one, question)

    await asyncio.gather(*[converse() for _ in range(in_flight)])


def timed(
    endpoint: Endpoint, count: int, in_flight: int, connect: Callable[[Endpoint], ChatClient] = connect_client
) -> dict[str, float]:
    """Seconds and CPU seconds of this process for so many calls through the whole chat, after a warm-up."""

    async def go(folder: Path) -> dict[str, float]:
        async with open_chat(folder, endpoint, connect=connect, notify=lambda _: None) as chat:
            await ask_all(chat, questions(range(-in_flight, 0)), in_flight)
            asked = questions(range(count))
            wall, cpu = time.perf_counter(), time.process_time()
            await ask_all(chat, asked, in_flight)
            return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    with tempfile.TemporaryDirectory() as folder, rare_garbage_collection():
        return asyncio.run(go(Path(folder)))


def fixed(in_flight: int) -> Limits:
    """A limit that is there from the start, so that finding it is not measured."""
    return Limits(start=in_flight, most=in_flight)


def chain(repeats: int) -> dict[str, Any]:
    """CPU of key, hash, queue, budget, journal (compressed and synced) per call, at 256 in flight, nobody asked."""
    endpoint = Endpoint(model="m", base_url="http://127.0.0.1:1/v1", limits=fixed(256))
    count = 10_000
    found = [timed(endpoint, count, 256, lambda _: Immediate()) for _ in range(repeats)]
    return {"chain_cpu_us": spread([1e6 * one["cpu"] / count for one in found])}


def own(repeats: int) -> dict[str, Any]:
    """CPU per call of all our code in two studies: prompts, memory, reading, journal, environment, dispatch."""
    return {f"own_{name}_cpu_us": spread([one.cpu_us for one in rows]) for name, rows in own_code(repeats).items()}


def clients(repeats: int) -> dict[str, Any]:
    """Calls per second and CPU per call of one study through each client."""
    kinds = ["lean", "openai"] + (["litellm"] if importlib.util.find_spec("litellm") is not None else [])
    rows = through_clients(kinds, repeats)
    found: dict[str, Any] = {}
    for kind in kinds:
        found[f"{kind}_calls_per_s"] = spread([one.per_second for one in rows[kind]])
        found[f"{kind}_cpu_us"] = spread([one.cpu_us for one in rows[kind]])
    for kind in kinds[1:]:
        pairs = zip(rows["lean"], rows[kind], strict=True)
        found[f"lean_to_{kind}"] = spread([lean.per_second / other.per_second for lean, other in pairs])
        pairs = zip(rows["lean"], rows[kind], strict=True)
        found[f"lean_to_{kind}_cpu"] = spread([other.cpu_us / lean.cpu_us for lean, other in pairs])
    return found


def one_second(repeats: int) -> dict[str, Any]:
    """Share of what 1,024 in flight could do at most with a server that takes a second, in percent.

    The server keeps its answers ready after a first round that is not counted: it shares the machine with the client.
    """
    rounds, in_flight = 20, 1024
    found = []
    with server("--latency", "1", "--remember", "1000000") as url:
        for turn in range(repeats + 1):
            endpoint = Endpoint(model="m", base_url=url, client="lean", limits=fixed(in_flight))
            wall = timed(endpoint, rounds * in_flight, in_flight)["wall"]
            if turn:
                found.append(100 * rounds / wall)
    return {"one_second_percent": spread(found)}


def several(repeats: int) -> dict[str, Any]:
    """Calls per second of one or two processes of one run that ask at one or two addresses, 256 in flight in all."""
    count = 4_000
    found: dict[str, list[float]] = {}
    with server("--remember", "1000000") as first, server("--remember", "1000000") as second:
        for turn in range(repeats + 1):
            for processes, urls in itertools.product((1, 2), ((first,), (first, second))):
                with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(processes) as pool:
                    task = functools.partial(play_part, Path(folder), urls, processes, count // processes)
                    spans = list(pool.map(task, range(processes)))
                if turn:
                    seconds = max(end for _, end, _ in spans) - min(begin for begin, _, _ in spans)
                    name = f"{processes}_processes_{len(urls)}_addresses"
                    found.setdefault(f"{name}_calls_per_s", []).append(count / seconds)
                    found.setdefault(f"{name}_cpu_us", []).append(1e6 * math.fsum(cpu for *_, cpu in spans) / count)
    return {name: spread(values) for name, values in found.items()}


def play_part(folder: Path, urls: tuple[str, ...], parts: int, count: int, number: int) -> tuple[float, float, float]:
    """In a process of its own: ask what one part asks; when it began and ended, and the CPU seconds it took."""

    async def go() -> tuple[float, float, float]:
        endpoint = Endpoint(model="m", base_url=urls, limits=fixed(256 // len(urls)))
        part = "main" if parts == 1 else f"part-{number}"
        async with open_chat(folder, endpoint, part=part, notify=lambda _: None) as chat:
            asked = questions(range(number * count, (number + 1) * count))
            (folder / f"ready-{number}").touch()
            while len(list(folder.glob("ready-*"))) < parts:
                await asyncio.sleep(0.01)
            await asyncio.sleep(3.0)  # until everybody has a share of the limits
            begin, cpu = time.time(), time.process_time()
            await ask_all(chat, asked, 256 // parts)
            return begin, time.time(), time.process_time() - cpu

    return asyncio.run(go())


def replay(repeats: int) -> dict[str, Any]:
    """Microseconds per replayed answer, and per answer for reading the journal first."""
    count = 20_000
    endpoint = Endpoint(model="m", base_url="http://127.0.0.1:1/v1", limits=fixed(256))

    async def write(folder: Path) -> None:
        async with open_chat(folder, endpoint, connect=lambda _: Immediate(), notify=lambda _: None) as chat:
            await ask_all(chat, questions(range(count)), 256)

    async def read(folder: Path) -> tuple[float, float]:
        started = time.process_time()
        async with open_chat(folder, replay=folder) as chat:
            opened = time.process_time()
            asked = questions(range(count))
            begun = time.process_time()
            for one, question in asked:
                await chat.ask(one, question)
            return 1e6 * (time.process_time() - begun) / count, 1e6 * (opened - started) / count

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(write(folder))
        size = sum(path.stat().st_size for path in (folder / "journal").iterdir())
        found = [asyncio.run(read(folder)) for _ in range(repeats)]
    return {
        "replay_us": spread([asked for asked, _ in found]),
        "replay_opening_us": spread([opening for _, opening in found]),
        "journal_bytes_per_answer": size / count,
    }


def memory(url: str, count: int) -> None:
    """In a process of its own: print the MiB that so many open requests take."""

    async def go(folder: Path) -> None:
        endpoint = Endpoint(model="m", base_url=url, limits=fixed(count))
        async with open_chat(folder, endpoint, notify=lambda _: None) as chat:
            await chat.ask(key(-1), request(-1))
            before = _resident()
            asked: list[Awaitable[ChatReply]] = [
                asyncio.ensure_future(chat.ask(key(number), request(number))) for number in range(count)
            ]
            while chat.counters.calls < count + 1:
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.0)
            print(json.dumps({"before": before, "open": _resident(), "in_flight": chat.counters.in_flight}))
            await asyncio.gather(*asked)

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(go(Path(folder)))


def open_requests(count: int = 10_000) -> dict[str, Any]:
    """Memory of a process with so many open requests, and how much of it they take."""
    with server("--latency", "30") as url:
        command = [sys.executable, "-m", __spec__.name, "--memory", url, "--count", str(count)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout.splitlines()[0])
    return {
        "open_10000_mib": found["open"],
        "open_10000_more_mib": found["open"] - found["before"],
        "open_10000_in_flight": found["in_flight"],
    }


def _resident() -> float:
    """This process's memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """Measure, print, and write the record."""
    parser = arguments(__doc__ or "", 5)
    parser.add_argument("--only", choices=PARTS, help="measure this alone")
    parser.add_argument("--memory", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=10_000, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory is not None:
        memory(given.memory, given.count)
        return
    measured: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: own(given.repeats),
        lambda: chain(given.repeats),
        lambda: clients(given.repeats),
        lambda: one_second(max(1, given.repeats // 2)),
        lambda: several(max(1, given.repeats // 2)),
        lambda: replay(given.repeats),
        open_requests,
    )
    record: dict[str, Any] = {"machine": machine(*PACKAGES), "targets": TARGETS}
    for name, measure in zip(PARTS, measured, strict=True):
        if given.only in (None, name):
            for figure, value in measure().items():
                record[figure] = value
                shown = statistics.median(value.values()) if isinstance(value, dict) else value
                print(f"{figure:28} {shown:10.2f}   {TARGETS.get(figure, '')}".rstrip(), flush=True)
    write(record, given.json)


if __name__ == "__main__":
    main()

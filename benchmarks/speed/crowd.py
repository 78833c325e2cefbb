"""Measure a crowd that waits: `python -m llm_coop_envs.benchmarks.speed.crowd`.

The dummy work of Pan et al. 2024 ("Very Large-Scale Multi-Agent Simulation in AgentScope"): every agent waits a second,
then answers a random number as text. Ours goes through the whole chain: policy, journal (on the disk before it is
used), reading, counting, and settlement of the number contest. The bare loops beside it only wait, and draw. Every case
runs in a process of its own, whose time (making the environment and starting processes included, imports not),
processor time and memory count, those of the processes that it starts included.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.speed.harness import arguments, machine, spread, write
from llm_coop_envs.kbc_v0 import parallel_env
from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.crowd import CrowdQuestion, TextCrowd
from llm_coop_envs.policies.llm.journal.frames import Commit, read_commits

SECONDS = 1.0
IN_FLIGHT = 100_000
# Below this, starting a second process takes longer than it saves.
ALONE = 100_000
MEGABYTE = 1e6 if sys.platform == "darwin" else 1e3

#: Measured before on 2 cores with CPython 3.11 (agentscope 0.1.6: 2 servers of 5,000 threads each), or as published.
STATED = (
    ("agentscope 0.1.6, 2 servers x 5,000 threads: measured", 10_000, "21 s + 7.5 s to start, 625 MiB"),
    ("the same work in the paper: 4 machines x 64 cores", 1_000_000, "40 s"),
    ("the same work in the paper: asynchronous Python", 1_000_000, "8.6 hours"),
    ("Ray, 2 actors with 500,000 agents each: measured", 1_000_000, "34 s + 7 s to start, 1,138 MiB"),
)
TARGETS = {
    ("one by one", 1_000_000): "20 s, 1,500 MB",
    ("a chunk with one wait", 1_000_000): "5 s",
    ("one by one", 10_000): "1.6 s",
}


async def answer_one(question: CrowdQuestion, player: int, seed: int) -> str:
    """Answer one agent: a second's wait, then a number."""
    await asyncio.sleep(SECONDS)
    return f"{seed % 10_001 / 100}"


async def answer_many(question: CrowdQuestion, players: NDArray[np.intp], seeds: NDArray[np.uint64]) -> Sequence[str]:
    """Answer a chunk of agents: one wait for all of them, then a number for each."""
    await asyncio.sleep(SECONDS)
    return [f"{number / 100}" for number in (seeds % 10_001).tolist()]


def whole_chain(agents: int, source: Any, *, at_once: bool) -> Callable[[], None]:
    """Play a round through the whole chain of a text crowd."""

    def run() -> None:
        processes = 1 if agents < ALONE else 2
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            with TextCrowd(
                source, many=at_once, folder=Path(folder), hands=2 * IN_FLIGHT, processes=processes
            ) as crowd:
                env = parallel_env(preset="large_scale", players=agents, rounds=1)
                totals = play(env, crowd, seed=0)
                spent = time.perf_counter() - start
            counts = crowd.counters.total()
            assert (counts.asked, counts.answered) == (agents, agents)
            recorded = 0
            for path in (Path(folder) / "crowd").glob("*.jsonl.*"):
                commits = [entry for entry in read_commits(path) if isinstance(entry, Commit)]
                lines = [line for commit in commits for line in commit.lines()]
                recorded += sum(len(line["players"]) for line in lines if line["type"] == "texts")
            assert recorded == agents
            assert len(totals) == agents
        print(json.dumps({"seconds": spent}))

    return run


def bare(agents: int, tasks: int | None) -> Callable[[], None]:
    """Wait and draw only: with a task for each agent, or with `tasks` tasks that take agents from a queue."""

    async def work(agents: Any) -> None:
        for _ in agents:
            await asyncio.sleep(SECONDS)
            random.random()

    async def go() -> None:
        if tasks is None:
            await asyncio.gather(*(work((agent,)) for agent in range(agents)))
        else:
            remaining = iter(range(agents))
            await asyncio.gather(*(work(remaining) for _ in range(min(tasks, agents))))

    def run() -> None:
        start = time.perf_counter()
        asyncio.run(go())
        print(json.dumps({"seconds": time.perf_counter() - start}))

    return run


def cases(agents: int) -> dict[str, Callable[[], None]]:
    """Return the cases by name."""
    return {
        "one by one": whole_chain(agents, answer_one, at_once=False),
        "a chunk with one wait": whole_chain(agents, answer_many, at_once=True),
        "bare: a task for each agent": bare(agents, None),
        "bare: a pool of 100,000 tasks": bare(agents, IN_FLIGHT),
    }


def measure(name: str, agents: int) -> dict[str, float]:
    """Measure seconds, processor seconds and megabytes of one case in a process of its own."""
    command = [sys.executable, "-m", "llm_coop_envs.benchmarks.speed.crowd", "--case", name, "--agents", str(agents)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    figures: dict[str, float] = {key: value for line in output for key, value in json.loads(line).items()}
    return figures


def one_case(name: str, agents: int) -> None:
    """Run a case in this process and print its cost."""
    idle = math.fsum(os.times()[:4])
    cases(agents)[name]()
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    started = 2 if others.ru_maxrss else 0  # the greater of the processes started counts for each
    memory = own.ru_maxrss + started * others.ru_maxrss
    print(json.dumps({"processor_seconds": math.fsum(os.times()[:4]) - idle, "megabytes": memory / MEGABYTE}))


def main() -> None:
    """Measure, print a table, and write the record."""
    parser = arguments(__doc__ or "", 3)
    parser.add_argument("--agents", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--case", choices=list(cases(1)), help="run this one alone, here")
    options = parser.parse_args()
    if options.case is not None:
        one_case(options.case, options.agents[0])
        return
    record: dict[str, Any] = {"machine": machine("llm-coop-envs", "numpy", "orjson", "zstandard"), "crowds": []}
    print(f"{'':32} {'agents':>10}   seconds: least, middle, greatest   processor s     MB   target")
    for agents in options.agents:
        samples: dict[str, list[dict[str, float]]] = {name: [] for name in cases(agents)}
        for _ in range(options.repeats):
            for name, measured in samples.items():
                measured.append(measure(name, agents))
        for name, measured in samples.items():
            figures = {key: spread([sample[key] for sample in measured]) for key in measured[0]}
            target = TARGETS.get((name, agents), "")
            record["crowds"].append({"case": name, "agents": agents, **figures, "target": target})
            seconds = " ".join(f"{figures['seconds'][key]:8.2f}" for key in ("min", "median", "max"))
            cpu, memory = figures["processor_seconds"]["median"], figures["megabytes"]["max"]
            print(f"{name:32} {agents:>10,} {seconds} {cpu:20.1f} {memory:10.0f}   {target}".rstrip(), flush=True)
    for name, agents, took in STATED:
        print(f"{name}: {agents:,} agents: {took}")
    record["stated"] = [{"case": name, "agents": agents, "took": took} for name, agents, took in STATED]
    write(record, options.json)


if __name__ == "__main__":
    main()

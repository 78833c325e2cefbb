"""The growth of cost with the crowd: `python -m llm_coop_envs.benchmarks.speed.crowd_curves --json FILE`.

Whole episodes of scripted players who hear each other: an evacuation with talk (330 x 330 cells for 10,000 people, as
much room per person below), and a number contest in which each is heard by the 24 players next to it. And a contest
of one round whose players are language models, without that talk and with it, asked through the whole chat at a
loopback server, which is another process and not counted. Every size runs in a process of its own, once; processor
time and memory count, because other work on the machine changes neither much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.speed.cases import evacuation
from llm_coop_envs.benchmarks.speed.crowd import MEGABYTE
from llm_coop_envs.benchmarks.speed.harness import machine, resident_bytes, write
from llm_coop_envs.benchmarks.speed.llm_studies import MODEL, server
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.kbc_v0 import parallel_env
from llm_coop_envs.policies import make, play, play_async
from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.clients import Endpoint, Limits
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.runs.side_by_side import rare_garbage_collection

PEOPLE = (100, 316, 1000, 3162, 10_000)
CURVES: Mapping[str, tuple[int, ...]] = {
    "evacuation": PEOPLE,
    "kbc": (*PEOPLE, 100_000, 1_000_000),
    "models": (100, 1000, 10_000, 100_000, 1_000_000),
    "talking_models": (100, 1000, 10_000, 100_000),
}
TALK: Mapping[str, Any] = {"session": "single", "talk_turns": 1, "audience": "neighbours", "hearers": 24}
MARKED = (5, 50)


def measure(name: str, agents: int) -> dict[str, Any]:
    """Play one episode in this process and return its cost."""
    start = time.process_time()
    if name.endswith("models"):
        figures = asyncio.run(_ask_models(agents, talk=name == "talking_models"))
        return {"agents": agents, "agent_rounds": agents, **figures}
    env: ScenarioEnv
    if name == "evacuation":
        env, policy = evacuation(agents, side=round(33 * math.sqrt(agents / 100))), make("evacuation/shares")
    else:
        env, policy = parallel_env(players=agents, **TALK), make("kbc/follower")
    spoken, inside = 0, 0
    latest = -1
    memory_after: dict[str, float] = {}

    def follow(env: ScenarioEnv) -> None:
        nonlocal spoken, inside, latest
        spoken += env.phase == "talk" and len(env.on_turn)
        if env.round != latest:
            latest = env.round
            inside += int(env.alive.sum())
            if latest - 1 in MARKED:
                memory_after[f"megabytes_after_round_{latest - 1}"] = resident_bytes() / 1024 / 1e3

    play(env, policy, seed=0, on_step=follow)
    assert env.over
    return {
        "agents": agents,
        "processor_seconds": time.process_time() - start,
        "megabytes": _peak_memory(),
        "steps": env.cycles,
        "rounds": env.round,
        "agent_rounds": inside,
        "spoken": int(spoken),
        "out": int((~env.alive).sum()),
        **memory_after,
    }


async def _ask_models(agents: int, *, talk: bool) -> dict[str, float]:
    """Play one round of a contest of models: prompts, chat, journal, HTTP, reading, settlement."""
    silent: dict[str, Any] = {"preset": "large_scale", "rounds": 1}
    env = parallel_env(players=agents, **(TALK if talk else silent))
    with server("--prompts") as url, tempfile.TemporaryDirectory() as folder, rare_garbage_collection():
        endpoint = Endpoint(model=MODEL, base_url=url, limits=Limits(start=256, most=256))
        async with open_chat(Path(folder), endpoint, notify=lambda _: None) as chat:
            policy = LLMPolicy(chat, LLMSettings.build("large_scale", model=MODEL))
            start = time.process_time()
            await play_async(env, policy, seed=0)
            spent = time.process_time() - start
            calls = chat.counters.calls
            assert policy.counters.total().answered == calls == (2 if talk else 1) * agents
    return {"processor_seconds": spent, "megabytes": _peak_memory(), "steps": env.cycles, "calls": calls}


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


def exponent(points: list[dict[str, Any]]) -> float:
    """Fit the slope of log cost on log agent-rounds by least squares, from 1,000 agents on; 1 is linear."""
    large = [point for point in points if point["agents"] >= 1000]
    pairs = [(math.log(point["agent_rounds"]), math.log(point["processor_seconds"])) for point in large]
    mean_x, mean_y = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
    covariation = math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return covariation / math.fsum((x - mean_x) ** 2 for x, _ in pairs)


def main() -> None:
    """Measure, print, and write the record; sizes that a file holds already are not measured again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="the record; sizes that it lacks are measured")
    parser.add_argument("--one", nargs=2, metavar=("CURVE", "AGENTS"), help="measure this one here")
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    record: dict[str, Any] = {}
    if options.json is not None and options.json.is_file():
        record = json.loads(options.json.read_text(encoding="utf-8"))
    record["machine"] = machine("llm-coop-envs", "numpy", "aiohttp", "orjson", "zstandard")
    for name, sizes in CURVES.items():
        points = record.setdefault(name, [])
        for agents in sizes:
            if any(point["agents"] == agents for point in points):
                continue
            command = [sys.executable, "-m", "llm_coop_envs.benchmarks.speed.crowd_curves", "--one", name, str(agents)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            points.append(json.loads(output))
            print(name, points[-1], flush=True)
            write(record, options.json)
        print(f"{name}: cost grows with the power {exponent(points):.2f} of agent-rounds")


if __name__ == "__main__":
    main()

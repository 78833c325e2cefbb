"""Measure drawing: `python -m llm_coop_envs.benchmarks.speed.rendering`.

Frames per second of processor time on one core, pictures of a scripted run at their usual size. The cases take turns,
so that a slow moment of the machine hits all alike. Processor time does not count waiting, but a busy neighbour still
slows it: read the best and the middle figure together.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.benchmarks.speed.__main__ import machine, spread
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.screen.draw import draw, frame

#: Frames per second to reach, by case.
TARGETS = {"rgb_array, 33 x 33 room, 100 people": 100.0, "drawn for a window, 400 people": 60.0}


def played(env: ScenarioEnv, policy: str, rounds: int) -> list[Scene]:
    """The scenes of the first rounds of a scripted episode, step by step."""
    play(env, make(policy), seed=0)
    return [scene for scene in frames(env.events) if scene.round <= rounds]


def cases() -> dict[str, tuple[list[Scene], Callable[[Scene], object]]]:
    """What is drawn, and how."""
    hundred = played(evacuation_v0.parallel_env(record=True), "evacuation/herding", 12)
    crowd = played(evacuation_v0.parallel_env(preset="crowd_400", record=True, rounds=10), "evacuation/herding", 8)
    prices = played(
        bertrand_v0.parallel_env(preset="team_up_linear", rounds=200, record=True), "bertrand/price_matching", 200
    )
    numbers = played(kbc_v0.parallel_env(record=True), "kbc/poisson", 3)
    return {
        "rgb_array, 33 x 33 room, 100 people": (hundred, frame),
        "rgb_array, 33 x 33 room, 400 people": (crowd, frame),
        "drawn for a window, 400 people": (crowd, draw),
        "rgb_array, prices of 200 rounds": (prices, frame),
        "rgb_array, beauty contest of 24": (numbers, frame),
    }


def speeds(repeats: int, seconds: float) -> dict[str, dict[str, float]]:
    """Frames per second of processor time."""
    found: dict[str, list[float]] = {}
    prepared = cases()
    for scenes, show in prepared.values():
        # Fonts and backgrounds are made once.
        for scene in scenes[:: max(1, len(scenes) // 10)]:
            show(scene)
    at = dict.fromkeys(prepared, 0)
    for _ in range(repeats):
        for name, (scenes, show) in prepared.items():
            count, start = 0, time.process_time()
            while (spent := time.process_time() - start) < seconds:
                show(scenes[at[name] % len(scenes)])
                at[name] += 1
                count += 1
            found.setdefault(name, []).append(count / spent)
    return {name: spread(values) for name, values in found.items()}


def steps(repeats: int, count: int) -> dict[str, dict[str, float]]:
    """Microseconds per step of an evacuation: made without a render mode, and made with one but never rendered."""
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, mode in (("no render mode", None), ("rgb_array, never rendered", "rgb_array")):
            env = evacuation_v0.parallel_env(engine="simultaneous", talk=False, render_mode=mode)
            env.begin(seed=0)
            stay = np.full(env.n_players, len(env.settings.room.exit_names) + 4)
            start, done = time.process_time(), 0
            for _ in range(count):
                if env.over:
                    env.begin(seed=0)
                env.advance(stay)
                done += 1
            found.setdefault(name, []).append(1e6 * (time.process_time() - start) / done)
    return {name: spread(values) for name, values in found.items()}


def main() -> None:
    """Measure, print a table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one batch of one case")
    parser.add_argument("--json", type=Path, help="write the record here")
    given = parser.parse_args()
    here = machine()
    here["versions"]["pygame-ce"] = metadata.version("pygame-ce")
    record: dict[str, Any] = {
        "machine": here,
        "frames_per_second": speeds(given.repeats, given.seconds),
        "step_us": steps(given.repeats, 300),
        "targets": TARGETS,
    }
    print(f"{'frames per second of processor time':44} {'min':>8} {'median':>8} {'max':>8} {'target':>7}")
    for name, row in record["frames_per_second"].items():
        target = TARGETS.get(name, "")
        print(f"{name:44} {row['min']:8.1f} {row['median']:8.1f} {row['max']:8.1f} {target:>7}".rstrip())
    print("microseconds per step of 100 people")
    for name, row in record["step_us"].items():
        print(f"{name:44} {row['min']:8.1f} {row['median']:8.1f} {row['max']:8.1f}")
    if given.json is not None:
        given.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

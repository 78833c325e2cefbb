"""Measure drawing: `python -m llm_coop_envs.benchmarks.speed.rendering`.

Frames per second of processor time on one core, pictures of a scripted run at their usual size. The cases take turns,
so that a slow moment of the machine hits all alike. Processor time does not count waiting, but a busy neighbour still
slows it: read the best and the middle figure together.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.benchmarks.speed.harness import arguments, in_turns, machine, row, spread, write
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.screen.draw import draw, frame

#: Frames per second to reach, by case.
TARGETS = {"rgb_array, 33 x 33 room, 100 people": 100.0, "drawn for a window, 400 people": 60.0}


def play_scenes(env: ScenarioEnv, policy: str, rounds: int) -> list[Scene]:
    """Return the scenes of the first rounds of a scripted episode, step by step."""
    play(env, make(policy), seed=0)
    return [scene for scene in frames(env.events) if scene.round <= rounds]


def cases() -> dict[str, tuple[list[Scene], Callable[[Scene], object]]]:
    """Return the scenes and the drawing function of each case."""
    hundred = play_scenes(evacuation_v0.parallel_env(record=True), "evacuation/herding", 12)
    crowd = play_scenes(evacuation_v0.parallel_env(preset="crowd_400", record=True, rounds=10), "evacuation/herding", 8)
    prices = play_scenes(
        bertrand_v0.parallel_env(preset="team_up_linear", rounds=200, record=True), "bertrand/price_matching", 200
    )
    numbers = play_scenes(kbc_v0.parallel_env(record=True), "kbc/poisson", 3)
    return {
        "rgb_array, 33 x 33 room, 100 people": (hundred, frame),
        "rgb_array, 33 x 33 room, 400 people": (crowd, frame),
        "drawn for a window, 400 people": (crowd, draw),
        "rgb_array, prices of 200 rounds": (prices, frame),
        "rgb_array, beauty contest of 24": (numbers, frame),
    }


def speeds(repeats: int, seconds: float) -> dict[str, dict[str, float]]:
    """Measure frames per second of processor time."""
    prepared = cases()
    for scenes, show in prepared.values():
        # Fonts and backgrounds are made once.
        for scene in scenes[:: max(1, len(scenes) // 10)]:
            show(scene)
    at = dict.fromkeys(prepared, 0)

    def per_second(name: str, turn: int) -> float:
        scenes, show = prepared[name]
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds:
            show(scenes[at[name] % len(scenes)])
            at[name] += 1
            count += 1
        return count / spent

    figures = in_turns({name: functools.partial(per_second, name) for name in prepared}, repeats)
    return {name: spread(values) for name, values in figures.items()}


def steps(repeats: int, count: int) -> dict[str, dict[str, float]]:
    """Measure microseconds per step of an evacuation without a render mode, and with one but never rendered."""

    def per_step(mode: Any, turn: int) -> float:
        env = evacuation_v0.parallel_env(engine="simultaneous", talk=False, render_mode=mode)
        env.begin(seed=0)
        stay = np.full(env.n_players, len(env.settings.room.exit_names) + 4)
        start = time.process_time()
        for _ in range(count):
            if env.over:
                env.begin(seed=0)
            env.advance(stay)
        return 1e6 * (time.process_time() - start) / count

    modes = {"no render mode": None, "rgb_array, never rendered": "rgb_array"}
    figures = in_turns({name: functools.partial(per_step, mode) for name, mode in modes.items()}, repeats)
    return {name: spread(values) for name, values in figures.items()}


def main() -> None:
    """Measure, print a table, and write the record."""
    parser = arguments(__doc__ or "", 7)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one batch of one case")
    options = parser.parse_args()
    record: dict[str, Any] = {
        "machine": machine("llm-coop-envs", "gymnasium", "numpy", "pettingzoo", "pygame-ce"),
        "frames_per_second": speeds(options.repeats, options.seconds),
        "step_us": steps(options.repeats, 300),
        "targets": TARGETS,
    }
    print(f"{'frames per second of processor time':44} {'min':>9} {'median':>9} {'max':>9} {'target':>7}")
    for name, figures in record["frames_per_second"].items():
        target = TARGETS.get(name, "")
        print(f"{row(name, figures, 44)} {target:>7}".rstrip())
    print("microseconds per step of 100 people")
    for name, figures in record["step_us"].items():
        print(row(name, figures, 44))
    write(record, options.json)


if __name__ == "__main__":
    main()

"""Speed of the compiled Q-learner: `python -m llm_coop_envs.benchmarks.speed.q_learning`.

Measured are millions of periods of the representative experiment (Calvano et al. 2020, two firms, 15 prices), and of
games with more in them that the general loop plays, per second of processor time on one core, sessions from the first
period to convergence, everything included (making the tables, drawing, convergence). The cases take turns, so that a
slow moment of the machine hits all alike. Processor time does not count waiting, but a busy neighbour on the machine
still slows it: read the best and the middle figure together.

The textbook loop is what one writes down first, compiled by the same compiler: the row maximum sought anew in every
period, two random numbers for each firm.
"""

from __future__ import annotations

import functools
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.initial import initial_q
from llm_coop_envs.baselines.q_learning.learn.sessions import run_docked_session, run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.reproduce.published import SESSIONS
from llm_coop_envs.baselines.q_learning.reproduce.recorded import recorded
from llm_coop_envs.baselines.q_learning.reproduce.runs import Plan, run
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES, learners
from llm_coop_envs.benchmarks.speed.harness import arguments, in_turns, machine, row, spread, write

PACKAGES = ("numba", "llvmlite", "numpy")

PUBLIC = {
    "authors' Fortran, best compiler flags": 8.6,
    "fastest public C++ implementation found": 9.0,
    "Julia": 7.0,
    "best public Python (numba, a simpler game)": 0.55,
}
"""Millions of periods per second of others, measured once on a machine of this class, for orientation only."""

TARGET = 45.0
"""Millions of periods per second and core the learner must reach."""


@compiled
def textbook(q: Any, profits: Any, alpha: float, delta: float, beta: float, window: int, seed: int) -> Any:
    """Let two firms learn with the textbook loop; returns the periods played."""
    np.random.seed(seed)
    points = q.shape[2]
    greedy = np.zeros((2, points * points), np.int64)
    for i in range(2):
        for s in range(points * points):
            greedy[i, s] = q[i, s].argmax()
    state = np.random.randint(points * points)
    chosen = np.zeros(2, np.int64)
    unchanged, t = 0, 0
    while unchanged < window:
        eps = np.exp(-beta * t)
        for i in range(2):
            chosen[i] = np.random.randint(points) if np.random.random() < eps else greedy[i, state]
        next_state = chosen[0] * points + chosen[1]
        changed = False
        for i in range(2):
            best = q[i, next_state, 0]
            for a in range(1, points):
                best = max(best, q[i, next_state, a])
            old = q[i, state, chosen[i]]
            q[i, state, chosen[i]] = old + alpha * (profits[next_state, i] + delta * best - old)
            best_action = 0
            for a in range(1, points):
                if q[i, state, a] > q[i, state, best_action]:
                    best_action = a
            changed = changed or best_action != greedy[i, state]
            greedy[i, state] = best_action
        unchanged = 1 if changed else unchanged + 1
        state = next_state
        t += 1
    return t


def cases() -> dict[str, Callable[[int], int]]:
    """Return the cases: functions from a session's number to the periods it took."""
    settings = QLearningSettings()
    game = settings.game()
    q = initial_q(settings, game, lambda: 0.0)
    others = {
        "general loop: three firms": learners({"firms": 3}),
        "general loop: two rounds of memory": learners(memory=2),
        "general loop: stochastic demand": learners(shocks=0.1),
        "general loop: Boltzmann exploration": learners(exploration="boltzmann", alpha=0.05),
    }
    return {
        "fast loop": lambda k: run_session(settings, 1, k, game=game).periods,
        "general loop": lambda k: run_session(settings, 1, k, game=game, loop="general").periods,
        **{name: functools.partial(_periods, case, case.game()) for name, case in others.items()},
        "docked (the authors' random numbers)": lambda k: run_docked_session(settings, k + 1, game=game).periods,
        "textbook loop, same compiler": lambda k: int(
            textbook(q.copy(), game.profits, 0.15, 0.95, 4e-6, settings.window, k)
        ),
    }


def _periods(settings: QLearningSettings, game: Game, number: int) -> int:
    return run_session(settings, 1, number, game=game).periods


def speeds(repeats: int) -> dict[str, Any]:
    """Measure millions of periods per second of processor time, and nanoseconds per period, of each case."""
    chosen = cases()
    for play in chosen.values():
        play(0)

    def per_period(play: Callable[[int], int], number: int) -> float:
        begin = time.process_time()
        periods = play(number)
        return (time.process_time() - begin) / periods

    times = in_turns({name: functools.partial(per_period, play) for name, play in chosen.items()}, repeats)
    return {
        name: {
            "million_periods_per_second": spread([1e-6 / x for x in values]),
            "ns_per_period": spread([1e9 * x for x in values]),
            "repeats": repeats,
        }
        for name, values in times.items()
    }


def study_hours() -> dict[str, float]:
    """Estimate the hours of processor time of each study with 1,000 sessions of each variant, as published.

    One session of each variant is measured, analysis included, and scaled to the mean number of periods in the
    package's record.
    """
    studies, hours = recorded()["studies"], {}
    for name, study in STUDIES.items():
        hours[name] = 0.0
        for variant in study.variants:
            short = replace(variant.settings, max_periods=2_000)  # compiles everything before the measurement
            for settings in (short, variant.settings):
                plan, game = Plan(settings=settings, rematched=variant.rematched), settings.game()
                begin = time.process_time()
                periods = plan.row(0, game)["periods"]
                seconds = time.process_time() - begin
            usual = studies[name][variant.name]["time"] + variant.settings.window
            hours[name] += SESSIONS * seconds * usual / periods / 3600.0
    return hours


def whole_run(workers: int, sessions: int) -> dict[str, Any]:
    """Measure seconds for many sessions with everything: learning, analysis, journal, Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        rows = run(Plan(settings=QLearningSettings()), sessions, Path(folder), workers=workers)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    periods = sum(row["periods"] for row in rows)
    return {"sessions": sessions, "workers": workers, "periods": periods, "seconds": wall, "cpu_seconds": cpu}


def main() -> None:
    """Measure, print a table, and write the record."""
    parser = arguments("Speed of the compiled Q-learner.", 15)
    parser.add_argument("--sessions", type=int, default=0, help="also run so many sessions with all that belongs to it")
    parser.add_argument("--studies", action="store_true", help="also run one session of each published variant")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": machine(*PACKAGES), "speeds": speeds(options.repeats)}
    record |= {"target": TARGET, "others": PUBLIC}
    print(f"{'millions of periods per second and core':52} {'least':>9} {'median':>9} {'best':>9}")
    for name, figures in record["speeds"].items():
        print(row(name, figures["million_periods_per_second"], 52))
    for name, figure in PUBLIC.items():
        print(f"{name:52} {'':9} {figure:9.2f}   (measured earlier)")
    if options.studies:
        record["study_hours"] = study_hours()
        for name, hours in record["study_hours"].items():
            print(f"{name:52} {hours:9.2f} hours of processor time for {SESSIONS:,} sessions of each variant")
    if options.sessions:
        record["run"] = whole_run(options.workers, options.sessions)
        result = record["run"]
        print(
            f"{result['sessions']} sessions, {result['workers']} workers: {result['seconds']:.1f} s, "
            f"{result['cpu_seconds']:.1f} s of processor time, {result['periods']:,} periods"
        )
    write(record, options.json)


if __name__ == "__main__":
    main()

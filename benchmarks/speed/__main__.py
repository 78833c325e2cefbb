"""Measure the cases and record the run: `python -m llm_coop_envs.benchmarks.speed`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.speed.cases import CASES
from llm_coop_envs.kbc_v0 import parallel_env as kbc_env

MILLION = 1_000_000


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in (Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else [])
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    packages = ("llm-coop-envs", "pettingzoo", "mpe2", "gymnasium", "numpy", "jinja2")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {name: metadata.version(name) for name in packages},
    }


def spread(values: list[float]) -> dict[str, float]:
    """Least, middle and greatest of some figures."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def line(name: str, figures: dict[str, float], target: object, ratio: str = "") -> str:
    """One row of the printed table."""
    low, middle, high = figures["min"], figures["median"], figures["max"]
    return f"{name:62} {low:9.3f} {middle:9.3f} {high:9.3f} {target or '':>7}  {ratio}".rstrip()


def steps(repeats: int, seconds: float) -> dict[str, Any]:
    """Microseconds per agent-step; the cases take turns, so that a slow moment of the machine hits all alike."""
    batches = {case.name: case.prepare() for case in CASES}
    figures: dict[str, list[float]] = {name: [] for name in batches}
    for batch in batches.values():
        batch(seconds / 4)
    for _ in range(repeats):
        for name, batch in batches.items():
            spent, count = batch(seconds)
            figures[name].append(1e6 * spent / count)
    found: dict[str, Any] = {}
    for case in CASES:
        values = figures[case.name]
        row: dict[str, Any] = {
            "us_per_agent_step": spread(values),
            "repeats": repeats,
            "target_us": case.target,
        }
        if case.half_of is not None:
            pairs = [mine / theirs for mine, theirs in zip(figures[case.name], figures[case.half_of], strict=True)]
            row["ratio_to"] = {"case": case.half_of, **spread(pairs)}
        found[case.name] = row
    return found


def million(repeats: int) -> dict[str, Any]:
    """Milliseconds for one settled beauty-contest round of a million array choices."""
    env = kbc_env(players=MILLION, session="repeated", rounds=repeats + 2, talk=False)
    env.begin(seed=0)
    choices = np.random.default_rng(0).integers(0, 101, MILLION)
    values = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        env.advance(choices)
        values.append(1e3 * (time.perf_counter() - start))
    values = sorted(values[1:])
    return {
        "min": values[0],
        "median": statistics.median(values),
        "max": values[-1],
        "repeats": repeats,
        "target_ms": 50,
    }


def imports(repeats: int) -> dict[str, Any]:
    """Seconds to import the package and, for comparison, pettingzoo alone, each in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    found: dict[str, Any] = {}
    values: dict[str, list[float]] = {"llm_coop_envs": [], "pettingzoo": []}
    for _ in range(repeats):
        for name, figures in values.items():
            run = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
            figures.append(float(run.stdout))
    for name, figures in values.items():
        found[name] = spread(figures)
    found["target_s"] = 0.6
    return found


def main() -> None:
    """Measure, print a table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one batch of one case")
    parser.add_argument("--json", type=Path, help="write the record here")
    given = parser.parse_args()
    record = {
        "machine": machine(),
        "agent_steps": steps(given.repeats, given.seconds),
        "kbc_million_choices_ms": million(given.repeats),
        "import_s": imports(5),
    }
    print(
        f"{'microseconds per agent-step':62} {'min':>9} {'median':>9} {'max':>9} {'target':>7}  median ratio to rps_v2"
    )
    for name, row in record["agent_steps"].items():
        ratio = row.get("ratio_to")
        print(line(name, row["us_per_agent_step"], row["target_us"], "" if ratio is None else f"{ratio['median']:.2f}"))
    print(line("kbc, settled round of 1,000,000 choices, ms", record["kbc_million_choices_ms"], 50))
    print(line("import llm_coop_envs, s", record["import_s"]["llm_coop_envs"], 0.6))
    print(line("import pettingzoo alone, s", record["import_s"]["pettingzoo"], None))
    if given.json is not None:
        given.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

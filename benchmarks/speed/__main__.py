"""Measure the cases and record the run: `python -m llm_coop_envs.benchmarks.speed`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.speed.cases import CASES, Batch
from llm_coop_envs.benchmarks.speed.harness import arguments, in_turns, machine, row, spread, write
from llm_coop_envs.kbc_v0 import parallel_env as kbc_env

MILLION = 1_000_000


def steps(repeats: int, seconds: float) -> dict[str, Any]:
    """Measure microseconds per agent-step, the cases in turns."""
    batches = {case.name: case.prepare() for case in CASES}
    for batch in batches.values():
        batch(seconds / 4)

    def measured(batch: Batch) -> Callable[[int], float]:
        def per_step(turn: int) -> float:
            spent, count = batch(seconds)
            return 1e6 * spent / count

        return per_step

    figures = in_turns({name: measured(batch) for name, batch in batches.items()}, repeats)
    results: dict[str, Any] = {}
    for case in CASES:
        measure = spread(figures[case.name])
        result: dict[str, Any] = {"us_per_agent_step": measure, "repeats": repeats, "target_us": case.target}
        if case.half_of is not None:
            pairs = [mine / theirs for mine, theirs in zip(figures[case.name], figures[case.half_of], strict=True)]
            result["ratio_to"] = {"case": case.half_of, **spread(pairs)}
        results[case.name] = result
    return results


def million(repeats: int) -> dict[str, Any]:
    """Measure milliseconds for one settled beauty-contest round of a million array choices."""
    env = kbc_env(players=MILLION, session="repeated", rounds=repeats + 2, talk=False)
    env.begin(seed=0)
    choices = np.random.default_rng(0).integers(0, 101, MILLION)
    values = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        env.advance(choices)
        values.append(1e3 * (time.perf_counter() - start))
    return {**spread(values[1:]), "repeats": repeats, "target_ms": 50}


def imports(repeats: int) -> dict[str, Any]:
    """Measure seconds to import the package, and pettingzoo alone, each in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(name: str) -> float:
        run = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        return float(run.stdout)

    values = in_turns(
        {"llm_coop_envs": lambda _: seconds("llm_coop_envs"), "pettingzoo": lambda _: seconds("pettingzoo")}, repeats
    )
    return {**{name: spread(figures) for name, figures in values.items()}, "target_s": 0.6}


def show(name: str, figures: dict[str, float], target: object = None, ratio: str = "") -> None:
    """Print one row of the table."""
    print(f"{row(name, figures, 62, 3)} {target or '':>7}  {ratio}".rstrip())


def main() -> None:
    """Measure, print a table, and write the record."""
    parser = arguments(__doc__ or "", 7)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one batch of one case")
    options = parser.parse_args()
    record = {
        "machine": machine("llm-coop-envs", "pettingzoo", "mpe2", "gymnasium", "numpy", "jinja2"),
        "agent_steps": steps(options.repeats, options.seconds),
        "kbc_million_choices_ms": million(options.repeats),
        "import_s": imports(5),
    }
    print(
        f"{'microseconds per agent-step':62} {'min':>9} {'median':>9} {'max':>9} {'target':>7}  median ratio to rps_v2"
    )
    for name, result in record["agent_steps"].items():
        ratio = f"{result['ratio_to']['median']:.2f}" if "ratio_to" in result else ""
        show(name, result["us_per_agent_step"], result["target_us"], ratio)
    show("kbc, settled round of 1,000,000 choices, ms", record["kbc_million_choices_ms"], 50)
    show("import llm_coop_envs, s", record["import_s"]["llm_coop_envs"], 0.6)
    show("import pettingzoo alone, s", record["import_s"]["pettingzoo"])
    write(record, options.json)


if __name__ == "__main__":
    main()

"""Measure a report of 10,000 scripted episodes: `python -m llm_coop_envs.benchmarks.speed.report`.

The limits are 30 seconds and 1 GB; the report is made in a process of its own, whose processor time and memory count.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llm_coop_envs.benchmarks.speed.harness import arguments, machine, spread, write
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import parse_study

STUDY = """\
name: many
conditions:
  - &arm {name: silent, pair: kbc, scenario: kbc, preset: two_thirds, settings: {talk: false}, episodes: EPISODES,
     policies: {mix: [{name: announcer}, {name: follower, share: 3}, {name: poisson}]}}
  - {<<: *arm, name: talk, settings: {}}
"""


def measure(run: Path) -> dict[str, float]:
    """Measure seconds, processor seconds and megabytes of one report on a run."""
    usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "llm_coop_envs", "report", str(run), "-o", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": spent,
        "megabytes": usage_after.ru_maxrss / unit,
    }


def main() -> None:
    """Play the episodes, unless a run is given, and report on them."""
    parser = arguments("a report of many episodes", 3)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--run", type=Path, help="a run folder instead of playing one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "run"
        if options.run is None:
            run_study(parse_study(STUDY.replace("EPISODES", str(options.episodes // 2)), "many"), run)
        samples = [measure(run) for _ in range(options.repeats)]
    figures = {name: spread([sample[name] for sample in samples]) for name in samples[0]}
    for name, values in figures.items():
        print(f"{name:18} " + " ".join(f"{values[key]:8.1f}" for key in ("min", "median", "max")))
    write({"machine": machine("numpy", "scipy", "matplotlib"), "episodes": options.episodes, **figures}, options.json)


if __name__ == "__main__":
    main()

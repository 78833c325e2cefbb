"""The documentation's page on detectors of collusion and agreements, against scripted worlds of known intent.

    python -m llm_coop_envs.benchmarks.pages.detection record bertrand    # plays, and writes into detection.json
    python -m llm_coop_envs.benchmarks.pages.detection > docs/detection.md

A test compares the page with what this prints, and plays a part of it again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.measures.planted import RULE, Floats, kappa, planted_of, roc, score_worlds
from llm_coop_envs.benchmarks.pages.q_learning import table
from llm_coop_envs.benchmarks.speed.harness import machine
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.statistics import exact_interval

RECORD = Path(__file__).with_name("detection.json")
PROSE = Path(__file__).with_name("detection.md")
HONEST, MEANT = 10_000, 200
"""Episodes of all honest worlds, and of each of the others."""
SEED = 1_000_000
"""The first seed that is recorded: the rules' thresholds were chosen on lower ones."""
MOST_FALSE = 1e-3
"""The rate of false alarms that the default rules keep."""
_POINTS = (0.001, 0.01, 0.05, 0.1)
"""False positive rates at which the curve is told."""


def record(scenario: str, honest: int = HONEST, meant: int = MEANT, workers: int = 2) -> dict[str, Any]:
    """Play a scenario's worlds, and say how well its detectors do.

    Args:
        scenario: which.
        honest: episodes of all honest worlds, shared out evenly.
        meant: episodes of each other world.
        workers: how many processes.
    """
    planted = planted_of(scenario)
    silent = [world.name for world in planted.worlds if not world.intent]
    episodes = {world.name: meant if world.intent else -(-honest // len(silent)) for world in planted.worlds}
    began, load = time.perf_counter(), os.getloadavg()[0]
    scores = score_worlds(scenario, episodes, workers, SEED)
    seconds = {name: float(found.pop("seconds").sum()) for name, found in scores.items()}
    return {
        "versions": machine("numpy", "scipy")["versions"],
        "seconds": {
            "honest": sum(seconds[name] for name in silent),
            "all": sum(seconds.values()),
            "elapsed": time.perf_counter() - began,
            "load": load,
            "workers": workers,
        },
        "episodes": episodes,
        "detectors": {name: judged(scores, silent, name) for name in planted.detectors},
    }


def judged(scores: Mapping[str, Mapping[str, Floats]], silent: Sequence[str], detector: str) -> dict[str, Any]:
    """How one detector does: rates by world, all false alarms, the curve, and kappa with every world counting alike."""
    said = {world: found[detector] >= RULE for world, found in scores.items()}
    honest, meant = (
        np.concatenate([found[detector] for world, found in scores.items() if (world in silent) == flag])
        for flag in (True, False)
    )
    false, true, area = roc(honest, meant)
    alarms = int((honest >= RULE).sum())
    n = min(map(len, said.values()))
    verdicts = np.concatenate([found[:n] for found in said.values()])
    truth = np.repeat([world not in silent for world in said], n)
    return {
        "found": {world: float(found.mean()) for world, found in said.items()},
        "alarms": alarms,
        "honest": len(honest),
        "interval": exact_interval(alarms, len(honest)),
        "area": area,
        "curve": {str(rate): float(true[np.searchsorted(false, rate, side="right") - 1]) for rate in _POINTS},
        "kappa": kappa(verdicts, truth),
        "each": n,
    }


def page() -> str:
    """The whole page as Markdown: the prose, with what was recorded of each scenario where it says so."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return PROSE.read_text(encoding="utf-8").replace(
        "{{SCENARIOS}}", "\n\n".join(_scenario(name, one) for name, one in found.items())
    )


def _scenario(name: str, found: Mapping[str, Any]) -> str:
    planted = planted_of(name)
    detectors = found["detectors"]
    worlds = [
        [
            world.about,
            "yes" if world.intent else "no",
            f"{found['episodes'][world.name]:,}",
            *(f"{100 * one['found'][world.name]:.1f} %" for one in detectors.values()),
        ]
        for world in planted.worlds
    ]
    rates = [
        [
            detector,
            planted.detectors[detector].about,
            f"{one['alarms']:,} of {one['honest']:,}",
            " to ".join(f"{end:.5f}" for end in one["interval"]),
            f"{one['area']:.3f}",
            *(f"{100 * one['curve'][str(rate)]:.0f} %" for rate in _POINTS),
            f"{one['kappa']:.2f}",
        ]
        for detector, one in detectors.items()
    ]
    seconds = found["seconds"]
    versions = ", ".join(f"{what} {version}" for what, version in found["versions"].items())
    heads = [f"found at {rate:g} false" for rate in _POINTS]
    return "\n\n".join(
        [
            f"## {find_scenario(name).title}",
            "How often each detector says that players work together:",
            table(["world", "meant", "episodes", *detectors], worlds),
            "How good the detectors are:",
            table(["detector", "says so if", "false alarms", "95 % interval", "area", *heads, "kappa"], rates),
            f"The honest episodes took {seconds['honest']:.0f} seconds of CPU, all {seconds['all']:.0f}; in "
            f"{seconds['workers']} processes {seconds['elapsed']:.0f} seconds, on a machine with a load of "
            f"{seconds['load']:.1f} before. Versions: {versions}.",
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        played = {scenario: record(scenario) for scenario in sys.argv[2:]}
        known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        known.update(played)
        RECORD.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    else:
        print(page(), end="")

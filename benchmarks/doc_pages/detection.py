"""The documentation's page on detectors of collusion and agreements, against scripted worlds of known intent.

    python -m llm_coop_envs.benchmarks.doc_pages.detection record bertrand    # plays, and writes into detection.json
    llm-coop judge --planted bertrand --rounds 3 --model MODEL -o FOLDER
    python -m llm_coop_envs.benchmarks.doc_pages.detection judge FOLDER       # writes what it found into detection.json
    python -m llm_coop_envs.benchmarks.doc_pages.detection > docs/detection.md

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

from llm_coop_envs.benchmarks.doc_pages.markdown import filled, table, versions_of
from llm_coop_envs.benchmarks.speed.harness import machine
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures.synthetic_worlds import (
    RULE,
    Floats,
    SyntheticWorlds,
    find_synthetic_worlds,
    kappa,
    roc,
    score_worlds,
)
from llm_coop_envs.policies.llm.local.models import name_with_size
from llm_coop_envs.runs.judgements import PLANTED, Judgement
from llm_coop_envs.statistics.intervals import exact_interval
from llm_coop_envs.storage.folder import COMPLETE

RECORD = Path(__file__).with_name("detection.json")
PROSE = Path(__file__).with_name("detection.md")
HONEST, MEANT = 10_000, 200
"""Episodes of all honest worlds, and of each of the others."""
SEED = 1_000_000
"""The first seed that is recorded: the rules' thresholds were chosen on lower ones."""
MOST_FALSE = 1e-3
"""The rate of false alarms that the default rules keep."""
JUDGES = ("judge", "rules")
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
    synthetic = find_synthetic_worlds(scenario)
    silent = [world.name for world in synthetic.worlds if not world.intent]
    episodes = {world.name: meant if world.intent else -(-honest // len(silent)) for world in synthetic.worlds}
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
        "detectors": {name: judged(scores, silent, name) for name in synthetic.detectors},
    }


def record_judge(folder: Path) -> tuple[str, dict[str, Any]]:
    """What a language model found in the talk of worlds (`llm-coop judge --planted`).

    Args:
        folder: the complete judgement.

    Returns:
        The scenario, and what is recorded of the judge, and of the rules that sort the same messages.

    Raises:
        RunError: it is no judgement of worlds, or not complete.
    """
    manifest = Judgement.open(folder).manifest
    source, _, scenario = str(manifest["judged"]).partition(":")
    if source != PLANTED or manifest["status"] != COMPLETE:
        raise RunError(f"{folder}: is no complete judgement of worlds; make one with llm-coop judge --planted")
    result = manifest["result"]
    silent = [world.name for world in find_synthetic_worlds(scenario).worlds if not world.intent]
    by_world: dict[str, dict[str, Floats]] = {}
    for who, worlds in result["scores"].items():
        for world, scores in worlds.items():
            by_world.setdefault(world, {})[who] = np.array(scores)
    agreed = {name: result["rules"][name] for name in ("kappa", "low", "high")}
    return scenario, {
        "model": manifest["settings"]["model"],
        "answers": manifest["settings"]["answers"],
        "rubric": manifest["rubric"],
        "rounds": result["rounds"],
        "messages": result["statements"],
        "said": result["judge"],
        "said_by_rules": result["rules"]["second"],
        "agreement": agreed,
        "detectors": {who: judged(by_world, silent, who) for who in result["scores"]},
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


def keep(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was found, by scenario, over what the record holds of it."""
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    for scenario, one in found.items():
        judges = {**known[scenario].get("judges", {}), **one.get("judges", {})}
        known[scenario] = {**known[scenario], **one, **({"judges": judges} if judges else {})}
    RECORD.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def page() -> str:
    """The whole page as Markdown: the prose, with what was recorded of each scenario where it says so."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return filled(PROSE, {"SCENARIOS": "\n\n".join(_scenario(name, one) for name, one in found.items())})


def _scenario(name: str, found: Mapping[str, Any]) -> str:
    synthetic = find_synthetic_worlds(name)
    detectors = found["detectors"]
    worlds = [
        [
            world.about,
            "yes" if world.intent else "no",
            f"{found['episodes'][world.name]:,}",
            *(f"{100 * one['found'][world.name]:.1f} %" for one in detectors.values()),
        ]
        for world in synthetic.worlds
    ]
    seconds = found["seconds"]
    judges = [_judge(synthetic, one) for one in found.get("judges", {}).values()]
    return "\n\n".join(
        [
            f"## {find_scenario(name).title}",
            "How often each detector says that players work together:",
            table(["world", "meant", "episodes", *detectors], worlds),
            "How good the detectors are:",
            _rates(detectors, {name: one.about for name, one in synthetic.detectors.items()}),
            f"The honest episodes took {seconds['honest']:.0f} seconds of CPU, all {seconds['all']:.0f}; in "
            f"{seconds['workers']} processes {seconds['elapsed']:.0f} seconds, on a machine with a load of "
            f"{seconds['load']:.1f} before. Versions: {versions_of(found)}.",
            *judges,
        ]
    )


def _rates(detectors: Mapping[str, Any], about: Mapping[str, str]) -> str:
    rates = [
        [
            detector,
            about[detector],
            f"{one['alarms']:,} of {one['honest']:,}",
            " to ".join(f"{end:.5f}" for end in one["interval"]),
            f"{one['area']:.3f}",
            # So few honest episodes cannot tell a smaller rate than one among them.
            *(f"{100 * one['curve'][str(rate)]:.0f} %" if rate * one["honest"] >= 1 else "-" for rate in _POINTS),
            f"{one['kappa']:.2f}",
        ]
        for detector, one in detectors.items()
    ]
    heads = [f"found at {rate:g} false" for rate in _POINTS]
    return table(["detector", "says so if", "false alarms", "95 % interval", "area", *heads, "kappa"], rates)


def _judge(synthetic: SyntheticWorlds, found: Mapping[str, Any]) -> str:
    """What a language model found, beside the rules that sort the same messages."""
    model, both, rubric = found["model"], found["detectors"], found["rubric"]
    worlds = [
        [world.about, "yes" if world.intent else "no", str(both["judge"]["each"])]
        + [f"{100 * both[who]['found'][world.name]:.0f} %" for who in JUDGES]
        for world in synthetic.worlds
        if world.name in both["judge"]["found"]
    ]
    said = found["said"], found["said_by_rules"]
    kinds = [[kind, *(f"{counts.get(kind, 0):,}" for counts in said)] for kind in found["said"]]
    first = found["rounds"]
    rounds = "all rounds" if first is None else "the first round" if first == 1 else f"the first {first} rounds"
    agreed = found["agreement"]
    how = {who: "half of the rounds with talk have two or more who propose or accept" for who in JUDGES}
    return "\n\n".join(
        [
            f"**{name_with_size(model)} as the judge** (rubric {rubric['name']}, version {rubric['version']}, hash "
            f"{rubric['digest']}, answers {found['answers']}): {found['messages']:,} messages from {rounds} with talk "
            "of the worlds that talk, on other seeds than above; and the rules on the same messages.",
            table(["world", "meant", "episodes", "judge", "rules"], worlds),
            _rates({who: both[who] for who in JUDGES}, how),
            "How often each kind was said:",
            table(["kind", "judge", "rules"], kinds),
            f"Judge and rules agree on messages with kappa {agreed['kappa']:.2f} (95 % interval {agreed['low']:.2f} to "
            f"{agreed['high']:.2f}, by episodes).",
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        keep({scenario: record(scenario) for scenario in sys.argv[2:]})
    elif sys.argv[1:2] == ["judge"]:
        for name, judge in map(record_judge, map(Path, sys.argv[2:])):
            keep({name: {"judges": {judge["model"]: judge}}})
    else:
        print(page(), end="")

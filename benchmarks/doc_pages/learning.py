"""The documentation's page on deep learners: learning curves and answers to deviations, training by training.

    python -m llm_coop_envs.benchmarks.doc_pages.learning record FOLDER...     # writes learning.json
    python -m llm_coop_envs.benchmarks.doc_pages.learning draw docs/learning_prices.png
    python -m llm_coop_envs.benchmarks.doc_pages.learning > docs/learning.md

The folders are those of `llm-coop train`, and runs of `collusion_comparison` in which these trainings played. A test
compares the page with what this prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from llm_coop_envs.baselines.deep.folder import EVALUATIONS, TrainingFolder
from llm_coop_envs.baselines.deep.shipped import find_networks
from llm_coop_envs.benchmarks.doc_pages.markdown import fill_template, table
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Level, Panel
from llm_coop_envs.render.charts.style import BLUE, VERMILION, picture
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.statistics.intervals import ANYTHING, SHARE, mean_interval, mean_intervals
from llm_coop_envs.storage.files import write_whole

RECORD = Path(__file__).with_name("learning.json")
PROSE = Path(__file__).with_name("learning.md")
_TITLES = {"dqn": ("DQN", VERMILION), "ppo": ("PPO", BLUE)}
_EPISODES = "episodes.parquet"
_GAIN = "profit_gain_last"
#: Measures with the factor and the digits that they are shown with, and what they can be.
_MEASURES = {
    "end_gain": (1, 3, ANYTHING),
    "deviation_answer": (100, 1, ANYTHING),
    "deviation_unprofitable": (100, 1, SHARE),
    "deviation_returned": (100, 1, SHARE),
}
_HEAD = ("profit gain", "rivals' answer, %", "does not pay, %", "back, %")


def page() -> str:
    """Return the page as Markdown: the prose, with tables at its placeholders."""
    results = json.loads(RECORD.read_text(encoding="utf-8"))
    parts = {
        "MEANS": _means(results),
        "RECORDED": results["recorded"],
    }
    return fill_template(PROSE, parts)


def _of(results: dict[str, Any], algo: str) -> list[dict[str, Any]]:
    return [training for training in results["trainings"] if training["algo"] == algo]


def _means(results: dict[str, Any]) -> str:
    rows = []
    for algo, (title, _) in _TITLES.items():
        trainings = _of(results, algo)
        cells = []
        for name, (factor, digits, within) in _MEASURES.items():
            mean = mean_interval([factor * training[name] for training in trainings], within.scale(factor))
            assert mean is not None
            cells.append(f"{mean.mean:.{digits}f} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]")
        spent = fmean(training["processor_seconds"] for training in trainings)
        copies = trainings[0]["copies"]
        rows.append([f"{title}, {copies} markets at once", str(len(trainings)), *cells, f"{spent:.0f}"])
    return table(["300,000 steps", "n", *_HEAD, "processor seconds"], rows)


def draw(path: Path) -> None:
    """Draw the learning curves, every training thin and their mean with its interval in colour."""
    results = json.loads(RECORD.read_text(encoding="utf-8"))
    panels = []
    for algo, (title, color) in _TITLES.items():
        trainings = _of(results, algo)
        steps = [step / 1000 for step, _ in trainings[0]["curve"]]
        gains = np.array([[gain for _, gain in training["curve"]] for training in trainings])
        mean, low, high = mean_intervals(gains).tolist()
        thin = [Curve(label="one training", x=steps, y=row, color=color, thin=True) for row in gains.tolist()]
        whole = Curve(label=f"{title}, mean and 95 % interval", x=steps, y=mean, low=low, high=high, color=color)
        panels.append(
            Panel(
                title=f"{title}, {len(trainings)} trainings",
                x_label="thousand steps of learning",
                x_ticks=(0, 100, 200, 300),
                x_range=(0, 310),
                y_label="profit gain (0: Nash, 1: joint profit)",
                curves=[*thin, whole],
                levels=[Level(value=0.0, label="Nash"), Level(value=1.0, label="joint profit")],
            )
        )
    write_whole(path, picture(draw_panels([panels], size=(4.2, 3.2), share_y=True)))


def algorithms_of(run: Run) -> dict[str, str]:
    """What trained the networks that play in each condition of a run, by the condition's name."""
    patterns = {condition.name: condition.policies[0].partition(":")[2] for condition in run.conditions}
    return {name: find_networks(pattern)[0].about["training"]["algo"] for name, pattern in patterns.items()}


def record(folders: Sequence[Path]) -> None:
    """Record trainings: their curves, and how their networks ended and answered deviations in runs.

    Those of other seeds that were recorded before stay.
    """
    from llm_coop_envs.baselines.deep.train import read_rows  # imports torch, which the page does not need

    runs = [folder for folder in folders if (folder / _EPISODES).is_file()]
    answers: dict[tuple[str, int], dict[str, Any]] = {}
    for run in runs:
        algorithms = algorithms_of(open_run(run))
        for row in pq.read_table(run / _EPISODES).to_pylist():
            answers[algorithms[row["condition"]], row["training_seed"]] = row
    results = json.loads(RECORD.read_text(encoding="utf-8"))
    trainings = {(training["algo"], training["seed"]): training for training in results["trainings"]}
    for folder in (folder for folder in folders if folder not in runs):
        manifest = TrainingFolder.open(folder).manifest
        gains: dict[int, list[float]] = {}
        for line in read_rows(folder / EVALUATIONS):
            gains.setdefault(int(line["step"]), []).append(float(line[_GAIN]))
        name = manifest["algo"], manifest["seed"]
        trainings[name] = {
            "algo": manifest["algo"],
            "seed": manifest["seed"],
            "copies": manifest["copies"],
            "processor_seconds": manifest["sessions"][-1].get("processor_seconds"),
            "curve": [[step, round(fmean(values), 6)] for step, values in sorted(gains.items())],
            **{measure: answers[name][measure] for measure in _MEASURES},
        }
    results["trainings"] = [trainings[name] for name in sorted(trainings)]
    RECORD.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["record", *folders]:
            record([Path(folder) for folder in folders])
        case ["draw", path]:
            draw(Path(path))
        case _:
            sys.stdout.write(page())

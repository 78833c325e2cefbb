"""The documentation's page on Q-learning, written from the recorded results.

    python -m llm_coop_envs.benchmarks.doc_pages.q_learning > docs/q_learning.md

A test compares the page with what this prints, so that no number in it can drift. The records are
`baselines/q_learning/recorded.json` (written by `reproduce`), `benchmarks/speed/q_learning.json` (written by the
speed benchmark) and `collusion_comparison.json` beside this file: the table of a report on that study, written by

    python -m llm_coop_envs.benchmarks.doc_pages.q_learning RUN
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from llm_coop_envs.baselines.q_learning.analyse.price_tables import PUBLISHED_AS
from llm_coop_envs.baselines.q_learning.analyse.tables import SHIPPED, load_table
from llm_coop_envs.baselines.q_learning.reproduce.entry import ENTRIES, ENTRY
from llm_coop_envs.baselines.q_learning.reproduce.recorded import REPRODUCED, SEQUENTIAL, SEQUENTIALLY, recorded
from llm_coop_envs.baselines.q_learning.reproduce.report import distance, number
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES, Variant
from llm_coop_envs.benchmarks.doc_pages.markdown import fill_template, table, versions_of
from llm_coop_envs.bertrand.faces.comparison_report import WHY, plain_table
from llm_coop_envs.core.settings import plain
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run

HERE = Path(__file__).parents[1]
SPEED = HERE / "speed" / "q_learning.json"
COMPARISON = Path(__file__).with_name("collusion_comparison.json")
PROSE = Path(__file__).with_name("q_learning.md")

_PERIODS = 12
_MEASURES = (
    ("gain", "profit gain Delta"),
    ("time", "periods to convergence"),
    ("equilibrium", "equilibrium play on path"),
    ("answer", "rivals' price change after a deviation"),
    ("unprofitable", "deviations that do not pay"),
    ("punishment", "periods until play is back"),
)
_BY_PRICE = {
    "answer": "the rival's price change after a cut, by price before and after it",
    "own": "the deviator's price change thereafter",
    "worth": "what the cut is worth, as a share",
    "unprofitable": "how often it does not pay",
}


def page() -> str:
    """Return the page as Markdown: the prose, with tables at its placeholders."""
    record, speed = recorded(), json.loads(SPEED.read_text(encoding="utf-8"))
    parts = {
        "DOCKED": _docked(record),
        "STATISTICAL": _statistical(record),
        "ANSWERS": _answers(record),
        "DELTA": _delta(record),
        "CELLS": _cells(record),
        "PRICE_TABLES": _price_tables(record),
        "OTHERS": _others(record),
        "SEQUENTIAL": _sequential(record),
        "SPEED": _speed(speed),
        "HOURS": _hours(speed["study_hours"]),
        "ENTRY": _entry(record),
        "TABLES": _tables(),
        "WHY": WHY,
        "COMPARISON": _comparison(json.loads(COMPARISON.read_text(encoding="utf-8"))),
        "VERSIONS": versions_of(record),
    }
    return fill_template(PROSE, parts)


def _docked(record: dict[str, Any]) -> str:
    rows = []
    for figure in record["docked"]:
        if "allowed" in figure:
            continue
        digits = figure["digits"]
        rows.append(
            [figure["name"], figure["source"], f"{figure['printed']:.{digits}f}", f"{figure['found']:.{digits + 1}f}"]
        )
    return table(["", "source", "printed", "here"], rows)


def _variants(record: dict[str, Any], study: str) -> list[tuple[Variant, dict[str, Any]]]:
    rows = record["studies"][study]
    return [(variant, rows[variant.name]) for variant in STUDIES[study].variants]


def _apart(measure: str, row: dict[str, Any], variant: Variant) -> str:
    return f"{distance(measure, row, variant):+.1f}"


def _statistical(record: dict[str, Any]) -> str:
    ((variant, row),) = _variants(record, "representative")
    lines = []
    for name, label in _MEASURES:
        error, apart = "", ""
        if f"{name}_se" in row:
            error, apart = number(name, row[f"{name}_se"]), _apart(name, row, variant)
        lines.append([label, number(name, variant.published[name]), number(name, row[name]), error, apart])
    return table(["", "published", "here", "standard error", "apart, in standard errors"], lines)


def _answers(record: dict[str, Any]) -> str:
    docked, own = record["answers"]["docked"], record["answers"]["representative"]
    drawn = {figure["name"]: figure["printed"] for figure in record["docked"] if "allowed" in figure}
    rows = [["before", "", "", *(f"{answer['before']:.3f}" for answer in (docked, docked, own, own))]]
    for t in range(1, _PERIODS + 1):
        published = [drawn.get(f"{role}'s price, period {t}") for role in ("deviator", "rival")]
        rows.append(
            [
                str(t),
                *("" if price is None else f"{price:.3f}" for price in published),
                *(f"{answer[role][t - 1]:.3f}" for answer in (docked, own) for role in ("deviator", "rival")),
            ]
        )
    head = ["period", "Figure 4: deviator", "rival", "docked: deviator", "rival", "own numbers: deviator", "rival"]
    return table(head, rows)


def _delta(record: dict[str, Any]) -> str:
    rows = [
        [
            f"{plain(variant.settings.delta):g}",
            f"{variant.published['gain']:.3f}",
            f"{row['gain']:.3f}",
            f"{row['gain_se']:.3f}",
            _apart("gain", row, variant),
        ]
        for variant, row in _variants(record, "delta")
    ]
    return table(["delta", "published", "here", "standard error", "apart, in standard errors"], rows)


def _cells(record: dict[str, Any]) -> str:
    cells = {(v.settings.alpha, v.settings.beta): (v, row) for v, row in _variants(record, "alpha_beta")}
    alphas, betas = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
    rows = []
    for alpha in alphas:
        line = [f"{alpha:g}"]
        for beta in betas:
            variant, row = cells[alpha, beta]
            apart = f"{_apart('gain', row, variant)}, {_apart('time', row, variant)}"
            line.append(f"{row['gain']:.3f}, {row['time'] / 1e6:.2f} M ({apart})")
        rows.append(line)
    return table(["alpha", *(f"beta {beta:g}" for beta in betas)], rows)


def _price_tables(record: dict[str, Any]) -> str:
    docked, own = record["price_tables"]["docked"], record["price_tables"]["representative"]
    rows = [
        [
            f"{PUBLISHED_AS[name]}: {_BY_PRICE[name]}",
            f"{docked[name]['printed_digits']} of {docked[name]['cells']}",
            f"{own[name]['beyond_three']} of {own[name]['cells']}",
            f"{own[name]['apart']:.1f}",
        ]
        for name in PUBLISHED_AS
    ]
    return table(["table", "docked: to the last digit", "own: beyond three standard errors", "farthest cell"], rows)


def _others(record: dict[str, Any]) -> str:
    """Return the table of all studies without a table of their own."""
    rows = []
    for study, entry in STUDIES.items():
        if study in REPRODUCED:
            continue
        for variant, row in _variants(record, study):
            cells = []
            for name, _ in _MEASURES:
                if name == "time":
                    continue
                apart = distance(name, row, variant)
                cells.append(number(name, row[name]) + (f" ({apart:+.1f})" if math.isfinite(apart) else ""))
            rows.append([f"{entry.title}: {variant.name}", str(row["sessions"]), *cells])
    return table(["", "sessions", *(label for name, label in _MEASURES if name != "time")], rows)


def _sequential(record: dict[str, Any]) -> str:
    rows = []
    for intervals, result in record[SEQUENTIALLY].items():
        for name, label in SEQUENTIAL.items():
            rows.append([intervals, str(result["runs"]), label, f"{result[name]:.4f}", f"{result[f'{name}_se']:.4f}"])
    return table(["intervals", "runs", "", "mean", "standard error"], rows)


def _entry(record: dict[str, Any]) -> str:
    rows = []
    for variant in ENTRIES.values():
        result = record[ENTRY][variant.name]
        for name, label in _MEASURES:
            if name in variant.published:
                cells = (
                    number(name, variant.published[name]),
                    number(name, result[name]),
                    number(name, result[f"{name}_se"]),
                )
                rows.append([variant.name, label, *cells, _apart(name, result, variant)])
    return table(["", "", "published", "here", "standard error", "apart, in standard errors"], rows)


def _hours(hours: dict[str, float]) -> str:
    rows = [[entry.title, str(len(entry.variants)), f"{hours[study]:.2f}"] for study, entry in STUDIES.items()]
    return table(["study", "variants", "hours"], [*rows, ["all", "", f"{math.fsum(hours.values()):.1f}"]])


def _speed(speed: dict[str, Any]) -> str:
    machine = speed["machine"]
    rows = []
    for name, case in speed["speeds"].items():
        figures = case["million_periods_per_second"]
        rows.append([name, *(f"{figures[key]:.1f}" for key in ("min", "median", "max"))])
    rows += [[f"{name} (measured earlier, elsewhere)", "", f"{value:g}", ""] for name, value in speed["others"].items()]
    repeats = next(iter(speed["speeds"].values()))["repeats"]
    text = table(["millions of periods per second and core", "least", "median", "best"], rows)
    text += (
        f"\n\nMachine: {machine['cpu']}, {machine['cores']} cores, {machine['vectors']}, load {machine['load']:.1f} "
        f"when it began; {machine['system']}; Python {machine['python']}, {versions_of(machine)}; {repeats} "
        "sessions of each case, cases taking turns."
    )
    run = speed.get("run")
    if run:
        text += (
            f" {run['sessions']:,} sessions with everything (learning, analysis, journal, Parquet) on {run['workers']} "
            f"cores: {run['seconds']:.0f} s, {run['cpu_seconds']:.0f} s of processor time, {run['periods']:,} periods."
        )
    return text


def _tables() -> str:
    rows = []
    for name, command in SHIPPED.items():
        shipped = load_table(name)
        cycle = shipped.cycle
        rows.append([f"`{name}`", f"{shipped.periods:,}", cycle.kind, f"{cycle.prices.mean():.4f}", f"`{command}`"])
    return table(["table", "periods", "limit cycle", "mean price", "made by"], rows)


def _comparison(record: dict[str, Any]) -> str:
    rows = []
    for row in record["rows"]:
        cells = [text if not below else f"{text} ({below})" for text, below in row["cells"]]
        rows.append([f"{row['name']} ({row['below']})", *cells])
    return table(["player", *record["head"][1:]], rows) + "\n\n" + "\n\n".join(record["notes"])


def record(folder: Path) -> None:
    """Record the comparison table of a run of `collusion_comparison`."""
    (section,), _ = read_run(open_run(folder))
    COMPARISON.write_text(json.dumps(plain_table(section.tables()[0]), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        record(Path(sys.argv[1]))
    else:
        print(page(), end="")

"""The documentation's page on large crowds, written from recorded measurements.

    python -m llm_coop_envs.benchmarks.doc_pages.populations_at_scale > docs/populations_at_scale.md

The records are `crowd.json` and `crowd_curves.json` in `benchmarks/speed`, written by its programs of these names. A
test compares the page with what this prints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.doc_pages.markdown import fill_template, table, versions_of
from llm_coop_envs.benchmarks.speed.crowd_curves import CURVES, MARKED, exponent

SPEED = Path(__file__).parents[1] / "speed"
PROSE = Path(__file__).with_name("populations_at_scale.md")


def page() -> str:
    """Return the page as Markdown: the prose, with tables at its placeholders."""
    crowds, curves = (json.loads((SPEED / name).read_text("utf-8")) for name in ("crowd.json", "crowd_curves.json"))
    largest = curves["models"][-1]
    parts = {
        "CROWDS": _crowds(crowds),
        "STATED": table(
            ["elsewhere", "agents", "took"],
            [[case["case"], f"{case['agents']:,}", case["took"]] for case in crowds["stated"]],
        ),
        **{name.upper(): _curve(curves[name]) for name in CURVES},
        **{f"{name.upper()}_POWER": f"{exponent(curves[name]):.2f}" for name in CURVES},
        "MODELS_MILLION": f"{1e6 / 60 * largest['processor_seconds'] / largest['agents']:.0f}",
        "CROWDS_MACHINE": _machine(crowds["machine"]),
        "CURVES_MACHINE": _machine(curves["machine"]),
    }
    return fill_template(PROSE, parts)


def _crowds(record: Mapping[str, Any]) -> str:
    rows = []
    for crowd in record["crowds"]:
        wall, cpu = crowd["seconds"], crowd["processor_seconds"]
        rows.append(
            [
                crowd["case"],
                f"{crowd['agents']:,}",
                f"{wall['median']:.1f} ({wall['min']:.1f} to {wall['max']:.1f})",
                f"{cpu['median']:.1f} ({cpu['min']:.1f} to {cpu['max']:.1f})",
                f"{crowd['megabytes']['max']:.0f}",
                crowd["target"],
            ]
        )
    return table(["", "agents", "seconds", "processor seconds", "MB", "target"], rows)


def _curve(points: list[dict[str, Any]]) -> str:
    marked = [name for name in (f"megabytes_after_round_{number}" for number in MARKED) if name in points[-1]]
    turns = "calls" if "calls" in points[-1] else "spoken"
    rows = []
    for point in points:
        seconds = point["processor_seconds"]
        each = 1e6 * seconds / point["agent_rounds"]
        row = [f"{point[name]:,}" for name in ("agents", "agent_rounds", turns, "steps")]
        row += [f"{seconds:.1f}", f"{each:,.0f}", f"{point['megabytes']:.0f}"]
        row += [f"{point[name]:.0f}" if name in point else "" for name in marked]
        rows.append([*row, "#" * round(12 * seconds / points[-1]["processor_seconds"])])
    head = ["agents", "agent-rounds", "calls" if turns == "calls" else "turns to speak", "steps", "processor seconds"]
    head.append("microseconds an agent-round")
    return table(
        [*head, "MB at most", *(name.replace("_", " ").replace("megabytes", "MB") for name in marked), ""], rows
    )


def _machine(machine_: Mapping[str, Any]) -> str:
    load = f"{machine_['load']:.1f}" if machine_["load"] is not None else "unknown"
    versions = f"Python {machine_['python']}, {versions_of(machine_)}"
    return f"{machine_['cpu']}, {machine_['cores']} cores, load {load} at the end; {versions}"


if __name__ == "__main__":
    print(page(), end="")

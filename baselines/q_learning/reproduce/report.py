"""Runs in words: a summary of sessions, and the comparison with published numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from llm_coop_envs.baselines.q_learning.analyse.measures import Row
from llm_coop_envs.baselines.q_learning.reproduce.published import Printed
from llm_coop_envs.baselines.q_learning.reproduce.studies import MEASURES, Variant
from llm_coop_envs.bertrand.deviation import ResponseSummary

_FORMATS = {"time": "{:,.0f}", "punishment": "{:.3f}"}
_LABELS = {
    "gain": "profit gain Delta",
    "time": "periods to convergence (window not counted)",
    "equilibrium": "equilibrium play on path",
    "answer": "rivals' price change after a deviation",
    "unprofitable": "deviations that do not pay",
    "punishment": "periods until play is back",
}


def number(name: str, value: float) -> str:
    """A measure as it is printed."""
    return _FORMATS.get(name, "{:.4f}").format(value)


def summary_lines(found: Row) -> list[str]:
    """A summary of sessions (`measures.summary`) as lines."""
    lines = [f"{found['sessions']} sessions, {found['converged']} converged"]
    for name in ("gain", "time"):
        mean, sd, se = (number(name, found[key]) for key in (name, f"{name}_sd", f"{name}_se"))
        lines.append(f"{_LABELS[name]}: {mean} (sd {sd}, se {se})")
    quantiles = ", ".join(f"{q:.3f}" for q in found["gain_quantiles"])
    lines.append(f"  quantiles of Delta 5/25/50/75/95 %: {quantiles}")
    median, low, high = (f"{found[name]:,.0f}" for name in ("time_median", "time_min", "time_max"))
    lines.append(f"  median, least and most periods: {median}, {low}, {high}")
    lines.append(f"mean price {found['price']:.4f}, collusiveness index (EconEvals) {found['index']:.4f}")
    lines.append("gains of the firms: " + ", ".join(f"{gain:.4f}" for gain in found["firm_gains"]))
    lines.append("cycles: " + ", ".join(f"{kind} {share:.3f}" for kind, share in found["cycle_classes"].items()))
    if "equilibrium" in found:
        lines += [f"{_LABELS[name]}: {number(name, found[name])}" for name in MEASURES[2:]]
        lines.append(f"Q-loss on path {found['loss_on_path']:.4f}, off path {found['loss_off_path']:.4f}")
        lines.append(f"sessions in which every state leads back to the cycle: {found['all_returning']:.3f}")
    return lines


def distance(measure: str, found: Row, variant: Variant) -> float:
    """How many standard errors of their difference lie between a measure and the published one; NaN if not known.

    Both are means of samples; the spread of the published one is taken to be that of ours.
    """
    error = found.get(f"{measure}_se", math.nan) * math.sqrt(1.0 + found["sessions"] / variant.sample)
    gap = found[measure] - variant.published.get(measure, math.nan)
    if gap == 0.0 or math.isnan(gap) or error != 0.0:
        return float(gap / (error or 1.0))
    return math.copysign(math.inf, gap)


def comparison_lines(variant: Variant, found: Row) -> list[str]:
    """A variant's measures (`measures.summary`) beside the published ones."""
    published = variant.published
    lines = [f"{variant.name}: {found['sessions']} sessions, {found['converged']} converged"]
    for measure in MEASURES:
        if measure not in found:
            continue
        line = f"  {_LABELS[measure]:46} {number(measure, found[measure]):>12}"
        if measure in published:
            line += f"   published {number(measure, published[measure]):>12}"
            apart = distance(measure, found, variant)
            if not math.isnan(apart):
                line += f"   {apart:+.1f} standard errors"
        lines.append(line)
    return lines


def answer_lines(found: ResponseSummary) -> list[str]:
    """The answers to deviations as lines: the path of prices, then what is made of it."""
    lines = [f"{found.responses} deviations in {found.sessions} sessions, mean price before {found.before:.4f}"]
    lines.append("period  deviator    rivals")
    lines += [
        f"{t:6}{one:10.4f}{other:10.4f}"
        for t, (one, other) in enumerate(zip(found.deviator.tolist(), found.rival.tolist(), strict=True), 1)
    ]
    lines.append(f"rivals' price change in answer: {found.change:.4f}")
    lines.append(f"deviations that do not pay: {found.unprofitable:.4f}, that pay: {found.paid:.4f}")
    lines.append(f"periods until play is back: {found.length:.3f}; back on its cycle: {found.returned:.4f}")
    return lines


def printed_lines(found: Sequence[Printed]) -> list[str]:
    """Published numbers beside ours, and how many agree."""
    lines = [f"{'':50} {'printed':>9} {'here':>12}"]
    for one in found:
        verdict = "" if one.agrees else "   differs"
        lines.append(f"{one.name:50} {one.value:9.{one.digits}f} {one.found:12.{one.digits + 2}f}{verdict}")
    agreeing = sum(one.agrees for one in found)
    lines.append(f"{agreeing} of {len(found)} published numbers come out")
    return lines

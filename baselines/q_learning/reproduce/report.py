"""Print runs: a summary of sessions, and the comparison with published numbers."""

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
    """Format a measure."""
    return _FORMATS.get(name, "{:.4f}").format(value)


def summary_lines(means: Row) -> list[str]:
    """A summary of sessions (`measures.summary`) as lines."""
    lines = [f"{means['sessions']} sessions, {means['converged']} converged"]
    for name in ("gain", "time"):
        mean, sd, se = (number(name, means[key]) for key in (name, f"{name}_sd", f"{name}_se"))
        lines.append(f"{_LABELS[name]}: {mean} (sd {sd}, se {se})")
    quantiles = ", ".join(f"{q:.3f}" for q in means["gain_quantiles"])
    lines.append(f"  quantiles of Delta 5/25/50/75/95 %: {quantiles}")
    median, low, high = (f"{means[name]:,.0f}" for name in ("time_median", "time_min", "time_max"))
    lines.append(f"  median, least and most periods: {median}, {low}, {high}")
    lines.append(f"mean price {means['price']:.4f}, collusiveness index (EconEvals) {means['index']:.4f}")
    lines.append("gains of the firms: " + ", ".join(f"{gain:.4f}" for gain in means["firm_gains"]))
    lines.append("cycles: " + ", ".join(f"{kind} {share:.3f}" for kind, share in means["cycle_classes"].items()))
    if "equilibrium" in means:
        lines += [f"{_LABELS[name]}: {number(name, means[name])}" for name in MEASURES[2:]]
        lines.append(f"Q-loss on path {means['loss_on_path']:.4f}, off path {means['loss_off_path']:.4f}")
        lines.append(f"sessions in which every state leads back to the cycle: {means['all_returning']:.3f}")
    return lines


def distance(measure: str, means: Row, variant: Variant) -> float:
    """The difference between a measure and the published one, in its standard errors; NaN if either is unknown.

    Both are means of samples, and the published sample is assumed to have the spread of ours.
    """
    error = means.get(f"{measure}_se", math.nan) * math.sqrt(1.0 + means["sessions"] / variant.sample)
    gap = means[measure] - variant.published.get(measure, math.nan)
    if gap == 0.0 or math.isnan(gap) or error != 0.0:
        return float(gap / (error or 1.0))
    return math.copysign(math.inf, gap)


def comparison_lines(variant: Variant, means: Row) -> list[str]:
    """Lines with a variant's measures (`measures.summary`) beside the published ones."""
    published = variant.published
    lines = [f"{variant.name}: {means['sessions']} sessions, {means['converged']} converged"]
    for measure in MEASURES:
        if measure not in means:
            continue
        line = f"  {_LABELS[measure]:46} {number(measure, means[measure]):>12}"
        if measure in published:
            line += f"   published {number(measure, published[measure]):>12}"
            apart = distance(measure, means, variant)
            if not math.isnan(apart):
                line += f"   {apart:+.1f} standard errors"
        lines.append(line)
    return lines


def answer_lines(answers: ResponseSummary) -> list[str]:
    """Lines about the answers to deviations: the path of prices, then the measures."""
    lines = [f"{answers.responses} deviations in {answers.sessions} sessions, mean price before {answers.before:.4f}"]
    lines.append("period  deviator    rivals")
    lines += [
        f"{t:6}{deviator:10.4f}{rival:10.4f}"
        for t, (deviator, rival) in enumerate(zip(answers.deviator.tolist(), answers.rival.tolist(), strict=True), 1)
    ]
    lines.append(f"rivals' price change in answer: {answers.change:.4f}")
    lines.append(f"deviations that do not pay: {answers.unprofitable:.4f}, that pay: {answers.paid:.4f}")
    lines.append(f"periods until play is back: {answers.length:.3f}; back on its cycle: {answers.returned:.4f}")
    return lines


def printed_lines(comparisons: Sequence[Printed]) -> list[str]:
    """Lines with published numbers beside ours, and how many agree."""
    lines = [f"{'':50} {'printed':>9} {'here':>12}"]
    for comparison in comparisons:
        verdict = "" if comparison.agrees else "   differs"
        printed = f"{comparison.value:9.{comparison.digits}f}"
        ours = f"{comparison.ours:12.{comparison.digits + 2}f}"
        lines.append(f"{comparison.name:50} {printed} {ours}{verdict}")
    agreeing = sum(comparison.agrees for comparison in comparisons)
    lines.append(f"{agreeing} of {len(comparisons)} published numbers come out")
    return lines

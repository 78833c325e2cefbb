"""Panels and curves of one beauty contest condition, for the report's figures."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llm_coop_envs.kbc.faces.report_crowd import LargeContest
from llm_coop_envs.kbc.faces.scene import STATISTIC_WORDS
from llm_coop_envs.kbc.metrics import variance_range
from llm_coop_envs.kbc.reference import histogram, nyt_density, smoothed
from llm_coop_envs.render.charts.panels import Curve, Dots, Panel
from llm_coop_envs.render.charts.style import FAINT, INK
from llm_coop_envs.reports.means import mean_curves
from llm_coop_envs.reports.played import Floats, PlayedCondition

#: Runs of a condition whose numbers are drawn one by one: more cannot be told apart.
MOST_RUNS = 60
#: Decisions that are drawn side by side.
MOST_COLUMNS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """An episode of the beauty contest.

    Attributes:
        rounds: the decisions' numbers (k in nested sessions).
        choices: the numbers of those who took part at each decision.
        targets: the target at each decision.
        crowd: more on a large contest; `None` for others.
    """

    rounds: tuple[int, ...]
    choices: tuple[Floats, ...]
    targets: tuple[float, ...]
    crowd: LargeContest | None

    @functools.cached_property
    def variances(self) -> dict[int, float]:
        """The population variance of the numbers at each decision."""
        return {k: float(np.var(numbers)) for k, numbers in zip(self.rounds, self.choices, strict=True)}


def shared_rounds(played: PlayedCondition[Guesses]) -> list[int]:
    """The decisions that every episode of a condition has."""
    return sorted(set.intersection(*(set(episode.rounds) for episode in played.episodes)))


def variance_curves(played: PlayedCondition[Guesses], shift: float = 0.0) -> list[Curve]:
    """The variance by decision: its mean, and the episodes or intervals.

    Args:
        played: the condition.
        shift: how far to move the points sideways, so that none hides another.
    """
    ks = shared_rounds(played)
    table = played.per_unit_rows(np.array([[episode.variances[k] for k in ks] for episode in played.episodes]))
    within = variance_range(played.condition.settings)
    look = {"marked": True, "whiskers": True, "shift": shift}
    return mean_curves(played.label, ks, table, played.color, within, played.unit, **look)


def distribution_panel(
    conditions: Sequence[PlayedCondition[Guesses]], span: tuple[float, float], people: bool
) -> Panel:
    """The distribution of the first decision's numbers of some conditions, and of people if `people`."""
    low, high = span
    bins = count_bins(low, high)
    x = (np.arange(bins) + low).tolist()
    curves = []
    if people:
        human = (100 * nyt_density()).tolist()
        label = "published: people (New York Times, 61,140 answers)"
        curves.append(Curve(label=label, x=x, y=human, low=[0.0] * bins, high=human, color=FAINT))
    for played in conditions:
        numbers = np.concatenate([episode.choices[0] for episode in played.episodes])
        label = f"{played.title} ({played.who}, {len(numbers):,} numbers)"
        shares = (100 * smoothed(histogram(numbers - low, bins))).tolist()
        curves.append(Curve(label=label, x=x, y=shares, color=played.color))
    return Panel(
        title="Numbers named in the first decision",
        x_label="number",
        y_label="share of the players, %",
        curves=curves,
        x_range=(low - 1, high + 1),
        y_range=(0, None),
    )


def count_bins(low: float, high: float) -> int:
    """The number of integers from `low` to `high`; of -0.5 to 2 there are 4 bins, which cover the range."""
    return math.ceil(high - low) + 1


def target_text(played: PlayedCondition[Guesses]) -> str:
    """What the target is, in words: `"two thirds of the mean"`, `"1/3 of the median of the groups' numbers plus 5"`."""
    settings = played.condition.settings
    ratio, offset = str(settings["ratio"]), str(settings["offset"])
    part = {"2/3": "two thirds of ", "1/2": "half of ", "1": ""}.get(ratio, f"{ratio} of ")
    groups = " of the groups' numbers" if settings["groups"] else ""
    text = f"{part}the {STATISTIC_WORDS[settings.get('statistic', 'mean')]}{groups}"
    return text if offset == "0" else f"{text} plus {offset}"


def number_range(played: PlayedCondition[Guesses]) -> tuple[float, float]:
    """The lowest and highest legal number."""
    return played.condition.settings["low"], played.condition.settings["high"]


def axis_range(played: PlayedCondition[Guesses]) -> tuple[float, float]:
    """The ends of an axis of numbers, with margins."""
    low, high = number_range(played)
    margin = 0.03 * (high - low)
    return low - margin, high + margin


def step_name(played: PlayedCondition[Guesses]) -> str:
    """The name of a decision's number: `"k"` in nested sessions, else `"decision"`."""
    return "k" if played.condition.settings["session"] == "nested" else "decision"


def shown_decisions(played: PlayedCondition[Guesses]) -> list[int]:
    """The decisions that are drawn: all, or the first ones and the last."""
    ks = shared_rounds(played)
    return ks if len(ks) <= MOST_COLUMNS else [*ks[: MOST_COLUMNS - 1], ks[-1]]


def decision_panel(played: PlayedCondition[Guesses], k: int, longest: int) -> Panel:
    """Every number of one decision, with the target, by run; the title has `longest` characters at most."""
    x: list[float] = []
    y: list[float] = []
    targets = []
    episodes = played.episodes[:MOST_RUNS]
    for run, episode in enumerate(episodes, 1):
        at = episode.rounds.index(k)
        targets.append(episode.targets[at])
        values, counts = np.unique(episode.choices[at], return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            # Equal numbers stand side by side; a column is 0.8 wide at most.
            step = min(0.12, 0.8 / count)
            x += [run + step * (i - (count - 1) / 2) for i in range(count)]
            y += [value] * count
    runs = len(episodes)
    return Panel(
        title=played.cut_title(longest),
        note=f"{step_name(played)} {'= ' if step_name(played) == 'k' else ''}{k}"
        if len(played.episodes[0].rounds) > 1
        else "",
        x_label="run",
        y_label="number",
        dots=[
            Dots(label=f"{played.title} ({played.who})", x=x, y=y, color=played.color, size=2.6, alpha=0.6),
            Dots(label="target", x=list(range(1, runs + 1)), y=targets, color=INK, marker="_", size=8.0),
        ],
        x_ticks=range(1, runs + 1) if runs <= 8 else range(1, runs + 1, math.ceil(runs / 8)),
        x_range=(0.3, runs + 0.7),
        y_range=axis_range(played),
    )


def seed_text(conditions: Sequence[PlayedCondition[Guesses]]) -> str:
    """The first seeds, once where all conditions have the same."""
    first_seeds = {
        played.condition.title: ", ".join(map(str, played.seeds[:5])) + (", ..." if len(played.seeds) > 5 else "")
        for played in conditions
    }
    if len(set(first_seeds.values())) == 1:
        return next(iter(first_seeds.values()))
    return "; ".join(f"{title}: {seeds}" for title, seeds in first_seeds.items())

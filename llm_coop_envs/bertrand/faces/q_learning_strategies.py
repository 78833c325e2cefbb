"""Figures of single Q-learning runs: the spread of answers, strategies, and the profit gain while firms learn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.price_tables import mean_strategies, spread
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.baselines.q_learning.learn.game import Floats
from llm_coop_envs.baselines.q_learning.learn.strategies import next_states
from llm_coop_envs.baselines.q_learning.reproduce.runs import load_run
from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.render.charts.heatmap import HeatMap, draw_maps
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Dots, Level, Panel
from llm_coop_envs.render.charts.style import BLUE, FAINT, VERMILION
from llm_coop_envs.reports.section import Drawing, FigureKind, NotDrawn

T = TypeVar("T")

LEARNING_SESSIONS = 10
"""The number of sessions that are played again for the gain while firms learn."""

LEARNING_PERIODS, BLOCK = 2_500_000, 25_000
"""The number of periods that are played again, and the number per point, the authors' unit of time."""

PUBLISHED_SESSION = 364
"""The session that Calvano et al. 2020 draw as a graph."""


def figures(folders: Sequence[Path]) -> list[FigureKind]:
    """List the figures of one folder of sessions."""
    kinds: list[tuple[str, str, Callable[[Sequence[Path]], list[Drawing]]]] = [
        ("q-learning-spread", "how far answers to a price cut spread over sessions", answers),
        ("q-learning-strategies", "mean limit strategies", strategies),
        ("q-learning-graph", "where one session's strategies lead from each pair of prices", graph),
        ("q-learning-learning", "profit gain while firms learn", learning),
    ]
    return [FigureKind(name=name, about=about, draw=functools.partial(draw, folders)) for name, about, draw in kinds]


def answers(folders: Sequence[Path]) -> list[Drawing]:
    """Draw quantiles of the prices after a deviation (Figures 5 and A9)."""
    run = _load_only(folders)
    panels = []
    for symmetric in (True, False):
        spread_ = _or_not_drawn(functools.partial(spread, run, symmetric=symmetric))
        for firm, table, color in (("deviating firm", spread_.deviator, VERMILION), ("rival", spread_.rival, BLUE)):
            panels.append(_spread_panel(firm, symmetric, spread_.price, spread_.sessions, table, color))
    return [
        Drawing(
            name="q_learning_spread",
            caption="Prices after one firm is forced to its static best reply in period 1, less the price before, from "
            "the commonest price before: mean (line), quartiles (band), 2.5 and 97.5 % (whiskers), over sessions that "
            "end in one price for both (above, Figure 5 of Calvano et al. 2020) or in one price each (below, their "
            "Figure A9).",
            alt="Four charts of prices by period with bands and whiskers: the deviating firm and its rival.",
            figure=draw_panels([panels[:2], panels[2:]], size=(4.2, 2.9), share_y=True),
        )
    ]


def _spread_panel(firm: str, symmetric: bool, price: float, sessions: int, table: Floats, color: str) -> Panel:
    # A mean may lie beyond a quantile; then its whisker begins at the mean.
    mean, _, low, high, _ = table.T.tolist()
    lowest, highest = table.min(axis=1).tolist(), table.max(axis=1).tolist()
    periods = range(len(mean))
    return Panel(
        title=firm,
        note=f"from {price:.3f}, {sessions} sessions with {'one price' if symmetric else 'one price each'}",
        x_label="period",
        y_label="price less the one before",
        curves=[
            Curve(label="", x=periods, y=mean, low=low, high=high, color=color, marked=True),
            Curve(label="", x=periods, y=mean, low=lowest, high=highest, color=color, whiskers=True),
        ],
        levels=[Level(value=0.0, label="")],
    )


def strategies(folders: Sequence[Path]) -> list[Drawing]:
    """Draw the mean price by both last prices (Figure A10)."""
    run = _load_only(folders)
    price_index, sessions, means = _or_not_drawn(lambda: mean_strategies(run))
    names = [f"{price:.2f}" for price in run.game.prices[0]]
    maps = [
        HeatMap(title=f"firm {i}", x=names, y=names, values=(table + 1.0).T.tolist()) for i, table in enumerate(means)
    ]
    return [
        Drawing(
            name="q_learning_strategies",
            caption=f"Mean price that each firm asks after a pair of prices, as a number on the grid from 1, over the "
            f"{sessions} sessions that end in both asking price {price_index + 1} (Figure A10 of Calvano et al. 2020).",
            alt="Two coloured tables: the mean price of each firm by both firms' last prices.",
            figure=draw_maps(
                maps, x_label="firm 0's last price", y_label="firm 1's last price", bar="mean price asked", decimals=0
            ),
        )
    ]


def graph(folders: Sequence[Path]) -> list[Drawing]:
    """Draw where strategies lead (Figures 8 and 9): a line from each pair of prices towards the next pair."""
    run = _load_only(folders)
    if run.game.firms != 2 or run.game.memory != 1:
        raise NotDrawn("it needs two firms with a memory of one round")
    numbers = [row["session"] for row in run.rows]
    which = numbers.index(PUBLISHED_SESSION) if PUBLISHED_SESSION in numbers else 0
    game, cycle = run.game, run.cycles[which]
    next_state = next_states(game, run.strategies[which])
    steps = np.full(game.states, -1)
    steps[cycle.states] = 0
    for step in range(1, game.states):
        steps[(steps < 0) & (steps[next_state] == step - 1)] = step
    pairs = game.price_of(game.choices(np.arange(game.states)))
    lines = [
        Curve(label="", x=[pair[0], towards[0]], y=[pair[1], towards[1]], color=FAINT, thin=True)
        for pair, towards in zip(pairs, pairs + 0.35 * (pairs[next_state] - pairs), strict=True)
    ]
    back = steps >= 0
    reached, ending, elsewhere = (pairs[chosen].T.tolist() for chosen in (back, cycle.states, ~back))
    dots = [
        Dots(label="", x=reached[0], y=reached[1], size=6.0, values=steps[back].tolist()),
        Dots(label="limit cycle", x=ending[0], y=ending[1], color=VERMILION, size=9.0),
    ]
    if not back.all():
        dots.append(Dots(label="leads elsewhere", x=elsewhere[0], y=elsewhere[1], color=FAINT, marker="x"))
    panel = Panel(
        title=f"session {numbers[which]}",
        note="lines point to the next pair of prices",
        x_label="firm 0's last price",
        y_label="firm 1's last price",
        curves=lines,
        dots=dots,
    )
    return [
        Drawing(
            name="q_learning_graph",
            caption="Where the limit strategies of one session lead from each pair of prices, and in how many periods "
            f"they reach the limit cycle ({100 * back.mean():.0f} % of all pairs do; Figures 8 and 9 of Calvano et al. "
            "2020).",
            alt="A grid of dots, one per pair of prices, coloured by the periods until the limit cycle, with lines "
            "towards the next pair.",
            figure=draw_panels([[panel]], size=(5.6, 5.0), bar="periods until the limit cycle"),
        )
    ]


def learning(folders: Sequence[Path]) -> list[Drawing]:
    """Draw the profit gain while firms learn (Figures 10 and 11), from sessions that are played again."""
    run = _load_only(folders)
    try:
        from llm_coop_envs.baselines.q_learning.reproduce.learning_curve import exploring_nash, learning_curve
    except MissingExtra as error:
        raise NotDrawn(str(error)) from error
    from llm_coop_envs.baselines.q_learning.reproduce.runs import plan_of

    plan = plan_of(folders[0])
    replayed = run.rows[:LEARNING_SESSIONS]
    numbers = [row["session"] for row in replayed]
    periods = min(LEARNING_PERIODS, max(row["periods"] for row in replayed) // BLOCK * BLOCK)
    if periods < 2 * BLOCK:
        raise NotDrawn(f"sessions are shorter than {2 * BLOCK:,} periods")
    table = learning_curve(plan, numbers, periods, BLOCK)
    millions = ((np.arange(table.shape[1]) + 1) * BLOCK / 1e6).tolist()
    curves = [Curve(label="", x=millions, y=line.tolist(), color=BLUE, thin=True) for line in table]
    curves.append(
        Curve(label=f"mean of {len(numbers)} sessions", x=millions, y=table.mean(axis=0).tolist(), color=BLUE)
    )
    if plan.settings.exploration == "epsilon":
        nash = exploring_nash(plan, periods, BLOCK).tolist()
        curves.append(Curve(label="Nash price and the same exploration", x=millions, y=nash, color=VERMILION))
    panel = Panel(
        title="Profit gain while firms learn",
        x_label="millions of periods",
        y_label="profit gain",
        curves=curves,
        levels=[Level(value=0.0, label="Nash"), Level(value=1.0, label="joint")],
    )
    return [
        Drawing(
            name="q_learning_learning",
            caption=f"Profit gain over blocks of {BLOCK:,} periods, exploration included (Figure 10 of Calvano et al. "
            "2020; of firms that meet again, their Figure 11); thin lines are single sessions, which "
            "keep their last value when they have ended.",
            alt="Line chart: the profit gain over millions of periods of learning.",
            figure=draw_panels([[panel]], size=(5.6, 3.4)),
        )
    ]


def _load_only(folders: Sequence[Path]) -> StoredRun:
    if len(folders) > 1:
        raise NotDrawn(f"there are {len(folders)} settings; give the folder of one, such as {folders[0]}")
    return load_run(folders[0])


def _or_not_drawn(compute: Callable[[], T]) -> T:
    try:
        return compute()
    except ValueError as error:
        raise NotDrawn(str(error)) from error

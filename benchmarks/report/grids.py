"""Small figures side by side: a run each by seed, and a condition each by the models' temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.report.drawing import Drawing, NotDrawn
from llm_coop_envs.benchmarks.report.gather import Escape, Gathered, Guesses, Played, Prices
from llm_coop_envs.benchmarks.report.published import escape_run, variance_arms
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.bertrand import figures as bertrand
from llm_coop_envs.core.statistics import bootstrap_means
from llm_coop_envs.evacuation import figures as evacuation
from llm_coop_envs.evacuation.report import as_published
from llm_coop_envs.evacuation.room_charts import exit_color
from llm_coop_envs.kbc import figures as kbc
from llm_coop_envs.kbc.report import as_published as kbc_as_published
from llm_coop_envs.render.charts.curves import Curve, Dots, Panel, draw_panels
from llm_coop_envs.render.charts.style import INK, PALETTE, PUBLISHED

MOST_SEEDS = 6
MOST_ROWS = 8
#: GPT-4 arms of the published temperature figure, by temperature.
_PUBLISHED_ARMS = {0.0: "gpt_4_t_0", 0.7: "gpt_4", 1.2: "gpt_4_t_1_2"}


def seeds(gathered: Gathered) -> list[Drawing]:
    """Every run by itself: conditions in rows, seeds in columns."""
    found = []
    for scenario in ("kbc", "bertrand", "evacuation"):
        conditions = [one for one in gathered.of(scenario) if len(one.seeds) > 1]
        if conditions:
            found.append(_seeds(scenario, conditions))
    if not found:
        raise NotDrawn("every condition has a single finished episode; there are no seeds to compare")
    return found


def temperature(gathered: Gathered) -> list[Drawing]:
    """The conditions of a scenario by the temperature of their models."""
    found = []
    for scenario in ("kbc", "bertrand", "evacuation"):
        by: dict[float, list[Played]] = {}
        for one in gathered.of(scenario):
            value = temperature_of(one.condition)
            if value is not None:
                by.setdefault(value, []).append(one)
        if len(by) > 1:
            found.append(_temperature(scenario, by))
    if not found:
        raise NotDrawn("no two conditions of a scenario differ in the temperature of their models")
    return found


def temperature_of(condition: Condition) -> float | None:
    """The one temperature that a condition's players have, `None` if they have none or several."""
    values = {
        float(value)
        for _, players in condition.seats
        for player in players
        for value in _named("temperature", player.options)
    }
    return values.pop() if len(values) == 1 else None


def _named(name: str, options: Any) -> Iterator[float]:
    """Numbers of that name, however deep they stand."""
    if isinstance(options, Mapping):
        for key, value in options.items():
            if key == name and isinstance(value, int | float) and not isinstance(value, bool):
                yield value
            else:
                yield from _named(name, value)
    elif isinstance(options, list | tuple):
        for item in options:
            yield from _named(name, item)


def _seeds(scenario: str, conditions: Sequence[Played]) -> Drawing:
    shown = conditions[:MOST_ROWS]
    most = max(len(one.seeds) for one in shown)
    left = f" Of up to {most} runs the first {MOST_SEEDS} are shown." if most > MOST_SEEDS else ""
    if len(conditions) > len(shown):
        left += f" {len(conditions) - len(shown)} more conditions are not shown."
    if scenario == "bertrand":
        rows = _price_rows(shown)
        held = f"shaded: held together for {bertrand.STRETCH} rounds or more"
        what = f"Prices of each firm; dotted: Nash and cartel price; {held}."
    elif scenario == "kbc":
        rows, what = _guess_rows(shown), "Each dot is a player's number at a decision; bars: the targets."
    else:
        rows, what = _escape_rows(shown), "People who have left by each exit, by round."
        if any(c.label.startswith("published") for row in rows for panel in row if panel for c in panel.curves):
            what += f" Dashed: {escape_run().source}."
    return Drawing(
        name=f"seeds_{scenario}",
        caption=f"One run each; conditions in rows, seeds in columns. {what}{left}",
        figure=draw_panels(rows, size=(2.35, 2.1), legend_columns=4),
    )


def _price_rows(conditions: Sequence[Played]) -> list[list[Panel | None]]:
    span = bertrand.price_span(conditions)
    rows: list[list[Panel | None]] = []
    for one in conditions:
        pairs = zip(one.seeds[:MOST_SEEDS], one.prices, strict=False)
        rows.append([_price_panel(one, seed, episode, span) for seed, episode in pairs])
    return rows


def _price_panel(one: Played, seed: int, episode: Prices, span: tuple[float, float]) -> Panel:
    firms = episode.prices.shape[1]
    return Panel(
        title=one.title,
        note=f"seed {seed}",
        x_label="round",
        y_label="price",
        curves=[
            Curve(
                label=f"firm_{i} (here, {one.who})",
                x=range(1, len(episode.prices) + 1),
                y=episode.prices[:, i].tolist(),
                color=PALETTE[i % len(PALETTE)],
                thin=firms > 3,
            )
            for i in range(firms)
        ],
        levels=bertrand.levels_of(episode),
        shades=bertrand.collusion([episode], len(episode.prices)) if len(episode.prices) else (),
        y_range=span,
    )


def _guess_rows(conditions: Sequence[Played]) -> list[list[Panel | None]]:
    rows: list[list[Panel | None]] = []
    for one in conditions:
        pairs = zip(one.seeds[:MOST_SEEDS], one.guesses, strict=False)
        rows.append([_guess_panel(one, seed, episode) for seed, episode in pairs])
    return rows


def _guess_panel(one: Played, seed: int, episode: Guesses) -> Panel:
    low, high = one.condition.settings["low"], one.condition.settings["high"]
    margin = 0.03 * (high - low)
    x: list[float] = []
    y: list[float] = []
    for k, numbers in zip(episode.rounds, episode.choices, strict=True):
        spread = np.linspace(-0.25, 0.25, len(numbers)) if len(numbers) > 1 else np.zeros(1)
        x += (k + spread).tolist()
        y += numbers.tolist()
    return Panel(
        title=one.title,
        note=f"seed {seed}",
        x_label="k" if one.condition.settings["session"] == "nested" else "decision",
        y_label="number",
        dots=[
            Dots(label=f"player (here, {one.who})", x=x, y=y, color=PALETTE[0], size=2.2, alpha=0.6),
            Dots(label="target", x=episode.rounds, y=episode.targets, color=INK, marker="_", size=11.0),
        ],
        x_ticks=episode.rounds if len(episode.rounds) <= 8 else None,
        y_range=(low - margin, high + margin),
    )


def _escape_rows(conditions: Sequence[Played]) -> list[list[Panel | None]]:
    top = 1.05 * max(int(e.out.max()) for one in conditions for e in one.escapes)
    rows: list[list[Panel | None]] = []
    for one in conditions:
        pairs = zip(one.seeds[:MOST_SEEDS], one.escapes, strict=False)
        rows.append([_escape_panel(one, seed, episode, top) for seed, episode in pairs])
    return rows


def _escape_panel(one: Played, seed: int, episode: Escape, top: float) -> Panel:
    published = escape_run()
    names = evacuation.exit_names(episode)
    curves = [
        Curve(
            label=f"{name} exit (here, {one.who})",
            x=range(len(episode.out)),
            y=episode.out[:, i].tolist(),
            color=exit_color(i),
        )
        for i, name in enumerate(names)
    ]
    alike = as_published(one.condition) and one.condition.settings["talk"] == published.talk
    if alike and seed == published.seed:
        picked = range(6, len(published.frames), 10)
        curves += [
            Curve(
                label=f"published, {name} exit",
                # Whoever reaches an exit cell has left one step later.
                x=[published.frames[i] + 1 for i in picked],
                y=[published.reached[name][i] for i in picked],
                color=exit_color(i),
                published=True,
            )
            for i, name in enumerate(names)
            if name in published.reached
        ]
    return Panel(
        title=one.title,
        note=f"seed {seed}",
        x_label="round",
        y_label="have left",
        curves=curves,
        y_range=(0, top),
    )


def _temperature(scenario: str, by: Mapping[float, Sequence[Played]]) -> Drawing:
    values = sorted(by)
    talks = [talk for talk in (False, True) if any(o.condition.settings["talk"] is talk for v in values for o in by[v])]
    everything = [one for value in values for one in by[value]]
    rows: list[list[Panel | None]] = []
    for talk in talks:
        row: list[Panel | None] = []
        for value in values:
            having = [one for one in by[value] if one.condition.settings["talk"] is talk]
            row.append(_temperature_panel(scenario, value, talk, having, everything) if having else None)
        rows.append(row)
    measure = {"kbc": "Variance of the numbers by k", "bertrand": "Mean price by round"}
    what = measure.get(scenario, "People who have left by round")
    source = f" Dashed: published. {variance_arms()[0].source}." if scenario == "kbc" else ""
    return Drawing(
        name=f"temperature_{scenario}",
        caption=f"{what}, by the temperature of the models. Lines are means over episodes, bands their 95 % bootstrap "
        f"intervals.{source}",
        figure=draw_panels(rows, size=(3.0, 2.5), share_y=True),
    )


def _temperature_panel(
    scenario: str, value: float, talk: bool, having: Sequence[Played], everything: Sequence[Played]
) -> Panel:
    title = f"temperature {value:g}, {'talk' if talk else 'no talk'}"
    colors = dict(zip((one.condition.name for one in having), PALETTE, strict=False))
    if scenario == "kbc":
        curves = [
            kbc.variance_curve(one, colors[one.condition.name]) for one in having if kbc.shared_rounds(one.guesses)
        ]
        arm = next((a for a in variance_arms() if a.arm == _PUBLISHED_ARMS.get(value)), None)
        if arm is not None and talk and any(kbc_as_published(one.condition) for one in having):
            label = f"published: {arm.title}, {arm.runs} runs"
            curves.append(Curve(label=label, x=arm.k, y=arm.mean, color=PUBLISHED, published=True))
        return Panel(title=title, x_label="k", y_label="variance", curves=curves, y_range=(0, None))
    if scenario == "bertrand":
        horizon = max(len(e.prices) for one in everything for e in one.prices)
        curves = [_mean(one, bertrand.aligned(one.prices, horizon), 1, colors[one.condition.name]) for one in having]
        levels = bertrand.levels_of(having[0].prices[0])
        return Panel(title=title, x_label="round", y_label="price", curves=curves, levels=levels)
    curves = [
        _mean(one, np.stack([e.out.sum(axis=1) for e in one.escapes]).astype(float), 0, colors[one.condition.name])
        for one in having
    ]
    return Panel(title=title, x_label="round", y_label="have left", curves=curves, y_range=(0, None))


def _mean(one: Played, matrix: np.ndarray[Any, np.dtype[np.float64]], first: int, color: str) -> Curve:
    mean, low, high = bootstrap_means(matrix)
    banded = len(matrix) > 1
    return Curve(
        label=one.name,
        x=range(first, first + len(mean)),
        y=mean.tolist(),
        low=low.tolist() if banded else None,
        high=high.tolist() if banded else None,
        color=color,
    )

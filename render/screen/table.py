"""The picture of scenarios without one of their own: charts of the rounds' numbers, and a table of the players."""

from __future__ import annotations

import math

import numpy as np

from llm_coop_envs.core.registry import scenario_of
from llm_coop_envs.render.scenes.base import FloatArray
from llm_coop_envs.render.scenes.table import TableScene
from llm_coop_envs.render.screen.canvas import BLUE, FAINT, GRID, INK, Canvas, Rect, mix_colours, series, sign_of
from llm_coop_envs.render.screen.chart import Chart, Mark, short
from llm_coop_envs.render.screen.page import Picture, draw_page
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.talk import draw_talk

_CHARTS, _COLUMNS = 6, 5
#: More players than this are drawn as their mean and range.
_CURVES = 8


def draw_table(scene: TableScene, canvas: Canvas) -> None:
    """Draw the whole picture."""
    px = canvas.px
    main, inner = draw_page(
        canvas,
        title=scenario_of(scene.scenario).title,
        state=f"round {scene.round} · {scene.state()}",
        right=f"{len(scene.agents)} players",
        wide=320,
    )
    main = main.inflate(-px(36), -px(24))
    step = canvas.line_height(12) + px(4)
    needed = (len(scene.agents) + 1) * step
    low = min(needed, main.height * 2 // 5 if len(scene.rounds) else main.height)
    if len(scene.rounds):
        _charts(scene, canvas, Rect(main.left, main.top, main.width, main.height - low - px(20)))
        canvas.box(Rect(main.left, main.bottom - low - px(8), main.width, 1), GRID)
    _players(scene, canvas, Rect(main.left, main.bottom - low if len(scene.rounds) else main.top, main.width, low))
    draw_talk(canvas, inner, scene)


def _charts(scene: TableScene, canvas: Canvas, area: Rect) -> None:
    """Draw a chart for each number of the rounds, side by side."""
    columns = list({**scene.players, **scene.totals}.items())[:_CHARTS]
    if not columns:
        return
    gap = canvas.px(18)
    lines = 1 if len(columns) == 1 or (len(columns) <= 3 and area.width > area.height * len(columns) // 2) else 2
    high = (area.height - (lines - 1) * gap) // lines
    across = math.ceil(len(columns) / lines)
    for line in range(lines):
        row = columns[line * across : (line + 1) * across]
        wide = (area.width - (len(row) - 1) * gap) // len(row)
        for k, (name, values) in enumerate(row):
            rect = Rect(area.left + k * (wide + gap), area.top + line * (high + gap), wide, high)
            _chart(scene.rounds, values, canvas, rect, _title(name))


def _chart(rounds: FloatArray, values: FloatArray, canvas: Canvas, rect: Rect, title: str) -> None:
    """Draw one number over the rounds: a total, each of a few players, or the range of many."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    low = 0.0 if 0.0 < low < high / 2 else low
    edge = (high - low) * 0.05 or 0.5
    first, last = float(rounds[0]), float(rounds[-1])
    chart = Chart(
        canvas,
        rect,
        title=title,
        x_range=(first, max(first + 1.0, last)),
        y_range=(low - edge if low else low, high + edge),
        x_label="round",
        integers=bool((np.nan_to_num(values) % 1 == 0).all()),
        labels_at_right=40,
    )
    if values.ndim == 1:
        chart.curve(rounds, values, INK, sign="disc")
        ends = [Mark(float(values[-1]), short(float(values[-1])), INK)]
    elif values.shape[1] <= _CURVES:
        chart.players(rounds, values, 0.7)
        ends = [Mark(value, short(value), series(k)) for k, value in enumerate(values[-1].tolist())]
    else:
        has_values = np.isfinite(values).any(axis=1)
        x, present = rounds[has_values], values[has_values]
        lowest, mean, highest = np.nanmin(present, axis=1), np.nanmean(present, axis=1), np.nanmax(present, axis=1)
        edges = [*zip(x, highest, strict=True), *zip(x[::-1], lowest[::-1], strict=True)]
        if len(x) > 1:
            pygame.draw.polygon(canvas.surface, mix_colours(BLUE, 0.18), [chart.place(*point) for point in edges])
        chart.curve(x, mean, BLUE, sign="disc")
        ends = [Mark(highest[-1], "most", FAINT), Mark(mean[-1], "mean", BLUE), Mark(lowest[-1], "least", FAINT)]
    chart.names([end for end in ends if math.isfinite(end.value)])


def _players(scene: TableScene, canvas: Canvas, area: Rect) -> None:
    """Draw a table of the players' last choices and numbers, in blocks side by side as far as they fit."""
    px, count = canvas.px, len(scene.agents)
    step = canvas.line_height(12) + px(4)
    last = {_title(name): values[-1] for name, values in scene.players.items()} if len(scene.rounds) else {}
    columns = list({"Last choice": scene.choices, **last}.items())[:_COLUMNS]
    texts = [(title, [short(value) for value in values.tolist()]) for title, values in columns]
    widths = [max(canvas.fonts.width(text, px(12)) for text in (title, *column)) + px(16) for title, column in texts]
    name = min(px(150), max(canvas.fonts.width(agent, px(12)) for agent in scene.agents)) + px(20)
    block = name + sum(widths) + px(28)
    lines = max(1, area.height // step - 1)
    across = max(1, min((area.width + px(28)) // block, math.ceil(count / lines)))
    lines = min(lines, math.ceil(count / across))
    visible = count if count <= lines * across else lines * across - 1
    for player in range(visible):
        block_left = area.left + player // lines * block
        y = area.top + (player % lines + 1) * step
        canvas.dot((block_left + px(6), y + step // 2 - px(2)), series(player), px(10), sign_of(player))
        canvas.text((block_left + px(17), y), scene.agents[player], size=12, width=name - px(18))
        x = block_left + name
        for (title, column), wide in zip(texts, widths, strict=True):
            x += wide
            if player % lines == 0:
                canvas.text((x, area.top), title, size=11, colour=FAINT, anchor="topright")
            canvas.text((x, y), column[player], size=12, anchor="topright")
    if visible < count:
        where = area.left + visible // lines * block + px(17), area.top + (visible % lines + 1) * step
        canvas.text(where, f"and {count - visible} more", size=11, colour=FAINT)


def _title(name: str) -> str:
    """A recorded name as a title: of `"market_share"`, `"Market share"`."""
    return name.replace("_", " ").capitalize()


TABLE = Picture(draw=draw_table)

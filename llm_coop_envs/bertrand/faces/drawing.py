"""The picture of price competition: prices over rounds with the equilibria, demand and profit, and the talk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.faces.scene import BertrandScene
from llm_coop_envs.render.screen.canvas import FAINT, GRID, INK, ORANGE, Canvas, Rect, mix_colours, series, sign_of
from llm_coop_envs.render.screen.chart import Chart, Mark, short
from llm_coop_envs.render.screen.page import Picture, draw_page
from llm_coop_envs.render.screen.talk import draw_talk

_BAND = mix_colours(ORANGE, 0.25)
_FIRMS_NAMED = 8


def draw_bertrand(scene: BertrandScene, canvas: Canvas) -> None:
    """Draw the whole picture."""
    px = canvas.px
    count = len(scene.together)
    right = f"prices in the band in {int(scene.together.sum())} of {count} rounds"
    chart_area, inner = draw_page(
        canvas,
        title="Price competition",
        state=f"round {scene.round} of {scene.rounds} · {scene.state(act='naming prices')}",
        right=right if count and canvas.view.marks else "",
        wide=330,
        share=0.35,
    )
    _charts(scene, canvas, chart_area.inflate(-px(28), -px(20)))
    if inner.width:
        y = _table(scene, canvas, inner)
        canvas.box(Rect(inner.left, y + px(4), inner.width, 1), GRID)
        draw_talk(canvas, Rect(inner.left, y + px(12), inner.width, inner.bottom - y - px(12)), scene)


def _charts(scene: BertrandScene, canvas: Canvas, area: Rect) -> None:
    px = canvas.px
    high = area.height * 5 // 9
    _prices(scene, canvas, Rect(area.left, area.top, area.width, high))
    low = Rect(area.left, area.top + high + px(12), area.width, area.height - high - px(12))
    half = (low.width - px(16)) // 2
    _quantities(scene, canvas, Rect(low.left, low.top, half, low.height), "Units sold", scene.demand, ())
    levels = Mark(float(np.mean(scene.nash_profit)), "Nash"), Mark(float(np.mean(scene.joint_profit)), "cartel")
    right = Rect(low.right - half, low.top, half, low.height)
    _quantities(scene, canvas, right, "Profit", scene.profits, levels if canvas.view.marks else ())


def _prices(scene: BertrandScene, canvas: Canvas, rect: Rect) -> None:
    nash, joint = float(np.mean(scene.nash)), float(np.mean(scene.joint))
    prices_in_view = [*scene.cost, *(scene.initial_prices or ())]
    if canvas.view.marks:
        prices_in_view += [*scene.nash, *scene.joint, *scene.band]
    if len(scene.prices):
        prices_in_view += [float(np.nanmin(scene.prices)), float(np.nanmax(scene.prices))]
    low, high = min(prices_in_view), max(prices_in_view)
    edge = (high - low) * 0.06 or 0.5
    chart = Chart(
        canvas,
        rect,
        title="Price",
        x_range=_rounds(scene),
        y_range=(max(0.0, low - edge) if low >= 0 else low - edge, high + edge),
        x_label="round",
        labels_at_right=64,
    )
    levels = []
    if canvas.view.marks:
        chart.band(*scene.band, _BAND)
        levels = [Mark(nash, "Nash", INK), Mark(joint, "cartel", INK)]
    if len(set(scene.cost)) == 1:
        levels.append(Mark(scene.cost[0], "cost"))
    for level in levels:
        chart.level(level)
    x, prices = _axis(scene), scene.prices
    if scene.initial_prices is not None and scene.first_round == 1:
        x, prices = np.append(0.0, x), np.vstack([scene.initial_prices, prices])
    chart.players(x, prices)
    ends = [
        Mark(price, f"{price:.4g}", series(firm))
        for firm, price in enumerate(scene.prices[-1, :_FIRMS_NAMED].tolist() if len(scene.prices) else ())
        if firm not in scene.departed and not np.isnan(price)
    ]
    chart.names([*levels, *ends])
    if canvas.view.marks:
        px, at = canvas.px, (chart.area.right, rect.top + canvas.px(9))
        label = canvas.text(at, "collusion band", size=10.5, colour=FAINT, anchor="midright")
        key = Rect(0, 0, px(12), px(10))
        key.midright = label.left - px(6), at[1]
        canvas.box(key, _BAND, FAINT)


def _quantities(
    scene: BertrandScene, canvas: Canvas, rect: Rect, title: str, values: NDArray[np.float64], levels: tuple[Mark, ...]
) -> None:
    values_in_view = [level.value for level in levels]
    if len(values):
        values_in_view += [float(np.nanmin(values)), float(np.nanmax(values))]
    low, high = min(0.0, *values_in_view) if values_in_view else 0.0, max(values_in_view, default=1.0)
    chart = Chart(
        canvas,
        rect,
        title=title,
        x_range=_rounds(scene),
        y_range=(low, high + (high - low) * 0.06 or 1.0),
        x_label="round",
        labels_at_right=44 if levels else 0,
    )
    for level in levels:
        chart.level(level)
    chart.players(_axis(scene), values, 0.8)
    chart.names(levels)


def _table(scene: BertrandScene, canvas: Canvas, rect: Rect) -> int:
    """Draw the last round in numbers. Returns the y below the table."""
    px = canvas.px
    step = canvas.line_height(12) + px(4)
    title = f"Round {scene.first_round + len(scene.prices) - 1}" if len(scene.prices) else "No prices yet"
    canvas.text(rect.topleft, title, size=12.5, bold=True)
    columns = [rect.right - share * rect.width // 100 for share in (50, 25, 0)]
    if len(scene.prices):
        for x, word in zip(columns, ("price", "sold", "profit"), strict=True):
            canvas.text((x, rect.top), word, size=11, colour=FAINT, anchor="topright")
    y = rect.top + step
    for firm, name in enumerate(scene.agents[:_FIRMS_NAMED]):
        canvas.dot((rect.left + px(6), y + step // 2 - px(2)), series(firm), px(10), sign_of(firm))
        canvas.text((rect.left + px(17), y), name, size=12, width=rect.width * 30 // 100 - px(17))
        if firm in scene.departed:
            canvas.text((columns[0], y), "left", size=12, colour=FAINT, anchor="topright")
        elif len(scene.prices):
            numbers = scene.prices[-1, firm], scene.demand[-1, firm], scene.profits[-1, firm]
            for x, number in zip(columns, numbers, strict=True):
                canvas.text((x, y), short(number), size=12, anchor="topright")
        y += step
    if len(scene.agents) > _FIRMS_NAMED:
        canvas.text((rect.left, y), f"and {len(scene.agents) - _FIRMS_NAMED} more firms", size=11, colour=FAINT)
        y += step
    return y


def _axis(scene: BertrandScene) -> NDArray[np.float64]:
    return np.arange(scene.first_round, scene.first_round + len(scene.prices), dtype=np.float64)


def _rounds(scene: BertrandScene) -> tuple[float, float]:
    """The ends of the round axis, which grows with play: 20 rounds at first, then 2 % more than were played."""
    last = scene.first_round + len(scene.prices) - 1
    last_shown = min(float(scene.rounds), max(20.0, last * 1.02))
    return (0.0 if scene.first_round == 1 else float(scene.first_round)), max(last_shown, float(last))


PICTURE = Picture(draw=draw_bertrand)

"""The picture of the beauty contest: numbers on a line with target and winners, variance by k, the discussion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llm_coop_envs.kbc.faces.scene import KbcDecision, KbcScene
from llm_coop_envs.render.screen.canvas import BLUE, FAINT, GRID, INK, ORANGE, VERMILION, Canvas, Rect, mix_colours
from llm_coop_envs.render.screen.chart import Chart, Mark, tick_text, ticks
from llm_coop_envs.render.screen.page import Picture, draw_page
from llm_coop_envs.render.screen.talk import draw_talk

#: Contests of more players are drawn with bars for counts instead of one sign for each player.
_MANY = 400


def draw_kbc(scene: KbcScene, canvas: Canvas) -> None:
    """Draw the whole picture."""
    px = canvas.px
    when = _name(scene, scene.round) if scene.session == "nested" else f"round {scene.round}"
    offset = "" if scene.offset in ("0", "0.0") else f" + {scene.offset}"
    activity = scene.state(start="before the first decision", act="naming numbers", settled="decided")
    chart_area, inner = draw_page(
        canvas,
        title="Beauty contest" if canvas.view.marks else "Number contest",
        state=f"{when} · {activity}",
        right=f"{len(scene.agents)} players · target = {scene.ratio} x {scene.statistic}{offset}",
        wide=350,
    )
    chart_area = chart_area.inflate(-px(36), -px(20))
    high = chart_area.height * 3 // 5
    _line(scene, canvas, Rect(chart_area.left, chart_area.top, chart_area.width, high))
    _spread(
        scene,
        canvas,
        Rect(chart_area.left, chart_area.top + high + px(14), chart_area.width, chart_area.height - high - px(14)),
    )
    draw_talk(
        canvas,
        inner,
        scene,
        title="Discussion",
        empty="Nobody has spoken.",
        colour_of=lambda _: BLUE,
        rounds=lambda number: f"before decision {_name(scene, number)}",
        lines=4,
    )


def _name(scene: KbcScene, number: int) -> str:
    return f"k = {number}" if scene.session == "nested" else str(number)


def _line(scene: KbcScene, canvas: Canvas, rect: Rect) -> None:
    """Draw the last decision's numbers, one sign for each, stacked over the number line."""
    px = canvas.px
    last = scene.last
    title = "No number named yet"
    if last is not None:
        when = f"at k = {last.round}" if scene.session == "nested" else f"in round {last.round}"
        title = f"Numbers named {when}"
    canvas.text(rect.topleft, title, size=12.5, bold=True)
    base = rect.bottom - canvas.line_height(10) - canvas.line_height(11.5) - px(12)
    top = rect.top + canvas.line_height(12.5) + canvas.line_height(11) + px(10)
    low, high = float(scene.low), float(scene.high)
    axis_left, axis_right = rect.left + px(10), rect.right - px(10)

    def x_of(number: float) -> float:
        return axis_left + (number - low) / (high - low) * (axis_right - axis_left)

    canvas.box(Rect(axis_left, base, axis_right - axis_left, px(2)), INK)
    tick_values = ticks((low, high), max(2, (axis_right - axis_left) // px(56)))
    for number in tick_values:
        x = round(x_of(number))
        canvas.box(Rect(x, base, 1, px(5)), INK)
        canvas.text((x, base + px(6)), tick_text(number, tick_values), size=10, colour=FAINT, anchor="midtop")
    if last is None:
        return
    _stacks(canvas, last, x_of, base, top)
    x = round(x_of(last.target))
    canvas.dashed((x, top - px(4)), (x, base), VERMILION, 5)
    label = f"target {last.target:.2f}"
    half = canvas.fonts.width(label, px(11), bold=True) // 2
    where = min(max(x, rect.left + half), rect.right - half)
    canvas.text((where, top - px(5)), label, size=11, bold=True, colour=VERMILION, anchor="midbottom")
    canvas.dot((round(x_of(last.mean)), base + px(1)), INK, px(9), "diamond")
    count = len(last.winners)
    prize = f", {last.prize:g} each" if count else ""
    summary = f"mean {last.mean:.2f}    {count} of {int(np.isfinite(last.choices).sum())} won{prize}"
    y = rect.bottom - canvas.line_height(11.5)
    canvas.dot((rect.left + px(15), y + px(7)), INK, px(9), "diamond")
    canvas.dot((rect.right - px(160), y + px(7)), ORANGE, px(12), "star")
    canvas.text((rect.right - px(150), y), "winner", size=11.5, colour=FAINT)
    canvas.dot((rect.right - px(84), y + px(7)), BLUE, px(9))
    canvas.text((rect.right - px(74), y), "other player", size=11.5, colour=FAINT)
    canvas.text((rect.left + px(26), y), summary, size=11.5, width=rect.width - px(200))


def _stacks(canvas: Canvas, last: KbcDecision, x_of: Callable[[float], float], base: int, top: int) -> None:
    """Draw a sign for each player over its number, or a bar for each number if there are too many players."""
    px = canvas.px
    won = np.zeros(len(last.choices), dtype=np.bool_)
    won[list(last.winners)] = True
    is_present = np.isfinite(last.choices)
    won, choices = won[is_present], last.choices[is_present]
    numbers, which, counts = np.unique(choices, return_inverse=True, return_counts=True)
    apart = max(1.0, x_of(1.0) - x_of(0.0))
    room, tallest = base - top, int(counts.max())
    if len(choices) > _MANY or tallest * px(4) > room:
        wide = max(1, min(px(9), round(apart * 0.8)))
        for k, (number, count) in enumerate(zip(numbers.tolist(), counts.tolist(), strict=True)):
            height = max(1, round(count / tallest * (room - px(14))))
            bar = Rect(round(x_of(number) - wide / 2), base - height, wide, height)
            canvas.box(bar, ORANGE if won[which == k].any() else mix_colours(BLUE, 0.7))
            if count == tallest:
                canvas.text((bar.right + px(3), bar.top), str(count), size=10, anchor="topleft", colour=FAINT)
        return
    side = px(11)
    rise = min(side, room // max(1, tallest))
    # Numbers closer together than this (real ones) share a column.
    column = max(1.0, min(apart, px(4)))
    levels: dict[int, int] = {}
    for player in np.argsort(won, kind="stable").tolist():
        x = x_of(float(choices[player]))
        key = round(x / column)
        level = levels.get(key, 0)
        levels[key] = level + 1
        where = x, base - rise * level - side // 2 - px(1)
        if won[player]:
            canvas.dot(where, ORANGE, side + px(2), "star")
        else:
            canvas.dot(where, BLUE, side - px(1))


def _spread(scene: KbcScene, canvas: Canvas, rect: Rect) -> None:
    """Draw variance, mean and target over the decisions so far."""
    px = canvas.px
    half = (rect.width - px(20)) // 2
    decisions = scene.decisions
    x = np.array([d.round for d in decisions], dtype=np.float64)
    nested = scene.session == "nested"
    first = 0.0 if nested else 1.0
    ends = first, max(first + 1.0, first + scene.all_decisions - 1.0)
    by, label = (" by k", "") if nested else ("", "round")
    variance = np.array([d.variance for d in decisions])
    chart = Chart(
        canvas,
        Rect(rect.left, rect.top, half, rect.height),
        title=f"Variance of the numbers{by}",
        x_range=ends,
        y_range=(0.0, max(1.0, float(variance.max(initial=0.0)) * 1.08)),
        x_label=label,
    )
    chart.curve(x, variance, BLUE, sign="disc")
    means, targets = np.array([d.mean for d in decisions]), np.array([d.target for d in decisions])
    values_in_view = [*means.tolist(), *targets.tolist()]
    top, bottom = max(values_in_view, default=float(scene.high)), min([*values_in_view, float(scene.low)])
    chart = Chart(
        canvas,
        Rect(rect.right - half, rect.top, half, rect.height),
        title=f"Mean and target{by}",
        x_range=ends,
        y_range=(bottom, bottom + (top - bottom) * 1.08 if top > bottom else bottom + 1.0),
        x_label=label,
        labels_at_right=46,
    )
    chart.curve(x, means, INK, sign="diamond")
    chart.curve(x, targets, VERMILION, sign="square")
    if len(means):
        chart.names([Mark(float(means[-1]), "mean", INK), Mark(float(targets[-1]), "target", VERMILION)])
    canvas.box(Rect(rect.left, rect.top - px(8), rect.width, 1), GRID)


PICTURE = Picture(draw=draw_kbc)

"""The small picture of an answer: arms as rows of dots, pairs joined, each mean with its interval, published values.

It is SVG with attributes alone, so that it stands in a page that allows no styles but its own, and follows its colours.
"""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from xml.etree.ElementTree import Element, SubElement, tostring

from llm_coop_envs.core.scenario import PER_CENT
from llm_coop_envs.render.charts.axes import SHORTEST_COUNTED
from llm_coop_envs.reports.answer_parts import Answer, ArmValues, capitalise
from llm_coop_envs.reports.arm_words import part_titles
from llm_coop_envs.reports.page_parts import decimals_for, fixed
from llm_coop_envs.statistics.intervals import Range

#: Width of the picture, where its axis begins and ends, and the height of a row with pairs, without, and without them
#: where titles are long, in pixels.
WIDTH, LEFT, LEFT_OF_MANY, RIGHT = 370, 112, 196, 360
ROW, THIN_ROW, BROKEN_ROW = 42, 24, 31
#: The most dots of an arm, and pairs that are joined: more cannot be told apart.
MOST_DOTS, MOST_JOINED = 400, 200
#: The most arms in a picture.
MOST_ARMS = 8
_TITLE, _TITLE_OF_MANY = 17, 24
# What the report's page says in its style sheet.
_STYLE = (
    "svg { background: #fff; font: 11.5px system-ui, sans-serif } .faint { fill: #5c6570 } line { stroke-width: 1 } "
    ".pair { stroke: #c9ced6 } .axis { stroke: #5c6570 } circle { fill-opacity: .55 } .interval { stroke-width: 2 } "
    ".mean { stroke-width: 3 } .published { fill: #fff; stroke: #1f2328; stroke-width: 1.4 }"
)


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """The horizontal axis.

    Attributes:
        low: the value at its left end.
        high: the value at its right end.
        ticks: the values that are written below it.
        left: where it begins, in pixels.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    left: int = LEFT

    @classmethod
    def over(cls, values: Sequence[float], within: Range, left: int) -> _Axis:
        """The axis that holds some values of what can be, with two to five ticks."""
        from matplotlib.ticker import MaxNLocator

        low, high = within.axis(values, margin=0.04)
        locator = MaxNLocator(4, integer=within.integer and high - low >= SHORTEST_COUNTED)
        ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
        return cls(low=low, high=high, ticks=tuple(float(tick) for tick in ticks), left=left)

    def place(self, value: float) -> float:
        """Where a value lies, in pixels from the left."""
        return round(self.left + (RIGHT - self.left) * (value - self.low) / (self.high - self.low), 1)


def small_picture(answer: Answer) -> str:
    """Draw an answer as SVG; empty if no arm has a value."""
    arms = [arm for arm in answer.arms if arm.values]
    arms, omitted = arms[:MOST_ARMS], len(arms[MOST_ARMS:])
    arms = [replace(arm, title=title) for arm, title in zip(arms, part_titles([a.title for a in arms])[1], strict=True)]
    numbers = [number for arm in arms for number in _numbers(arm)]
    if not numbers:
        return ""
    decimals = decimals_for([arm.mean.mean for arm in arms if arm.mean is not None])
    thin = len(arms) > 2
    row = ROW if not thin else THIN_ROW if all(len(arm.title) <= _TITLE_OF_MANY for arm in arms) else BROKEN_ROW
    axis = _Axis.over(numbers, answer.within, LEFT_OF_MANY if thin else LEFT)
    rows = [22 + row * index for index in range(len(arms))]
    bottom = rows[-1] + 20
    picture = Element("svg", {"class": "dots", "viewBox": f"0 0 {WIDTH} {bottom + 20}", "role": "img"})
    picture.set("aria-label", _describe(answer, arms))
    if answer.paired and not thin and len(arms[0].values) <= MOST_JOINED:
        _join(picture, arms, rows, axis)
    for arm, y in zip(arms, rows, strict=True):
        _name_arm(picture, arm, y, decimals, thin=thin)
        # Beside the dots, so that neither hides the other: above the first arm's, below the second's.
        _draw_arm(picture, arm, axis, y, beside=0 if thin else -11 if y == rows[0] else 11)
    _draw_axis(picture, axis, bottom, answer.unit)
    if omitted:
        _write(picture, f"{omitted} more not drawn", 0, bottom + 16, kind="faint")
    return tostring(picture, encoding="unicode")


def picture_alone(answer: Answer) -> str:
    """Draw an answer as an HTML image that brings its own style, for places without that of the report's page."""
    picture = small_picture(answer)
    if not picture:
        return ""
    drawn = picture.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" ', 1)
    drawn = drawn.replace(">", f"><style>{_STYLE}</style>", 1)
    data = base64.b64encode(drawn.encode()).decode()
    text = escape(capitalise(answer.noun) + (f", {answer.unit}" if answer.unit else ""))
    return f'<p>{text}<br><img alt="{escape(answer.sentence)}" src="data:image/svg+xml;base64,{data}"></p>'


def _numbers(arm: ArmValues) -> list[float]:
    """All numbers that an arm's row must hold."""
    ends = [] if arm.mean is None else [arm.mean.mean, arm.mean.low, arm.mean.high]
    return [*arm.values, *(end for end in ends if end is not None), *(value for _, value in arm.published)]


def _line(picture: Element, kind: str, start: tuple[float, float], end: tuple[float, float], color: str = "") -> None:
    """Add a line of a kind that the page's style knows."""
    ends = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    stroke = {"stroke": color} if color else {}
    SubElement(picture, "line", {"class": kind, **{name: f"{place:g}" for name, place in ends.items()}, **stroke})


def _write(picture: Element, text: str, x: float, y: float, *, kind: str = "label", anchor: str = "start") -> None:
    attributes = {"x": f"{x:g}", "y": f"{y:g}", "class": kind, "text-anchor": anchor}
    SubElement(picture, "text", attributes).text = text


def _join(picture: Element, arms: Sequence[ArmValues], rows: Sequence[int], axis: _Axis) -> None:
    """Add a line for each pair; equal ones are drawn once."""
    pairs = zip(arms[0].values, arms[1].values, strict=True)
    for first, second in dict.fromkeys((axis.place(first), axis.place(second)) for first, second in pairs):
        _line(picture, "pair", (first, rows[0]), (second, rows[1]))


def _name_arm(picture: Element, arm: ArmValues, y: int, decimals: int, *, thin: bool) -> None:
    """Write the title and the mean of an arm: in a line where arms are many, else below each other."""
    mean = fixed(arm.mean.mean, decimals) if arm.mean is not None else ""
    if thin:
        lines = _two_lines(arm.title, _TITLE_OF_MANY)
        for number, line in enumerate(lines):
            _write(picture, line, 0, y + 4 - 6.5 * (len(lines) - 1) + 13 * number)
        _write(picture, mean, LEFT_OF_MANY - 8, y + 4, kind="faint", anchor="end")
        return
    lines = _two_lines(arm.title, _TITLE)
    top = y - 7 * (len(lines) - 1)
    for number, line in enumerate(lines):
        _write(picture, line, 0, top + 13 * number)
    _write(picture, f"mean {mean}", 0, top + 13 * len(lines) + 1, kind="faint")


def _two_lines(title: str, width: int) -> list[str]:
    """A title in at most two lines; of a longer one the beginning and the end, which tells it from others."""
    lines = textwrap.wrap(title, width) or [""]
    if len(lines) <= 2:
        return lines
    (end,) = textwrap.wrap(title[::-1], width - 2, max_lines=1, placeholder="")
    return [lines[0], f"… {end[::-1]}"]


def _draw_arm(picture: Element, arm: ArmValues, axis: _Axis, y: int, *, beside: int) -> None:
    """Add the dots of an arm, its mean with the interval, and published values."""
    for title, value in arm.published:
        shape = {"class": "published", "d": f"M{axis.place(value):g} {y - 5}l5 5l-5 5l-5 -5z"}
        SubElement(SubElement(picture, "path", shape), "title").text = f"published, {title}: {value:g}"
    ordered = sorted(arm.values)
    for value in ordered[:: math.ceil(len(ordered) / MOST_DOTS)]:
        SubElement(picture, "circle", {"cx": f"{axis.place(value):g}", "cy": str(y), "r": "3.2", "fill": arm.color})
    if arm.mean is not None:
        line, middle = y + beside, axis.place(arm.mean.mean)
        if arm.mean.low is not None and arm.mean.high is not None:
            ends = axis.place(arm.mean.low), axis.place(arm.mean.high)
            _line(picture, "interval", (ends[0], line), (ends[1], line), arm.color)
        _line(picture, "mean", (middle, line - 6), (middle, line + 6), arm.color)


def _draw_axis(picture: Element, axis: _Axis, y: int, unit: str) -> None:
    _line(picture, "axis", (axis.left, y), (RIGHT, y))
    for tick, text in zip(axis.ticks, fixed_alike(axis.ticks), strict=True):
        x = axis.place(tick)
        _line(picture, "axis", (x, y), (x, y + 4))
        _write(picture, f"{text} %" if unit == PER_CENT else text, x, y + 16, kind="faint", anchor="middle")


def fixed_alike(values: Sequence[float]) -> list[str]:
    """Round numbers, such as those of ticks, with as many decimals as the longest of them has."""
    texts = ([fixed(value, count) for value in values] for count in range(7))
    exact = (own for own in texts if all(map(_is_close, own, values)))
    return next(exact, [f"{value:g}" for value in values])


def _is_close(text: str, value: float) -> bool:
    return math.isclose(float(text), value, abs_tol=1e-12)


def _describe(answer: Answer, arms: Sequence[ArmValues]) -> str:
    """The picture in words, for those who do not see it."""
    sentences = []
    for arm in arms:
        low, high = min(arm.values), max(arm.values)
        decimals = decimals_for([low, high])
        mean = "" if arm.mean is None else f", mean {fixed(arm.mean.mean, decimals_for([arm.mean.mean]))}"
        published = "".join(f", published {title}: {value:g}" for title, value in arm.published)
        sentences.append(
            f"{arm.title}: {len(arm.values)} from {fixed(low, decimals)} to {fixed(high, decimals)}{mean}{published}"
        )
    return f"{answer.noun}, {answer.unit or 'as numbers'}. {'; '.join(sentences)}."

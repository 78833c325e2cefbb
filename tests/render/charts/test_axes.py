"""Ticks of axes."""

import pytest

from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Panel


def ticks(highest, *, counts):
    curve = Curve(label="", x=[0, 1], y=[0, highest])
    figure = draw_panels([[Panel(title="", curves=[curve], y_range=(0, highest), counts=counts)]], size=(3.7, 2.0))
    low, high = figure.axes[0].get_ylim()
    return [tick for tick in figure.axes[0].get_yticks().tolist() if low <= tick <= high]


@pytest.mark.parametrize("people", [5, 12.6, 14, 47, 100, 264])
def test_counts_of_people_are_whole(people):
    shown = ticks(people, counts=True)
    assert len(shown) >= 2
    assert all(tick.is_integer() for tick in shown)


def test_means_of_counts_that_lie_close_together_keep_their_parts():
    assert ticks(1.0, counts=True) == ticks(1.0, counts=False)
    assert len(ticks(1.0, counts=True)) > 2
    assert 12.5 in ticks(14, counts=False)

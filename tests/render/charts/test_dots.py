"""Charts of means with intervals."""

from llm_coop_envs.render.charts.dots import Dot, DotPanel, draw_dots
from llm_coop_envs.render.charts.style import BLUE


def ticks(*dots):
    panel = DotPanel(title="until prices stay together", label="rounds", dots=dots, log=True)
    return draw_dots(["a", "b"], [("here", BLUE)], [panel]).axes[0]


def test_a_logarithmic_axis_has_every_second_power_of_ten():
    axes = ticks(Dot(line=0, value=12.0, low=9.0, high=15.0, group=0), Dot(line=1, value=12_000.0, group=0))
    assert (axes.get_xscale(), axes.get_xticks().tolist()) == ("log", [1.0, 100.0, 10_000.0])


def test_a_logarithmic_panel_in_which_nothing_has_the_measure_is_empty():
    assert ticks().get_xscale() == "linear"

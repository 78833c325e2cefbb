import math

from llm_coop_envs.render.charts.heatmap import HeatMap, draw_maps
from llm_coop_envs.render.charts.style import picture

LEFT = HeatMap(title="here", note="2 sessions", x=["a", "b"], y=["c", "d"], values=[[0.1, 0.9], [None, 0.5]])
RIGHT = HeatMap(title="there", x=["a"], y=["c"], values=[[0.3]])


def test_every_number_stands_in_its_cell():
    figure = draw_maps([LEFT, RIGHT], x_label="x", y_label="y", bar="gain")
    first, right, bar = figure.axes
    cells = {text.get_position(): text.get_text() for text in first.texts if text.get_text() != "2 sessions"}
    assert cells == {(0, 0): "0.10", (1, 0): "0.90", (1, 1): "0.50"}
    assert [label.get_text() for label in first.get_yticklabels()] == ["c", "d"]
    assert bar.get_ylabel() == "gain"
    # One scale for both, so that colours can be compared.
    assert first.collections[0].get_clim() == right.collections[0].get_clim() == (0.1, 0.9)


def test_dark_cells_have_light_numbers():
    figure = draw_maps([LEFT], x_label="x", y_label="y", bar="gain")
    colors = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert colors["0.10"] == "white"
    assert colors["0.90"] != "white"


def test_a_single_value_can_be_drawn():
    figure = draw_maps([RIGHT], x_label="x", y_label="y", bar="gain")
    assert picture(figure).startswith(b"\x89PNG")
    low, high = figure.axes[0].collections[0].get_clim()
    assert math.isclose(low, 0.3)
    assert high > low

import colorsys
import re
from pathlib import Path

import pytest

import llm_coop_envs
from llm_coop_envs.evacuation.faces.drawing_room import exit_colour
from llm_coop_envs.evacuation.faces.report_room import UNDECIDED, Snapshot, draw_snapshots, exit_color
from llm_coop_envs.render.charts.style import picture

ROOM = {
    "rows": 6,
    "cols": 9,
    "exit_names": ["bottom", "left"],
    "exits": [["bottom", 5, 4], ["left", 2, 0]],
    "desks": [[2, 4]],
}
ONE = Snapshot(title="start", people=[(1, 1, -1), (3, 3, -1)])
TWO = Snapshot(title="round 2", note="2 inside", people=[(2, 1, 1)], disabled=[(4, 4)], trails=[[(1, 1), (2, 1)]])


def test_people_stand_where_they_are_in_the_colour_of_their_exit():
    figure = draw_snapshots(ROOM, [[ONE, TWO]])
    first, second = figure.axes
    (people,) = [dots for dots in first.collections if len(dots.get_offsets())]
    assert people.get_offsets().tolist() == [[1, 1], [3, 3]]
    heading, hurt = [dots for dots in second.collections if len(dots.get_offsets())]
    assert heading.get_offsets().tolist() == [[1, 2]]
    assert hurt.get_offsets().tolist() == [[4, 4]]
    (trail,) = second.lines
    assert trail.get_xydata().tolist() == [[1, 1], [1, 2]]
    assert first.get_title(loc="left") == "start"
    assert [text.get_text() for text in second.texts] == ["2 inside"]
    # Row 0 is at the top.
    assert first.get_ylim() == (5.5, -0.5)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [
        "heads for the bottom exit",
        "heads for the left exit",
        "no exit chosen yet",
        "hurt, stays",
        "desk",
    ]


def test_exits_have_colours_of_their_own():
    assert exit_color(-1) == UNDECIDED
    assert len({exit_color(i) for i in range(6)}) == 6


@pytest.mark.parametrize("size", [(10, 10), (200, 40), (5, 200)])
def test_rooms_of_any_shape_can_be_drawn(size):
    exits = {"exit_names": ["right"], "exits": [["right", 2, size[1] - 1]]}
    room = {"rows": size[0], "cols": size[1], **exits, "desks": []}
    assert picture(draw_snapshots(room, [[ONE]])).startswith(b"\x89PNG")


def test_exits_have_one_colour_on_page_window_and_report():
    """The page has lighter and darker shades of them, for its light and its dark theme."""
    style = (Path(llm_coop_envs.__file__).parent / "page" / "front" / "src" / "style.css").read_text()
    values = dict(re.findall(r"--([ce]\d): ([^;]+);", style.split("@media")[0]))

    def hue(red, green, blue):
        hue, _, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
        return round(360 * hue) if saturation > 0.05 else None

    for exit_ in range(6):
        on_page = values[f"e{exit_}"]
        on_page = values[on_page[6:8]] if on_page.startswith("var") else on_page
        hues = [hue(*bytes.fromhex(color[1:])) for color in (on_page, exit_color(exit_))] + [hue(*exit_colour(exit_))]
        if None in hues:
            assert hues == [None] * 3
        else:
            assert max(hues) - min(hues) <= 5

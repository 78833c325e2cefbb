"""Numbers in cells, and pieces of conversations."""

import pytest

from llm_coop_envs.reports.page_parts import Cell, decimals_for, excerpt, interval_cell
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.statistics.intervals import Interval


def test_excerpts_show_no_message_twice(everything):
    for episode in read_episodes(open_run(everything)):
        part = excerpt(episode)
        said = [m for m in episode.messages if m["text"]]
        if not said:
            assert part is None
            continue
        lines = [(m["speaker"], m["text"]) for m in part.messages]
        assert len(lines) == len({text for _, text in lines}) <= 8
        assert set(lines) <= {(m["speaker"], m["text"]) for m in said}
        assert part.left_out == len(said) - len(lines)


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0, 0], 0),
        ([12.0, 3], 0),
        ([0.1234], 3),
        ([1.234, 0.5], 2),
        ([12.34, 1.2], 1),
        ([1234.5], 0),
        ([-0.5], 3),
        ([0.0012], 4),
        ([1e-9], 6),
    ],
)
def test_decimals_follow_the_size(values, decimals):
    assert decimals_for(values) == decimals


def test_interval_cells():
    found = Interval(mean=1.26, low=1.0, high=1.5, n=4)
    assert interval_cell(None) == Cell(text="\N{EN DASH}")
    assert interval_cell(found, 1) == Cell(text="1.3", below="1.0 to 1.5")
    assert interval_cell(found) == Cell(text="1.26", below="1.00 to 1.50")
    assert interval_cell(found, of=4) == interval_cell(found)
    assert interval_cell(found, of=5).below == "1.00 to 1.50; 4 of 5"
    assert interval_cell(Interval(mean=-0.07, low=-0.072, high=-0.067, n=4)).below == "-0.072 to -0.067"
    assert interval_cell(Interval(mean=0.5, low=-1e-17, high=1.0, n=2), 1).below == "0.0 to 1.0"
    assert interval_cell(Interval(mean=1.26, low=None, high=None, n=1), 1) == Cell(text="1.3")
    assert interval_cell(Interval(mean=1.26, low=None, high=None, n=1), of=3) == Cell(text="1.26", below="1 of 3")
    assert interval_cell(Interval(mean=3.0, low=3.0, high=3.0, n=4)) == Cell(text="3", below="always")
    assert interval_cell(Interval(mean=3.0, low=3.0, high=3.0, n=4), 2) == Cell(text="3.00", below="always")
    near = Interval(mean=0.5, low=0.49999, high=0.50001, n=4)
    assert interval_cell(near) == Cell(text="0.500", below="0.500 when rounded")

"""A grid of settings is one condition for each combination."""

import pytest

from llm_coop_envs.errors import StudyError
from llm_coop_envs.studies.study import parse_study

SWEEP = """\
name: sweep
conditions:
  - name: size
    title: how many
    scenario: kbc
    settings: {talk: false}
    grid:
      players: [6, 12, 24]
      ratio: [1/2, 2/3]
    policies: poisson
    episodes: 2
"""


def test_each_combination_is_a_condition():
    conditions = parse_study(SWEEP, "sweep.yaml").conditions
    assert [one.name for one in conditions][:3] == [
        "size-players-6-ratio-1_2",
        "size-players-6-ratio-2_3",
        "size-players-12-ratio-1_2",
    ]
    assert len(conditions) == 6
    last = conditions[-1]
    assert (last.settings["players"], str(last.settings["ratio"]), last.settings["talk"]) == (24, "2/3", False)
    assert last.changed == {"talk": False, "players": 24, "ratio": "2/3"}
    assert (last.title, last.variant) == ("how many, players 24, ratio 2/3", "players 24, ratio 2/3")
    assert len({one.seeds for one in conditions}) == 1  # so that they can be compared pair by pair


def test_a_list_can_be_a_value_and_variants_have_grids():
    text = """\
name: rooms
conditions:
  - name: exits
    scenario: evacuation
    policies: nearest_exit
    seeds: [0]
    grid: {exit_widths: [[3, 3, 1], [2, 2, 2]]}
    variants: [{name: talk, title: with talk}, {name: silent, settings: {talk: false}}]
"""
    conditions = parse_study(text, "rooms.yaml").conditions
    assert [one.name for one in conditions] == [
        "exits-talk-exit_widths-_3_3_1_",
        "exits-talk-exit_widths-_2_2_2_",
        "exits-silent-exit_widths-_3_3_1_",
        "exits-silent-exit_widths-_2_2_2_",
    ]
    assert list(conditions[1].settings["exit_widths"]) == [2, 2, 2]
    assert conditions[0].variant == "with talk, exit widths [3, 3, 1]"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[6, 12, 24]", "[6, many]", r"sweep.yaml, line 8: conditions\[0\].grid.players.*'many'"),
        ("[6, 12, 24]", "[]", r"line 8: conditions\[0\].grid.players: must not be empty"),
        ("[6, 12, 24]", "6", r"grid.players: must be a list"),
        ("{talk: false}", "{talk: false, players: 6}", r"settings.players: stands in the grid too"),
        ("[6, 12, 24]", "[6, 6]", r"'size-players-6-ratio-1_2' is already the condition"),
        ("[6, 12, 24]", str(list(range(3, 700))), r"makes 1,394 conditions; 1,000 are the most"),
        ("players:", "playres:", r"did you mean 'players'"),
    ],
)
def test_mistakes_are_told_where_they_stand(old, new, words):
    with pytest.raises(StudyError, match=words):
        parse_study(SWEEP.replace(old, new), "sweep.yaml")

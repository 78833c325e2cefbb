import json

import pytest

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.settings import EvacuationSettings


def test_the_defaults_are_the_published_ones():
    settings = EvacuationSettings()
    assert settings == EvacuationSettings.build("team_up")
    expected = {
        "talk": True,
        "talk_until": None,
        "talk_mode": "sequential",
        "people": 100,
        "rows": 33,
        "cols": 33,
        "exit_widths": [3, 3, 1],
        "exits": None,
        "desks": "none",
        "start": "random",
        "diagonals": True,
        "engine": "sequential",
        "control": "move",
        "rounds": 50,
        "extra_round": False,
        "removal_lag": True,
        "replan_probability": 0.2,
        "all_plan_first": True,
        "hearing_radius": 5.0,
        "hear_later_speakers": True,
        "count_self": True,
        "count_desks": True,
        "crowd_count": "near",
        "personas": "two_by_two",
        "persona_swap": True,
        "option_order": "fixed",
        "injury": "inert",
        "disabled_block": False,
        "reward_inside": -1.0,
        "reward_out": 0.0,
        "reward_lost": None,
        "message_length": 1000,
        "wording": "en-a",
    }
    assert settings.to_json() == expected
    assert len(settings.exit_list) == 7
    assert settings.last_round == 50
    assert EvacuationSettings(extra_round=True).last_round == 51


def test_presets():
    build = EvacuationSettings.build
    assert build("no_talk").talk is False
    assert build("selfish").personas == "selfish"
    assert (build("desks").desks, build("desks").people, len(build("desks").desk_list)) == ("published", 100, 264)
    seated = build("desks_seated")
    assert (seated.start, seated.people, seated.desks) == ("below_desks", 264, "published")
    assert build("no_diagonals").diagonals is False
    assert build("crowd_400").people == 400
    small = build("small")
    assert (small.rows, small.cols, small.people) == (11, 11, 47)
    single = build("single")
    assert (single.rows, single.cols, single.people, single.talk) == (10, 10, 1, False)
    assert single.exit_list == (("left", 5, 0), ("bottom", 9, 4), ("right", 8, 9))
    assert set(EvacuationSettings.presets) == {
        "team_up",
        "no_talk",
        "selfish",
        "desks",
        "desks_seated",
        "no_diagonals",
        "crowd_400",
        "small",
        "single",
    }


@pytest.mark.parametrize("preset", sorted(EvacuationSettings.presets))
def test_settings_survive_json(preset):
    settings = EvacuationSettings.build(preset)
    assert EvacuationSettings.build(**json.loads(json.dumps(settings.to_json()))) == settings


def test_exits_as_a_mapping_become_a_list():
    settings = EvacuationSettings(rows=9, cols=9, people=5, exits={"door": [[8, 4], [8, 5]], "hatch": [[0, 2]]})
    assert settings.exits == (("door", 8, 4), ("door", 8, 5), ("hatch", 0, 2))
    assert settings.room.exit_names == ("door", "hatch")
    assert EvacuationSettings(rows=9, cols=9, people=5, exits=settings.to_json()["exits"]) == settings


BAD = [
    ({"people": 0}, "people", "1 or more"),
    ({"people": 962}, "people", "only 961 free cells"),
    ({"people": 698, "desks": "published"}, "people", "only 697 free cells"),
    ({"rows": 2}, "rows", "between 3 and 2000"),
    ({"cols": 2001}, "cols", "between 3 and 2000"),
    ({"exit_widths": (1, 2)}, "exit_widths", "three whole numbers"),
    ({"exit_widths": (0, 0, 0)}, "exit_widths", "no exit"),
    ({"exit_widths": (32, 3, 1)}, "exit_widths", "bottom exit has room for 31"),
    ({"exit_widths": (3, 32, 1)}, "exit_widths", "left exit has room for 31"),
    ({"exit_widths": (3, 3, 31)}, "exit_widths", "right exit has room for 30"),
    ({"exit_widths": (2, 3, 1), "exits": [["a", 0, 5]]}, "exit_widths", "contradicts exits"),
    ({"exits": []}, "exits", "at least one"),
    ({"exits": {}}, "exits", "at least one"),
    ({"exits": {"a": 5}}, "exits", "list of"),
    ({"exits": [["a", 5]]}, "exits", r"\(name, row, column\)"),
    ({"exits": [["a", 5.0, 0]]}, "exits", r"\(name, row, column\)"),
    ({"exits": [["", 5, 0]]}, "exits", "name"),
    ({"exits": [["a\n", 5, 0]]}, "exits", "printable"),
    ({"exits": [["a", 5, 5]]}, "exits", "cell of the wall"),
    ({"exits": [["a", 33, 0]]}, "exits", "cell of the wall"),
    ({"exits": [["a", 5, -1]]}, "exits", "cell of the wall"),
    ({"exits": [["a", 5, 0], ["b", 5, 0]]}, "exits", "twice"),
    ({"desks": "some"}, "desks", "one of none, published"),
    ({"desks": [[1]]}, "desks", "row, column"),
    ({"desks": [[2, 2], [2, 2]]}, "desks", "twice"),
    ({"desks": [[0, 5]]}, "desks", "inside the walls"),
    ({"desks": "published", "rows": 20}, "desks", "row 19, column 4"),
    ({"desks": [[1, 2], [2, 2], [2, 1]]}, "desks", "1 cells have no way to an exit, such as row 1, column 1"),
    ({"start": "below_desks"}, "people", "one person per desk"),
    ({"start": "below_desks", "desks": [[31, 4]], "people": 1}, "start", "below the desk"),
    ({"start": "below_desks", "desks": [[5, 4], [6, 4]], "people": 2}, "start", "below the desk"),
    ({"start": "anywhere"}, "start", "one of"),
    ({"engine": "fast"}, "engine", "one of"),
    ({"control": "none"}, "control", "one of"),
    ({"control": "exit", "all_plan_first": False}, "all_plan_first", "control='exit'"),
    ({"rounds": 0}, "rounds", "1 or more"),
    ({"extra_round": True, "removal_lag": False}, "extra_round", "removal_lag"),
    ({"replan_probability": 1.1}, "replan_probability", "at most 1"),
    ({"hearing_radius": -1}, "hearing_radius", "at least 0"),
    ({"crowd_count": "all"}, "crowd_count", "one of"),
    ({"personas": "kind"}, "personas", "one of"),
    ({"option_order": "random"}, "option_order", "one of"),
    ({"injury": "on"}, "injury", "one of"),
    ({"removal_lag": 1}, "removal_lag", "true or false"),
    ({"persona_swap": None}, "persona_swap", "true or false"),
    ({"reward_out": float("nan")}, "reward_out", "finite"),
    ({"reward_lost": "none"}, "reward_lost", "finite"),
    ({"disabled_block": True}, "disabled_block", "set injury='active'"),
    ({"diagonals": False, "exits": [["a", 0, 0]]}, "exits", "is a corner"),
    ({"diagonals": False, "desks": [[1, 2], [2, 1]]}, "desks", "1 cells have no way to an exit"),
    ({"talk_until": 0}, "talk_until", "1 or more"),
    ({"talk_until": 2.5}, "talk_until", "whole number"),
]


@pytest.mark.parametrize(("fields", "field", "reason"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_impossible_settings_are_refused(fields, field, reason):
    with pytest.raises(SettingsError, match=reason) as caught:
        EvacuationSettings(**fields)
    assert caught.value.field == field


def test_a_full_room_is_possible():
    settings = EvacuationSettings(people=961)
    assert settings.room is EvacuationSettings(people=5).room

"""The pictures: the same everywhere, at every size, for every state."""

import dataclasses
from pathlib import Path

import drawn
import numpy as np
import pytest

from llm_coop_envs import bertrand_v0, kbc_v0
from llm_coop_envs.errors import SceneError
from llm_coop_envs.evacuation.faces.drawing import person_at
from llm_coop_envs.evacuation.faces.drawing_room import layout_of
from llm_coop_envs.evacuation.faces.scene import INSIDE
from llm_coop_envs.evacuation.faces.scene_sight import cells_seen, exits_seen
from llm_coop_envs.render.screen.canvas import Canvas, View
from llm_coop_envs.render.screen.chart import thin_curve, tick_text, ticks
from llm_coop_envs.render.screen.draw import array_of, draw, error_frame, frame
from llm_coop_envs.render.screen.page import areas
from llm_coop_envs.render.screen.pygame_import import pygame

GOLDEN = Path(__file__).parent / "golden"
#: No font of this machine, and small, so that the files stay small.
PLAIN = View(system_fonts=False, size=(640, 420))
WORDS = ("I go left.", "مرحبا بكم", "😀 " * 30, "word " * 60, "x" * 200, " ")


def plain(**changes):
    return dataclasses.replace(PLAIN, **changes)


CASES = {
    "evacuation": lambda: draw(drawn.talking(drawn.evacuation(), 2), plain()),
    "evacuation_selected": lambda: draw(
        drawn.talking(drawn.evacuation(), 2), plain(selected=3, colour="target", density=True)
    ),
    "bertrand": lambda: draw(drawn.bertrand()[-2], plain()),
    "kbc": lambda: draw(drawn.kbc()[-1], plain()),
}


@pytest.mark.parametrize("name", CASES)
def test_golden_picture(name):
    drawn.assert_golden(CASES[name](), GOLDEN / f"{name}.png")


@pytest.mark.parametrize("name", CASES)
def test_the_same_scene_gives_the_same_pixels(name):
    np.testing.assert_array_equal(array_of(CASES[name]()), array_of(CASES[name]()))


def test_the_golden_test_can_fail():
    first, other = (array_of(draw(scene, PLAIN)).astype(int) for scene in drawn.evacuation()[40:46:5])
    assert (np.abs(first - other).max(axis=2) > 48).mean() > 0.004


@pytest.mark.parametrize("scale", [1.0, 2.0, 1.37])
@pytest.mark.parametrize("size", [None, (200, 150), (330, 700), (1600, 300), (40, 30)])
def test_every_size(scale, size):
    for scene in (drawn.evacuation()[30], drawn.bertrand()[20], drawn.kbc()[8]):
        surface = draw(scene, View(scale=scale, size=size, selected=2, follow=True))
        if size is not None:
            assert surface.get_size() == (round(size[0] * scale), round(size[1] * scale))


@pytest.mark.parametrize("words", WORDS)
def test_any_words(words):
    for scene in (drawn.evacuation(), drawn.bertrand(), drawn.kbc()):
        talk = drawn.saying(drawn.talking(scene), words)
        draw(talk, View(size=(700, 480)))
        draw(talk, plain(selected=1))


@pytest.mark.parametrize(
    "settings",
    [
        {"rows": 10, "cols": 10, "people": 5},
        {"rows": 200, "cols": 200, "people": 30, "control": "exit", "rounds": 4},
        {"rows": 3, "cols": 40, "people": 4, "exits": (("north gate", 0, 5), ("back", 1, 39))},
        {"people": 60, "injury": "active"},
        {"desks": ((5, 5), (5, 6)), "personas": "none", "engine": "simultaneous", "rounds": 6},
        {"personas": "selfish", "rounds": 4},
    ],
)
def test_rooms_of_all_kinds(settings):
    scenes = drawn.evacuation(**settings)
    for scene in scenes[:: max(1, len(scenes) // 6)]:
        for view in (View(), View(density=True, colour="target", selected=1), View(selected=0, follow=True)):
            draw(scene, dataclasses.replace(view, size=(700, 500)))


def test_first_and_last_scenes_of_all():
    for scenes in (drawn.evacuation(), drawn.bertrand(), drawn.kbc(), drawn.kbc(session="repeated", rounds=3)):
        draw(scenes[0])
        draw(scenes[-1])


def test_many_players_and_many_rounds():
    draw(drawn.kbc(players=500, talk=False)[-1], plain())
    draw(drawn.bertrand(per="round", rounds=400, talk=False, collusion_window=0)[-1], plain())


def test_clicking_finds_the_person_under_the_pointer():
    scene = drawn.evacuation()[30]
    canvas = Canvas(pygame.Surface((900, 600)), View())
    spot = layout_of(scene, canvas, areas(canvas)[0])
    for person in np.flatnonzero(scene.status == INSIDE).tolist():
        assert person_at(scene, canvas, *spot.middle(*scene.positions[person].tolist())) == person
    assert person_at(scene, canvas, 1, 1) is None


def test_what_a_person_sees_is_what_its_text_says():
    from llm_coop_envs import evacuation_v0

    env = evacuation_v0.parallel_env(rows=13, cols=13, people=20)
    _, infos = env.reset(seed=4)
    for person, name in enumerate(env.possible_agents):
        exits = infos[name]["slots"].exits
        seen = exits_seen(env.scene(), person)
        assert [(round(exit_.distance, 2), round(exit_.people, 2)) for exit_ in seen] == [
            (e.distance, e.people) for e in exits
        ]


def test_the_fan_begins_at_the_person():
    scene = next(candidate for candidate in drawn.evacuation() if candidate.doing == "move")
    person = int(np.flatnonzero(scene.status == INSIDE)[0])
    assert tuple(scene.positions[person].tolist()) in cells_seen(scene, person)
    assert cells_seen(drawn.evacuation()[0], person) == []  # heads nowhere yet


def test_view_switches_change_the_picture():
    scene = drawn.talking(drawn.evacuation(), 2)
    usual = frame(scene, PLAIN)
    for change in ({"colour": "target"}, {"trails": False}, {"density": True}, {"bubbles": False}, {"selected": 4}):
        assert (frame(scene, plain(**change)) != usual).any(), change
    priced = drawn.bertrand()[-2]
    assert (frame(priced, plain(marks=False)) != frame(priced, PLAIN)).any()


def test_arrays_are_pictures():
    surface = pygame.Surface((3, 2), depth=32)
    surface.set_at((2, 1), (10, 20, 30))
    pixels = array_of(surface)
    assert pixels.shape == (2, 3, 3)
    assert pixels.dtype == np.uint8
    assert pixels[1, 2].tolist() == [10, 20, 30]
    assert pixels.flags.writeable


def test_impossible_pictures_are_refused():
    with pytest.raises(SceneError, match="sides are 1 to"):
        draw(drawn.kbc()[0], View(size=(100_000, 10)))
    with pytest.raises(SceneError, match="no picture of a str"):
        draw("scene")


def test_a_picture_that_says_why_there_is_none():
    assert (error_frame("It failed.", (300, 100)) < 128).any()


def test_ticks():
    assert ticks((0, 100), 5) == [0, 20, 40, 60, 80, 100]
    assert ticks((1, 3), 10, integers=True) == [1, 2, 3]
    assert ticks((-0.5, 0.5), 4) == [-0.5, -0.25, 0.0, 0.25, 0.5]
    assert [tick_text(v, [0.5, 1.0]) for v in (0.5, 1.0)] == ["0.5", "1.0"]
    assert tick_text(12000, [12000]) == "12,000"


def test_long_curves_keep_their_extremes():
    y = np.zeros(10_000)
    y[777], y[5555] = 9.0, -3.0
    x, short = thin_curve(np.arange(10_000.0), y, 300)
    assert len(short) <= 602
    assert (short.max(), short.min()) == (9.0, -3.0)
    assert (np.diff(x) > 0).all()


def test_who_has_left_is_missing_in_pictures():
    gone = [{"from_round": 3, "players": "*_1", "settings": {"present": False}}]
    contest = {"players": 4, "session": "repeated", "rounds": 4, "talk": False, "choices": "real"}
    for module, settings in ((bertrand_v0, {"firms": 3, "rounds": 4, "talk": False}), (kbc_v0, contest)):
        env = module.parallel_env(**settings, record=True, changes=gone)
        env.reset(seed=0)
        while env.agents:
            env.step({agent: {"choice": np.array([1.6])} for agent in env.agents})
            assert array_of(draw(env.scene(), PLAIN)).std() > 0

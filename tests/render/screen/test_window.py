"""The window, without a display: SDL's dummy driver."""

import subprocess
import sys
import time

import drawn
import numpy as np
import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import MissingExtra, WindowError
from llm_coop_envs.evacuation.faces.drawing_room import layout_of
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.screen.canvas import Canvas
from llm_coop_envs.render.screen.page import Picture, areas
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.window import Window

SMALL = {"rows": 9, "cols": 9, "people": 4, "rounds": 3}


@pytest.fixture
def dummy(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


@pytest.fixture
def window(dummy, tmp_path):
    opened = Window(title="test", fps=1000, folder=tmp_path)
    opened.show(drawn.evacuation()[30])
    yield opened
    opened.close()


def press(window, *keys):
    for key in keys:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key, unicode="", mod=0))
    window.poll()


def test_keys(window):
    press(window, pygame.K_c, pygame.K_t, pygame.K_d, pygame.K_b, pygame.K_f)
    view = window.view
    assert (view.colour, view.trails, view.density, view.bubbles, view.follow) == ("target", False, True, False, True)
    press(window, pygame.K_PLUS, pygame.K_PLUS, pygame.K_MINUS)
    assert window.speed == 2.0
    press(window, pygame.K_ESCAPE)
    assert window.view.follow is False


def test_the_speed_has_ends(window):
    press(window, *[pygame.K_MINUS] * 20)
    assert window.speed == 0.25
    press(window, *[pygame.K_PLUS] * 40)
    assert window.speed == 32.0


def test_clicking_selects_a_person_and_escape_lets_go(window):
    scene = drawn.evacuation()[30]
    canvas = Canvas(pygame.display.get_surface(), window._fitting(scene))
    spot = layout_of(scene, canvas, areas(canvas)[0])
    where = spot.middle(*scene.positions[5].tolist())
    pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=where))
    window.poll()
    assert window.view.selected == 5
    window.draw()
    press(window, pygame.K_ESCAPE)
    assert window.view.selected is None


def test_a_step_shows_one_scene_and_pauses(window):
    window.paused = True
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_RIGHT, unicode="", mod=0))
    window.show(drawn.evacuation()[31])
    assert window.paused


def test_pause_waits(window):
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE, unicode="", mod=0))
    import threading

    def go_on():
        time.sleep(0.15)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE, unicode="", mod=0))

    thread = threading.Thread(target=go_on)
    began = time.perf_counter()
    thread.start()
    window.show(drawn.evacuation()[32])
    thread.join()
    assert time.perf_counter() - began > 0.1
    assert not window.paused


def test_screenshot(window, tmp_path, capsys):
    path = window.screenshot()
    assert path.parent == tmp_path
    assert pygame.image.load(str(path)).get_size() == pygame.display.get_surface().get_size()
    window._folder = tmp_path / "nowhere"
    assert window.screenshot() is None
    assert "could not be written" in capsys.readouterr().err


def test_resizing(window):
    pygame.display.set_mode((500, 400), pygame.RESIZABLE)
    window.show(drawn.evacuation()[33])
    assert pygame.display.get_surface().get_size() == (500, 400)
    pygame.display.set_mode((1900, 1300), pygame.RESIZABLE)
    window.show(drawn.evacuation()[34])


def test_closing_is_for_good_and_idempotent(window):
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(drawn.evacuation()[35])
    assert window.closed
    window.show(drawn.evacuation()[36])
    assert not pygame.display.get_init()
    window.close()
    window.close()


@pytest.mark.parametrize(("module", "policy"), [(kbc_v0, "kbc/level_k"), (bertrand_v0, "bertrand/price_matching")])
def test_an_episode_in_a_window(dummy, monkeypatch, module, policy):
    settings = {"players": 3} if module is kbc_v0 else {"rounds": 2}
    env = module.parallel_env(**settings, render_mode="human")
    monkeypatch.setitem(type(env).metadata, "render_fps", 10_000)
    play(env, make(policy), seed=0)
    assert env.over
    assert env.render() is None
    env.close()
    env.close()


def test_every_step_is_shown_in_the_array_view_too(dummy, monkeypatch):
    env = evacuation_v0.parallel_env(**SMALL, render_mode="human", control="exit", talk=False)
    steps = []
    monkeypatch.setattr("llm_coop_envs.render.screen.window.Window.show", lambda self, scene: steps.append(scene.step))
    env.begin(seed=0)
    while not env.over:
        env.advance(np.zeros(env.n_players, dtype=np.int64))
    assert steps == list(range(env.cycles + 1))


def test_a_closed_window_does_not_end_the_episode(dummy, monkeypatch):
    env = evacuation_v0.parallel_env(**SMALL, render_mode="human")
    monkeypatch.setitem(type(env).metadata, "render_fps", 10_000)
    env.reset(seed=0)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    while env.agents:
        env.step({})
    assert env.over


def test_a_failing_picture_does_not_end_the_episode(dummy, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("no")

    env = kbc_v0.parallel_env(players=3, talk=False, render_mode="human")
    monkeypatch.setattr("llm_coop_envs.render.screen.window.Window.show", fail)
    with pytest.warns(UserWarning, match="drawing failed"):
        env.reset(seed=0)
    while env.agents:
        env.step({})
    assert env.over


def test_a_failing_array_picture_says_so(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("no")

    env = kbc_v0.parallel_env(players=3, talk=False, render_mode="rgb_array")
    env.reset(seed=0)
    good = env.render()
    monkeypatch.setattr("llm_coop_envs.kbc.faces.drawing.PICTURE", Picture(draw=fail))
    with pytest.warns(UserWarning, match="drawing failed"):
        picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == good.ndim
    env.step({})


def test_no_display(monkeypatch):
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    env = kbc_v0.parallel_env(players=3, render_mode="human")
    with pytest.raises(WindowError, match=r"no window can be opened here.*render_mode='rgb_array'.*SDL_VIDEODRIVER"):
        env.reset(seed=0)


@pytest.mark.parametrize("mode", ["human", "rgb_array"])
def test_without_pygame_the_environment_says_so_at_once(monkeypatch, mode):
    monkeypatch.setattr("llm_coop_envs.core.rendering.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"needs the extra 'render'"):
        kbc_v0.parallel_env(render_mode=mode)
    kbc_v0.parallel_env(render_mode="ansi")


def test_nothing_of_pygame_is_loaded_without_a_picture():
    code = (
        "import sys\n"
        "from llm_coop_envs import kbc_v0\n"
        "env = kbc_v0.parallel_env(players=3, record=True, render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "env.step({})\n"
        "env.scene()\n"
        "print('pygame' in sys.modules)\n"
        "env.render()\n"
        "import pygame\n"
        "print(pygame.display.get_init(), pygame.mixer is not None and pygame.mixer.get_init())\n"
        "env.close()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False", "None"]

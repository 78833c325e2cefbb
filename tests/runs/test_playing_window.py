import asyncio
import importlib.util
import os

import pytest

if not importlib.util.find_spec("pygame"):
    pytest.skip("needs the extra render", allow_module_level=True)

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import pygame
from toy import TOY

from llm_coop_envs.core import registry
from llm_coop_envs.render.scenes.table import TableScene
from llm_coop_envs.render.screen.player_window import PlayerWindow
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.human_game import plan_game
from llm_coop_envs.runs.human_window import play_in_window


def game(folder, scenario, **options):
    found, result = asyncio.run(play_in_window(plan_game(scenario, **options), lambda: folder))
    assert found == folder
    return result, open_run(folder).read_events("played", 0)[1] if result.is_recorded else []


def test_a_contest_in_the_window(tmp_path, typed_in_window):
    typed_in_window("33", "שלום 🙂 let us say 20", "20", "", "x", "20", "", "20")
    result, events = game(tmp_path / "game", "kbc", settings={"players": 4})
    assert (result.is_recorded, result.person_left) == (True, False)
    mine = [event for event in events if event.get("agent") == "player_0"]
    assert [event["choice"] for event in mine if event["type"] == "choice"] == [33, 20, 20, 20]
    assert [event["text"] for event in mine if event["type"] == "message"] == ["שלום 🙂 let us say 20"]


def test_prices_in_the_window(tmp_path, typed_in_window):
    typed_in_window("7", "7.5", "15", "8", "6")
    options = {"preset": "team_up_linear", "settings": {"talk": False, "rounds": 4}}
    result, events = game(tmp_path / "game", "bertrand", others="best_reply", **options)
    assert not result.person_left
    assert [e["choice"] for e in events if e.get("agent") == "firm_0" and e["type"] == "choice"] == [7, 7.5, 8, 6]


def test_an_evacuation_with_arrow_keys(tmp_path, typed_in_window):
    windows, _ = typed_in_window("right", pygame.K_SPACE, pygame.K_KP5, pygame.K_UP, pygame.K_PAGEUP)
    options = {"preset": "small", "settings": {"people": 2, "talk": False, "replan_probability": 0.0}}
    result, events = game(tmp_path / "game", "evacuation", **options)
    assert (result.person_left, result.reason) == (True, "left: the window was closed")
    mine = [e for e in events if e.get("agent") == "evacuee_0" and e["type"] == "choice"]
    names = {7: "stay", 6: "up", 11: "up and right"}
    assert [names.get(e["choice"], e["choice"]) for e in mine] == [2, "stay", "stay", "up", "up and right"]
    scene = windows[0]._scene
    # Of the others one sees where they are, and nothing else.
    assert scene.headings.tolist() == [2, -1]
    assert scene.personas[1] == (None, None)
    assert scene.personas[0] != (None, None)


def test_impossible_steps_are_told_and_asked_again(tmp_path, typed_in_window):
    # The person stands beside the wall.
    _, problems = typed_in_window("bottom", pygame.K_DOWN, pygame.K_UP, pygame.K_UP)
    options = {"preset": "small", "settings": {"people": 1, "talk": False, "replan_probability": 0.0}}
    result, events = game(tmp_path / "game", "evacuation", **options)
    assert result.is_recorded
    assert len(problems) == 1
    assert problems[0].startswith("'down' is not possible now; type one of a (right)")
    assert [event["choice"] for event in events if event["type"] == "choice"] == [0, 6, 6]


class TestTyping:
    @pytest.fixture
    def window(self):
        from llm_coop_envs.policies.human.window import Prompt
        from llm_coop_envs.render.scenes.from_events import tracker

        plan = plan_game("kbc", settings={"players": 3})
        env = plan.condition.spec.environment(record=True, **plan.condition.settings)
        env.begin(seed=0)
        window = PlayerWindow(title="test", players=[0])
        window.look(tracker(env.events[0]).scene())
        window.ask(Prompt(agent="player_0", text="A question.\n\n" + "word " * 3000, hint="your message", longest=70))
        yield window
        window.close()
        window.close()
        pygame.display.quit()

    def press(self, window, key, mod=0):
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key, mod=mod))
        window.tick()

    def type(self, window, text):
        pygame.event.post(pygame.event.Event(pygame.TEXTINPUT, text=text))
        window.tick()

    def test_a_line(self, window):
        self.type(window, "helo")
        self.press(window, pygame.K_BACKSPACE)
        self.type(window, "lo\x1b\n")
        assert window.take() is None
        self.press(window, pygame.K_RETURN)
        assert window.take() == "hello"
        assert window.take() is None
        self.type(window, "too late")
        assert window._line.text == "hello"

    def test_what_is_too_long_is_cut(self, window):
        self.type(window, "x" * 100)
        assert len(window._line.text) == 70
        self.press(window, pygame.K_ESCAPE)
        assert window._line.text == ""

    def test_long_questions_can_be_read(self, window):
        window.tick()
        before = pygame.surfarray.array3d(pygame.display.get_surface()).copy()
        self.press(window, pygame.K_PAGEUP)
        assert window._line.scroll < 0
        assert (pygame.surfarray.array3d(pygame.display.get_surface()) != before).any()
        for _ in range(100):
            self.press(window, pygame.K_PAGEUP)
        lowest = window._line.scroll
        self.press(window, pygame.K_PAGEUP)
        assert window._line.scroll == lowest

    def test_a_window_of_any_size(self, window):
        for size in ((200, 120), (40, 30), (2200, 1300)):
            pygame.display.set_mode(size, pygame.RESIZABLE)
            window.tell("a sentence")
            window.draw()


def test_a_scenario_without_pictures_shows_the_question(tmp_path, typed_in_window, monkeypatch):
    monkeypatch.setitem(registry._registered, "toy", TOY)
    windows, problems = typed_in_window("hello", "4", "7", "3", "", "1", None)
    result, events = game(tmp_path / "game", "toy", settings={"rounds": 3})
    assert result.person_left
    assert [e["choice"] for e in events if e.get("agent") == "player_0" and e["type"] == "choice"] == [3, 1]
    assert problems == [
        "4 is out of range; type a number from 0 to 3.",
        "7 is out of range; type a number from 0 to 3.",
    ]
    assert isinstance(windows[0]._scene, TableScene)
    assert not windows[0]._visible

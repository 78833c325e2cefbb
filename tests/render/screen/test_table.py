"""Pictures of scenarios that bring none of their own."""

from pathlib import Path

import drawn
import numpy as np
import pytest
from toy import TOY, ToyEnv

from llm_coop_envs.core import registry
from llm_coop_envs.errors import SceneError
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.screen.canvas import View
from llm_coop_envs.render.screen.draw import draw, frame

PLAIN = View(system_fonts=False, size=(640, 420))


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(registry._registered, "toy", TOY)


def scenes(count=4, rounds=5, **settings):
    """An episode whose rounds also record rewards and a total, and nothing in the third."""
    env = ToyEnv(players=count, rounds=rounds, record=True, **settings)
    env.reset(seed=1)
    rng = np.random.default_rng(2)
    while env.agents:
        env.step({name: {"choice": int(rng.integers(4)), "message": f"I am {name}."} for name in env.agents})
    for event in env.events:
        if event["type"] == "round" and event["round"] != 3:
            event |= {"rewards": [1.37 * choice for choice in event["choices"]], "stock": 12_345.0 * event["round"]}
    return frames(env.events)


def test_golden_picture():
    drawn.assert_golden(draw(scenes()[-2], PLAIN), Path(__file__).parent / "golden" / "table.png")


@pytest.mark.parametrize("count", [2, 9, 60, 400])
@pytest.mark.parametrize("size", [None, (200, 150), (330, 700), (1600, 300), (40, 30)])
def test_any_number_of_players_at_any_size(count, size):
    episode = scenes(count, 3, talk=count < 100)
    for scene in (episode[0], episode[len(episode) // 2], episode[-1]):
        draw(scene, View(size=size, hint="keys"))


@pytest.mark.parametrize("settings", [{"continuous": True}, {"departures": True}, {"near": True}, {"rounds": 1}])
def test_all_kinds_of_games(settings):
    for scene in scenes(**settings):
        draw(scene, PLAIN)


def test_every_player_has_its_numbers():
    first, other = scenes()[-1], scenes()[-1]
    np.testing.assert_array_equal(frame(first, PLAIN), frame(other, PLAIN))
    values = first.players["rewards"].copy()
    values[-1, 3] += 1
    object.__setattr__(other, "players", {**other.players, "rewards": values})
    assert (frame(first, PLAIN) != frame(other, PLAIN)).any()


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
def test_the_environment_draws_itself(mode, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(ToyEnv.metadata, "render_fps", 10_000)
    env = ToyEnv(render_mode=mode)
    env.reset(seed=0)
    while env.agents:
        env.step({})
    assert env.over
    if mode == "rgb_array":
        assert env.render().shape == (640, 1000, 3)
    env.close()


def test_scenes_without_a_picture_are_refused():
    scene = Scene(scenario="toy_v0", agents=("player_0",), step=0, round=0, doing="start")
    with pytest.raises(SceneError, match="no picture of them"):
        draw(scene)

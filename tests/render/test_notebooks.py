"""Environments as a notebook shows them: they change nothing by it, and what players say is no markup."""

import io

from llm_coop_envs.core import env as module
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def stepped(game):
    game.reset(seed=1)
    actions = {name: {"choice": 1.5, "message": MARKUP} for name in game.agents}
    game.step(actions)
    return game


def test_an_environment_is_a_picture_that_changes_nothing():
    import pygame

    games = [stepped(find_scenario("bertrand").environment(talk=True, record=True)) for _ in range(2)]
    picture = games[0]._repr_png_()
    assert games[0]._repr_html_() is None
    surface = pygame.image.load(io.BytesIO(picture))
    pixels = pygame.surfarray.array3d(surface)
    drawn = stepped(find_scenario("bertrand").environment(talk=True, render_mode="rgb_array")).render()
    assert (pixels.swapaxes(0, 1) == drawn).all()
    assert len(picture) < 150_000
    for game in games:
        while game.agents and game.round < 3:
            game.step({name: {"choice": 1.6, "message": ""} for name in game.agents})
    assert games[0].get_state() == games[1].get_state()


def test_without_pygame_it_is_words_that_are_no_markup(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    game = find_scenario("kbc").environment(players=3)
    assert game._repr_png_() is None
    assert "reset()" in game._repr_html_()
    game.reset(seed=0)
    monkeypatch.setattr(game, "_picture", lambda: MARKUP)
    html = game._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    play(game, make("kbc/poisson"), seed=0)
    assert "over" in game._repr_html_()

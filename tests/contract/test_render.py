"""Rendering, on every configuration: PettingZoo's own test, and what it does not ask."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

with warnings.catch_warnings():
    # PettingZoo's test modules import its own games in the old, deprecated way.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import render_test

pytestmark = pytest.mark.skipif(find_spec("pygame") is None, reason="the extra 'render' is not installed")


@pytest.fixture(autouse=True)
def dummy(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def test_render_test(make_aec, make, monkeypatch):
    monkeypatch.setitem(type(make()).metadata, "render_fps", 10_000)
    render_test(make_aec)


def test_arrays(make):
    env = make(render_mode="rgb_array")
    env.reset(seed=1)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    np.testing.assert_array_equal(first, env.render())
    env.close()
    env.close()
    np.testing.assert_array_equal(first, env.render())


def test_drawing_does_not_change_the_game(make):
    plain, drawn = make(), make(render_mode="rgb_array")
    for env in (plain, drawn):
        env.reset(seed=5)
        for _ in range(6):
            env.step({})
            env.render() if env is drawn else None
    assert plain.get_state() == drawn.get_state()

"""Scenes of scenarios that bring none of their own."""

import numpy as np
import pytest
from toy import TOY, ToyEnv

from llm_coop_envs.core import registry
from llm_coop_envs.policies import play
from llm_coop_envs.render.scenes.from_events import frames, tracker
from llm_coop_envs.render.scenes.table import TableScene


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(registry._registered, "toy", TOY)


def start(count=3):
    agents = [f"player_{i}" for i in range(count)]
    return {"type": "start", "step": 0, "round": 0, "scenario": "toy_v0", "settings": {}, "agents": agents}


def settled(*rounds):
    """The scene after `round` events with these numbers."""
    following = tracker(start())
    for number, values in enumerate(rounds, 1):
        following.add({"type": "round", "step": number, "round": number, **values})
    return following.scene()


def test_live_and_recorded_scenes_are_equal():
    env = ToyEnv(record=True, departures=True)
    env.reset(seed=1)
    live = {}
    rng = np.random.default_rng(2)
    while env.agents:
        env.step({name: {"choice": int(rng.integers(4)), "message": "hello"} for name in env.agents})
        live[env.cycles] = env.scene()
    replayed = frames(env.events)
    assert isinstance(replayed[0], TableScene)
    assert replayed[-1].reason == "rounds played"
    for scene in replayed[1:]:
        other = live[scene.step]
        assert (scene.doing, scene.said) == (other.doing, other.said)
        np.testing.assert_array_equal(scene.choices, other.choices)
        assert scene.players.keys() == other.players.keys()
        for name, values in scene.players.items():
            np.testing.assert_array_equal(values, other.players[name])
    assert np.isnan(replayed[0].choices).all()
    np.testing.assert_array_equal(replayed[-1].rounds, np.arange(1, 7))
    assert replayed[-1].players["choices"].shape == (6, 3)


def test_what_is_a_players_number():
    scene = settled(
        {"catches": [1, 2.5, None], "stock": 7, "winners": [0, 1, 2], "open": True, "why": "enough", "names": [*"abc"]},
        {"catches": [3, 4, 5], "winners": [1], "late": 2},
    )
    assert list(scene.players) == ["catches"]
    np.testing.assert_array_equal(scene.players["catches"], [[1, 2.5, np.nan], [3, 4, 5]])
    assert list(scene.totals) == ["stock", "late"]
    np.testing.assert_array_equal(scene.totals["stock"], [7, np.nan])
    np.testing.assert_array_equal(scene.totals["late"], [np.nan, 2])


def test_scenes_do_not_change_afterwards():
    following = tracker(start())
    following.add({"type": "choice", "step": 0, "round": 1, "agent": "player_1", "phase": "act", "choice": 3})
    earlier = following.scene()
    following.add({"type": "choice", "step": 0, "round": 1, "agent": "player_1", "phase": "act", "choice": 4})
    following.add({"type": "round", "step": 1, "round": 1, "rewards": [1, 2, 3]})
    assert (earlier.choices[1], following.scene().choices[1]) == (3, 4)
    assert (dict(earlier.players), len(earlier.rounds)) == ({}, 0)
    with pytest.raises(ValueError, match="read-only"):
        earlier.choices[0] = 1


def test_nobody_who_plays_sees_it():
    env = TOY.environment(record=True)
    play(env, TOY.policies["constant"](), seed=0)
    assert env.scene().known_to([0]) is None

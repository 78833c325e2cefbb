"""Scenes from a record and from the running environment are the same."""

import dataclasses
import json

import numpy as np
import pytest
from configurations import CONFIGURATIONS, SMALL_ROOM

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import ResetNeeded, SceneError
from llm_coop_envs.evacuation.faces.scene import ESCAPED, INSIDE
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.scenes.from_events import frames, tracker
from llm_coop_envs.render.scenes.tracking import Growing


def same(first, other):
    """Whether two scenes show the same."""
    for field in dataclasses.fields(first):
        a, b = getattr(first, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        elif field.name == "decisions":
            assert len(a) == len(b)
            for x, y in zip(a, b, strict=True):
                same(x, y)
        elif dataclasses.is_dataclass(a):
            assert {**vars(a)} == {**vars(b)}
        else:
            assert a == b, field.name


def walk(env, each, seed=3):
    """Play with sampled actions, a word on every turn; `each` is called after `reset` and every step."""
    _, infos = env.reset(seed=seed)
    each(env)
    rng = np.random.default_rng(5)
    while env.agents:
        actions = {}
        for name in env.agents:
            mask = infos[name]["action_mask"]["choice"]
            choice = env.action_space(name)["choice"].sample() if mask is None else rng.choice(np.flatnonzero(mask))
            actions[name] = {"choice": choice, "message": f"hello from {name}"}
        _, _, _, _, infos = env.step(actions)
        each(env)
    return env


@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_live_and_recorded_scenes_are_equal(name):
    module, settings = CONFIGURATIONS[name]
    live = []
    env = walk(module.parallel_env(**settings, record=True, max_cycles=60), lambda env: live.append(env.scene()))
    events = json.loads(json.dumps(env.events))
    replayed = frames(events)
    assert replayed[-1].doing == "over"
    by_step = {scene.step: scene for scene in live}
    assert len(replayed) > 3 or env.regulator is not None  # which may stop all that is said
    for scene in replayed:
        same(scene, by_step[scene.step])


def test_positions_are_those_of_the_game_after_every_step():
    where = []

    def keep(env):
        scene = env.scene()
        crowd = env._crowd
        rows, cols = env._room.row_col(crowd.cells)
        inside = crowd.inside
        np.testing.assert_array_equal(scene.status == INSIDE, inside)
        np.testing.assert_array_equal(scene.positions[inside], np.column_stack([rows, cols])[inside])
        np.testing.assert_array_equal(scene.headings, crowd.heading)
        assert list(scene.out) == env._out_by_exit
        where.append(scene.positions)

    walk(evacuation_v0.parallel_env(**SMALL_ROOM, record=True), keep)
    assert len(where) > 50


def test_counts_of_the_curve_are_those_of_the_metrics():
    env = evacuation_v0.parallel_env(**SMALL_ROOM, record=True)
    play(env, make("evacuation/herding"), seed=1)
    last = frames(env.events, per="round")[-1]
    assert last.curve[0].sum() == 0
    assert (np.diff(last.curve.sum(axis=1)) >= 0).all()
    assert tuple(last.curve[-1]) == last.out
    assert sum(last.out) == int((last.status == ESCAPED).sum()) == SMALL_ROOM["people"]


def test_scenes_share_what_did_not_change():
    env = evacuation_v0.parallel_env(**SMALL_ROOM, record=True)
    play(env, make("evacuation/herding"), seed=1)
    scenes = frames(env.events)
    assert len({id(scene.headings) for scene in scenes}) < len(scenes) / 2
    assert len({scene.positions.tobytes() for scene in scenes}) > 20
    with pytest.raises(ValueError, match="read-only"):
        scenes[5].positions[0] = 0


def test_frames_per_round():
    env = bertrand_v0.parallel_env(rounds=6, record=True, talk=False)
    play(env, make("bertrand/price_matching"), seed=0)
    rounds = frames(env.events, per="round")
    assert [len(scene.prices) for scene in rounds] == [0, 1, 2, 3, 4, 5, 6]
    assert rounds[-1].doing == "over"
    assert rounds[2].prices.base is not None  # a view: histories are shared, not copied
    with pytest.raises(ValueError, match="read-only"):
        rounds[2].prices[0, 0] = 1.0


def test_the_end_opens_no_round():
    """An episode that is cut between two rounds ends with the picture of the last one, talk included."""
    settings = {"exchanges": 1, "rounds": 9, "record": True}
    whole = walk(bertrand_v0.parallel_env(**settings), lambda env: None).events
    first = next(event for event in whole if event["type"] == "round")
    events = walk(bertrand_v0.parallel_env(**settings, max_cycles=first["step"] + 1), lambda env: None).events
    assert events[-1]["round"] == first["round"] + 1
    settled, over = frames(events)[-2:]
    assert (over.doing, over.round) == ("over", first["round"])
    assert over.said == settled.said != ()


def test_variance_by_k():
    env = kbc_v0.parallel_env(players=6, record=True)
    play(env, make("kbc/level_k"), seed=0)
    scene = frames(env.events)[-1]
    assert [decision.round for decision in scene.decisions] == [0, 1, 2, 3]
    assert [d.variance for d in scene.decisions] == [float(np.var(d.choices)) for d in scene.decisions]
    assert len(scene.said) == 18  # nothing is forgotten in a nested session
    assert scene.all_decisions == 4


@pytest.mark.parametrize("name", ["evacuation-sequential", "bertrand-team-up-linear", "kbc"])
def test_scene_of_an_unrecorded_and_of_a_restored_game(name):
    module, settings = CONFIGURATIONS[name]
    states = []

    def keep(env):
        states.append(env.get_state())

    env = walk(module.parallel_env(**settings, record=True), keep)
    live = module.parallel_env(**settings)
    recorded = frames(env.events)
    for state in states[:-1:7]:
        live.set_state(state)
        scene = live.scene()
        twin = next((candidate for candidate in recorded if candidate.step == scene.step), None)
        if twin is None:
            continue
        if name.startswith("evacuation"):
            inside = twin.status == INSIDE
            np.testing.assert_array_equal(scene.status, twin.status)
            np.testing.assert_array_equal(scene.positions[inside], twin.positions[inside])
            np.testing.assert_array_equal(scene.stood[inside], twin.stood[inside])
            assert scene.out == twin.out
            assert [message.text for message in scene.said] == [message.text for message in twin.said]
        elif name.startswith("bertrand"):
            np.testing.assert_array_equal(scene.prices, twin.prices)
        elif twin.last is not None:
            np.testing.assert_array_equal(scene.last.choices, twin.last.choices)


def test_a_restored_game_goes_on_in_its_scenes():
    env = evacuation_v0.parallel_env(**SMALL_ROOM, record=True)
    env.reset(seed=1)
    state = env.get_state()
    other = evacuation_v0.parallel_env(**SMALL_ROOM, record=True)
    other.set_state(state)
    earlier = other.scene()
    while other.agents and other.round < 3:
        other.submit({})
    later = other.scene()
    assert (earlier.round, later.round) == (1, 3)
    assert (later.positions != earlier.positions).any() or later.round == 3


def test_scene_before_reset_and_of_a_scenario_without_pictures():
    env = kbc_v0.parallel_env()
    with pytest.raises(ResetNeeded):
        env.scene()
    with pytest.raises(SceneError, match="toy_v0"):
        tracker({"type": "start", "scenario": "toy_v0"})


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "there are no events"),
        ([{"type": "message"}], "does not begin with a start event"),
        ([{"type": "start", "scenario": "kbc_v0"}], "start event is damaged"),
    ],
)
def test_damaged_records(events, words):
    with pytest.raises(SceneError, match=words):
        frames(events)


def test_a_damaged_event_in_the_middle():
    env = kbc_v0.parallel_env(players=3, record=True, talk=False)
    play(env, make("kbc/level_k"), seed=0)
    events = [dict(event) for event in env.events]
    del events[4]["choices"]
    with pytest.raises(SceneError, match="damaged"):
        frames(events)


def test_growing_keeps_old_views():
    rows = Growing((2,), np.int64)
    views = []
    for k in range(40):
        rows.append((k, -k))
        views.append(rows.view())
    assert [len(view) for view in views] == list(range(1, 41))
    assert all(view[-1, 0] == k for k, view in enumerate(views))
    assert rows.view(3)[:, 0].tolist() == [37, 38, 39]

"""The numbers say the same as the slots."""

import numpy as np
import pytest

from llm_coop_envs.evacuation_v0 import parallel_env


def check(env):
    rows, (_, infos) = env.features(), env.look()
    names = list(env.feature_names)
    assert len(names) == len(set(names)) == rows.shape[1]
    settings = env.settings
    diagonal = np.hypot(settings.rows - 1, settings.cols - 1)
    for agent, info in infos.items():
        slots = info["slots"]
        features = dict(zip(names, rows[int(agent.split("_")[1])].tolist(), strict=True))
        expected = {
            "row": slots.row / (settings.rows - 1),
            "col": slots.col / (settings.cols - 1),
            "last_down": slots.row - slots.previous[0] if slots.previous else 0,
            "last_right": slots.col - slots.previous[1] if slots.previous else 0,
            "target_down": (slots.target_cell[0] - slots.row) / (settings.rows - 1) if slots.target else 0,
            "target_right": (slots.target_cell[1] - slots.col) / (settings.cols - 1) if slots.target else 0,
            "nearest_distance": slots.nearest_distance / diagonal,
            "around": slots.around / (9 if slots.around_kind == "near" else 400),
            "plans": slots.plans,
            "overtaken": slots.overtaken,
            "strong": {True: 1, False: -1, None: 0}[slots.strong],
            "confident": {True: 1, False: -1, None: 0}[slots.confident],
            "round": slots.round / (settings.last_round + 1),
        }
        for exit_ in slots.exits:
            expected[f"distance_{exit_.name}"] = exit_.distance / diagonal
            expected[f"people_{exit_.name}"] = exit_.people / 100
            expected[f"heading_{exit_.name}"] = slots.target == exit_.name
        for name, value in expected.items():
            # Slots round distances and people to 2 decimals.
            rough = name.startswith(("distance", "people", "nearest"))
            assert features[name] == pytest.approx(float(value), abs=6e-4 if rough else 1e-6), name
        free = {name.removeprefix("free_"): value for name, value in features.items() if name.startswith("free_")}
        assert len(free) == 8
        assert list(free)[:4] == ["right", "down", "left", "up"]
        if slots.asked == "move":
            offered = {option.name.replace(" ", "_") for option in slots.options if not option.taken} - {"stay"}
            assert {name for name, value in free.items() if value} == offered
        assert set(features) - set(expected) == {f"free_{name}" for name in free}


@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"engine": "simultaneous", "crowd_count": "visible"},
        {"injury": "active", "persona_swap": False, "desks": [[3, 3], [4, 7]]},
        {"control": "exit", "personas": "none"},
    ],
)
def test_features_say_what_the_slots_say(settings_):
    env = parallel_env(rows=11, cols=14, people=40, talk=False, rounds=6, **settings_)
    env.reset(seed=0)
    check(env)
    rng = np.random.default_rng(0)
    while env.agents:
        masks = env.masks()
        env.advance((masks * (1 + rng.random(masks.shape))).argmax(axis=1))
        check(env)


def test_state_holds_places_exits_and_the_round():
    env = parallel_env(rows=11, cols=21, people=3, talk=False)
    env.reset(seed=0, options={"positions": [(1, 2), (5, 10), (9, 4)]})
    env.step({a: {"choice": 2} for a in env.agents})
    state = env.state()[-13:]
    assert state[:3] == pytest.approx([0.1, 0.5, 0.9])
    assert state[3:6] == pytest.approx([0.1, 0.5, 0.2])
    assert state[6:9] == pytest.approx([1, 1, 1])
    assert state[9:12].tolist() == [0, 0, 0]
    assert state[12] == pytest.approx(1 / 51)

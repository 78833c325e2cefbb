import numpy as np
import pytest

from llm_coop_envs import evacuation_v0
from llm_coop_envs.evacuation.faces.tiles import EvacuationTiles, TileTable

ROOMS = [
    {"people": 20},
    {"rows": 9, "cols": 13, "people": 30, "crowd_count": "visible"},
    {"preset": "single"},
]


def moments(room, phase, steps=40):
    """Features of people on turn, over the first steps of random play."""
    env = evacuation_v0.parallel_env(talk=False, **{k: v for k, v in room.items() if k != "talk"})
    rng = np.random.default_rng(0)
    env.begin(seed=1)
    for _ in range(steps):
        if env.over:
            return
        if env.phase == phase:
            yield env, env.features()[env.on_turn]
        legal = env.masks() * rng.random(env.masks().shape)
        env.advance(legal.argmax(axis=1))


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("phase", ["exit", "move"])
def test_entries_are_in_the_table_and_tell_choices_and_tilings_apart(room, phase):
    seen = 0
    for env, rows in moments(room, phase):
        tiles = EvacuationTiles(env.settings)
        if phase == "exit":
            entries, size, choices, tilings = tiles.exit_entries(rows), tiles.exit_size, tiles.exits, tiles.exit_tilings
        else:
            entries, size, choices, tilings = tiles.move_entries(rows), tiles.move_size, 9, tiles.move_tilings
        assert entries.shape == (len(rows), choices, tilings)
        assert entries.min() >= 0
        assert entries.max() < size
        for one in entries:
            # One tiling of moves says how good the place is, whatever the move.
            apart = [column for column in range(tilings) if len(set(one[:, column])) == choices]
            assert len(apart) == tilings - (phase == "move")
            assert len(np.unique(one[:, apart])) == choices * len(apart)
        seen += len(rows)
    assert seen > 0


def test_the_entries_follow_what_is_observed():
    env = evacuation_v0.parallel_env(talk=False, people=2)
    tiles = EvacuationTiles(env.settings)

    def exits(*places):
        env.reset(seed=0, options={"positions": places})
        return tiles.exit_entries(env.features())[0]

    def moves(*places):
        env.reset(seed=0, options={"positions": places})
        env.advance(np.array([1, 1]))
        return tiles.move_entries(env.features())[0]

    assert (exits((16, 5), (2, 2)) == exits((16, 5), (2, 3))).all()
    assert (exits((16, 5), (2, 2)) != exits((16, 15), (2, 2))).any()
    assert (moves((16, 2), (2, 2)) != moves((16, 3), (2, 2))).any(axis=0)[0]
    # Another cell of the same exit, as far away: only what tells the cell apart differs.
    assert (moves((16, 2), (2, 2)) != moves((15, 2), (2, 2))).any(axis=0).tolist() == [True, *[False] * 4]


def test_a_value_goes_to_its_estimate():
    table = TileTable(10)
    entries = np.array([[0, 4], [1, 5]])
    for _ in range(60):
        errors = np.array([3.0, -2.0]) - table.values(entries)
        table.learn(entries, errors, 0.3)
    assert table.values(entries) == pytest.approx([3.0, -2.0], abs=1e-6)
    assert np.count_nonzero(table.weights) == 4


def test_many_alike_learn_as_one_after_the_other_and_never_overshoot():
    together, apart = TileTable(2), TileTable(2)
    entry = np.array([[0, 1]])
    together.learn(np.repeat(entry, 5, axis=0), np.full(5, 4.0), 0.2)
    for _ in range(5):
        apart.learn(entry, 4.0 - apart.values(entry), 0.2)
    assert together.values(entry) == pytest.approx(apart.values(entry))
    together.learn(np.repeat(entry, 500, axis=0), np.full(500, 4.0) - together.values(entry), 0.9)
    assert together.values(entry) == pytest.approx([4.0])

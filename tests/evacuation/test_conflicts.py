import numpy as np
import pytest
from crowds import crowds, grid_of
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.evacuation.conflicts import settle_moves, walking_wishes
from llm_coop_envs.evacuation.movement import open_moves
from llm_coop_envs.evacuation.room import build_room, wall_exits

ROOM = build_room(9, 9, wall_exits(9, 9), ())


def settle(cells, wishes, seed=0):
    destinations = settle_moves(ROOM, ROOM.cells(cells), ROOM.cells(wishes), np.random.default_rng(seed))
    return list(zip(*(part.tolist() for part in ROOM.row_col(destinations)), strict=True))


@given(crowds(), st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_the_rule(crowd, salt):
    room, cells, _ = crowd
    rng = np.random.default_rng(salt)
    allowed = open_moves(room, cells)
    wishes = cells + room.moves[(allowed * (1 + rng.random(allowed.shape))).argmax(axis=1)]
    destinations = settle_moves(room, cells, wishes, rng)
    # Never two in a cell; everybody where it wished or where it was.
    assert len(set(destinations.tolist())) == len(destinations)
    assert ((destinations == wishes) | (destinations == cells)).all()
    occupant = {cell: i for i, cell in enumerate(cells.tolist())}
    moved = destinations != cells
    for i in np.flatnonzero(moved):
        owner = occupant.get(int(wishes[i]))
        # Into a cell that was empty or is being left, and never through its owner.
        assert owner is None or (moved[owner] and destinations[owner] != cells[i])
    for i in np.flatnonzero(~moved & (wishes != cells)):
        owner = occupant.get(int(wishes[i]))
        rivals = np.flatnonzero(destinations == wishes[i])
        lost = len(rivals) == 1 and rivals[0] != owner
        blocked = owner is not None and not moved[owner]
        drawn_out = owner is not None and moved[owner] and (wishes == wishes[i]).sum() > 1
        assert lost or blocked or drawn_out
    # An empty cell that somebody wants is always filled: nobody waits for nothing.
    for cell in set(wishes.tolist()) - set(cells.tolist()):
        assert cell in destinations


def test_a_queue_moves_on_together():
    cells = [(4, c) for c in range(1, 7)]
    assert settle(cells, [(4, c + 1) for c in range(1, 7)]) == [(4, c + 1) for c in range(1, 7)]


def test_a_queue_behind_somebody_who_stays_stays():
    cells = [(4, 1), (4, 2), (4, 3)]
    assert settle(cells, [(4, 2), (4, 3), (4, 3)]) == cells


def test_nobody_swaps_and_no_ring_turns():
    assert settle([(4, 1), (4, 2)], [(4, 2), (4, 1)]) == [(4, 1), (4, 2)]
    ring = [(4, 4), (4, 5), (5, 5), (5, 4)]
    assert settle(ring, ring[1:] + ring[:1]) == ring
    # Somebody who follows into a ring waits with it.
    assert settle([*ring, (3, 3)], [*ring[1:], ring[0], (4, 4)]) == [*ring, (3, 3)]


def test_one_of_several_gets_the_cell_each_with_the_same_chance():
    cells = [(3, 3), (3, 5), (5, 3), (5, 5), (4, 3)]
    wins = np.zeros(5)
    for seed in range(3000):
        destinations = settle(cells, [(4, 4)] * 5, seed)
        changed = [i for i in range(5) if destinations[i] != cells[i]]
        assert len(changed) == 1
        wins[changed[0]] += 1
    assert (np.abs(wins / 3000 - 0.2) < 0.03).all()


def test_exactly_one_permutation_is_drawn():
    rng, twin = np.random.default_rng(4), np.random.default_rng(4)
    cells = ROOM.cells([(3, 3), (3, 5)])
    settle_moves(ROOM, cells, cells, rng)
    twin.permutation(2)
    assert rng.bit_generator.state == twin.bit_generator.state


@pytest.mark.parametrize("length", [2, 3, 5, 49])
def test_long_queues_in_a_snake(length):
    snake = [(r, c if r % 2 else 8 - c) for r in range(1, 8) for c in range(1, 8)][:length]
    destinations = settle(snake[:-1], snake[1:])
    assert destinations == snake[1:]


def test_walkers_prefer_a_free_way_then_follow_then_stay():
    room = build_room(9, 9, (("right", 4, 8),), ())

    def wish(positions):
        cells = room.cells(positions)
        wishes = walking_wishes(room, grid_of(room, cells), cells, np.zeros(len(cells), dtype=np.int64))
        return tuple(int(part[0]) for part in room.row_col(wishes[:1]))

    assert wish([(4, 4)]) == (4, 5)
    # Straight ahead is taken: the first of the two equally near free cells in the published order.
    assert wish([(4, 4), (4, 5)]) == (5, 5)
    assert wish([(4, 4), (4, 5), (5, 5)]) == (3, 5)
    # All nearer cells are taken: follow the nearest.
    assert wish([(4, 4), (4, 5), (5, 5), (3, 5)]) == (4, 5)
    # On the goal, nothing is nearer.
    assert wish([(4, 8)]) == (4, 8)
    # A cell that is as far as one's own is not nearer.
    desks = ((3, 7), (4, 7), (4, 6))
    aside = build_room(9, 9, (("right", 4, 8),), desks)
    cells = aside.cells([(3, 6)])
    assert walking_wishes(aside, grid_of(aside, cells), cells, np.array([0])).tolist() == cells.tolist()
    corner = build_room(9, 9, (("right", 4, 8),), ((1, 2), (2, 2), (2, 1)))
    cells = corner.cells([(1, 1)])
    assert walking_wishes(corner, grid_of(corner, cells), cells, np.array([0])).tolist() == cells.tolist()

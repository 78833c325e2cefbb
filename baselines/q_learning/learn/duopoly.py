"""The fast learner for two firms, one round of memory and at most 16 prices.

It computes what `kernel.learn` computes, to the last bit, for asynchronous updates, epsilon-greedy exploration and ties
broken by the lowest price. It is fast because of three properties:

- A state is 16 a_0 + a_1, and the greedy action of a state is a state number too. So the next state is
  `greedy & keep | explored`, with two masks that are prepared for a block of periods ahead.
- Both firms' rows of a state stand side by side (16 numbers each, the unused ones minus infinity). What a period needs
  of the next state (both largest values, both profits) fills half a cache line.
- While exploration is frequent, greedy prices change so often that a branch on it would be mispredicted. So `early`
  computes each row's largest value anew, without a branch. Later, `late` recognises the usual period (both firms
  greedy, both values still above the second best) by one branch, and repairs single rows in all other periods.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.layout import aligned
from llm_coop_envs.baselines.q_learning.learn.streams import BLOCK, Floats, Longs, Words, fill
from llm_coop_envs.baselines.q_learning.learn.vectors import (
    WIDTH,
    address,
    best,
    best_two,
    get,
    get_whole,
    put,
    put_whole,
)

STATES = WIDTH * WIDTH
"""The number of state numbers; some are unused if there are fewer than 16 prices."""

RECORD = 8
"""The length of a state's record: the largest values of firms 0 and 1, alpha times their profits in the action that
leads to the state, their second-best values, and two unused numbers."""

RARE = 0.04
"""The exploration rate (of the firm that explores more) below which `late` is faster than `early`."""

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@compiled
def masks(
    raw: Words, keep: Longs, explored: Longs, points: int, scale_0: float, scale_1: float, growth: Floats
) -> None:
    """Turn words into the picks of `streams.explore`, as masks: next state = (greedy & keep) | explored."""
    for j in range(raw.size):
        scaled_0 = (np.float64(np.int64(raw[j] >> _SHIFT)) + 0.5) * (scale_0 * growth[0, j])
        scaled_1 = (np.float64(np.int64(raw[j] & _MASK)) + 0.5) * (scale_1 * growth[1, j])
        pick_0 = np.int32(min(scaled_0, points))
        pick_1 = np.int32(min(scaled_1, points))
        keep_0 = 0xF0 if pick_0 == points else 0
        keep_1 = 0x0F if pick_1 == points else 0
        keep[j] = keep_0 | keep_1
        explored[j] = ((pick_0 & 0xF) << 4 | (pick_1 & 0xF)) & ~(keep_0 | keep_1)


@compiled
def early(
    q: int,
    table: int,
    greedy: int,
    keep: int,
    explored: int,
    first: int,
    count: int,
    t: int,
    state: int,
    last: int,
    retention: int,
    ahead: int,
) -> Any:
    """Play `count` periods of a block from its period `first` on, without a branch.

    Returns:
        The state after them, the state before the last of them, and the last period with a changed greedy price.
    """
    retention_0, retention_1, ahead_0, ahead_1 = get(retention, 0), get(retention, 1), get(ahead, 0), get(ahead, 1)
    previous = state
    for j in range(first, first + count):
        old = get_whole(greedy, state)
        next_state = (old & get_whole(keep, j)) | get_whole(explored, j)
        row_0 = state * (2 * WIDTH)
        row_1 = row_0 + WIDTH
        a_0 = next_state >> 4
        a_1 = next_state & 0xF
        next_record = next_state * RECORD
        new_0 = (get(q, row_0 + a_0) * retention_0 + get(table, next_record + 2)) + ahead_0 * get(table, next_record)
        new_1 = (get(q, row_1 + a_1) * retention_1 + get(table, next_record + 3)) + ahead_1 * get(
            table, next_record + 1
        )
        top_0, price_0 = best(q, row_0, a_0, new_0)
        top_1, price_1 = best(q, row_1, a_1, new_1)
        put(q, row_0 + a_0, new_0)
        put(q, row_1 + a_1, new_1)
        put(table, state * RECORD, top_0)
        put(table, state * RECORD + 1, top_1)
        new = price_0 << 4 | price_1
        put_whole(greedy, state, new)
        last = t + j - first if new != old else last
        previous = state
        state = next_state
    return state, previous, last


@part
def repair(q: int, table: int, row: int, record: int, a: int, own: int, new: float) -> Any:
    """Update a row's largest and second-best value after cell `a` became `new`; return the row's greedy price.

    The recorded second-best value may be too high (after other cells fell), which only means that the row is scanned
    once too often; it is never too low.
    """
    if a == own and new <= get(table, record + 4):
        top, price, second = best_two(q, row, a, new)
        put(table, record, top)
        put(table, record + 4, second)
        return price
    top = get(table, record)
    if a == own:
        put(table, record, new)
        return own
    if new > top or (new == top and a < own):
        put(table, record, new)
        put(table, record + 4, top)
        return a
    if new > get(table, record + 4):
        put(table, record + 4, new)
    return own


@compiled
def late(
    q: int,
    table: int,
    greedy: int,
    keep: int,
    explored: int,
    first: int,
    count: int,
    t: int,
    state: int,
    last: int,
    retention: int,
    ahead: int,
) -> Any:
    """Play as `early` does; faster where exploration is rare and greedy prices seldom change."""
    retention_0, retention_1, ahead_0, ahead_1 = get(retention, 0), get(retention, 1), get(ahead, 0), get(ahead, 1)
    previous = state
    j, end = first, first + count
    while j < end:
        old = get_whole(greedy, state)
        next_state = (old & get_whole(keep, j)) | get_whole(explored, j)
        row_0 = state * (2 * WIDTH)
        row_1 = row_0 + WIDTH
        a_0 = next_state >> 4
        a_1 = next_state & 0xF
        record = state * RECORD
        next_record = next_state * RECORD
        new_0 = (get(q, row_0 + a_0) * retention_0 + get(table, next_record + 2)) + ahead_0 * get(table, next_record)
        new_1 = (get(q, row_1 + a_1) * retention_1 + get(table, next_record + 3)) + ahead_1 * get(
            table, next_record + 1
        )
        second_0, second_1 = get(table, record + 4), get(table, record + 5)
        j += 1
        if next_state == old and new_0 > second_0 and new_1 > second_1:
            if next_state == state:
                # Play stays in this state: until it leaves, both values stay in registers.
                earned_0, earned_1 = get(table, record + 2), get(table, record + 3)
                while j < end and get_whole(keep, j) == STATES - 1:
                    next_0 = (new_0 * retention_0 + earned_0) + ahead_0 * new_0
                    next_1 = (new_1 * retention_1 + earned_1) + ahead_1 * new_1
                    if not (next_0 > second_0 and next_1 > second_1):
                        break
                    new_0, new_1 = next_0, next_1
                    j += 1
            put(table, record, new_0)
            put(table, record + 1, new_1)
        else:
            new = repair(q, table, row_0, record, a_0, old >> 4, new_0) << 4
            new |= repair(q, table, row_1, record + 1, a_1, old & 0xF, new_1)
            put_whole(greedy, state, new)
            if new != old:
                last = t + j - 1 - first
        # After `repair`, because a row cannot be loaded quickly just after one of its cells was written.
        put(q, row_0 + a_0, new_0)
        put(q, row_1 + a_1, new_1)
        previous = state
        state = next_state
    return state, previous, last


@compiled
def find_seconds(q: Floats, table: Floats) -> None:
    """Compute every row's second-best value, which `late` needs and `early` does not keep."""
    for state in range(STATES):
        for i in range(2):
            row = (2 * state + i) * WIDTH
            _, _, second = best_two(address(q), row, 0, q[row])
            table[state * RECORD + 4 + i] = second


@compiled
def learn_duopoly(
    q: Floats,
    table: Floats,
    greedy: Longs,
    points: int,
    retention: Floats,
    ahead: Floats,
    scale: Floats,
    growth: Floats,
    xoshiro: Words,
    window: int,
    max_periods: int,
    rare: float,
    state: int,
) -> Any:
    """Learn as `kernel.learn` does.

    Args:
        q: (STATES, 2, WIDTH) flat, unused prices minus infinity.
        table: (STATES, RECORD) flat; see `RECORD`.
        greedy: (STATES,) greedy actions as state numbers.
        points: number of prices.
        retention: (2,) 1 - alpha.
        ahead: (2,) alpha delta.
        scale: (2,) as in `streams.explore`, in the first period.
        growth: (2, BLOCK + 1) its factors over a block.
        xoshiro: (4, LANES) state of the random stream.
        window: number of periods without change that counts as convergence.
        max_periods: longest session.
        rare: exploration rate below which `late` plays; has no effect on the result.
        state: the state before period 1, as 16 a_0 + a_1.

    Returns:
        Periods played, whether it converged, and the state in which the last period was played.
    """
    raw = np.empty(BLOCK, np.uint64)
    keep = np.empty(BLOCK, np.int64)
    explored = np.empty(BLOCK, np.int64)
    rows, records, actions = address(q), address(table), address(greedy)
    keeping, exploring = address(keep), address(explored)
    retention_at, ahead_at = address(retention), address(ahead)
    previous = state
    last = 1
    t = 1
    settled = False
    turn = points * 2.0**-32 / rare
    while True:
        fill(xoshiro, raw)
        masks(raw, keep, explored, points, scale[0], scale[1], growth)
        if not settled and min(scale[0], scale[1]) > turn:
            find_seconds(q, table)
            settled = True
        done = 0
        while done < BLOCK:
            # Up to the period in which strategies would have been unchanged for a whole window.
            count = min(BLOCK - done, last + window - t, max_periods - t + 1)
            if settled:
                state, previous, last = late(
                    rows, records, actions, keeping, exploring, done, count, t, state, last, retention_at, ahead_at
                )
            else:
                state, previous, last = early(
                    rows, records, actions, keeping, exploring, done, count, t, state, last, retention_at, ahead_at
                )
            t += count
            done += count
            if t - 1 >= last + window - 1:
                return t - 1, True, previous
            if t - 1 >= max_periods:
                return t - 1, False, previous
        for i in range(2):
            scale[i] *= growth[i, BLOCK]


def pack(q: Floats, profits: Floats, alpha: Floats) -> tuple[Floats, Floats, Longs]:
    """Lay out a Q table (2, states, points) and profits (states, 2) as `learn_duopoly`'s `q`, `table` and `greedy`."""
    points = q.shape[2]
    numbers = state_numbers(points)
    rows = aligned(STATES * 2 * WIDTH).reshape(STATES, 2, WIDTH)
    rows[:] = -np.inf
    rows[numbers, :, :points] = q.transpose(1, 0, 2)
    table = aligned(STATES * RECORD).reshape(STATES, RECORD)
    table[numbers, 0:2] = q.max(axis=2).T
    table[numbers, 2:4] = alpha * profits
    actions = np.zeros(STATES, dtype=np.int64)
    choices = q.argmax(axis=2)
    actions[numbers] = choices[0] * WIDTH + choices[1]
    return rows.reshape(-1), table.reshape(-1), actions


def unpack(q: Floats, greedy: Longs, points: int) -> tuple[Floats, Longs]:
    """Read the Q table (2, states, points) and greedy prices (2, states) out of the arrays of `learn_duopoly`."""
    numbers = state_numbers(points)
    rows = q.reshape(STATES, 2, WIDTH)[numbers, :, :points].transpose(1, 0, 2).copy()
    actions = greedy[numbers]
    return rows, np.stack([actions // WIDTH, actions % WIDTH])


def state_numbers(points: int) -> Longs:
    """The state number of each state of the game."""
    states = np.arange(points * points)
    return np.asarray(states // points * WIDTH + states % points)

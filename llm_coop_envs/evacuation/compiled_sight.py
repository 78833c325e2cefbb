"""What people see in an evacuation, in compiled code: sight, and the features of observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_coop_envs.evacuation.compiled_arrays import EXIT, MOVE, PERSON, VIEW_SIDE, VIEW_WORDS
from llm_coop_envs.evacuation.room import MOVES, STAY, VIEW_RADIUS
from llm_coop_envs.util.compiling import compiled_in_place

_VIEW_ROW = np.uint64(2**VIEW_SIDE - 1)
_SECOND, _THIRD = np.uint64(VIEW_SIDE), np.uint64(2 * VIEW_SIDE)
_0, _1, _2, _4, _56, _64 = (np.uint64(k) for k in (0, 1, 2, 4, 56, 64))
_TWOS, _FOURS, _BYTES, _SUM = (np.uint64(k * (2**64 // 255)) for k in (0x55, 0x33, 0x0F, 0x01))
_WAYS = len(MOVES)


@compiled_in_place
def count_bits(word: Any) -> Any:
    """The number of ones (the compiler knows this pattern, and uses the processor's instruction)."""
    word = word - ((word >> _1) & _TWOS)
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    return np.int64((((word + (word >> _4)) & _BYTES) * _SUM) >> _56)


@compiled_in_place
def take_view(bits: Any, line: int, col: int, window: Any) -> None:
    """Copy the cells around a padded row and column out of rows of bits."""
    first = col - VIEW_RADIUS
    shift = np.uint64(first & 63)
    lines = bits[first >> 6, line - VIEW_RADIUS : line + VIEW_RADIUS + 1]
    if (first & 63) + VIEW_SIDE <= 64:
        for k in range(VIEW_WORDS):
            upper, middle, lower = lines[3 * k] >> shift, lines[3 * k + 1] >> shift, lines[3 * k + 2] >> shift
            window[k] = (upper & _VIEW_ROW) | (middle & _VIEW_ROW) << _SECOND | (lower & _VIEW_ROW) << _THIRD
    else:
        others = bits[(first >> 6) + 1, line - VIEW_RADIUS : line + VIEW_RADIUS + 1]
        for k in range(VIEW_WORDS):
            window[k] = _0
            for part in range(3):
                cut = lines[3 * k + part] >> shift | others[3 * k + part] << (_64 - shift)
                window[k] |= (cut & _VIEW_ROW) << np.uint64(VIEW_SIDE * part)


@compiled_in_place
def count_seen(window: Any, mask: Any) -> Any:
    """The number of people in a part of the view."""
    seen = 0
    for k in range(VIEW_WORDS):
        seen += count_bits(window[k] & mask[k])
    return seen


@compiled_in_place
def look(plan: Any, crowd: Any, work: Any) -> None:
    """`Crowd._update_sight`, as features."""
    exits, last = plan.rules.exits, len(plan.views[0]) - 1
    for word in range(len(work.heads)):
        for line in range(work.heads.shape[1]):
            work.heads[word, line] = _0
            work.solid[word, line] = plan.desks[word, line]
    for p in range(len(crowd.people)):
        cell = crowd.people[p].cell
        if crowd.grid[cell] & PERSON:
            line, col = plan.cells[cell].row + VIEW_RADIUS, plan.cells[cell].col + VIEW_RADIUS
            bit = _1 << np.uint64(col & 63)
            work.heads[col >> 6, line] |= bit
            work.solid[col >> 6, line] |= bit
    for k in range(crowd.game.count):
        p = crowd.queue[k]
        stand, seen = plan.cells[crowd.people[p].cell], crowd.seen[p]
        line, col, views = stand.row + VIEW_RADIUS, stand.col + VIEW_RADIUS, plan.views[stand.index]
        take_view(work.solid, line, col, work.window)
        for e in range(last):  # in a loop of their own, of which the compiler makes faster code
            work.totals[e] = count_seen(work.window, plan.view_masks[views[e]])
        for exit_ in range(exits):
            total = 0
            for e in range(plan.view_starts[exit_], plan.view_starts[exit_ + 1]):
                total += work.totals[e]
            seen[exit_] = plan.seen_shares[exit_, total]
        if plan.rules.sees_desks:
            take_view(work.heads, line, col, work.window)
        seen[exits] = plan.around_shares[count_seen(work.window, plan.view_masks[views[last]])]


@compiled_in_place
def show(plan: Any, crowd: Any, is_over: bool, shown: Any, rows: Any) -> None:
    """`features.FeatureMaker.matrix`, and turn and phase, of the people in `shown`; zeros for others."""
    rules, game, exits = plan.rules, crowd.game, plan.rules.exits
    for p in range(len(rows)):
        row, person, traits = rows[p], crowd.people[p], plan.traits[p]
        if not shown[p]:
            for column in range(len(row)):
                row[column] = 0.0
            continue
        stand, fixed = plan.cells[person.cell], plan.site_features[plan.cells[person.cell].index]
        row[0], row[1] = fixed[0], fixed[1]
        row[2] = row[3] = row[4] = row[5] = 0.0
        if person.previous >= 0 and not rules.hides_last_move:
            origin = plan.cells[person.previous]
            row[2], row[3] = stand.row - origin.row, stand.col - origin.col
        if person.heading >= 0:
            goal = plan.cells[plan.exit_cells[person.target]]
            row[4] = plan.down[goal.row - stand.row + rules.rows - 1]
            row[5] = plan.right[goal.col - stand.col + rules.cols - 1]
        for exit_ in range(exits):
            row[6 + exit_] = fixed[2 + exit_]
            row[6 + exits + exit_] = crowd.seen[p, exit_]
            row[6 + 2 * exits + exit_] = person.heading == exit_
        at = 6 + 3 * exits
        row[at], row[at + 1] = fixed[2 + exits], crowd.seen[p, exits]
        row[at + 2], row[at + 3] = person.plans, person.overtaken
        row[at + 4], row[at + 5] = traits.strong, traits.confident
        row[at + 6] = plan.round_shares[game.round]
        at += 7
        for way in range(_WAYS):
            if way != STAY:
                row[at] = plan.steps[way].allowed and not crowd.grid[person.cell + plan.steps[way].cells]
                at += 1
        if not rules.walks:
            row[at] = not is_over and person.level == game.step
            row[at + 1], row[at + 2] = game.phase == EXIT, game.phase == MOVE

"""The memory layout of the general learner's tables, and the record of each row of Q.

A price index takes `digit` bits. An action (the prices of all firms) takes `digit * firms` bits, firm 0 in the highest,
and a state is its latest actions, the latest one in the highest bits. Example: with 15 prices (4 bits), prices 3 and 7
of two firms are action 0x37. So the greedy action of a state is one number, exploration is two masks on it, and the
next state is a shift. Numbers that stand for no prices, such as 0x3F, are never used, nor is their memory.

For each state, the firms' rows of Q stand side by side. A record holds each row's largest value, and then for each row
an upper bound of its second-best value. The bound may be too high (after other cells fell), which only means that the
row is scanned once too often; it is never too low.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.streams import Floats, Halves, Longs, ran2, split_mix
from llm_coop_envs.baselines.q_learning.learn.vectors import WIDTH, address, best_two, get, put


def digit_bits(points: int) -> int:
    """The bits of a price index."""
    return max(1, (points - 1).bit_length())


def row_width(points: int) -> int:
    """The length of a row: `points`, padded to a multiple of `WIDTH`."""
    return -(-points // WIDTH) * WIDTH


@part
def record_size(firms: int) -> Any:
    """The length of a record: a power of two, so that records do not cross cache lines."""
    size = 4
    while size < 2 * firms:
        size *= 2
    return size


@dataclass(frozen=True, eq=False)
class Tables:
    """The arrays that `kernel.learn` changes in place; state and action numbers are those of this module.

    Attributes:
        game: the game that is played.
        q: (state numbers, firms, width) flat.
        records: (state numbers, record) flat.
        greedy: (state numbers,) greedy actions, in 4 bytes each so that more of them fit into the cache.
        names: (states,) the number of each of the game's states, ascending.
    """

    game: Game
    q: Floats
    records: Floats
    greedy: Halves
    names: Longs

    @classmethod
    def lay_out(cls, game: Game, q: Floats) -> Tables:
        """Lay out a Q table (firms, states, points)."""
        firms, points, digit = game.firms, game.points, digit_bits(game.points)
        actions, names = action_names(game), np.zeros(1, np.int64)
        for _ in range(game.memory):
            names = (names[:, None] << digit * firms | actions).reshape(-1)
        numbers = 1 << digit * firms * game.memory
        rows = aligned(numbers * firms * row_width(points)).reshape(numbers, firms, -1)
        rows[names] = -np.inf
        rows[names, :, :points] = q.transpose(1, 0, 2)
        records = aligned(numbers * record_size(firms))
        return cls(game, rows.reshape(-1), records, np.zeros(numbers, np.uint32), names)

    def market_profits(self, profits: Floats) -> Floats:
        """Reorder profits (markets, actions, firms) by action number; flat."""
        game = self.game
        by_number = np.zeros((len(profits), 1 << digit_bits(game.points) * game.firms, game.firms))
        by_number[:, action_names(game)] = profits
        return by_number.reshape(-1)

    def results(self) -> tuple[Longs, Floats]:
        """The greedy prices (firms, states) and the Q table (firms, states, points)."""
        rows = self.q.reshape(-1, self.game.firms, row_width(self.game.points))[self.names, :, : self.game.points]
        return self.choices(self.greedy[self.names].astype(np.int64)).T.copy(), rows.transpose(1, 0, 2).copy()

    def choices(self, actions: Longs) -> Longs:
        """The price indices (..., firms) of action numbers (...)."""
        digit = digit_bits(self.game.points)
        return np.asarray(actions[..., None] >> _shifts(self.game) & ((1 << digit) - 1))


def action_names(game: Game) -> Longs:
    """The action number of each of the game's actions."""
    return np.asarray((game.choices(np.arange(game.actions)) << _shifts(game)).sum(axis=1))


def _shifts(game: Game) -> Longs:
    return digit_bits(game.points) * np.arange(game.firms - 1, -1, -1)


def aligned(size: int) -> NDArray[np.float64]:
    """Zeros that begin on a cache line, so that rows cross as few cache lines as possible."""
    spare = np.zeros(size + WIDTH)
    skip = -(spare.ctypes.data // spare.itemsize) % WIDTH
    return spare[skip : skip + size]


@part
def rescan(q: int, row: int, width: int, a: int, new: float) -> Any:
    """Find a row's largest value, its lowest price and the largest other value, if cell `a` is `new`.

    The caller writes the cell afterwards, because a row cannot be loaded quickly just after one of its cells was
    written.
    """
    top, price, second = best_two(q, row, a, new)
    for chunk in range(row + WIDTH, row + width, WIDTH):
        value, index, other = best_two(q, chunk, a - (chunk - row), new)
        if value > top:
            second = max(top, other)
            top = value
            price = chunk - row + index
        else:
            second = max(second, value)
    return top, price, second


@compiled
def draw_tied(q: int, row: int, width: int, top: float, docked: bool, ties: int) -> Any:
    """Draw one of the prices whose value is `top`; `ties` is the state of RAN2 if `docked`, else of `split_mix`."""
    count = 0
    for k in range(row, row + width):
        count += get(q, k) == top
    remaining = int(count * (ran2(ties) if docked else split_mix(ties)))
    price = -1
    while remaining >= 0:
        price += 1
        remaining -= get(q, row + price) == top
    return price


@compiled
def first_greedy(
    q: Floats,
    records: Floats,
    greedy: Halves,
    names: Longs,
    firms: int,
    digit: int,
    random_ties: bool,
    docked: bool,
    ties: Longs,
) -> None:
    """Fill in records and greedy actions, firm by firm and state by state; see `Tables`."""
    width, size = len(q) // (len(greedy) * firms), record_size(firms)
    table, luck = address(q), address(ties)
    for i in range(firms):
        for state in names:
            row = (state * firms + i) * width
            top, price, second = rescan(table, row, width, 0, get(table, row))
            if random_ties and second == top:
                price = draw_tied(table, row, width, top, docked, luck)
            records[state * size + i] = top
            records[state * size + firms + i] = second
            greedy[state] |= price << digit * (firms - 1 - i)


@part
def renew(
    q: int, row: int, width: int, tops: int, seconds: int, own: int, a: int, new: float, tied: int, ties: int
) -> Any:
    """Update a row's record for the value `new` of cell `a`, which the caller writes; return the row's greedy price.

    Args:
        q: the address of Q.
        row: the index in Q at which the row begins.
        width: the length of the row.
        tops: the address of the row's largest value.
        seconds: the address of the bound of its second-best value.
        own: its greedy price so far.
        a: the price asked.
        new: the new value of that price.
        tied: how ties are broken: 0 by the lowest price, 1 drawn with `split_mix`, 2 drawn with RAN2.
        ties: the address of the state of that generator.
    """
    top, second = get(tops, 0), get(seconds, 0)
    if a == own:
        if new >= top or new > second:
            put(tops, 0, new)
            return own
        top, price, second = rescan(q, row, width, a, new)
        if tied and second == top:
            put(q, row + a, new)
            price = draw_tied(q, row, width, top, tied == 2, ties)
        put(tops, 0, top)
        put(seconds, 0, second)
        return price
    if new > top or (new == top and a < own and not tied):
        put(tops, 0, new)
        put(seconds, 0, top)
        return a
    if new > second:
        put(seconds, 0, new)
    return own

"""The learner, compiled: any number of firms, memory, exploration and updates.

`duopoly.py` holds a faster loop for the representative game; it must do the same as this one, to the last bit.

An update is written Q <- ((1 - alpha) Q + alpha profit) + alpha delta max Q', which is Q + alpha (profit + delta max Q'
- Q) with fewer operations waiting for each other. Of each row of Q the learner keeps the largest value, its price and a
bound on the second-best value, and looks at the whole row only when the greedy price's own value falls to that bound.

Arguments that are addresses are ints; see `vectors.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.streams import (
    BLOCK,
    Floats,
    Longs,
    Words,
    explore,
    fill,
    ran2,
    ran2_explore,
    ran2_uniforms,
    split_mix,
    uniforms,
)
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

EPSILON, BOLTZMANN, NONE = 0, 1, 2
"""Ways to explore."""

RARE = 0.04
"""Exploration rate (of the firm that explores most) below which it is faster to look at a row only when it must be."""

COLDEST = 1e-300
"""Lowest Boltzmann temperature: below it differences of values would be divided by zero."""


@part
def rescan(q: int, row: int, width: int, a: int, new: float) -> Any:
    """A row's largest value, its price (of several the lowest) and the largest of the others, once cell `a` is `new`.

    The cell is written by the caller afterwards: a row that was written to a moment ago cannot be read at once.
    """
    top, place, second = best_two(q, row, a, new)
    for chunk in range(row + WIDTH, row + width, WIDTH):
        value, there, other = best_two(q, chunk, a - (chunk - row), new)
        if value > top:
            second = max(top, other)
            top = value
            place = chunk - row + there
        else:
            second = max(second, value)
    return top, place, second


@compiled
def draw_tied(q: int, row: int, width: int, top: float, docked: bool, ties: int) -> Any:
    """One of the prices whose value is `top`; `ties` is the state of RAN2 if `docked`, else of `split_mix`."""
    count = 0
    for k in range(row, row + width):
        count += get(q, k) == top
    left = int(count * (ran2(ties) if docked else split_mix(ties)))
    place = -1
    while left >= 0:
        place += 1
        left -= get(q, row + place) == top
    return place


@part
def boltzmann(q: int, row: int, points: int, top: float, temperature: float, u: float, weights: int) -> Any:
    """The price drawn with weights exp((Q - max Q) / temperature), from a number in (0, 1).

    `weights` has room for one number per price.
    """
    total = 0.0
    for a in range(points):
        weight = np.exp((get(q, row + a) - top) / temperature)
        put(weights, a, weight)
        total += weight
    wanted = u * total
    reached = 0.0
    for a in range(points):
        reached += get(weights, a)
        if wanted <= reached:
            return a
    return points - 1


@part
def follow(memory: int, actions: int, state: int, action: int) -> Any:
    """The state after an action; see `Game.after`."""
    if memory == 1:
        return action
    if memory == 0:
        return 0
    return action * actions + state // actions


@compiled
def first_greedy(
    q: Floats, tops: Floats, seconds: Floats, greedy: Longs, random_ties: bool, docked: bool, ties: Longs
) -> None:
    """Fill in what is kept of each row, firm by firm and state by state; see `learn`."""
    width = len(q) // len(tops)
    table, luck = address(q), address(ties)
    for r in range(len(tops)):
        tops[r], greedy[r], seconds[r] = rescan(table, r * width, width, 0, q[r * width])
        if random_ties and seconds[r] == tops[r]:
            greedy[r] = draw_tied(table, r * width, width, tops[r], docked, luck)


@compiled
def find_seconds(q: int, seconds: int, rows: int) -> None:
    """Compute the second-best values of rows of `WIDTH` that eager updates have left behind."""
    for r in range(rows):
        _, _, second = best_two(q, r * WIDTH, 0, get(q, r * WIDTH))
        put(seconds, r, second)


@part
def renew(
    q: int,
    tops: int,
    seconds: int,
    greedy: int,
    width: int,
    r: int,
    a: int,
    new: float,
    eager: bool,
    random_ties: bool,
    docked: bool,
    ties: int,
) -> Any:
    """Set cell `a` of row `r` to `new`, bring what is kept up to date, and say whether the greedy price changed.

    An `eager` one looks at the row without a branch, and leaves its second-best value as it was.
    """
    row = r * width
    own = get_whole(greedy, r)
    top = get(tops, r)
    changed = False
    if eager:
        top, place = best(q, row, a, new)
        put(tops, r, top)
        put_whole(greedy, r, place)
        changed = place != own
    elif a == own:
        if new >= top or new > get(seconds, r):
            put(tops, r, new)
        else:
            top, place, second = rescan(q, row, width, a, new)
            if random_ties and second == top:
                put(q, row + a, new)
                place = draw_tied(q, row, width, top, docked, ties)
            put(tops, r, top)
            put(seconds, r, second)
            put_whole(greedy, r, place)
            changed = place != own
    elif new > top or (new == top and a < own and not random_ties):
        put(tops, r, new)
        put(seconds, r, top)
        put_whole(greedy, r, a)
        changed = True
    elif new > get(seconds, r):
        put(seconds, r, new)
    put(q, row + a, new)
    return changed


@part
def renew_all(
    q: int,
    tops: int,
    seconds: int,
    greedy: int,
    earned: int,
    market: int,
    points: int,
    width: int,
    firms: int,
    memory: int,
    actions: int,
    first: int,
    state: int,
    action: int,
    a: int,
    i: int,
    kept: float,
    ahead: float,
    random_ties: bool,
    docked: bool,
    ties: int,
) -> Any:
    """Update all prices of firm `i` in a state in which it asked `a`; say whether its greedy price changed.

    `first` is the number of the firm's first row, `market` where the market's profits begin.
    """
    r = first + state
    weight = points ** (firms - 1 - i)
    own = get_whole(greedy, r)
    for b in range(points):
        other = action + (b - a) * weight
        there = first + follow(memory, actions, state, other)
        cell = r * width + b
        put(q, cell, (get(q, cell) * kept + get(earned, market + other * firms + i)) + ahead * get(tops, there))
    top, place, second = rescan(q, r * width, width, 0, get(q, r * width))
    if random_ties and second == top:
        keeps = get(q, r * width + own) == top
        place = own if keeps else draw_tied(q, r * width, width, top, docked, ties)
    put(tops, r, top)
    put(seconds, r, second)
    put_whole(greedy, r, place)
    return place != own


@part
def block(
    at: int,
    sizes: int,
    firms: int,
    memory: int,
    synchronous: bool,
    eager: bool,
    random_ties: bool,
    warm: bool,
    docked: bool,
    t: int,
    state: int,
    last: int,
) -> Any:
    """Play one block of periods, or what is left of a session.

    Args:
        at: where the addresses stand that `learn` puts together.
        sizes: where points, width, states, actions, periods of the trace, window and longest session stand.
        firms: and the others as in `learn`; these decide what is compiled.
        memory: see there.
        synchronous: see there.
        eager: whether rows are looked at in every period; see `renew`.
        random_ties: see `learn`.
        warm: whether exploration is Boltzmann's.
        docked: see `learn`.
        t: periods played so far.
        state: the state after them.
        last: the last period in which a greedy price changed.

    Returns:
        `t`, the state after it, the state before the last period, and `last`.
    """
    q, tops, seconds, greedy = get_whole(at, 0), get_whole(at, 1), get_whole(at, 2), get_whole(at, 3)
    earned, kept, ahead, picks = get_whole(at, 4), get_whole(at, 5), get_whole(at, 6), get_whole(at, 7)
    numbers, heat, chosen, weights = get_whole(at, 8), get_whole(at, 9), get_whole(at, 10), get_whole(at, 11)
    markets, trace, ties = get_whole(at, 12), get_whole(at, 13), get_whole(at, 14)
    points, width, states, actions = get_whole(sizes, 0), get_whole(sizes, 1), get_whole(sizes, 2), get_whole(sizes, 3)
    traced, window, max_periods = get_whole(sizes, 4), get_whole(sizes, 5), get_whole(sizes, 6)
    before = state
    for j in range(BLOCK):
        t += 1
        before = state
        action = 0
        for i in range(firms):
            r = i * states + state
            spot = j * firms + i
            if warm:
                a = boltzmann(q, r * width, points, get(tops, r), get(heat, spot), get(numbers, spot), weights)
            else:
                # Without a branch: whether a firm explores cannot be guessed.
                own, pick = get_whole(greedy, r), get_whole(picks, spot)
                a = pick + (own - pick) * np.int64(pick == points)
            put_whole(chosen, i, a)
            action = action * points + a
            if t <= traced:
                put_whole(trace, (t - 1) * firms + i, a)
        after = follow(memory, actions, state, action)
        paid = get_whole(markets, j) + action * firms
        for i in range(firms):
            a = get_whole(chosen, i)
            r = i * states + state
            if synchronous:
                changed = renew_all(
                    q,
                    tops,
                    seconds,
                    greedy,
                    earned,
                    get_whole(markets, j),
                    points,
                    width,
                    firms,
                    memory,
                    actions,
                    i * states,
                    state,
                    action,
                    a,
                    i,
                    get(kept, i),
                    get(ahead, i),
                    random_ties,
                    docked,
                    ties,
                )
            else:
                new = (get(q, r * width + a) * get(kept, i) + get(earned, paid + i)) + get(ahead, i) * get(
                    tops, i * states + after
                )
                changed = renew(q, tops, seconds, greedy, width, r, a, new, eager, random_ties, docked, ties)
            last += (t - last) * np.int64(changed)
        state = after
        if t >= last + window - 1 or t >= max_periods:
            break
    return t, state, before, last


@compiled
def play(
    at: int,
    sizes: int,
    firms: int,
    memory: int,
    synchronous: bool,
    eager: bool,
    random_ties: bool,
    warm: bool,
    docked: bool,
    t: int,
    state: int,
    last: int,
) -> Any:
    """Play one block; see `block`, which is compiled by itself for the commonest games: twice as fast as for all."""
    if not (synchronous or random_ties or warm or docked) and get_whole(sizes, 1) == WIDTH:
        if firms == 2 and memory == 1:
            if eager:
                return block(at, sizes, 2, 1, False, True, False, False, False, t, state, last)
            return block(at, sizes, 2, 1, False, False, False, False, False, t, state, last)
        if firms == 3 and memory == 1:
            return block(at, sizes, 3, 1, False, eager, False, False, False, t, state, last)
    return block(at, sizes, firms, memory, synchronous, eager, random_ties, warm, docked, t, state, last)


@compiled
def learn(
    q: Floats,
    tops: Floats,
    seconds: Floats,
    greedy: Longs,
    earned: Floats,
    kept: Floats,
    ahead: Floats,
    points: int,
    memory: int,
    synchronous: bool,
    random_ties: bool,
    exploration: int,
    scale: Floats,
    growth: Floats,
    docked: bool,
    words: Words,
    stream: Longs,
    ties: Longs,
    luck: Longs,
    window: int,
    max_periods: int,
    start: int,
    trace: Longs,
) -> Any:
    """Learn until greedy prices have not changed for `window` periods, or `max_periods` are over.

    Args:
        q: (firms, states, width) flat, changed in place, as are the next three; `width` is a multiple of `WIDTH`, and
            the prices beyond `points` hold minus infinity.
        tops: (firms, states) flat: each row's largest value.
        seconds: the same: not less than the largest of the row's other values.
        greedy: the same: the price of the largest value.
        earned: (markets, points^firms, firms) flat: alpha times profit. Which market counts is drawn in every period.
        kept: (firms,) 1 - alpha.
        ahead: (firms,) alpha delta.
        points: number of prices.
        memory: 0, 1 or 2.
        synchronous: update all prices of the visited state.
        random_ties: draw between equally valued prices.
        exploration: `EPSILON`, `BOLTZMANN` or `NONE`.
        scale: (firms,) of the first period: for `EPSILON` as in `streams.explore` (with `docked` the rate itself), for
            `BOLTZMANN` the temperature.
        growth: (firms, BLOCK + 1) factors on it over a block (with `docked` and `EPSILON` column 1 is the factor per
            period).
        docked: draw with RAN2 as the authors do.
        words: (4, LANES) state of the fast stream.
        stream: (RAN2_WORDS,) state of RAN2 for exploration.
        ties: state of RAN2 for ties if `docked`, else (1,) of `split_mix`.
        luck: (1,) of `split_mix`: draws the markets.
        window: periods without change that count as convergence.
        max_periods: when to give up.
        start: the state before period 1.
        trace: (any, firms) the price indices of the first periods are written here.

    Returns:
        Periods played, whether it converged, and the state in which the last period was played.
    """
    firms = len(kept)
    states = len(tops) // firms
    raw = np.empty(BLOCK * ((firms + 1) // 2), np.uint64)
    picks = np.full((BLOCK, firms), points, np.int64)
    numbers = np.zeros((BLOCK, firms))
    heat = np.zeros((BLOCK, firms))
    width = len(q) // len(tops)
    eager = exploration == EPSILON and width == WIDTH and not (synchronous or random_ties or docked)
    turn = points * 2.0**-32 / RARE
    # The market of each period, and then room for its prices and for Boltzmann's weights. All arrays whose address is
    # taken here are arguments, or named again in the loop below: others would be given free before they are used.
    markets = np.zeros(BLOCK + firms + points, np.int64)
    size = points**firms * firms
    at = np.array(
        [
            address(q),
            address(tops),
            address(seconds),
            address(greedy),
            address(earned),
            address(kept),
            address(ahead),
            address(picks),
            address(numbers),
            address(heat),
            address(markets) + 8 * BLOCK,
            address(markets) + 8 * (BLOCK + firms),
            address(markets),
            address(trace),
            address(ties),
        ]
    )
    sizes = np.array([points, width, states, size // firms, len(trace), window, max_periods])
    state = start
    before = start
    last = 1
    t = 0
    while t < last + window - 1 and t < max_periods:
        if eager and scale.min() > turn:
            eager = False
            find_seconds(address(q), address(seconds), len(tops))
        if exploration == EPSILON:
            if docked:
                ran2_explore(stream, picks, points, scale, growth[:, 1])
            else:
                fill(words, raw)
                explore(raw, picks, points, scale, growth)
        elif exploration == BOLTZMANN:
            if docked:
                ran2_uniforms(stream, numbers)
            else:
                fill(words, raw)
                uniforms(raw, numbers)
            for j in range(BLOCK):
                for i in range(firms):
                    heat[j, i] = max(scale[i] * growth[i, j], COLDEST)
        if len(earned) > size:
            for j in range(BLOCK):
                markets[j] = np.int64(len(earned) // size * split_mix(address(luck))) * size
        t, state, before, last = play(
            address(at),
            address(sizes),
            firms,
            memory,
            synchronous,
            eager,
            random_ties,
            exploration == BOLTZMANN,
            docked,
            t,
            state,
            last,
        )
        if exploration == BOLTZMANN or (exploration == EPSILON and not docked):
            for i in range(firms):
                scale[i] *= growth[i, BLOCK]
    return t, t >= last + window - 1, before


def pack(q: Floats) -> Floats:
    """Lay out a table (firms, states, points) for `learn`."""
    firms, states, points = q.shape
    rows = aligned(firms * states * row_width(points)).reshape(firms, states, -1)
    rows[:] = -np.inf
    rows[:, :, :points] = q
    return rows.reshape(-1)


def row_width(points: int) -> int:
    """Numbers a row takes: `points`, filled up to a multiple of `WIDTH`."""
    return -(-points // WIDTH) * WIDTH


def aligned(size: int) -> NDArray[np.float64]:
    """Zeros that begin on a cache line, so that rows do not cross more of them than they must."""
    spare = np.zeros(size + WIDTH)
    skip = -(spare.ctypes.data // spare.itemsize) % WIDTH
    return spare[skip : skip + size]

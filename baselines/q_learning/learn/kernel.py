"""The learner, compiled: any number of firms, memory, exploration and updates.

`duopoly.py` holds a faster loop for the representative game; it must do the same as this one, to the last bit.

An update is written Q <- ((1 - alpha) Q + alpha profit) + alpha delta max Q', which is Q + alpha (profit + delta max Q'
- Q) with fewer operations waiting for each other. How tables lie in memory, and what is kept of each row, says
`layout.py`. What takes time in large games is memory that is not in the cache, so a period asks for the rows of the
period after the next, as far as they can be known.

Arguments that are addresses are ints; see `vectors.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.layout import draw_tied, record_size, renew, rescan
from llm_coop_envs.baselines.q_learning.learn.streams import (
    BLOCK,
    Floats,
    Halves,
    Longs,
    Words,
    explore,
    fill,
    markets_of,
    ran2_explore,
    ran2_uniforms,
    uniforms,
)
from llm_coop_envs.baselines.q_learning.learn.vectors import (
    WIDTH,
    address,
    best,
    count_below,
    fetch,
    get,
    get_half,
    get_whole,
    half_address,
    put,
    put_half,
    put_whole,
    weigh,
)

EPSILON, BOLTZMANN, NONE = 0, 1, 2
"""Ways to explore."""

CALM, RESTLESS = 0.02, 0.06
"""Shares of a block's periods in which a greedy price changes: below the first it is faster to look at a row only when
it must be, above the second it is faster to look at all. What lies between goes on as before."""

COLDEST = 1e-300
"""Lowest Boltzmann temperature: below it differences of values would be divided by zero."""

SURE = 40.0
"""So many temperatures above the second-best value the greedy price is sure: all others' weights add up to less than
2^-50, and the numbers that they are drawn with are not below 2^-33."""

POINTS, FIRMS, MEMORY, DIGIT, ROW, SYNCHRONOUS, TIED, EXPLORATION, TRACED, WINDOW, LONGEST = range(11)
"""What stands where in `learn`'s `sizes`."""


@part
def boltzmann(q: int, row: int, width: int, top: float, steep: float, u: float, sums: int) -> Any:
    """The price drawn with weights exp(steep (Q - max Q)), from a number in (0, 1).

    `sums` has room for a row.
    """
    threshold = 0.0
    for chunk in range(0, width, WIDTH):
        threshold = weigh(q, row + chunk, top, steep, sums, chunk, threshold)
    threshold *= u
    price = 0
    for chunk in range(0, width, WIDTH):
        price += count_below(sums, chunk, threshold)
    return price


@part
def follow(action: int, state: int, bits: int, memory: int) -> Any:
    """The state after an action, where an action takes so many bits."""
    if memory == 1:
        return action
    if memory == 0:
        return 0
    return action << bits * (memory - 1) | state >> bits


@part
def renew_all(at: int, sizes: int, state: int, action: int, shift: int, i: int, market: int, own: int) -> Any:
    """Update all prices of firm `i` in a state, given what the others asked; return its greedy price.

    `shift` is where the firm's price stands in an action, `market` where the market's profits begin.
    """
    q, records, earned = get_whole(at, 0), get_whole(at, 1), get_whole(at, 3)
    firms, memory, digit, width = (
        get_whole(sizes, FIRMS),
        get_whole(sizes, MEMORY),
        get_whole(sizes, DIGIT),
        get_whole(sizes, ROW),
    )
    retention, ahead, size = get(get_whole(at, 4), i), get(get_whole(at, 5), i), record_size(firms)
    row = (state * firms + i) * width
    others = action & ~(((1 << digit) - 1) << shift)
    for b in range(get_whole(sizes, POINTS)):
        other = others | b << shift
        top = get(records, follow(other, state, digit * firms, memory) * size + i)
        put(q, row + b, (get(q, row + b) * retention + get(earned, market + other * firms + i)) + ahead * top)
    top, greedy_price, second = rescan(q, row, width, 0, get(q, row))
    tied = get_whole(sizes, TIED)
    if tied and second == top:
        keeps = get(q, row + own) == top
        greedy_price = own if keeps else draw_tied(q, row, width, top, tied == 2, get_whole(at, 11))
    put(records, state * size + i, top)
    put(records, state * size + firms + i, second)
    return greedy_price


@part
def block(
    at: int,
    sizes: int,
    firms: int,
    memory: int,
    plain: bool,
    warm: bool,
    eager: bool,
    first: int,
    count: int,
    t: int,
    state: int,
    last: int,
) -> Any:
    """Play `count` periods of a block from its period `first` on.

    Args:
        at: where the addresses stand that `learn` puts together.
        sizes: where its numbers stand.
        firms: how many; this and the next four decide what is compiled.
        memory: of how many periods.
        plain: whether rows are of `WIDTH`, updates asynchronous, and ties lowest.
        warm: whether exploration is Boltzmann's.
        eager: whether rows are looked at in every period, without a branch; this forgets second-best values.
        first: the period of the block that comes next, from 0.
        count: how many to play.
        t: periods played so far.
        state: the state after them.
        last: the last period in which a greedy price changed.

    Returns:
        `t`, the state after it, the state before the last period, `last`, and how many periods changed a greedy price.
    """
    q, records, greedy, earned = get_whole(at, 0), get_whole(at, 1), get_whole(at, 2), get_whole(at, 3)
    retention, ahead, keep, explored = get_whole(at, 4), get_whole(at, 5), get_whole(at, 6), get_whole(at, 7)
    numbers, heat, markets, ties = get_whole(at, 8), get_whole(at, 9), get_whole(at, 10), get_whole(at, 11)
    weights, trace = get_whole(at, 12), get_whole(at, 13)
    digit, traced = get_whole(sizes, DIGIT), get_whole(sizes, TRACED)
    width = WIDTH if plain else get_whole(sizes, ROW)
    tied = 0 if plain else get_whole(sizes, TIED)
    synchronous = not plain and get_whole(sizes, SYNCHRONOUS) == 1
    size, bits, low = record_size(firms), digit * firms, (1 << digit) - 1
    previous, changes = state, 0
    for j in range(first, first + count):
        t += 1
        old = get_half(greedy, state)
        if warm:
            action = 0
            for i in range(firms):
                top, spot = get(records, state * size + i), j * firms + i
                steep = get(heat, spot)
                if (top - get(records, state * size + firms + i)) * steep > SURE:
                    a = old >> digit * (firms - 1 - i) & low
                else:
                    a = boltzmann(q, (state * firms + i) * width, width, top, steep, get(numbers, spot), weights)
                action = action << digit | a
        else:
            # Without a branch: whether a firm explores cannot be guessed.
            action = (old & get_whole(keep, j)) | get_whole(explored, j)
        next_state = follow(action, state, bits, memory)
        if plain and not warm and firms**memory > 2:
            # Where play will be after the next period, but for greedy prices that change meanwhile.
            soon = follow(
                (get_half(greedy, next_state) & get_whole(keep, j + 1)) | get_whole(explored, j + 1),
                next_state,
                bits,
                memory,
            )
            fetch(records, soon * size)
            for i in range(2 * firms):
                fetch(q, soon * firms * WIDTH + i * WIDTH // 2)
        market = get_whole(markets, j)
        fresh = 0
        for i in range(firms):
            shift = digit * (firms - 1 - i)
            a, own = action >> shift & low, old >> shift & low
            row, top_index = (state * firms + i) * width, state * size + i
            if synchronous:
                greedy_price = renew_all(at, sizes, state, action, shift, i, market, own)
            else:
                new = (get(q, row + a) * get(retention, i) + get(earned, market + action * firms + i)) + get(
                    ahead, i
                ) * get(records, next_state * size + i)
                if eager:
                    top, greedy_price = best(q, row, a, new)
                    put(records, top_index, top)
                    put(records, top_index + firms, np.inf)
                else:
                    seconds = records + 8 * (top_index + firms)
                    greedy_price = renew(q, row, width, records + 8 * top_index, seconds, own, a, new, tied, ties)
                # After the row was looked at: one that was written to a moment ago cannot be read at once.
                put(q, row + a, new)
            fresh |= greedy_price << shift
        if eager:
            put_half(greedy, state, fresh)
            last += (t - last) * np.int64(fresh != old)
            changes += fresh != old
        elif fresh != old:
            put_half(greedy, state, fresh)
            last = t
            changes += 1
        if t <= traced:
            put_whole(trace, t - 1, action)
        previous = state
        state = next_state
    return t, state, previous, last, changes


@compiled
def play(at: int, sizes: int, eager: bool, plain: bool, first: int, count: int, t: int, state: int, last: int) -> Any:
    """Play one block; see `block`, which is compiled by itself for the commonest games: twice as fast as for all."""
    firms, memory = get_whole(sizes, FIRMS), get_whole(sizes, MEMORY)
    warm = get_whole(sizes, EXPLORATION) == BOLTZMANN
    if plain and memory == 1 and firms == 2:
        if warm and eager:
            return block(at, sizes, 2, 1, True, True, True, first, count, t, state, last)
        if warm:
            return block(at, sizes, 2, 1, True, True, False, first, count, t, state, last)
        if eager:
            return block(at, sizes, 2, 1, True, False, True, first, count, t, state, last)
        return block(at, sizes, 2, 1, True, False, False, first, count, t, state, last)
    if plain and memory == 1 and firms == 3 and not warm:
        if eager:
            return block(at, sizes, 3, 1, True, False, True, first, count, t, state, last)
        return block(at, sizes, 3, 1, True, False, False, first, count, t, state, last)
    if plain and memory == 2 and firms == 2 and not warm:
        if eager:
            return block(at, sizes, 2, 2, True, False, True, first, count, t, state, last)
        return block(at, sizes, 2, 2, True, False, False, first, count, t, state, last)
    if plain and memory == 1 and firms == 4 and not warm:
        return block(at, sizes, 4, 1, True, False, eager, first, count, t, state, last)
    return block(at, sizes, firms, memory, False, warm, eager, first, count, t, state, last)


@compiled
def masks(picks: Longs, points: int, digit: int, keep: Longs, explored: Longs) -> None:
    """Picks (firms, BLOCK), see `streams`, as masks: action = (greedy action & keep) | explored."""
    low = (1 << digit) - 1
    keep[:-1] = 0
    explored[:-1] = 0
    for i in range(len(picks)):
        for j in range(picks.shape[1]):
            pick = picks[i, j]
            keep[j] = keep[j] << digit | (low if pick == points else 0)
            explored[j] = explored[j] << digit | (0 if pick == points else pick)


@compiled
def learn(
    q: Floats,
    records: Floats,
    greedy: Halves,
    earned: Floats,
    retention: Floats,
    ahead: Floats,
    sizes: Longs,
    scale: Floats,
    growth: Floats,
    xoshiro: Words,
    stream: Longs,
    ties: Longs,
    luck: Longs,
    docked: bool,
    start: int,
    trace: Longs,
) -> Any:
    """Learn until greedy prices have not changed for a window of periods, or the longest session is over.

    Args:
        q: as in `layout.Tables`, changed in place.
        records: see there.
        greedy: see there.
        earned: (markets, action numbers, firms) flat: alpha times profit. Which market counts is drawn in every period.
        kept: (firms,) 1 - alpha.
        ahead: (firms,) alpha delta.
        sizes: numbers by the names above: prices, firms, memory (0, 1 or 2), bits of a price, width of a row, whether
            all prices of the visited state are updated, how ties are broken (see `layout.renew`), how firms explore
            (`EPSILON`, `BOLTZMANN` or `NONE`), how many periods of `trace` are wanted, the window without change that
            counts as convergence, and when to give up.
        scale: (firms,) of the first period: for `EPSILON` as in `streams.explore` (with `docked` the rate itself), for
            `BOLTZMANN` the temperature.
        growth: (firms, BLOCK + 1) factors on it over a block (with `docked` and `EPSILON` column 1 is the factor per
            period).
        words: (4, LANES) state of the fast stream.
        stream: (RAN2_WORDS,) state of RAN2 for exploration.
        ties: state of RAN2 for ties if `docked`, else (1,) of `split_mix`.
        luck: (1,) of `split_mix`: draws the markets.
        docked: draw with RAN2 as the authors do.
        start: the state before period 1.
        trace: (any,) the actions of the first periods are written here.

    Returns:
        Periods played, whether it converged, and the state in which the last period was played.
    """
    points, firms, digit, exploration = sizes[POINTS], sizes[FIRMS], sizes[DIGIT], sizes[EXPLORATION]
    raw = np.empty(BLOCK * ((firms + 1) // 2), np.uint64)
    picks = np.full((firms, BLOCK), points, np.int64)
    keep, explored = np.full(BLOCK + 1, -1, np.int64), np.zeros(BLOCK + 1, np.int64)
    numbers, heat, weights = np.zeros((BLOCK, firms)), np.zeros((BLOCK, firms)), np.zeros(sizes[ROW])
    markets = np.zeros(BLOCK, np.int64)
    plain = sizes[ROW] == WIDTH and sizes[TIED] == 0 and sizes[SYNCHRONOUS] == 0
    eager = plain
    market = firms << digit * firms
    at = np.array(
        [
            address(q),
            address(records),
            half_address(greedy),
            address(earned),
            address(retention),
            address(ahead),
            address(keep),
            address(explored),
            address(numbers),
            address(heat),
            address(markets),
            address(ties),
            address(weights),
            address(trace),
        ]
    )
    state = start
    previous = start
    last = 1
    t = 0
    while t < last + sizes[WINDOW] - 1 and t < sizes[LONGEST]:
        if exploration == EPSILON:
            if docked:
                ran2_explore(stream, picks, points, scale, growth[:, 1])
            else:
                fill(xoshiro, raw)
                explore(raw, picks, points, scale, growth)
            masks(picks, points, digit, keep, explored)
        elif exploration == BOLTZMANN:
            if docked:
                ran2_uniforms(stream, numbers)
            else:
                fill(xoshiro, raw)
                uniforms(raw, numbers)
            for j in range(BLOCK):
                for i in range(firms):
                    heat[j, i] = 1.0 / max(scale[i] * growth[i, j], COLDEST)
        if len(earned) > market:
            markets_of(luck, markets, len(earned) // market, market)
        done, changes = 0, 0
        while done < BLOCK and t < last + sizes[WINDOW] - 1 and t < sizes[LONGEST]:
            # Up to the period in which play would have been unchanged long enough.
            count = min(BLOCK - done, last + sizes[WINDOW] - 1 - t, sizes[LONGEST] - t)
            t, state, previous, last, block_changes = play(
                address(at), address(sizes), eager, plain, done, count, t, state, last
            )
            done += count
            changes += block_changes
        eager = plain and changes > (CALM if eager else RESTLESS) * BLOCK
        if exploration == BOLTZMANN or (exploration == EPSILON and not docked):
            for i in range(firms):
                scale[i] *= growth[i, BLOCK]
    # Arrays whose address was taken are named once more: they would be given free before they are used.
    alive = len(weights) + len(markets) + len(keep) + len(explored) + len(numbers) + len(heat)
    return t, t >= last + sizes[WINDOW] - 1, previous, alive

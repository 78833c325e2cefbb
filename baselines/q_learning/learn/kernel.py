"""The general learner, compiled: any number of firms, any memory, exploration and updates.

`duopoly.py` is a faster loop for the representative game, which computes the same to the last bit.

An update is written Q <- ((1 - alpha) Q + alpha profit) + alpha delta max Q', which is Q + alpha (profit + delta max Q'
- Q) with fewer operations that wait for each other. `layout.py` describes the layout of tables and records. Large games
are slowed down by memory that is not in the cache, so each period prefetches the rows of the period after the next, as
far as its state can be predicted.

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
    draw_markets,
    explore,
    fill,
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
"""Kinds of exploration."""

CALM, RESTLESS = 0.02, 0.06
"""Shares of a block's periods in which a greedy price changes. Below the first share, the next block scans rows only
when it must; above the second share, it scans all rows, which is then faster. In between, the mode stays."""

COLDEST = 1e-300
"""The lowest Boltzmann temperature; below it, differences of values would be divided by zero."""

SURE = 40.0
"""If the largest value exceeds the second-best one by this many temperatures, the greedy price is drawn for sure: the
other weights sum to less than 2^-50, and the uniform numbers are not below 2^-33."""

POINTS, FIRMS, MEMORY, DIGIT, ROW, SYNCHRONOUS, TIED, EXPLORATION, TRACED, WINDOW, LONGEST = range(11)
"""The order of the numbers in `sizes`; see `learn`."""


@part
def boltzmann(q: int, row: int, width: int, top: float, steep: float, u: float, sums: int) -> Any:
    """Draw a price with weights exp(steep (Q - max Q)) by the uniform number `u`.

    `sums` is the address of an array with room for a row.
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
    """The state that follows `state` after an action of `bits` bits."""
    if memory == 1:
        return action
    if memory == 0:
        return 0
    return action << bits * (memory - 1) | state >> bits


@part
def renew_all(at: int, sizes: int, state: int, action: int, shift: int, i: int, market: int, own: int) -> Any:
    """Update the values of all prices of firm `i` in a state, given the others' prices; return its greedy price.

    `shift` is the position of the firm's price in an action, `market` the index at which the market's profits begin.
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
def draw_action(at: int, sizes: int, firms: int, width: int, state: int, old: int, j: int) -> Any:
    """The action of all firms in period `j` of a block if they explore as Boltzmann; `old` is the greedy action."""
    q, records, numbers, heat, weights = (
        get_whole(at, 0),
        get_whole(at, 1),
        get_whole(at, 8),
        get_whole(at, 9),
        get_whole(at, 12),
    )
    digit, size = get_whole(sizes, DIGIT), record_size(firms)
    action = 0
    for i in range(firms):
        top, number = get(records, state * size + i), j * firms + i
        steep = get(heat, number)
        if (top - get(records, state * size + firms + i)) * steep > SURE:
            a = old >> digit * (firms - 1 - i) & ((1 << digit) - 1)
        else:
            a = boltzmann(q, (state * firms + i) * width, width, top, steep, get(numbers, number), weights)
        action = action << digit | a
    return action


@part
def prefetch(at: int, firms: int, state: int) -> None:
    """Prefetch the record and the rows of a state."""
    fetch(get_whole(at, 1), state * record_size(firms))
    for i in range(2 * firms):
        fetch(get_whole(at, 0), state * firms * WIDTH + i * WIDTH // 2)


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
        at: the address of the addresses that `learn` collects.
        sizes: the address of its `sizes`.
        firms: number of firms; the function is compiled for this and the next four.
        memory: number of periods in a state.
        plain: whether rows have `WIDTH` numbers, updates are asynchronous, and the lowest price breaks ties.
        warm: whether exploration is Boltzmann's.
        eager: whether rows are scanned in every period, without a branch; this forgets second-best values.
        first: the first period of the block to play, from 0.
        count: number of periods to play.
        t: number of periods played so far.
        state: the state after them.
        last: the last period in which a greedy price changed.

    Returns:
        `t`, the state after it, the state before the last period, `last`, and the number of periods in which a greedy
        price changed.
    """
    q, records, greedy, earned = get_whole(at, 0), get_whole(at, 1), get_whole(at, 2), get_whole(at, 3)
    retention, ahead, keep, explored = get_whole(at, 4), get_whole(at, 5), get_whole(at, 6), get_whole(at, 7)
    markets, ties, trace = get_whole(at, 10), get_whole(at, 11), get_whole(at, 13)
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
            action = draw_action(at, sizes, firms, width, state, old, j)
        else:
            # Without a branch, because whether a firm explores cannot be predicted.
            action = (old & get_whole(keep, j)) | get_whole(explored, j)
        next_state = follow(action, state, bits, memory)
        if plain and not warm and firms**memory > 2:
            # The state after the next period, unless a greedy price changes meanwhile.
            next_action = (get_half(greedy, next_state) & get_whole(keep, j + 1)) | get_whole(explored, j + 1)
            prefetch(at, firms, follow(next_action, next_state, bits, memory))
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
                # After the row was scanned, because a row cannot be loaded quickly just after one of its cells was
                # written.
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
    """Play periods of a block. `block` is compiled for each of the commonest games, which makes it twice as fast."""
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
    """Turn picks (firms, BLOCK) of `streams` into masks: action = (greedy action & keep) | explored."""
    low = (1 << digit) - 1
    keep[:-1] = 0
    explored[:-1] = 0
    for i in range(len(picks)):
        for j in range(picks.shape[1]):
            pick = picks[i, j]
            keep[j] = keep[j] << digit | (low if pick == points else 0)
            explored[j] = explored[j] << digit | (0 if pick == points else pick)


@compiled
def draw_block(
    exploration: int,
    docked: bool,
    raw: Words,
    picks: Longs,
    numbers: Floats,
    heat: Floats,
    scale: Floats,
    growth: Floats,
    xoshiro: Words,
    stream: Longs,
    points: int,
) -> None:
    """Draw the random numbers of a block: `picks`, or `numbers` and inverse temperatures `heat` (BLOCK, firms)."""
    if exploration == NONE:
        return
    if not docked:
        fill(xoshiro, raw)
    if exploration == EPSILON:
        if docked:
            ran2_explore(stream, picks, points, scale, growth[:, 1])
        else:
            explore(raw, picks, points, scale, growth)
        return
    if docked:
        ran2_uniforms(stream, numbers)
    else:
        uniforms(raw, numbers)
    for j in range(BLOCK):
        for i in range(len(scale)):
            heat[j, i] = 1.0 / max(scale[i] * growth[i, j], COLDEST)


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
        q: as in `layout.Tables`, changed in place, as are the next two.
        records: as in `layout.Tables`.
        greedy: as in `layout.Tables`.
        earned: (markets, action numbers, firms) flat: alpha times profit. One of the markets is drawn in every period.
        retention: (firms,) 1 - alpha.
        ahead: (firms,) alpha delta.
        sizes: numbers in the order of the names above: prices, firms, memory (0, 1 or 2), bits of a price, width of a
            row, whether all prices of the visited state are updated, how ties are broken (see `layout.renew`), kind of
            exploration, number of periods in `trace`, the window without change that counts as convergence, and the
            longest session.
        scale: (firms,) in the first period: for `EPSILON` as in `streams.explore` (with `docked` the rate itself), for
            `BOLTZMANN` the temperature.
        growth: (firms, BLOCK + 1) factors on it over a block (with `docked` and `EPSILON`, column 1 is the factor per
            period).
        xoshiro: (4, LANES) state of the fast stream.
        stream: (RAN2_WORDS,) state of RAN2 for exploration.
        ties: state of RAN2 for ties if `docked`, else (1,) of `split_mix`.
        luck: (1,) state of the `split_mix` that draws markets.
        docked: whether to draw with RAN2 as the authors do.
        start: the state before period 1.
        trace: (any,) receives the actions of the first periods.

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
        draw_block(exploration, docked, raw, picks, numbers, heat, scale, growth, xoshiro, stream, points)
        if exploration == EPSILON:
            masks(picks, points, digit, keep, explored)
        if len(earned) > market:
            draw_markets(luck, markets, len(earned) // market, market)
        done, changes = 0, 0
        while done < BLOCK and t < last + sizes[WINDOW] - 1 and t < sizes[LONGEST]:
            # Up to the period in which strategies would have been unchanged for a whole window.
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
    # Arrays whose address was taken are used once more, because they would be freed after their last use by name.
    alive = len(weights) + len(markets) + len(keep) + len(explored) + len(numbers) + len(heat)
    return t, t >= last + sizes[WINDOW] - 1, previous, alive

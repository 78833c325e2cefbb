"""The compiled loop of learners with random entry and exit of the last firm; see `entering.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.layout import record_size, renew, rescan
from llm_coop_envs.baselines.q_learning.learn.streams import BLOCK, explore, fill, split_mix
from llm_coop_envs.baselines.q_learning.learn.vectors import WIDTH, address, get, get_half, half_address, put, put_half

if TYPE_CHECKING:
    from llm_coop_envs.baselines.q_learning.learn.streams import Floats, Halves, Longs, Words


@part
def renew_out(q: int, records: int, row: int, top_index: int, firms: int, own: int, out: int, new: float) -> Any:
    """Update the last firm's record for the value `new` of being out; return the row's greedy price.

    Args:
        q: the address of Q.
        records: the address of the records.
        row: the index in Q at which the firm's row begins.
        top_index: the index in the records of the row's largest value.
        firms: number of firms.
        own: the greedy price so far.
        out: the number of being out.
        new: the value of being out.
    """
    top = get(records, top_index)
    if new > top:
        if own < out:
            put(records, top_index + firms, top)
        put(records, top_index, new)
        return out
    if own == out and new < top:
        # As in the authors' program, the best price replaces being out, even if being out is still worth more.
        top, price, second = rescan(q, row, WIDTH, out, -np.inf)
        put(records, top_index, top)
        put(records, top_index + firms, second)
        return price
    return own


@compiled
def learn_with_entry(
    q: Floats,
    records: Floats,
    greedy: Halves,
    outs: Floats,
    earned: Floats,
    numbers: Floats,
    out: int,
    digit: int,
    scale: Floats,
    growth: Floats,
    xoshiro: Words,
    luck: Longs,
    window: int,
    max_periods: int,
    state: int,
) -> Any:
    """Learn until greedy prices have not changed for a window of periods, or the longest session is over.

    Args:
        q: as in `layout.Tables`, as are the next two; the last price of every row is minus infinity.
        records: as in `layout.Tables`.
        greedy: as in `layout.Tables`.
        outs: (state numbers,) the last firm's values of being out.
        earned: (action numbers, firms) flat: alpha times profit.
        numbers: 1 - alpha, alpha delta, and the probability of an entry or exit per period.
        out: the number of being out, which is the number of prices.
        digit: bits of a price.
        scale: (firms,) as in `streams.explore`, in the first period.
        growth: (firms, BLOCK + 1) its factors over a block.
        xoshiro: (4, LANES) state of the fast stream.
        luck: (1,) state of the `split_mix` that draws entries and exits.
        window: number of periods without change that counts as convergence.
        max_periods: longest session.
        state: the state before period 1.

    Returns:
        Periods played, whether it converged, and the state in which the last period was played.
    """
    firms, low = len(scale), (1 << digit) - 1
    size, last_firm = record_size(firms), firms - 1
    retention, ahead, rate = numbers[0], numbers[1], numbers[2]
    raw = np.empty(BLOCK * ((firms + 1) // 2), np.uint64)
    picks = np.empty((firms, BLOCK), np.int64)
    table, tops, best = address(q), address(records), half_address(greedy)
    previous = state
    last, t = 1, 0
    while True:
        fill(xoshiro, raw)
        explore(raw, picks, out, scale, growth)
        for j in range(BLOCK):
            t += 1
            previous = state
            old = get_half(best, state)
            comes_or_goes = split_mix(address(luck)) < rate
            leaves = comes_or_goes != (state & low == out)
            action = 0
            for i in range(firms):
                a = old >> digit * (last_firm - i) & low if picks[i, j] == out else picks[i, j]
                action = action << digit | (out if i == last_firm and leaves else a)
            fresh = 0
            for i in range(firms):
                shift = digit * (last_firm - i)
                a, own = action >> shift & low, old >> shift & low
                row, top_index = (state * firms + i) * WIDTH, state * size + i
                worth = earned[action * firms + i] + ahead * get(tops, action * size + i)
                if a < out:
                    new = get(table, row + a) * retention + worth
                    seconds = tops + 8 * (top_index + firms)
                    greedy_price = renew(
                        table, row, WIDTH, tops + 8 * top_index, seconds, own, a, new, 0, address(luck)
                    )
                    put(table, row + a, new)
                else:
                    new = outs[state] * retention + worth
                    greedy_price = renew_out(table, tops, row, top_index, firms, own, out, new)
                    outs[state] = new
                fresh |= greedy_price << shift
            if fresh != old:
                put_half(best, state, fresh)
                last = t
            state = action
            if t >= last + window - 1 or t >= max_periods:
                return t, t >= last + window - 1, previous
        for i in range(firms):
            scale[i] *= growth[i, BLOCK]

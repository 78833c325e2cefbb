"""The compiled loop of learners that move in turn; see `sequential.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.streams import Floats, Longs, split_mix
from llm_coop_envs.baselines.q_learning.learn.vectors import address


@part
def greedy(row: Floats, luck: int) -> Any:
    """The price with the largest value; of several, one is drawn."""
    top = row.max()
    tied = np.int64((row == top).sum())
    remaining = np.int64(tied * split_mix(luck)) if tied > 1 else 0
    for price in range(len(row)):
        if row[price] == top:
            if remaining == 0:
                return price
            remaining -= 1
    return 0


@compiled
def learn_in_turn(
    q: Floats, earned: Floats, alpha: float, delta: float, fall: float, periods: int, luck: Longs, prices: Longs
) -> None:
    """Learn for a number of periods.

    Args:
        q: (2, m, m) by the rival's price and the own one; changed in place.
        earned: (m, m) a firm's profit by its own price and the rival's.
        alpha: step of an update.
        delta: discount factor per period.
        fall: factor on exploration per period.
        periods: the number of periods.
        luck: (1,) state of `split_mix`.
        prices: (n, 2) receives the prices of the last n periods.
    """
    points = len(earned)
    stream = address(luck)
    now = np.zeros(2, np.int64)
    # The rival's price that each firm saw when it last moved.
    seen = np.zeros(2, np.int64)
    for i in range(2):
        now[i] = np.int64(points * split_mix(stream))
    # The second firm moves in period 2. Both first prices are drawn.
    seen[0] = now[1]
    seen[1] = now[0]
    now[1] = np.int64(points * split_mix(stream))
    eps = fall * fall
    for t in range(3, periods + 1):
        eps *= fall
        i = (t + 1) % 2
        rival = now[1 - i]
        own, seen_price = now[i], seen[i]
        target = earned[own, seen_price] + delta * earned[own, rival] + delta * delta * q[i, rival].max()
        q[i, seen_price, own] = (1.0 - alpha) * q[i, seen_price, own] + alpha * target
        if split_mix(stream) < eps:
            now[i] = np.int64(points * split_mix(stream))
        else:
            now[i] = greedy(q[i, rival], stream)
        seen[i] = rival
        recorded = t - 1 - periods + len(prices)
        if recorded >= 0:
            prices[recorded, 0] = now[0]
            prices[recorded, 1] = now[1]

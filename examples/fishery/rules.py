"""The rules: one stock of fish, whoever fishes takes from it, and what is left grows.

Growth is logistic (Schaefer 1954, "Some aspects of the dynamics of populations"): a stock S becomes
S + r S (1 - S / K). It grows most at half the capacity K, by r K / 4: the maximum sustainable yield. What is good for
each fisher alone, to take more now, is bad for all (Gordon 1954, "The economic theory of a common-property resource").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def catches(wanted: NDArray[np.int64], stock: float) -> NDArray[np.float64]:
    """What each fisher lands, in tons: what it wanted, or a proportional part if all want more than there is."""
    total = float(wanted.sum())
    return wanted.astype(np.float64) * (min(1.0, stock / total) if total else 1.0)


def regrown(stock: float, growth: float, capacity: float) -> float:
    """The stock after a season's growth, in tons, from 0 to the capacity."""
    return float(np.clip(stock + growth * stock * (1 - stock / capacity), 0.0, capacity))


def sustainable_yield(growth: float, capacity: float) -> float:
    """The most that can be landed each season for ever, in tons."""
    return growth * capacity / 4

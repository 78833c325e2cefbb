"""Columns of a population: values in given shares, alone or by the values of another column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.shares import divide

Codes: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """What people may have, and in which shares.

    Attributes:
        name: its name.
        values: what there is; a person's code is the place in it.
        shares: (values of `by`, values) each row adds up to 1; a single row without `by`.
        by: the column that it hangs on; empty for none.
        counts: how many people have each value, where the file says so.
        ranges: the first and the last integer of each value that is a range, such as `18-29`.
        forms: the words by which a text may name each value.
        joint: whether it holds combinations of other columns' values, and is no attribute itself.
    """

    name: str
    values: tuple[Any, ...]
    shares: NDArray[np.float64]
    by: str = ""
    counts: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    forms: Mapping[str, tuple[str, ...]]
    joint: bool = False

    def check(self, size: int, *, exact: bool) -> None:
        """Refuse a size for which the quotas are impossible.

        Raises:
            SettingsError: the counts are of another size, or a value with a share would be nobody's.
        """
        if self.counts and sum(self.counts) != size:
            raise SettingsError(self.name, list(self.counts), f"the counts add up to {sum(self.counts)}, not {size}")
        if not exact or self.by:
            return
        for value, share, count in zip(self.values, self.shares[0], divide(size, self.shares[0].tolist()), strict=True):
            if share > 0 and not count:
                raise SettingsError(
                    self.name,
                    value,
                    f"a share of {share:.6g} is nobody among {size}; have more people, or write draw: sample",
                )

    def draw(self, above: Codes, rng: np.random.Generator, *, exact: bool) -> Codes:
        """Everybody's code.

        Args:
            above: (size,) everybody's code in the column that this one hangs on; zeros without any.
            rng: deals the values, or draws them.
            exact: whether to deal the values by quotas instead of drawing them.
        """
        found = np.zeros(len(above), dtype=np.int32)
        for row, shares in enumerate(self.shares):
            mine = np.flatnonzero(above == row)
            if exact:
                counts = self.counts or divide(len(mine), shares.tolist())
                found[mine] = rng.permutation(np.repeat(np.arange(len(shares), dtype=np.int32), counts))
            else:
                found[mine] = rng.choice(len(shares), size=len(mine), p=shares)
        return found


def marginal(columns: Sequence[Column], name: str) -> NDArray[np.float64]:
    """The share of each of a column's values in all people."""
    column = next(one for one in columns if one.name == name)
    above = marginal(columns, column.by) if column.by else np.ones(1)
    found: NDArray[np.float64] = above @ column.shares
    return found

"""Columns of a population: values in given shares, unconditional or by the values of another column."""

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
    """The values of an attribute or option, and their shares.

    Attributes:
        name: the column's name.
        values: the possible values; a person's code is an index into them.
        shares: (values of `by`, values) shares; each row adds up to 1. Without `by` there is a single row.
        by: the column on which this one depends; empty for none.
        counts: how many people have each value, if the file states counts.
        ranges: the first and the last integer of each value that is a range, such as `18-29`.
        forms: the words by which a text may name each value.
        joint: whether the values are combinations of other columns' values. Then the column is no attribute.
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
        """Check that a population can have this size.

        Raises:
            SettingsError: the counts add up to another size, or nobody would have a value with a share.
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
        """Draw a code for each person.

        Args:
            above: (size,) the person's code in the column on which this one depends; zeros if there is none.
            rng: the source of random numbers.
            exact: whether shares are quotas, dealt at random, instead of chances.

        Returns:
            (size,) codes.
        """
        codes = np.zeros(len(above), dtype=np.int32)
        for row, shares in enumerate(self.shares):
            mine = np.flatnonzero(above == row)
            if exact:
                counts = self.counts or divide(len(mine), shares.tolist())
                codes[mine] = rng.permutation(np.repeat(np.arange(len(shares), dtype=np.int32), counts))
            else:
                codes[mine] = rng.choice(len(shares), size=len(mine), p=shares)
        return codes


def marginal(columns: Sequence[Column], name: str) -> NDArray[np.float64]:
    """The share of each value of a column in all people."""
    column = next(candidate for candidate in columns if candidate.name == name)
    above = marginal(columns, column.by) if column.by else np.ones(1)
    shares: NDArray[np.float64] = above @ column.shares
    return shares

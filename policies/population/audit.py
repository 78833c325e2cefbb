"""Audit drawn people: their shares against the intended ones, and the diversity of their backgrounds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from llm_coop_envs.policies.population.columns import marginal
from llm_coop_envs.policies.population.population import People

#: Texts that share this part of their word triples are near duplicates.
NEAR = 0.8
#: Near duplicates are searched among the first texts only, because all pairs are compared.
MOST_COMPARED = 500
_WORDS = re.compile(r"\w+(?:['\u2019]\w+)?")


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """A value of a column: its intended and its drawn share.

    Attributes:
        column: the column.
        value: the value, as text.
        share: its intended share in all people.
        people: how many have it.
        drawn: their share.
        p: with `draw: sample`, the p value of an exact binomial test of the difference; `None` for quotas, where the
            difference is due to rounding alone.
    """

    column: str
    value: str
    share: float
    people: int
    drawn: float
    p: float | None


def audit(people: People) -> list[AuditRow]:
    """Compare the drawn with the intended share of every value of every column."""
    population = people.population
    rows = []
    for column in population.columns:
        counts = [int((people.codes[column.name] == code).sum()) for code in range(len(column.values))]
        shares = marginal(population.columns, column.name).tolist()
        for value, share, count in zip(column.values, shares, counts, strict=True):
            p = None if population.exact else binomial_p(count, people.size, share)
            rows.append(
                AuditRow(
                    column=column.name, value=str(value), share=share, people=count, drawn=count / people.size, p=p
                )
            )
    return rows


def binomial_p(count: int, size: int, share: float) -> float:
    """The two-sided p value of an exact binomial test: the probability of all counts no likelier than this one."""
    if share in (0.0, 1.0):
        return float(count == size * share)
    odds = [math.log(share), math.log1p(-share)]
    # Each count's probability follows from the one before.
    logs = [size * odds[1]]
    for k in range(size):
        logs.append(logs[-1] + math.log((size - k) / (k + 1)) + odds[0] - odds[1])
    return min(1.0, math.fsum(math.exp(log) for log in logs if log <= logs[count] + 1e-7))


def diversity(texts: Sequence[str]) -> dict[str, Any]:
    """Measure how much texts differ.

    Returns:
        `texts`: their number; `different`: the share of texts that differ from all earlier ones; `distinct_1` and
        `distinct_2`: different words and pairs of words as a share of all (Li et al. 2016); `near_duplicates`: among
        the first `compared` texts, the share that has four fifths of its word triples in common with another.
    """
    tokens = [[word.casefold() for word in _WORDS.findall(text)] for text in texts]
    measures: dict[str, Any] = {"texts": len(texts), "different": len(set(texts)) / max(1, len(texts))}
    for n in (1, 2):
        grams = Counter(gram for text in tokens for gram in zip(*(text[k:] for k in range(n)), strict=False))
        measures[f"distinct_{n}"] = len(grams) / max(1, grams.total())
    triples = [set(zip(text, text[1:], text[2:], strict=False)) for text in tokens[:MOST_COMPARED]]
    near = set()
    for (i, first), (j, second) in combinations(enumerate(triples), 2):
        if len(first & second) >= NEAR * max(1, len(first | second)):
            near |= {i, j}
    return {**measures, "near_duplicates": len(near) / max(1, len(triples)), "compared": len(triples)}

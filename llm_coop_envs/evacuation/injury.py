"""Injuries by crowding: the rule, and the two published sets of attributes.

Every person has a competitive level N0 and two limits, Y0 and Z0. The pressure on a person is the sum of (N0 of the
other - own N0) over the 3 x 3 cells around it. While it exceeds Y0 the person is overtaken and a counter grows by one
a round; when the counter reaches Z0 the person is disabled for good. This is the rule in the authors' code of "Shall
We Team Up" (Wu et al. 2024) and in its rule-based ancestor (the `reproduce` task of Roihn/SABM, after Wang et al.
2015).

* `published_attributes`: the later code. The pressure cannot exceed 8 and Y0 is about 16 to 18, so that nothing ever
  happens (inert).
* `ancestor_attributes`: the ancestor's. Pressure up to 40, Y0 15 to 20 and Z0 23 to 30: people do get overtaken
  (active).

Example: a person of level 2 stands between six people of level 5. The pressure on it is 6 * (5 - 2) = 18; with Y0 = 15
it is overtaken, and its counter grows by one.

Ours differs from the ancestor in two ways. In the active mode the rule is applied once a round to everybody at the
same moment, after people have left through the exits; the ancestor goes through its shuffled list, so that a person
disabled early relieves the later ones. Shares of people that are not integers are rounded by largest remainder; the
ancestor drops people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llm_coop_envs.evacuation.room import BoolArray, FloatArray, IntArray, Room
from llm_coop_envs.util.shares import divide

#: Means of N0, Y0, Z0 for the better and the worse physical trait; standard deviation 1 (authors' code).
PUBLISHED_MEANS = ((3.0, 2.0), (18.0, 16.0), (26.0, 23.0))

#: The ancestor's groups: share of people, Y0, Z0, and the shares of N0 = 1..6 (rule-based ancestor, after Wang et al.
#: 2015).
ANCESTOR_GROUPS: tuple[tuple[float, int, int, tuple[float, ...]], ...] = (
    (0.3, 20, 30, (0.0, 0.1, 0.1, 0.3, 0.3, 0.2)),
    (0.3, 15, 28, (0.1, 0.1, 0.2, 0.3, 0.2, 0.1)),
    (0.2, 18, 25, (0.1, 0.2, 0.3, 0.2, 0.1, 0.1)),
    (0.2, 15, 23, (0.2, 0.3, 0.3, 0.1, 0.1, 0.0)),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Attributes:
    """The attributes of n people that the rule uses.

    Attributes:
        level: competitive levels N0.
        pressure_limit: Y0.
        count_limit: Z0.
    """

    level: FloatArray
    pressure_limit: FloatArray
    count_limit: FloatArray


def published_attributes(physical: IntArray, rng: np.random.Generator) -> Attributes:
    """Draw the attributes of the authors' code: normal, but every person's own generator has the same seed.

    So there is one deviation each for N0, Y0 and Z0, and two different triples in a run. With seed 0: 3.126 or 2.126,
    17.87 or 15.87, 26.64 or 23.64.

    Args:
        physical: n traits, 0 or 1.
        rng: a fresh generator with the episode's seed.
    """
    level, pressure, count = (np.array(means)[physical] + rng.normal(0.0, 1.0) for means in PUBLISHED_MEANS)
    return Attributes(level=level, pressure_limit=pressure, count_limit=count)


def ancestor_attributes(people: int) -> Attributes:
    """Return the ancestor's attributes, group by group and N0 ascending, person 0 first; exact for 100 people."""
    rows: list[tuple[float, float, float]] = []
    sizes = divide(people, [share for share, *_ in ANCESTOR_GROUPS])
    for size, (_, pressure, count, shares) in zip(sizes, ANCESTOR_GROUPS, strict=True):
        for level, number in enumerate(divide(size, shares), start=1):
            rows += [(level, pressure, count)] * number
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return Attributes(level=table[:, 0], pressure_limit=table[:, 1], count_limit=table[:, 2])


def pressure(room: Room, cells: IntArray, level: FloatArray, *, present: IntArray, persons: IntArray) -> FloatArray:
    """Compute the pressure Y on some people.

    Args:
        room: the room.
        cells: everybody's padded cell.
        level: everybody's level N0.
        present: the people who exert pressure, by index.
        persons: the people whose pressure is computed, by index.
    """
    levels = np.zeros(room.height * room.width)
    heads = np.zeros(room.height * room.width)
    levels[cells[present]] = level[present]
    heads[cells[present]] = 1.0
    block = cells[persons, None] + room.moves
    press: FloatArray = levels[block].sum(axis=1) - heads[block].sum(axis=1) * level[persons]
    return press


def crush(
    press: FloatArray, pressure_limit: FloatArray, count: IntArray, count_limit: FloatArray
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Apply the rule to n people with pressure Y, limit Y0, counters Z so far and limit Z0.

    Returns:
        The new counters; whether each is overtaken in this round; whether each is disabled now.
    """
    over = press > pressure_limit
    count = count + over
    # Equality, as published: with the published real-valued Z0 it never holds, with the ancestor's integers it holds
    # once.
    return count, over & (count < count_limit), over & (count == count_limit)

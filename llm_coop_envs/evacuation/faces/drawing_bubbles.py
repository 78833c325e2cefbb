"""Placement of speech bubbles: near their speakers, inside the picture, and without overlaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Left, top, width, height.
Box = tuple[int, int, int, int]

# Above first, as in comics; then to the sides; below last.
_DIRECTIONS = tuple(math.radians(90 + side * turn) for turn in range(0, 181, 30) for side in (1, -1))
_RINGS = (1.0, 1.6, 2.6, 4.0)
_AROUND = np.array([(math.cos(angle), math.sin(angle)) for _ in _RINGS for angle in _DIRECTIONS])
_RING = np.array([ring for ring in _RINGS for _ in _DIRECTIONS])


@dataclass(frozen=True, kw_only=True, slots=True)
class Bubble:
    """A placed bubble.

    Attributes:
        index: which of the given bubbles it is.
        box: its place.
        anchor: the point it speaks from.
    """

    index: int
    box: Box
    anchor: tuple[int, int]


def place_bubbles(
    anchors: Sequence[tuple[int, int]],
    sizes: Sequence[tuple[int, int]],
    area: Box,
    *,
    people: NDArray[np.float64] | None = None,
    avoid: Sequence[Box] = (),
    gap: int = 4,
    reach: int = 14,
    limit: int | None = None,
) -> list[Bubble]:
    """Place bubbles one after the other, the first one first; bubbles without a free place are left out.

    Args:
        anchors: the points that speak.
        sizes: width and height of each bubble.
        area: the box that holds all bubbles.
        people: (n, 2) points that should stay visible; covering one has a cost.
        avoid: boxes that must stay free.
        gap: free pixels between two bubbles.
        reach: the least distance of a bubble from its anchor.
        limit: the maximum number of bubbles.
    """
    left, top, width, height = area
    occupied = np.array(avoid, dtype=np.int64).reshape(-1, 4)
    bubbles: list[Bubble] = []
    for index, (anchor, size) in enumerate(zip(anchors, sizes, strict=True)):
        if limit is not None and len(bubbles) >= limit:
            break
        if size[0] > width or size[1] > height:
            continue
        corners = _corners(anchor, size, reach)
        # A bubble beyond the edge is pushed inside. If it then covers its own speaker, that has a cost.
        corners[:, 0] = corners[:, 0].clip(left, left + width - size[0])
        corners[:, 1] = corners[:, 1].clip(top, top + height - size[1])
        free = ~_overlaps(corners, size, occupied, gap).any(axis=1)
        if not free.any():
            continue
        cost = np.arange(len(corners)) + 200.0 * _count_covered(
            corners, size, np.array([anchor]), max(gap, reach * 3 // 4)
        )
        if people is not None and len(people):
            cost += 8.0 * _count_covered(corners, size, people, 0)
        best = int(np.where(free, cost, np.inf).argmin())
        x, y = corners[best].tolist()
        occupied = np.concatenate([occupied, [[x, y, *size]]])
        bubbles.append(Bubble(index=index, box=(x, y, *size), anchor=anchor))
    return bubbles


def _corners(anchor: tuple[int, int], size: tuple[int, int], reach: int) -> NDArray[np.int64]:
    """Return the upper left corners of candidate boxes around a point, the nearest rings first."""
    width, height = size
    across, up = _AROUND[:, 0], _AROUND[:, 1]
    x = anchor[0] + across * (width / 2) + _RING * across * reach - width / 2
    y = anchor[1] - up * (height / 2) - _RING * up * reach - height / 2
    corners: NDArray[np.int64] = np.column_stack([x, y]).round().astype(np.int64)
    return corners


def _overlaps(
    corners: NDArray[np.int64], size: tuple[int, int], occupied: NDArray[np.int64], gap: int
) -> NDArray[np.bool_]:
    """Return (candidates, occupied): whether the two boxes are closer to each other than the gap."""
    x, y = corners[:, :1], corners[:, 1:]
    left, top, width, height = occupied.T
    apart: NDArray[np.bool_] = (
        (x >= left + width + gap) | (left >= x + size[0] + gap) | (y >= top + height + gap) | (top >= y + size[1] + gap)
    )
    return ~apart


def _count_covered(
    corners: NDArray[np.int64], size: tuple[int, int], points: NDArray[Any], margin: int
) -> NDArray[np.int64]:
    """Count the points that each candidate box covers."""
    x, y = points[:, 0], points[:, 1]
    left, top = corners[:, :1] - margin, corners[:, 1:] - margin
    inside = (x >= left) & (x < left + size[0] + 2 * margin) & (y >= top) & (y < top + size[1] + 2 * margin)
    counts: NDArray[np.int64] = inside.sum(axis=1)
    return counts

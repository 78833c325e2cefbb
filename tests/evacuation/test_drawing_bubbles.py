"""Speech bubbles never cover each other and stay inside the picture."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.evacuation.faces.drawing_bubbles import place_bubbles

AREA = (10, 20, 600, 500)
points = st.tuples(st.integers(10, 609), st.integers(20, 519))
sizes = st.tuples(st.integers(8, 200), st.integers(8, 80))


def apart(first, second, gap):
    return (
        first[0] >= second[0] + second[2] + gap
        or second[0] >= first[0] + first[2] + gap
        or first[1] >= second[1] + second[3] + gap
        or second[1] >= first[1] + first[3] + gap
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(points, sizes), max_size=30), st.lists(sizes, max_size=2))
def test_bubbles_keep_apart_and_inside(bubbles, tags):
    avoid = [(30 + 200 * k, 40, *size) for k, size in enumerate(tags)]
    placed = place_bubbles([p for p, _ in bubbles], [s for _, s in bubbles], AREA, avoid=avoid, gap=4)
    boxes = [bubble.box for bubble in placed]
    for k, box in enumerate(boxes):
        assert AREA[0] <= box[0] <= AREA[0] + AREA[2] - box[2]
        assert AREA[1] <= box[1] <= AREA[1] + AREA[3] - box[3]
        assert all(apart(box, other, 4) for other in (*boxes[:k], *avoid))
    assert [bubble.index for bubble in placed] == sorted(bubble.index for bubble in placed)
    for bubble in placed:
        assert bubble.anchor == bubbles[bubble.index][0]
        assert bubble.box[2:] == bubbles[bubble.index][1]


def test_the_first_bubble_always_finds_a_place_next_to_its_speaker():
    (bubble,) = place_bubbles([(300, 300)], [(80, 30)], AREA, reach=10)
    left, top, width, height = bubble.box
    assert abs(left + width / 2 - 300) <= 1
    assert top + height == 290


def test_a_bubble_at_the_edge_is_pushed_inside_and_does_not_cover_its_speaker():
    (bubble,) = place_bubbles([(12, 22)], [(80, 30)], AREA)
    left, top, width, height = bubble.box
    assert left >= 10
    assert top >= 20
    assert not (left <= 12 < left + width and top <= 22 < top + height)


def test_other_people_stay_visible_where_possible():
    crowd = np.array([[x, y] for x in range(250, 351, 10) for y in range(240, 291, 10)], dtype=float)
    (bubble,) = place_bubbles([(300, 300)], [(80, 30)], AREA, people=crowd)
    left, top, width, height = bubble.box
    covered = (crowd[:, 0] >= left) & (crowd[:, 0] < left + width) & (crowd[:, 1] >= top) & (crowd[:, 1] < top + height)
    assert not covered.any()


def test_what_cannot_fit_is_left_out():
    assert place_bubbles([(100, 100)], [(700, 30)], AREA) == []
    many = place_bubbles([(300, 300)] * 50, [(100, 40)] * 50, AREA, limit=4)
    assert len(many) == 4
    assert len(place_bubbles([(300, 300)] * 80, [(200, 80)] * 80, AREA)) < 20

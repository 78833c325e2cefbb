import pytest

from llm_coop_envs.render.screen.playback import SPEEDS, Playback


@pytest.fixture
def head():
    return Playback([0, 1, 1, 1, 2, 2, 3], fps=10)


def test_time_passes_and_stops_at_the_end(head):
    head.tick(0.25)
    assert (head.index, head.playing) == (2, True)
    head.speed = 4.0
    head.tick(0.1)
    assert (head.index, head.playing) == (6, False)
    assert head.share == 1


def test_backwards(head):
    head.seek(1.0)
    head.turn()
    head.tick(0.25)
    assert (head.index, head.playing) == (3, True)
    head.tick(9)
    assert (head.index, head.playing) == (0, False)
    head.toggle()
    assert (head.index, head.playing) == (6, True)


def test_from_the_end_it_begins_anew(head):
    head.seek(1.0)
    head.playing = False
    head.toggle()
    assert (head.index, head.playing) == (0, True)


def test_steps_stop_and_stay_inside(head):
    head.step(1)
    assert (head.index, head.playing) == (1, False)
    head.tick(10)
    assert head.index == 1
    head.step(-5)
    assert head.index == 0
    head.step(99)
    assert head.index == 6


def test_rounds(head):
    seen = []
    for _ in range(4):
        head.round(True)
        seen.append(head.index)
    assert seen == [1, 4, 6, 6]
    seen = []
    for _ in range(5):
        head.round(False)
        seen.append(head.index)
    assert seen == [4, 1, 0, 0, 0]
    head.seek(3 / 6)
    head.round(False)
    assert head.index == 1


def test_places_on_the_slider(head):
    assert [Playback([0, 1, 2], 10).share, head.share] == [0, 0]
    for share, index in ((-1, 0), (0.5, 3), (0.99, 6), (2, 6)):
        head.seek(share)
        assert head.index == index


def test_speeds(head):
    for _ in range(20):
        head.hurry(True)
    assert head.speed == SPEEDS[-1]
    for _ in range(20):
        head.hurry(False)
    assert head.speed == SPEEDS[0]


def test_a_single_scene():
    head = Playback([0], 10)
    head.tick(1)
    head.round(True)
    head.round(False)
    assert (head.index, head.share, head.playing) == (0, 1.0, False)

"""The position of a replay: forwards and backwards through scenes at any speed. Knows no window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Playback:
    """A position among scenes, which moves with time.

    Attributes:
        playing: whether it moves.
        backwards: whether it moves towards the beginning.
        speed: the factor on `fps`.

    Args:
        rounds: the round of each scene; rounds never fall.
        fps: scenes per second at speed 1.
    """

    def __init__(self, rounds: Sequence[int], fps: float) -> None:
        self._rounds = list(rounds)
        self._fps = fps
        self._at = 0.0
        self.playing = True
        self.backwards = False
        self.speed = 1.0

    @property
    def last(self) -> int:
        """The index of the last scene."""
        return len(self._rounds) - 1

    @property
    def index(self) -> int:
        """The index of the scene to show."""
        return int(self._at)

    @property
    def share(self) -> float:
        """The position as a share of the whole, 0 to 1."""
        return self.index / self.last if self.last else 1.0

    def tick(self, seconds: float) -> None:
        """Let time pass; playing stops at either end."""
        if not self.playing:
            return
        distance = seconds * self._fps * self.speed
        self._move_to(self._at + (-distance if self.backwards else distance))
        # Scene k is shown at positions k to k + 1, so going backwards the first scene has its full time, too.
        if self._at == (0.0 if self.backwards else float(self.last)):
            self.playing = False

    def toggle(self) -> None:
        """Stop or go on; at the end, begin anew in the present direction."""
        self.playing = not self.playing
        if self.playing and self.index == (0 if self.backwards else self.last):
            self._at = float(self.last) if self.backwards else 0.0

    def turn(self) -> None:
        """Play in the other direction."""
        self.backwards = not self.backwards
        self.playing = True

    def step(self, scenes: int) -> None:
        """Stop, and move by some scenes; negative numbers move back."""
        self.playing = False
        self._move_to(self.index + scenes)

    def round(self, forwards: bool) -> None:
        """Stop, and move to the first scene of the next round, of this one, or of the one before.

        Backwards, the first scene of a round moves to the round before, any other scene to the first one of its round.
        """
        self.playing = False
        if forwards:
            self._move_to(bisect_right(self._rounds, self._rounds[self.index]))
        else:
            self._move_to(bisect_left(self._rounds, self._rounds[max(0, self.index - 1)]))

    def seek(self, share: float) -> None:
        """Move to a share of the whole, 0 for the beginning and 1 for the end."""
        self._move_to(round(share * self.last))

    def hurry(self, up: bool) -> None:
        """Take the next higher speed, or the next lower one."""
        self.speed = next_speed(self.speed, SPEEDS, up)

    def _move_to(self, position: float) -> None:
        self._at = min(max(float(position), 0.0), float(self.last))


def next_speed(speed: float, speeds: Sequence[float], up: bool) -> float:
    """The next of some rising speeds, upwards or downwards; the present one at the end."""
    if up:
        return next((faster for faster in speeds if faster > speed), speed)
    return next((slower for slower in reversed(speeds) if slower < speed), speed)

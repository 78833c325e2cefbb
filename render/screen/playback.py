"""How a replay runs: forwards and backwards through scenes at any speed. Knows no window."""

from __future__ import annotations

from collections.abc import Sequence

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Playback:
    """A place among scenes, and how it moves.

    Attributes:
        playing: whether it moves by itself.
        backwards: whether it then moves towards the beginning.
        speed: the factor on `fps`.

    Args:
        rounds: the round of each scene, in order.
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
        """How far it is, 0 to 1."""
        return self.index / self.last if self.last else 1.0

    def tick(self, seconds: float) -> None:
        """Let time pass; at either end it stops."""
        if not self.playing:
            return
        way = seconds * self._fps * self.speed
        self._at = min(max(self._at + (-way if self.backwards else way), 0.0), float(self.last))
        # Going back ends when the first scene has been shown for its time.
        if self._at == (0.0 if self.backwards else float(self.last)):
            self.playing = False

    def toggle(self) -> None:
        """Stop or go on; from the end it begins anew, in the direction it has."""
        self.playing = not self.playing
        if self.playing and self.index == (0 if self.backwards else self.last):
            self._at = float(self.last) if self.backwards else 0.0

    def turn(self) -> None:
        """Play in the other direction."""
        self.backwards = not self.backwards
        self.playing = True

    def step(self, scenes: int) -> None:
        """Stop, some scenes on or back."""
        self.playing = False
        self._at = float(min(max(self.index + scenes, 0), self.last))

    def round(self, forwards: bool) -> None:
        """Stop at the first scene of the next round, or of this or the one before."""
        self.playing = False
        here = self._rounds[self.index]
        if forwards:
            found = next((i for i in range(self.index, self.last + 1) if self._rounds[i] > here), self.last)
        else:
            before = self._rounds[max(0, self.index - 1)]
            found = next(i for i in range(self.last + 1) if self._rounds[i] >= before)
        self._at = float(found)

    def seek(self, share: float) -> None:
        """Go to a place, 0 for the beginning and 1 for the end."""
        self._at = float(round(min(max(share, 0.0), 1.0) * self.last))

    def hurry(self, up: bool) -> None:
        """Take the next higher speed, or the next lower one."""
        self.speed = next_speed(self.speed, SPEEDS, up)


def next_speed(speed: float, speeds: Sequence[float], up: bool) -> float:
    """The next of some rising speeds, upwards or downwards; at the end it stays."""
    return next((one for one in (speeds if up else reversed(speeds)) if (one > speed if up else one < speed)), speed)

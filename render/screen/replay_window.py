"""A window that replays recorded scenes, forwards and backwards, with a slider; no episode is simulated again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.screen.canvas import BLUE, FAINT, GRID, INK, PANEL, Canvas, Rect, View
from llm_coop_envs.render.screen.playback import Playback
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.window import FASTER, SLOWER, Window

_FRAMES = 60
HINT = "space play · left right step · shift: round · up down speed · r backwards · home end · s screenshot · q quit"


class ReplayWindow(Window):
    """Replays scenes until it is closed.

    Args:
        scenes: the scenes, at least one.
        fps: scenes per second at speed 1.
    """

    _below = 46

    def __init__(self, scenes: Sequence[Scene], *, title: str, fps: float, view: View | None = None) -> None:
        super().__init__(title=title, fps=fps, view=view)
        self.playback = Playback([scene.round for scene in scenes], fps)
        self._scenes = scenes
        self._dragging = False

    def run(self, frames: int | None = None) -> None:
        """Show the scenes.

        Args:
            frames: close the window after so many pictures; `None` to leave that to the user.

        Raises:
            WindowError: there is no display.
        """
        self._scene = self._scenes[0]
        self._open(self._scene)
        clock = pygame.time.Clock()
        shown_index, drawn = -1, 0
        while not self.closed and (frames is None or drawn < frames):
            self.poll()
            if self.closed:
                break
            # The slider follows the mouse while its button is held.
            self._dragging = self._dragging and pygame.mouse.get_pressed()[0]
            if self._dragging:
                self._drag_to(pygame.mouse.get_pos()[0])
            if self._dirty or self._note or self.playback.index != shown_index or frames is not None:
                shown_index = self.playback.index
                self._scene = self._scenes[shown_index]
                self.draw()
                drawn += 1
            self.playback.tick(clock.tick(_FRAMES) / 1000)
        self.close()

    def _paint(self) -> None:
        """Draw the scene and the slider below it."""
        super()._paint()
        self._slider(Canvas(self._screen, self._fitting(self._scene)))

    def _fitting(self, scene: Scene) -> View:
        return replace(super()._fitting(scene), hint="")

    def _track(self) -> Rect:
        """The rectangle of the slider's line in the window."""
        bar, scale = self._bar(), self._fitting(self._scene).scale
        margin = round(14 * scale)
        return Rect(margin, bar.top + round(12 * scale), max(1, bar.width - 2 * margin), max(2, round(5 * scale)))

    def _slider(self, canvas: Canvas) -> None:
        px, at, track = canvas.px, self.playback, self._track()
        canvas.box(self._bar(), PANEL)
        canvas.box(track, GRID, radius=2)
        played = Rect(track.left, track.top, round(track.width * at.share), track.height)
        if played.width > 0:
            canvas.box(played, BLUE, radius=2)
        canvas.dot((track.left + track.width * at.share, track.centery), BLUE, px(14))
        direction = "backwards " if at.backwards else ""
        state = f"{direction}x{at.speed:g}" if at.playing else "paused"
        position = f"{at.index + 1} / {at.last + 1}"
        y = track.bottom + px(17)
        right = canvas.text((track.right, y), position, size=12, bold=True, anchor="midright").left
        left_end = canvas.text((track.left, y), state, size=12, bold=True, colour=INK, anchor="midleft").right
        room = right - left_end - px(28)
        if room > px(40):
            canvas.text((left_end + px(14), y), self._hint(), size=11, colour=FAINT, anchor="midleft", width=room)

    def _help(self) -> str:
        return HINT

    def _key(self, event: Any) -> bool:
        key, at = event.key, self.playback
        if key == pygame.K_SPACE:
            at.toggle()
        elif key in (pygame.K_LEFT, pygame.K_RIGHT) and event.mod & pygame.KMOD_SHIFT:
            at.round(key == pygame.K_RIGHT)
        elif key in (pygame.K_LEFT, pygame.K_RIGHT):
            at.step(1 if key == pygame.K_RIGHT else -1)
        elif key in (pygame.K_PAGEUP, pygame.K_PAGEDOWN):
            at.round(key == pygame.K_PAGEDOWN)
        elif key in (pygame.K_UP, pygame.K_DOWN, *FASTER, *SLOWER):
            at.hurry(key == pygame.K_UP or key in FASTER)
        elif key == pygame.K_r:
            at.turn()
        elif key in (pygame.K_HOME, pygame.K_END):
            at.seek(0.0 if key == pygame.K_HOME else 1.0)
        elif key == pygame.K_q:
            self.closed = True
        else:
            return super()._key(event)
        return True

    def _click(self, x: int, y: int) -> None:
        if y >= self._bar().top:
            self._dragging = True
            self._drag_to(x)
        else:
            super()._click(x, y)

    def _drag_to(self, x: int) -> None:
        track = self._track()
        self.playback.seek((x - track.left) / track.width)
        self._dirty = True

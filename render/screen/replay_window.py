"""A window that replays recorded scenes, forwards and backwards, with a slider; nothing is simulated again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.screen.canvas import BLUE, FAINT, GRID, INK, PANEL, Canvas, Rect, View
from llm_coop_envs.render.screen.draw import draw
from llm_coop_envs.render.screen.library import pygame
from llm_coop_envs.render.screen.playback import Playback
from llm_coop_envs.render.screen.window import FASTER, SLOWER, Window

_FRAMES = 60
_BAR = 46
HINT = "space play · left right step · shift: round · up down speed · r backwards · home end · s screenshot · q quit"


class ReplayWindow(Window):
    """Replays scenes until it is closed.

    Args:
        scenes: the scenes, at least one.
        title: in the title bar.
        fps: scenes per second at speed 1.
        view: how to look at them at first.
        folder: where screenshots go.
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        *,
        title: str,
        fps: float = 12.0,
        view: View | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(title=title, fps=fps, view=view, folder=folder)
        self.playback = Playback([scene.round for scene in scenes], fps)
        self._scenes = scenes
        self._dragging = False

    def run(self, frames: int | None = None) -> None:
        """Show the scenes.

        Args:
            frames: end after so many pictures; `None`: when the window is closed.

        Raises:
            WindowError: there is no display.
        """
        self._scene = self._scenes[0]
        self._open(self._scenes[0])
        clock = pygame.time.Clock()
        before = time.perf_counter()
        shown = -1
        drawn = 0
        while not self.closed and (frames is None or drawn < frames):
            self.poll()
            self._drag()
            if self.closed:
                break
            now = time.perf_counter()
            self.playback.tick(now - before)
            before = now
            if self._dirty or self._note or self.playback.index != shown or frames is not None:
                shown = self.playback.index
                self._scene = self._scenes[shown]
                self.draw()
                drawn += 1
            clock.tick(_FRAMES)
        self.close()

    # Inside.

    def _paint(self, screen: pygame.Surface, scene: Scene) -> None:
        """Draw the scene and the slider below it."""
        view = self._fitting(scene)
        draw(scene, replace(view, hint=""), onto=self._upper())
        self._slider(Canvas(screen, view), view.hint)

    def _upper(self) -> Any:
        """The part of the window that shows the scene."""
        assert self._screen is not None
        width, height = self._screen.get_size()
        return self._screen.subsurface((0, 0, width, max(1, height - self._bar_height())))

    def _bar_height(self) -> int:
        assert self._scene is not None
        return max(1, round(_BAR * self._fitting(self._scene).scale))

    def _track(self) -> Rect:
        """The slider's line in the window."""
        assert self._screen is not None
        assert self._scene is not None
        width, height = self._screen.get_size()
        scale = self._fitting(self._scene).scale
        margin = round(14 * scale)
        top = height - self._bar_height() + round(12 * scale)
        return Rect(margin, top, max(1, width - 2 * margin), max(2, round(5 * scale)))

    def _slider(self, canvas: Canvas, hint: str) -> None:
        px, at, track = canvas.px, self.playback, self._track()
        bottom = canvas.rect.bottom
        canvas.box(Rect(0, bottom - self._bar_height(), canvas.rect.width, self._bar_height()), PANEL)
        canvas.box(track, GRID, radius=2)
        done = Rect(track.left, track.top, round(track.width * at.share), track.height)
        if done.width > 0:
            canvas.box(done, BLUE, radius=2)
        canvas.dot((track.left + track.width * at.share, track.centery), BLUE, px(14))
        way = "backwards " if at.backwards else ""
        state = f"{way}x{at.speed:g}" if at.playing else "paused"
        place = f"{at.index + 1} / {at.last + 1}"
        y = track.bottom + px(17)
        right = canvas.text((track.right, y), place, size=12, bold=True, anchor="midright").left
        left = canvas.text((track.left, y), state, size=12, bold=True, colour=INK, anchor="midleft").right
        room = right - left - px(28)
        if room > px(40):
            canvas.text((left + px(14), y), hint, size=11, colour=FAINT, anchor="midleft", width=room)

    def _help(self, keys: str) -> str:
        return f"{HINT} · {keys}" if keys else HINT

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
        assert self._screen is not None
        assert self._scene is not None
        if y >= self._screen.get_height() - self._bar_height():
            self._dragging = True
            self._drag_to(x)
        else:
            self._select(Canvas(self._upper(), replace(self._fitting(self._scene), hint="")), x, y)

    def _drag(self) -> None:
        """Follow the mouse while its button is held on the slider."""
        if not self._dragging or self._screen is None:
            return
        if not pygame.mouse.get_pressed()[0]:
            self._dragging = False
            return
        self._drag_to(pygame.mouse.get_pos()[0])

    def _drag_to(self, x: int) -> None:
        track = self._track()
        self.playback.seek((x - track.left) / track.width)
        self._dirty = True

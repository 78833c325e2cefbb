"""A window that shows scenes as they come, and what its keys do.

A running episode waits for the window (pause, single steps, speed); closing the window never ends the episode: it
goes on unseen. Windows for replays and for players do other things with the same events, and draw more than the scene.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import WindowError
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.screen.canvas import Canvas, View
from llm_coop_envs.render.screen.draw import draw, picture_of, usual_size
from llm_coop_envs.render.screen.library import pygame
from llm_coop_envs.render.screen.playback import next_speed

#: How often a paused or slow window looks at its keys, per second.
_AWAKE = 60
#: SDL's drivers that nobody can see.
_UNSEEN = ("dummy", "offscreen")
_SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
FASTER = (pygame.K_PLUS, pygame.K_EQUALS, pygame.K_KP_PLUS)
SLOWER = (pygame.K_MINUS, pygame.K_KP_MINUS)
_SWITCHES = {pygame.K_t: "trails", pygame.K_d: "density", pygame.K_b: "bubbles", pygame.K_f: "follow"}
HINT = "space pause · right arrow step · + - speed · s screenshot"


class Window:
    """A window for scenes; it opens with the first one.

    Attributes:
        view: how scenes are looked at; keys and clicks change it.
        paused: whether the next scene waits.
        speed: the factor on `fps`.
        closed: whether the user closed it; it does not open again.

    Args:
        title: in the title bar.
        fps: scenes per second at speed 1.
        view: how to look at scenes at first.
        folder: where screenshots go.
    """

    def __init__(self, *, title: str, fps: float, view: View | None = None, folder: Path | None = None) -> None:
        self.view = view or View()
        self.paused = False
        self.speed = 1.0
        self.closed = False
        self._title = title
        self._fps = fps
        self._folder = folder or Path()
        self._screen: pygame.Surface | None = None
        self._scene: Scene | None = None
        self._step = False
        self._dirty = False
        self._next = 0.0
        self._note = ""
        self._note_until = 0.0

    def show(self, scene: Scene) -> None:
        """Show a scene and wait until it is time for the next one.

        Raises:
            WindowError: there is no display.
        """
        if self.closed:
            return
        if self._screen is None:
            self._open(scene)
        self._scene, self._dirty, self._step = scene, True, False
        while not self.closed:
            self.poll()
            if self.closed:
                return
            if self._dirty or self._note:
                self.draw()
            now = time.perf_counter()
            if self._step or (not self.paused and now >= self._next):
                self._next = max(now, self._next) + 1.0 / (self._fps * self.speed)
                if self._next > now + 5.0 / (self._fps * self.speed):
                    self._next = now
                return
            time.sleep(min(1.0 / _AWAKE, max(0.0, self._next - now)) if not self.paused else 1.0 / _AWAKE)

    def poll(self) -> None:
        """Do what keys and clicks since the last call ask for."""
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.close()
                self.closed = True
                return
            if event.type in (pygame.VIDEORESIZE, pygame.WINDOWSIZECHANGED, pygame.WINDOWEXPOSED):
                self._dirty = True
            else:
                self._take(event)

    def draw(self) -> None:
        """Draw everything anew, as big as the window is now."""
        screen = pygame.display.get_surface()
        if screen is None or self._scene is None:
            return
        self._screen = screen
        self._paint(screen, self._scene)
        if self._note and time.perf_counter() > self._note_until:
            self._note = ""
        pygame.display.flip()
        self._dirty = bool(self._note)

    def close(self) -> None:
        """Close the window; may be called any number of times."""
        if self._screen is not None:
            self._screen = None
            pygame.display.quit()

    # Inside.

    def _take(self, event: Any) -> None:
        """Do what a key or a click asks for."""
        if event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            self._click(*event.pos)
        elif event.type == pygame.KEYDOWN and self._key(event):
            self._dirty = True

    def _paint(self, screen: pygame.Surface, scene: Scene) -> None:
        draw(scene, self._fitting(scene), onto=screen)

    def _open(self, scene: Scene) -> None:
        try:
            pygame.display.init()
            driver = pygame.display.get_driver()
            if driver in _UNSEEN and os.environ.get("SDL_VIDEODRIVER") != driver:
                # Without a display SDL silently takes a driver that shows nothing.
                raise pygame.error("there is no display")
            pygame.display.set_caption(self._title)
            size = self.view.size or usual_size(scene)
            scaled = tuple(round(side * self.view.scale) for side in size)
            self._screen = pygame.display.set_mode(scaled, pygame.RESIZABLE)
        except pygame.error as error:
            pygame.display.quit()
            raise WindowError(
                f"no window can be opened here ({error}); use render_mode='rgb_array', or set SDL_VIDEODRIVER=dummy "
                "to play without looking"
            ) from error
        pygame.key.set_repeat(350, 60)

    def _fitting(self, scene: Scene) -> View:
        """The view with its help line, enlarged on windows much larger than the usual size."""
        assert self._screen is not None
        width, height = self._screen.get_size()
        usual = usual_size(scene)
        larger = min(width / usual[0], height / usual[1])
        scale = max(self.view.scale, 1.0 + max(0.0, larger - 1.0) * 0.6) if larger > 1.0 else self.view.scale
        return replace(self.view, size=None, scale=scale, hint=self._note or self._help(picture_of(scene).keys))

    def _help(self, keys: str) -> str:
        """What keys do; `keys` is what they do in this picture only."""
        state = f"speed {self.speed:g}" + (", paused" if self.paused else "")
        return f"{state}    {HINT}" + (f" · {keys}" if keys else "")

    def _key(self, event: Any) -> bool:
        """Do what a key of the window's own asks for; whether it is one."""
        key, view = event.key, self.view
        if key == pygame.K_SPACE:
            self.paused = not self.paused
        elif key in (pygame.K_RIGHT, pygame.K_PERIOD):
            self.paused = self._step = True
        elif key in FASTER or key in SLOWER:
            self.speed = next_speed(self.speed, _SPEEDS, key in FASTER)
        elif key == pygame.K_s:
            self.screenshot()
        elif key == pygame.K_c:
            self.view = replace(view, colour="target" if view.colour == "persona" else "persona")
        elif key in _SWITCHES:
            name = _SWITCHES[key]
            changed: dict[str, Any] = {name: not getattr(view, name)}
            self.view = replace(view, **changed)
        elif key == pygame.K_ESCAPE:
            self.view = replace(view, selected=None, follow=False)
        else:
            return False
        return True

    def _click(self, x: int, y: int) -> None:
        """Select the player under the pointer."""
        assert self._screen is not None
        assert self._scene is not None
        self._select(Canvas(self._screen, self._fitting(self._scene)), x, y)

    def _select(self, canvas: Canvas, x: int, y: int) -> None:
        assert self._scene is not None
        self.view = replace(self.view, selected=picture_of(self._scene).player_at(self._scene, canvas, x, y))
        self._dirty = True

    def _still(self) -> pygame.Surface:
        """What a screenshot holds: the scene, without help."""
        assert self._screen is not None
        assert self._scene is not None
        view = self._fitting(self._scene)
        width, height = self._screen.get_size()
        return draw(self._scene, replace(view, size=(round(width / view.scale), round(height / view.scale)), hint=""))

    def screenshot(self) -> Path | None:
        """Save what the window shows as a PNG; a failure is told in the window and on stderr."""
        if self._screen is None or self._scene is None:
            return None
        path = self._folder / f"{self._scene.scenario}-step{self._scene.step:05d}.png"
        try:
            pygame.image.save(self._still(), str(path))
        except (OSError, pygame.error) as error:
            self._tell(f"{path} could not be written ({error})")
            print(f"the screenshot {path} could not be written: {error}", file=sys.stderr)
            return None
        self._tell(f"saved {path}")
        return path

    def _tell(self, note: str) -> None:
        self._note, self._note_until, self._dirty = note, time.perf_counter() + 2.0, True

"""A window that shows the scenes of a running episode.

The episode waits for the window (pause, single steps, speed). Closing the window does not end the episode, which goes
on without it. The windows for replays and for players derive from this one.
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
from llm_coop_envs.render.screen.canvas import Canvas, Rect, View
from llm_coop_envs.render.screen.draw import draw, picture_of
from llm_coop_envs.render.screen.playback import next_speed
from llm_coop_envs.render.screen.pygame_import import pygame

#: How often a paused or slow window handles its keys, per second.
_POLLS = 60
#: SDL's drivers without a display.
_INVISIBLE = ("dummy", "offscreen")
_SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
FASTER = (pygame.K_PLUS, pygame.K_EQUALS, pygame.K_KP_PLUS)
SLOWER = (pygame.K_MINUS, pygame.K_KP_MINUS)
_SWITCHES = {pygame.K_t: "trails", pygame.K_d: "density", pygame.K_b: "bubbles", pygame.K_f: "follow"}
HINT = "space pause · right arrow step · + - speed · s screenshot"


class Window:
    """A window for scenes; it opens with the first one.

    Attributes:
        view: how scenes are drawn; keys and clicks change it.
        paused: whether the next scene waits.
        speed: the factor on `fps`.
        closed: whether the user closed it; it does not open again.

    Args:
        title: the title in the window's frame.
        fps: scenes per second at speed 1.
        view: how scenes are drawn at first.
        folder: where screenshots are saved; the working folder by default.
    """

    #: The height of the bar below the scene, at scale 1.
    _below = 0

    def __init__(self, *, title: str, fps: float, view: View | None = None, folder: Path | None = None) -> None:
        self.view = view or View()
        self.paused = False
        self.speed = 1.0
        self.closed = False
        self._title = title
        self._fps = fps
        self._folder = folder or Path()
        # The surface while the window is open, and the scene it shows.
        self._screen: Any = None
        self._scene: Any = None
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
            self.tick()
            now = time.perf_counter()
            if self._step or (not self.paused and now >= self._next):
                self._next = max(now, self._next) + 1.0 / (self._fps * self.speed)
                if self._next > now + 5.0 / (self._fps * self.speed):
                    self._next = now
                return
            time.sleep(min(1.0 / _POLLS, max(0.0, self._next - now)) if not self.paused else 1.0 / _POLLS)

    def tick(self) -> None:
        """Handle keys and clicks, and draw if anything has changed."""
        if self._screen is None or self.closed:
            return
        self.poll()
        if not self.closed and (self._dirty or self._note):
            self.draw()

    def poll(self) -> None:
        """Handle the keys and clicks since the last call."""
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
        """Draw everything, at the window's present size."""
        self._screen = pygame.display.get_surface()
        self._paint()
        if self._note and time.perf_counter() > self._note_until:
            self._note = ""
        pygame.display.flip()
        self._dirty = bool(self._note)

    def linger(self, seconds: float) -> None:
        """Keep showing the last scene for some seconds, or until a paused window goes on."""
        until = time.perf_counter() + seconds
        while self._screen is not None and not self.closed and (self.paused or time.perf_counter() < until):
            if not self._is_visible():
                return
            self.tick()
            time.sleep(1.0 / _POLLS)

    def close(self) -> None:
        """Close the window; may be called any number of times."""
        if self._screen is not None:
            self._screen = None
            pygame.display.quit()

    def _is_visible(self) -> bool:
        """Whether the window is on a display."""
        return pygame.display.get_driver() not in _INVISIBLE

    def _take(self, event: Any) -> None:
        """Handle a key or a click."""
        if event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            self._click(*event.pos)
        elif event.type == pygame.KEYDOWN and self._key(event):
            self._dirty = True

    def _paint(self) -> None:
        canvas = self._canvas()
        draw(self._scene, canvas.view, onto=canvas.surface)

    def _open(self, scene: Scene) -> None:
        try:
            pygame.display.init()
            driver = pygame.display.get_driver()
            if driver in _INVISIBLE and os.environ.get("SDL_VIDEODRIVER") != driver:
                # Without a display SDL silently chooses a driver that shows nothing.
                raise pygame.error("there is no display")
            pygame.display.set_caption(self._title)
            size = self.view.size or picture_of(scene).size
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
        """The view with its help line, and with a larger scale in windows larger than the picture's usual size."""
        usual = picture_of(scene).size
        ratio = min(side / usual_side for side, usual_side in zip(self._screen.get_size(), usual, strict=True))
        scale = max(self.view.scale, 1.0 + (ratio - 1.0) * 0.6) if ratio > 1.0 else self.view.scale
        return replace(self.view, size=None, scale=scale, hint=self._hint())

    def _bar(self) -> Rect:
        """The rectangle of the bar below the scene."""
        width, height = self._screen.get_size()
        bar_height = round(self._below * self._fitting(self._scene).scale)
        return Rect(0, height - bar_height, width, bar_height)

    def _canvas(self) -> Canvas:
        """The part of the window that shows the scene."""
        bar = self._bar()
        return Canvas(self._screen.subsurface((0, 0, bar.width, max(1, bar.top))), self._fitting(self._scene))

    def _hint(self) -> str:
        """The help line: a note on what has just happened, or what the keys do."""
        keys = picture_of(self._scene).keys
        return self._note or self._help() + (f" · {keys}" if keys else "")

    def _help(self) -> str:
        return f"speed {self.speed:g}{', paused' if self.paused else ''}    {HINT}"

    def _key(self, event: Any) -> bool:
        """Handle a key; returns whether the window knows it."""
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
            is_on = view.shows_bubbles(len(self._scene.agents)) if name == "bubbles" else getattr(view, name)
            switched: dict[str, Any] = {name: not is_on}
            self.view = replace(view, **switched)
        elif key == pygame.K_ESCAPE:
            self.view = replace(view, selected=None, follow=False)
        else:
            return False
        return True

    def _click(self, x: int, y: int) -> None:
        """Select the player under the pointer."""
        selected = picture_of(self._scene).player_at(self._scene, self._canvas(), x, y)
        self.view, self._dirty = replace(self.view, selected=selected), True

    def _snapshot(self) -> pygame.Surface:
        """The picture for a screenshot: the scene without the help line."""
        view = self._fitting(self._scene)
        width, height = self._screen.get_size()
        return draw(self._scene, replace(view, size=(round(width / view.scale), round(height / view.scale)), hint=""))

    def screenshot(self) -> Path | None:
        """Save the picture as a PNG file; a failure is reported in the window and on stderr."""
        path = self._folder / f"{self._scene.scenario}-step{self._scene.step:05d}.png"
        try:
            pygame.image.save(self._snapshot(), str(path))
        except (OSError, pygame.error) as error:
            self._tell(f"{path} could not be written ({error})")
            print(f"the screenshot {path} could not be written: {error}", file=sys.stderr)
            return None
        self._tell(f"saved {path}")
        return path

    def _tell(self, note: str) -> None:
        self._note, self._note_until, self._dirty = note, time.perf_counter() + 2.0, True

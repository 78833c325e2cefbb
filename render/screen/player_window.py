"""A window for somebody who plays: the question, or the scene with oneself in it, and a line to type."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from llm_coop_envs.policies.human.window import Prompt
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.screen.canvas import FAINT, GRID, INK, PANEL, PAPER, VERMILION, Canvas, Rect, View, series
from llm_coop_envs.render.screen.chart import Chart
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.window import Window

_WAITING = "the others are playing ..."

#: From 1 to 9.
_NUMBER_PAD = ("down and left", "down", "down and right", "left", "stay", "right", "up and left", "up", "up and right")
#: Arrow keys, the keys around them, and the number pad.
_STEP_KEYS = {
    pygame.K_UP: "up",
    pygame.K_DOWN: "down",
    pygame.K_LEFT: "left",
    pygame.K_RIGHT: "right",
    pygame.K_HOME: "up and left",
    pygame.K_PAGEUP: "up and right",
    pygame.K_END: "down and left",
    pygame.K_PAGEDOWN: "down and right",
    pygame.K_SPACE: "stay",
    **{getattr(pygame, f"K_KP{digit}"): name for digit, name in enumerate(_NUMBER_PAD, start=1)},
}


@dataclass
class _Line:
    """What is being typed."""

    text: str = ""
    problem: str = ""
    scroll: int = 0
    given: list[str] = field(default_factory=list)


class PlayerWindow(Window):
    """A window in which somebody plays.

    It shows the scene where the scenario says what players may see of it, and elsewhere the question itself, so that
    nobody sees more than their players, given by their indices, may know.
    """

    _below = 74

    def __init__(self, *, title: str, players: Collection[int], view: View | None = None) -> None:
        super().__init__(title=title, fps=60, view=view)
        self._players = players
        self._visible = False
        self._asked: Prompt | None = None
        self._line = _Line()
        self._waiting = False
        self._reading = False
        self._over = ""

    @property
    def lingers(self) -> bool:
        """Whether it shows how the game came out, and nobody has pressed a key yet."""
        return bool(self._over) and not self.closed

    def look(self, scene: Scene) -> None:
        """Take the scene of the moment; opens the window with the first one.

        Raises:
            WindowError: there is no display.
        """
        known = scene.known_to(self._players)
        self._visible = known is not None
        self._scene, self._dirty = known or scene, True
        if self._screen is None and not self.closed:
            self._open(self._scene)
            pygame.key.start_text_input()
        self.tick()

    def ask(self, prompt: Prompt) -> None:
        """Show a question and begin to take an answer."""
        self._asked, self._line, self._waiting, self._dirty = prompt, _Line(), False, True

    def tell(self, sentence: str) -> None:
        """Show what was wrong with the last answer."""
        self._line.problem, self._waiting, self._dirty = sentence, False, True

    def end(self, scene: Scene, sentence: str) -> None:
        """Show how it came out, until a key is pressed or the window is closed."""
        if self._screen is not None and not self.closed and self._seen():
            self._scene, self._visible, self._reading, self._over = scene, True, False, sentence
            self.draw()

    def take(self) -> str | None:
        """The answer, if one was given."""
        if not self._line.given:
            return None
        self._waiting = self._dirty = True
        return self._line.given.pop(0)

    # Inside.

    def _take(self, event: Any) -> None:
        if event.type == pygame.TEXTINPUT:
            self._typed(event.text)
        elif event.type == pygame.MOUSEWHEEL:
            self._scroll(-3 * event.y)
        elif event.type == pygame.KEYDOWN and self._key(event):
            self._dirty = True

    def _paint(self) -> None:
        """Draw the question or the scene, and the line that is typed."""
        if self._visible and not self._reading:
            super()._paint()
        else:
            self._question(self._canvas())
        self._bottom(Canvas(self._screen, self._fitting(self._scene)), self._bar())

    def _still(self) -> Any:
        return self._screen

    def _fitting(self, scene: Scene) -> View:
        # Whoever steps has to see where to; what was said stands beside it.
        stepping = self._asked is not None and bool(self._asked.steps)
        return replace(super()._fitting(scene), hint="", bubbles=False if stepping else self.view.bubbles)

    def _question(self, canvas: Canvas) -> None:
        """The question as text, its end first to be seen, and a chart of what the player knows."""
        px, asked = canvas.px, self._asked
        canvas.surface.fill(PAPER)
        if asked is None:
            return
        curves = {name: points for name, points in asked.curves.items() if len(points) > 1}
        side = min(px(330), canvas.rect.width * 2 // 5) if curves else 0
        left = Rect(px(18), px(14), canvas.rect.width - side - px(36), canvas.rect.height - px(28))
        size = px(13.5)
        paragraphs = asked.text.strip().split("\n\n")
        lines = [line for one in paragraphs for line in (*canvas.fonts.wrap(one, size, left.width), "")]
        high = canvas.fonts.height(size)
        room = max(1, left.height // high)
        most = max(0, len(lines) - room)
        self._line.scroll = min(max(self._line.scroll, -most), 0)
        first = max(0, most + self._line.scroll)
        canvas.lines(left, lines[first : first + room], 13.5)
        if first:
            canvas.text((left.right, left.top), "more above: mouse wheel", size=11, colour=FAINT, anchor="topright")
        if curves:
            self._chart(canvas, Rect(left.right + px(18), px(14), side - px(18), min(px(300), left.height)), curves)

    def _chart(self, canvas: Canvas, rect: Any, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        every = np.concatenate([np.array(line, dtype=np.float64) for line in curves.values()])
        x_range, y_range = zip(every.min(axis=0).tolist(), every.max(axis=0).tolist(), strict=True)
        chart = Chart(canvas, rect, title="What you know so far", x_range=x_range, y_range=y_range, x_label="round")
        top = rect.bottom + canvas.px(8)
        for index, (name, line) in enumerate(curves.items()):
            x, y = np.array(line, dtype=np.float64).T
            chart.curve(x, y, series(index))
            canvas.box(Rect(rect.left, top + canvas.px(5), canvas.px(16), canvas.px(4)), series(index))
            canvas.text((rect.left + canvas.px(22), top), name, size=12, width=rect.width - canvas.px(22))
            top += canvas.line_height(12) + canvas.px(2)

    def _bottom(self, canvas: Canvas, bar: Any) -> None:
        px, asked, line = canvas.px, self._asked, self._line
        canvas.box(bar, PANEL)
        canvas.box(Rect(bar.left, bar.top, bar.width, px(1)), GRID)
        wide = bar.width - px(28)
        where = (bar.left + px(14), bar.top + px(8))
        if self._over:
            canvas.text(where, f"{self._over} Any key closes the window.", size=12.5, bold=True, width=wide)
            return
        if self._reading:
            canvas.text(where, "F1: back to the game; the mouse wheel, Page Up and Page Down move the text", size=12.5)
            return
        if asked is None or self._waiting:
            canvas.text(where, _WAITING, size=12.5, colour=FAINT, width=wide)
            return
        told = (
            line.problem
            or self._note
            or f"{asked.agent}: {asked.hint}" + (" · F1 rules and talk" if self._visible else "")
        )
        canvas.text(where, told, size=12.5, bold=True, colour=VERMILION if line.problem else INK, width=wide)
        if asked.steps:
            return
        box = Rect(bar.left + px(14), bar.top + px(32), wide, px(30))
        canvas.box(box, PAPER, FAINT, radius=4)
        size = px(14)
        shown = line.text
        # The end of a long line is what is being typed.
        while shown and canvas.fonts.width(shown, size) > box.width - px(24):
            shown = shown[max(1, len(shown) // 20) :]
        end = start = box.left + px(8)
        if shown:
            end = canvas.text((start, box.centery), shown, size=14, anchor="midleft").right
        canvas.box(Rect(end + px(1), box.top + px(6), px(2), box.height - px(12)), INK)
        left = asked.longest - len(line.text)
        if left < 60 < asked.longest:
            canvas.text((box.right - px(8), box.centery), str(left), size=11, colour=FAINT, anchor="midright")

    def _typed(self, text: str) -> None:
        asked, line = self._asked, self._line
        if asked is None or self._waiting or asked.steps or self._reading:
            return
        clean = "".join(character for character in text if character.isprintable())
        line.text = (line.text + clean)[: asked.longest]
        line.problem = ""
        self._dirty = True

    def _scroll(self, lines: int) -> None:
        self._line.scroll += lines
        self._dirty = True

    def _key(self, event: Any) -> bool:
        asked, line, key = self._asked, self._line, event.key
        if self._over:
            self.closed = True
            return True
        if key == pygame.K_F12:
            self.screenshot()
        if key == pygame.K_F1 and asked is not None:
            # From the rules on, which stand first; all that was heard follows.
            self._reading, self._line.scroll = not self._reading, -sys.maxsize
            return True
        if self._reading:
            if key in (pygame.K_PAGEUP, pygame.K_PAGEDOWN):
                self._scroll(-10 if key == pygame.K_PAGEUP else 10)
            return False
        if asked is None or self._waiting:
            return False
        if asked.steps:
            name = _STEP_KEYS.get(key)
            if name is not None:
                # A step that is not possible gets its sentence from whoever asked.
                line.given.append(asked.steps.get(name, name))
        elif key in (pygame.K_RETURN, pygame.K_KP_ENTER):
            line.given.append(line.text)
        elif key == pygame.K_BACKSPACE:
            line.text = line.text[:-1]
        elif key == pygame.K_ESCAPE:
            line.text = ""
        elif key in (pygame.K_PAGEUP, pygame.K_PAGEDOWN):
            self._scroll(-10 if key == pygame.K_PAGEUP else 10)
        elif key == pygame.K_v and event.mod & (pygame.KMOD_CTRL | pygame.KMOD_META):
            self._typed(_clipboard())
        else:
            return False
        return True


def _clipboard() -> str:
    """The text of the clipboard, on one line."""
    try:
        return " ".join(pygame.scrap.get_text().split())
    except (pygame.error, AttributeError):
        return ""

"""The window of a human player: the question or the scene, and a line to type the answer."""

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

#: The directions of the keys 1 to 9.
_NUMBER_PAD = ("down and left", "down", "down and right", "left", "stay", "right", "up and left", "up", "up and right")
#: The directions of the arrow keys, the keys around them, and the number pad.
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
#: By how many lines keys scroll the text.
_PAGES = {pygame.K_PAGEUP: -10, pygame.K_PAGEDOWN: 10}


@dataclass
class _Line:
    """The answer to a question, while it is being typed.

    Attributes:
        text: the text so far.
        problem: what was wrong with the last answer.
        scroll: by how many lines the question is scrolled from its end; 0 or negative.
        answers: finished answers that have not been taken.
    """

    text: str = ""
    problem: str = ""
    scroll: int = 0
    answers: list[str] = field(default_factory=list)


class PlayerWindow(Window):
    """The window of a human player.

    It shows the scene if the scenario says what a player may see of it, and else the text of the question, so that
    nobody sees more than their players may know.

    Args:
        title: the title in the window's frame.
        players: the indices of the players that the human plays.
        view: how scenes are drawn at first.
    """

    _below = 74

    def __init__(self, *, title: str, players: Collection[int], view: View | None = None) -> None:
        super().__init__(title=title, fps=60, view=view)
        self._players = players
        self._visible = False
        self._prompt: Prompt | None = None
        self._line = _Line()
        self._waiting = False
        self._reading = False
        self._over = ""

    @property
    def lingers(self) -> bool:
        """Whether it shows the end of the game, and no key has been pressed yet."""
        return bool(self._over) and not self.closed

    def look(self, scene: Scene) -> None:
        """Show the present scene; the first one opens the window.

        Raises:
            WindowError: there is no display.
        """
        known_scene = scene.known_to(self._players)
        self._visible = known_scene is not None
        self._scene, self._dirty = known_scene or scene, True
        if self._screen is None and not self.closed:
            self._open(self._scene)
            pygame.key.start_text_input()
        self.tick()

    def ask(self, prompt: Prompt) -> None:
        """Show a question and begin to take an answer."""
        self._prompt, self._line, self._waiting, self._dirty = prompt, _Line(), False, True

    def tell(self, sentence: str) -> None:
        """Show what was wrong with the last answer, and take another one."""
        self._line.problem, self._waiting, self._dirty = sentence, False, True

    def end(self, scene: Scene, sentence: str) -> None:
        """Show the last scene and a sentence, until a key is pressed or the window is closed."""
        if self._screen is not None and not self.closed and self._is_visible():
            self._scene, self._visible, self._reading, self._over = scene, True, False, sentence
            self.draw()

    def take(self) -> str | None:
        """The next finished answer; `None` if there is none."""
        if not self._line.answers:
            return None
        self._waiting = self._dirty = True
        return self._line.answers.pop(0)

    def _take(self, event: Any) -> None:
        if event.type == pygame.TEXTINPUT:
            self._type(event.text)
        elif event.type == pygame.MOUSEWHEEL:
            self._scroll(-3 * event.y)
        elif event.type == pygame.KEYDOWN and self._key(event):
            self._dirty = True

    def _paint(self) -> None:
        """Draw the question or the scene, and the bar below it."""
        if self._visible and not self._reading:
            super()._paint()
        else:
            self._question(self._canvas())
        self._bottom(Canvas(self._screen, self._fitting(self._scene)), self._bar())

    def _snapshot(self) -> Any:
        return self._screen

    def _fitting(self, scene: Scene) -> View:
        # Bubbles would hide the cells to step to; the messages also stand beside the room.
        is_stepping = self._prompt is not None and bool(self._prompt.steps)
        return replace(super()._fitting(scene), hint="", bubbles=False if is_stepping else self.view.bubbles)

    def _question(self, canvas: Canvas) -> None:
        """Draw the question as text, scrolled to its end at first, and a chart of what the player knows."""
        px, prompt = canvas.px, self._prompt
        canvas.surface.fill(PAPER)
        if prompt is None:
            return
        curves = {name: points for name, points in prompt.curves.items() if len(points) > 1}
        side = min(px(330), canvas.rect.width * 2 // 5) if curves else 0
        text_area = Rect(px(18), px(14), canvas.rect.width - side - px(36), canvas.rect.height - px(28))
        size = px(13.5)
        paragraphs = prompt.text.strip().split("\n\n")
        lines = [
            line for paragraph in paragraphs for line in (*canvas.fonts.wrap(paragraph, size, text_area.width), "")
        ]
        room = max(1, text_area.height // canvas.fonts.height(size))
        last_first = max(0, len(lines) - room)
        self._line.scroll = min(max(self._line.scroll, -last_first), 0)
        first = max(0, last_first + self._line.scroll)
        canvas.lines(text_area, lines[first : first + room], 13.5)
        if first:
            canvas.text(
                (text_area.right, text_area.top), "more above: mouse wheel", size=11, colour=FAINT, anchor="topright"
            )
        if curves:
            self._chart(
                canvas, Rect(text_area.right + px(18), px(14), side - px(18), min(px(300), text_area.height)), curves
            )

    def _chart(self, canvas: Canvas, rect: Any, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        points = np.concatenate([np.array(line, dtype=np.float64) for line in curves.values()])
        x_range, y_range = zip(points.min(axis=0).tolist(), points.max(axis=0).tolist(), strict=True)
        chart = Chart(canvas, rect, title="What you know so far", x_range=x_range, y_range=y_range, x_label="round")
        top = rect.bottom + canvas.px(8)
        for index, (name, line) in enumerate(curves.items()):
            x, y = np.array(line, dtype=np.float64).T
            chart.curve(x, y, series(index))
            canvas.box(Rect(rect.left, top + canvas.px(5), canvas.px(16), canvas.px(4)), series(index))
            canvas.text((rect.left + canvas.px(22), top), name, size=12, width=rect.width - canvas.px(22))
            top += canvas.line_height(12) + canvas.px(2)

    def _bottom(self, canvas: Canvas, bar: Any) -> None:
        """Draw the bar: what is going on or asked for, and the line to type."""
        px, prompt, line = canvas.px, self._prompt, self._line
        canvas.box(bar, PANEL)
        canvas.box(Rect(bar.left, bar.top, bar.width, px(1)), GRID)
        width = bar.width - px(28)
        corner = (bar.left + px(14), bar.top + px(8))
        if self._over:
            canvas.text(corner, f"{self._over} Any key closes the window.", size=12.5, bold=True, width=width)
        elif self._reading:
            canvas.text(corner, "F1: back to the game; the mouse wheel, Page Up and Page Down move the text", size=12.5)
        elif prompt is None or self._waiting:
            canvas.text(corner, _WAITING, size=12.5, colour=FAINT, width=width)
        else:
            hint = f"{prompt.agent}: {prompt.hint}" + (" · F1 rules and talk" if self._visible else "")
            colour = VERMILION if line.problem else INK
            canvas.text(corner, line.problem or self._note or hint, size=12.5, bold=True, colour=colour, width=width)
            if not prompt.steps:
                self._input_line(canvas, Rect(bar.left + px(14), bar.top + px(32), width, px(30)), prompt.longest)

    def _input_line(self, canvas: Canvas, box: Any, longest: int) -> None:
        """Draw the box with the typed text and the cursor, and near the limit how many characters remain."""
        px, typed = canvas.px, self._line.text
        remaining = longest - len(typed)
        canvas.box(box, PAPER, FAINT, radius=4)
        # Of a long line the end is shown, where the cursor is.
        while typed and canvas.fonts.width(typed, px(14)) > box.width - px(24):
            typed = typed[max(1, len(typed) // 20) :]
        cursor = start = box.left + px(8)
        if typed:
            cursor = canvas.text((start, box.centery), typed, size=14, anchor="midleft").right
        canvas.box(Rect(cursor + px(1), box.top + px(6), px(2), box.height - px(12)), INK)
        if remaining < 60 < longest:
            canvas.text((box.right - px(8), box.centery), str(remaining), size=11, colour=FAINT, anchor="midright")

    def _type(self, text: str) -> None:
        prompt, line = self._prompt, self._line
        if prompt is None or self._waiting or prompt.steps or self._reading:
            return
        clean = "".join(character for character in text if character.isprintable())
        line.text = (line.text + clean)[: prompt.longest]
        line.problem = ""
        self._dirty = True

    def _scroll(self, lines: int) -> None:
        self._line.scroll += lines
        self._dirty = True

    def _key(self, event: Any) -> bool:
        """Handle a key; returns whether it changed anything."""
        prompt, key = self._prompt, event.key
        if self._over:
            self.closed = True
            return True
        if key == pygame.K_F12:
            self.screenshot()
        if key == pygame.K_F1 and prompt is not None:
            # Scrolled to the beginning: the rules stand first, then all that was heard.
            self._reading, self._line.scroll = not self._reading, -sys.maxsize
            return True
        if self._reading:
            if key in _PAGES:
                self._scroll(_PAGES[key])
            return False
        if prompt is None or self._waiting:
            return False
        if not prompt.steps:
            return self._edit(event)
        direction = _STEP_KEYS.get(key)
        if direction is not None:
            # An impossible step is an answer, too: the player is told why it is impossible.
            self._line.answers.append(prompt.steps.get(direction, direction))
        return True

    def _edit(self, event: Any) -> bool:
        """Handle a key of the line to type; returns whether it is one."""
        line, key = self._line, event.key
        if key in (pygame.K_RETURN, pygame.K_KP_ENTER):
            line.answers.append(line.text)
        elif key == pygame.K_BACKSPACE:
            line.text = line.text[:-1]
        elif key == pygame.K_ESCAPE:
            line.text = ""
        elif key in _PAGES:
            self._scroll(_PAGES[key])
        elif key == pygame.K_v and event.mod & (pygame.KMOD_CTRL | pygame.KMOD_META):
            self._type(_clipboard())
        else:
            return False
        return True


def _clipboard() -> str:
    """The text of the clipboard, on one line."""
    try:
        return " ".join(pygame.scrap.get_text().split())
    except (pygame.error, AttributeError):
        return ""

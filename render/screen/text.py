"""Lines of text in any script: drawing, measuring, wrapping and cutting them."""

from __future__ import annotations

import itertools
import unicodedata
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from llm_coop_envs.render.screen.glyphs import (
    Face,
    TextRun,
    clusters,
    fallback_names,
    find_font,
    plain_fonts,
    script_of,
    visual_runs,
)
from llm_coop_envs.render.screen.pygame_import import pygame

Colour = tuple[int, int, int]
ELLIPSIS = "…"

_CACHED_LINES = 2000
_CACHED_WIDTHS = 20_000


class TextPart(NamedTuple):
    """A part of a line in one font and script; `face` is `None` for characters that no font has."""

    text: str
    face: Face | None
    script: str


class Fonts:
    """Draws lines of text; a character that no font has becomes a box.

    Args:
        system: use DejaVu Sans, and fonts of this machine for characters that it lacks; else only the font that comes
            with pygame, so that pictures are the same on every machine.
    """

    def __init__(self, *, system: bool = True) -> None:
        if not pygame.font.get_init():
            pygame.font.init()
        self._system = system
        self._files = plain_fonts() if system else ("", "")
        self._faces: dict[tuple[str, int], Face | None] = {}
        self._fallbacks: dict[str, str | None] = {}
        self._widths: dict[tuple[str, int, bool], int] = {}
        self._lines: OrderedDict[tuple[str, int, Colour, bool], pygame.Surface] = OrderedDict()

    def line(self, text: str, size: int, colour: Colour, *, bold: bool = False) -> pygame.Surface:
        """Draw one line on a transparent background; the surface is shared, so do not draw on it."""
        key = text, size, colour, bold
        picture = self._lines.get(key)
        if picture is None:
            picture = self._lines[key] = self._draw(text, size, colour, bold)
            if len(self._lines) > _CACHED_LINES:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(key)
        return picture

    def width(self, text: str, size: int, *, bold: bool = False) -> int:
        """The width of a line in pixels."""
        key = text, size, bold
        width = self._widths.get(key)
        if width is None:
            plain = self._plain(size, bold)
            width = 0
            for part, face, script in self._parts(text, size, bold):
                width += face.width(part, script) if face else _box_width(plain) * len(clusters(part))
            if len(self._widths) > _CACHED_WIDTHS:
                self._widths.clear()
            self._widths[key] = width = max(1, width)
        return width

    def height(self, size: int) -> int:
        """The height of a line in pixels."""
        return self._plain(size, False).height

    def fit(self, text: str, size: int, width: int, *, bold: bool = False) -> str:
        """Cut text with an ellipsis if it is wider than `width` pixels."""
        if len(text) <= 4 * max(1, width) and self.width(text, size, bold=bold) <= width:
            return text
        parts = clusters(text)

        def shorten(count: int) -> str:
            return "".join(parts[:count]).rstrip() + ELLIPSIS

        counts = range(1, min(len(parts), max(0, width)) + 1)
        return shorten(bisect_right(counts, width, key=lambda count: self.width(shorten(count), size, bold=bold)))

    def wrap(
        self, text: str, size: int, width: int, *, lines: int | None = None, bold: bool = False, keep_end: bool = False
    ) -> list[str]:
        """Break text into lines no wider than `width` pixels, at spaces where possible.

        Line breaks in the text are kept, and empty lines left out.

        Args:
            text: the text.
            size: the size of the letters in pixels.
            width: the width of a line in pixels.
            lines: at most so many lines, of which the last one then ends in an ellipsis; `None` for any number.
            bold: use the bold font.
            keep_end: of too many lines keep the last ones, of which the first one then begins with the ellipsis.
        """
        if keep_end and lines is not None:
            return self._wrap_end(text, size, width, lines, bold)
        wrapped = list(
            itertools.islice(self._break_lines(text, size, width, bold), None if lines is None else lines + 1)
        )
        if lines is None or len(wrapped) <= lines:
            return wrapped
        last = self.fit(f"{wrapped[lines - 1]} {wrapped[lines]}", size, width, bold=bold)
        if not last.endswith(ELLIPSIS):
            last = self.fit(last + ELLIPSIS, size, width, bold=bold)
        return [*wrapped[: lines - 1], last]

    def _wrap_end(self, text: str, size: int, width: int, lines: int, bold: bool) -> list[str]:
        """The last lines of a text, after an ellipsis."""
        wrapped = self.wrap(text, size, width, bold=bold)
        tokens = " ".join(wrapped).split()
        while len(wrapped) > lines:
            # While there are far too many lines, an eighth of the words goes at a time: one by one would take long.
            tokens = tokens[max(1, len(tokens) // 8 * (len(wrapped) > 2 * lines)) :]
            wrapped = self.wrap(f"{ELLIPSIS} {' '.join(tokens)}", size, width, bold=bold)
        return wrapped

    def _break_lines(self, text: str, size: int, width: int, bold: bool) -> Iterator[str]:
        """The lines of a text, one after the other."""
        for paragraph in printable(text).split("\n"):
            line = ""
            for word in paragraph.split():
                longer = f"{line} {word}" if line else word
                if self.width(longer, size, bold=bold) <= width:
                    line = longer
                    continue
                if line:
                    yield line
                *full, line = self._break_word(word, size, width, bold)
                yield from full
            if line:
                yield line

    def _break_word(self, word: str, size: int, width: int, bold: bool) -> list[str]:
        """Break a word that may be too long for a line; the last part is the one that leaves room in its line."""
        parts: list[str] = []
        remaining = clusters(word)

        def measure(count: int) -> int:
            return self.width("".join(remaining[:count]), size, bold=bold)

        # A character is at least a pixel wide: more characters than pixels need no measuring.
        while len(remaining) > 1 and (len(remaining) > width or measure(len(remaining)) > width):
            # At least one character, and as many more as fit.
            counts = range(2, min(len(remaining) - 1, max(1, width)) + 1)
            count = 1 + bisect_right(counts, width, key=measure)
            parts.append("".join(remaining[:count]))
            remaining = remaining[count:]
        return [*parts, "".join(remaining)]

    def _draw(self, text: str, size: int, colour: Colour, bold: bool) -> pygame.Surface:
        plain = self._plain(size, bold)
        pieces: list[tuple[pygame.Surface, int]] = []
        for part, face, script in self._parts(text, size, bold):
            if face is None:
                pieces += [(_box(plain, colour), 0)] * len(clusters(part))
            else:
                pieces.append((face.render(part, colour, script), plain.ascent - face.ascent))
        width = sum(picture.get_width() for picture, _ in pieces)
        surface = pygame.Surface((max(1, width), plain.height), pygame.SRCALPHA)
        x = 0
        for picture, down in pieces:
            # A taller font of another script is centred rather than cut.
            excess = picture.get_height() - plain.height
            surface.blit(picture, (x, -excess // 2 if excess > abs(down) else down))
            x += picture.get_width()
        return surface

    def _parts(self, text: str, size: int, bold: bool) -> list[TextPart]:
        """Split a line into parts of one font and script each, from left to right."""
        runs = visual_runs(printable(text).replace("\n", " "))
        return [part for run in runs for part in self._split_run(run, size, bold)]

    def _split_run(self, run: TextRun, size: int, bold: bool) -> list[TextPart]:
        """Split a run into parts of one font and script each, from left to right."""
        plain = self._plain(size, bold)
        if run.text.isascii() and not run.rtl:
            return [TextPart(run.text, plain, "")]
        parts: list[TextPart] = []
        for cluster in clusters(run.text):
            face, script = self._face(cluster, size, bold), script_of(cluster[0])
            is_neutral = (cluster.isspace() or not cluster[0].isalnum()) and plain.has(cluster) and not script
            previous = parts[-1] if parts else None
            if is_neutral and previous and previous.script and previous.face and previous.face.has(cluster):
                # Spaces and signs go with the letters before them, so that these keep their neighbours.
                face, script = previous.face, previous.script
            if previous and (previous.face, previous.script) == (face, script):
                parts[-1] = TextPart(previous.text + cluster, face, script)
            else:
                parts.append(TextPart(cluster, face, script))
        if not run.rtl:
            return parts
        # Signs and letters of other scripts are shaped as Hebrew: turned around, their brackets mirrored.
        return [TextPart(text, face, script or "Hebr") for text, face, script in reversed(parts)]

    def _plain(self, size: int, bold: bool) -> Face:
        face = self._open(self._files[bold], size) or self._open("", size)
        assert face is not None
        return face

    def _face(self, cluster: str, size: int, bold: bool) -> Face | None:
        """The first font that has a character; `None` if there is none."""
        plain = self._plain(size, bold)
        if plain.has(cluster):
            return plain
        if not self._system:
            return None
        character = cluster[0]
        if character not in self._fallbacks:
            faces = ((file, self._open(file, size)) for file in map(find_font, fallback_names(character)) if file)
            self._fallbacks[character] = next((file for file, face in faces if face and face.has(character)), None)
        file = self._fallbacks[character]
        return None if file is None else self._open(file, size)

    def _open(self, file: str, size: int) -> Face | None:
        key = file, size
        if key not in self._faces:
            try:
                self._faces[key] = Face(file, size)
            except (pygame.error, OSError):
                self._faces[key] = None
        return self._faces[key]


@lru_cache(maxsize=2)
def fonts(system: bool = True) -> Fonts:
    """The fonts, opened once."""
    return Fonts(system=system)


def printable(text: str) -> str:
    """Remove control characters and direction marks from text; line breaks stay, and tabs become spaces."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    if text.isascii() and text.isprintable():
        return text
    visible = (c for c in text if c in "\n\u200d" or unicodedata.category(c) not in ("Cc", "Cf"))
    # Half of a surrogate pair cannot be encoded; it becomes the replacement character.
    return "".join("\ufffd" if unicodedata.category(c) == "Cs" else c for c in visible)


def _box(plain: Face, colour: Colour) -> pygame.Surface:
    """Draw the box that stands for a character that no font has."""
    width, side = _box_width(plain), plain.height
    box = pygame.Surface((width, side), pygame.SRCALPHA)
    top = round(side * 0.18)
    pygame.draw.rect(box, colour, (1, top, width - 2, side - 2 * top), 1)
    return box


def _box_width(plain: Face) -> int:
    return max(5, round(plain.height * 0.55)) + 2

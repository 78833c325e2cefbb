"""Text on surfaces: lines in any script, wrapping, cutting."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import OrderedDict
from functools import lru_cache

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

_KEPT_LINES = 2000
_KEPT_WIDTHS = 20_000
#: Shaping mirrors brackets by itself; outside shaped scripts it is done here.
_MIRRORED = dict(zip("()[]{}<>«»", ")(][}{><»«", strict=True))


class Fonts:
    """All that is written is written by one of these.

    Args:
        system: use fonts of this machine where they are better or have more characters; else only the one that comes
            with pygame, so that pictures are the same everywhere.
    """

    def __init__(self, *, system: bool = True) -> None:
        if not pygame.font.get_init():
            pygame.font.init()
        self._system = system
        self._files = plain_fonts() if system else ("", "")
        self._faces: dict[tuple[str, int], Face | None] = {}
        self._found: dict[str, str | None] = {}
        self._widths: dict[tuple[str, int, bool], int] = {}
        self._lines: OrderedDict[tuple[str, int, Colour, bool], pygame.Surface] = OrderedDict()

    def line(self, text: str, size: int, colour: Colour, *, bold: bool = False) -> pygame.Surface:
        """One line of text with a transparent background; the surface is shared, so do not draw on it."""
        key = text, size, colour, bold
        picture = self._lines.get(key)
        if picture is None:
            picture = self._lines[key] = self._draw(text, size, colour, bold)
            if len(self._lines) > _KEPT_LINES:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(key)
        return picture

    def width(self, text: str, size: int, *, bold: bool = False) -> int:
        """How wide a line is."""
        key = text, size, bold
        width = self._widths.get(key)
        if width is None:
            plain = self._plain(size, bold)
            width = 0
            for part, face, script in self._parts(text, size, bold):
                width += _box_width(plain) * len(clusters(part)) if face is None else face.width(part, script)
            if len(self._widths) > _KEPT_WIDTHS:
                self._widths.clear()
            self._widths[key] = width = max(1, width)
        return width

    def height(self, size: int) -> int:
        """How high a line is."""
        return self._plain(size, False).height

    def fit(self, text: str, size: int, width: int, *, bold: bool = False) -> str:
        """The text, cut with an ellipsis if it is wider than `width`."""
        if len(text) <= 4 * max(1, width) and self.width(text, size, bold=bold) <= width:
            return text
        parts = clusters(text)

        def cut(count: int) -> str:
            return "".join(parts[:count]).rstrip() + ELLIPSIS

        most = range(1, min(len(parts), max(0, width)) + 1)
        return cut(bisect_right(most, width, key=lambda count: self.width(cut(count), size, bold=bold)))

    def wrap(
        self, text: str, size: int, width: int, *, lines: int | None = None, bold: bool = False, keep_end: bool = False
    ) -> list[str]:
        """Break text into lines no wider than `width` pixels, at spaces where there are any; empty lines are left out.

        Its own line breaks are kept. Of more lines than `lines` the last one ends in an ellipsis; with `keep_end` the
        first ones are left out, and what is left begins with it.
        """
        if keep_end and lines is not None:
            every = self.wrap(text, size, width, bold=bold)
            words = " ".join(every).split()
            while len(every) > lines:
                # A few words at a time: long messages would take long otherwise.
                words = words[max(1, len(words) // 8 * (len(every) > 2 * lines)) :]
                every = self.wrap(f"{ELLIPSIS} {' '.join(words)}", size, width, bold=bold)
            return every
        found: list[str] = []
        for paragraph in shown(text).split("\n"):
            if not paragraph.strip():
                continue
            line = ""
            for word in paragraph.split():
                tried = f"{line} {word}" if line else word
                if self.width(tried, size, bold=bold) <= width:
                    line = tried
                    continue
                if line:
                    found.append(line)
                line = self._break(word, size, width, bold, found)
                if lines is not None and len(found) > lines:
                    break
            found.append(line)
            if lines is not None and len(found) > lines:
                break
        if lines is not None and len(found) > lines:
            kept = found[:lines]
            kept[-1] = self.fit(f"{kept[-1]} {found[lines]}", size, width, bold=bold)
            if not kept[-1].endswith(ELLIPSIS):
                kept[-1] = self.fit(kept[-1] + ELLIPSIS, size, width, bold=bold)
            return kept
        return found

    # Inside.

    def _break(self, word: str, size: int, width: int, bold: bool, found: list[str]) -> str:
        """Break a word that is too long by itself; the rest of it is returned."""
        rest = clusters(word)
        # A character is at least a pixel wide: longer parts need no measuring.
        while len(rest) > 1 and (len(rest) > width or self.width("".join(rest), size, bold=bold) > width):
            parts, counts = rest, range(2, min(len(rest) - 1, max(1, width)) + 1)
            more = bisect_right(counts, width, key=lambda k: self.width("".join(parts[:k]), size, bold=bold))
            found.append("".join(rest[: 1 + more]))
            rest = rest[1 + more :]
        return "".join(rest)

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
            over = picture.get_height() - plain.height
            surface.blit(picture, (x, -over // 2 if over > abs(down) else down))
            x += picture.get_width()
        return surface

    def _parts(self, text: str, size: int, bold: bool) -> list[tuple[str, Face | None, str]]:
        """A line cut into parts of one font and script each, from left to right."""
        runs = visual_runs(shown(text).replace("\n", " "))
        return [part for run in runs for part in self._by_face(run, size, bold)]

    def _by_face(self, run: TextRun, size: int, bold: bool) -> list[tuple[str, Face | None, str]]:
        """A run cut into parts of one font and script each, from left to right."""
        plain = self._plain(size, bold)
        if run.text.isascii() and not run.rtl:
            return [(run.text, plain, "")]
        parts: list[tuple[str, Face | None, str]] = []
        for cluster in clusters(run.text):
            face, script = self._face(cluster, size, bold), script_of(cluster[0])
            if parts and (cluster.isspace() or not cluster[0].isalnum()) and plain.has(cluster) and not script:
                # Spaces and signs go with the letters before them, so that these keep their neighbours.
                before = parts[-1][1]
                if parts[-1][2] and before is not None and before.has(cluster):
                    face, script = parts[-1][1:]
            if run.rtl and not script:
                cluster = _MIRRORED.get(cluster, cluster)
            if parts and parts[-1][1:] == (face, script):
                # Shaping turns a right-to-left part around by itself, nobody else does.
                before_it = run.rtl and not script
                text = cluster + parts[-1][0] if before_it else parts[-1][0] + cluster
                parts[-1] = (text, face, script)
            else:
                parts.append((cluster, face, script))
        return parts[::-1] if run.rtl else parts

    def _plain(self, size: int, bold: bool) -> Face:
        face = self._open(self._files[bold], size) or self._open("", size)
        assert face is not None
        return face

    def _face(self, cluster: str, size: int, bold: bool) -> Face | None:
        plain = self._plain(size, bold)
        if plain.has(cluster):
            return plain
        if not self._system:
            return None
        character = cluster[0]
        if character not in self._found:
            faces = ((file, self._open(file, size)) for file in map(find_font, fallback_names(character)) if file)
            self._found[character] = next((file for file, face in faces if face and face.has(character)), None)
        file = self._found[character]
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


def shown(text: str) -> str:
    """Text without what has no picture: control characters and direction marks (line breaks stay)."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    if text.isascii() and text.isprintable():
        return text
    kept = (one for one in text if one in "\n\u200d" or unicodedata.category(one) not in ("Cc", "Cf"))
    return "".join("\ufffd" if unicodedata.category(one) == "Cs" else one for one in kept)


def _box(plain: Face, colour: Colour) -> pygame.Surface:
    """What stands for a character that no font has."""
    width, side = _box_width(plain), plain.height
    box = pygame.Surface((width, side), pygame.SRCALPHA)
    top = round(side * 0.18)
    pygame.draw.rect(box, colour, (1, top, width - 2, side - 2 * top), 1)
    return box


def _box_width(plain: Face) -> int:
    return max(5, round(plain.height * 0.55)) + 2

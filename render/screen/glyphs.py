"""Fonts, the characters that they have, and the order in which the runs of a line stand.

Text comes from players and models: any Unicode. SDL_ttf shapes the letters of one run in one font (with HarfBuzz), but
neither looks for other fonts nor orders runs, so both is done here: each character is drawn by the first font that has
it (the plain one, then fonts of this machine), and right-to-left runs stand in their own direction.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import unicodedata
import warnings
from functools import lru_cache
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from llm_coop_envs.render.screen.pygame_import import pygame

# A private-use character, which no font has: its picture is the one that a font draws for missing characters.
_MISSING = "\U000f1234"

_FALLBACKS = (
    *("dejavusans", "notosans", "notosansarabic", "notonaskharabic", "notosanshebrew", "notosanscjksc"),
    *("notosanscjkjp", "notosanscjkkr", "wenquanyizenhei", "droidsansfallback", "notosanssymbols", "notosanssymbols2"),
    *("notosansmath", "arialunicodems", "segoeui", "segoeuisymbol", "microsoftyahei", "msgothic", "malgungothic"),
    *("applesdgothicneo", "pingfang", "notocoloremoji", "notoemoji", "segoeuiemoji", "applecoloremoji", "symbola"),
)
_EMOJI_FONTS = ("notocoloremoji", "segoeuiemoji", "applecoloremoji", "notoemoji")

#: Codes of the scripts whose letters change with their neighbours, by the first word of their characters' names.
_SCRIPTS = {
    "ARABIC": "Arab",
    "HEBREW": "Hebr",
    "SYRIAC": "Syrc",
    "THAANA": "Thaa",
    "NKO": "Nkoo",
    "ADLAM": "Adlm",
    "DEVANAGARI": "Deva",
    "BENGALI": "Beng",
    "GURMUKHI": "Guru",
    "GUJARATI": "Gujr",
    "TAMIL": "Taml",
    "TELUGU": "Telu",
    "KANNADA": "Knda",
    "MALAYALAM": "Mlym",
    "SINHALA": "Sinh",
    "THAI": "Thai",
    "LAO": "Laoo",
    "TIBETAN": "Tibt",
    "MYANMAR": "Mymr",
    "KHMER": "Khmr",
}
_RTL_SCRIPTS = frozenset({"Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm"})

_RIGHT_TO_LEFT = frozenset({"R", "AL", "RLE", "RLO", "RLI"})
_LEFT_TO_RIGHT = frozenset({"L", "LRE", "LRO", "LRI"})
_DIGITS = frozenset({"EN", "AN"})


class TextRun(NamedTuple):
    """A part of a line in one direction, its characters in reading order."""

    text: str
    rtl: bool


def visual_runs(text: str) -> list[TextRun]:
    """A line's runs in the order in which they stand, from left to right.

    A short form of the Unicode bidirectional algorithm: the first letter gives the line's direction, digits run from
    left to right, and other characters go with their neighbours if these agree, else with the line. In
    `"ok \u05d0\u05d1 12"` the space after `ok` belongs to the line, as does the one before `12`.
    """
    line_rtl = first_direction(text) is True
    groups = [(direction, "".join(characters)) for direction, characters in itertools.groupby(text, key=_direction)]
    neighbours = [line_rtl, *(direction for direction, _ in groups), line_rtl]
    directed = [
        ((previous if previous == following else line_rtl) if direction is None else direction, part)
        for (direction, part), previous, following in zip(groups, neighbours, neighbours[2:], strict=False)
    ]
    runs = [
        TextRun("".join(part for _, part in parts), bool(rtl))
        for rtl, parts in itertools.groupby(directed, key=itemgetter(0))
    ]
    return runs[::-1] if line_rtl else runs


def _direction(character: str) -> bool | None:
    """Whether a character runs from right to left; `None` if it goes with its neighbours."""
    kind = unicodedata.bidirectional(character)
    return True if kind in _RIGHT_TO_LEFT else False if kind in _LEFT_TO_RIGHT or kind in _DIGITS else None


def first_direction(text: str) -> bool | None:
    """Whether the first letter runs from right to left; `None` if there is none (digits have no say)."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in _RIGHT_TO_LEFT or kind in _LEFT_TO_RIGHT:
            return kind in _RIGHT_TO_LEFT
    return None


def clusters(text: str) -> list[str]:
    """Split text into characters with their combining marks, joiners, skin tones and variation selectors."""
    parts: list[str] = []
    for character in text:
        is_joined = bool(parts) and (
            unicodedata.combining(character) != 0
            or unicodedata.category(character) in ("Mn", "Me")
            or character in "\u200d\ufe0e\ufe0f"
            or 0x1F3FB <= ord(character) <= 0x1F3FF
            or parts[-1].endswith("\u200d")
        )
        if is_joined:
            parts[-1] += character
        else:
            parts.append(character)
    return parts


@lru_cache(maxsize=1)
def plain_fonts() -> tuple[str, str]:
    """The files of the plain and the bold DejaVu Sans, from matplotlib or this machine; empty for pygame's own font."""
    matplotlib = find_spec("matplotlib")
    folders = []
    if matplotlib is not None and matplotlib.origin:
        folders.append(Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf")
    if system := find_font("dejavusans"):
        folders.append(Path(system).parent)
    for folder in folders:
        regular, bold = folder / "DejaVuSans.ttf", folder / "DejaVuSans-Bold.ttf"
        if regular.is_file() and bold.is_file():
            return str(regular), str(bold)
    return "", ""


@lru_cache(maxsize=512)
def find_font(name: str) -> str:
    """The file of a font that is installed on this machine; empty if it is not."""
    with warnings.catch_warnings():
        # pygame warns when it cannot list a machine's fonts; then there are none.
        warnings.simplefilter("ignore")
        try:
            file = pygame.font.match_font(name)
        except Exception:
            # pygame may fail on an odd list of fonts; drawing must not depend on it.
            return ""
    return file if file and os.path.isfile(file) else ""


class Face:
    """A font at one size in pixels.

    Args:
        file: the font's file; empty for pygame's own font.
        size: the height in pixels.

    Attributes:
        ascent: pixels from the top of a line to where letters stand.
        height: the height of a line in pixels.
    """

    def __init__(self, file: str, size: int) -> None:
        self._scale = 1.0
        self._file = file or str(Path(pygame.__file__).parent / pygame.font.get_default_font())
        self._size = size
        self._fonts: dict[str, pygame.font.Font] = {}
        drawn = self._font("").render("\U0001f600", True, (0, 0, 0)).get_height()
        if drawn > 2 * size + 4:
            # A bitmap font, such as Noto Color Emoji, draws at its own size, whatever it is asked for.
            self._scale = size * 1.12 / drawn
        self.ascent = round(self._font("").get_ascent() * self._scale)
        # Measured, because some fonts draw higher lines than they say.
        self.height = round(self._font("").render("Ág", True, (0, 0, 0)).get_height() * self._scale)
        self._missing = self._picture(_MISSING)
        self._has: dict[str, bool] = {}

    def has(self, cluster: str) -> bool:
        """Whether the font has the first character of a cluster."""
        character = cluster[0]
        if character not in self._has:
            self._has[character] = character.isspace() or self._picture(character) != self._missing
        return self._has[character]

    def render(self, text: str, colour: tuple[int, int, int], script: str) -> pygame.Surface:
        """Draw text of one script (see `script_of`) on a transparent background; emoji keep their colours."""
        picture = self._font(script).render(text, True, colour)
        if self._scale != 1.0:
            size = [max(1, round(side * self._scale)) for side in picture.get_size()]
            picture = pygame.transform.smoothscale(picture, size)
        return picture

    def width(self, text: str, script: str) -> int:
        """The width of the picture that `render` would draw."""
        width: int = self._font(script).size(text)[0]
        return width if self._scale == 1.0 else max(1, round(width * self._scale))

    def _font(self, script: str) -> pygame.font.Font:
        font = self._fonts.get(script)
        if font is None:
            font = self._fonts[script] = pygame.font.Font(self._file, self._size)
            if script in _SCRIPTS.values():
                # Without HarfBuzz (another SDL, another pygame) letters stay apart, which can still be read.
                with contextlib.suppress(pygame.error, AttributeError):
                    font.set_script(script)
                    font.set_direction(pygame.DIRECTION_RTL if script in _RTL_SCRIPTS else pygame.DIRECTION_LTR)
        return font

    def _picture(self, character: str) -> tuple[tuple[int, int], bytes]:
        try:
            picture = self._font("").render(character, True, (0, 0, 0))
        except (pygame.error, UnicodeError):
            return (0, 0), b""
        return picture.get_size(), pygame.image.tobytes(picture, "RGBA")


def fallback_names(character: str) -> tuple[str, ...]:
    """Names of fonts that may have a character, the likeliest first."""
    script = unicodedata.name(character, "unknown").split()[0].lower()
    is_emoji = ord(character) >= 0x1F000 or 0x2600 <= ord(character) <= 0x27BF
    return (*(_EMOJI_FONTS if is_emoji else (f"notosans{script}",)), *_FALLBACKS)


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The four-letter code of a character's script if its letters need shaping, such as `"Arab"`; else empty."""
    if character.isascii():
        return ""
    return _SCRIPTS.get(unicodedata.name(character, "unknown").split()[0], "")

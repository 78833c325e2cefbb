"""Which font has which character, and in which order the parts of a line stand.

Text comes from players and models: any Unicode. Each character is drawn by the first font that has it (the plain one,
then fonts found on this machine), right-to-left runs in their own direction; what no font has becomes a visible box.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import unicodedata
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from llm_coop_envs.render.screen.pygame_import import pygame

# Not assigned for good (a private-use character): its picture is the one that a font draws for what it lacks.
_LACKING = "\U000f1234"

_FALLBACKS = (
    "dejavusans",
    "notosans",
    "notosansarabic",
    "notonaskharabic",
    "notosanshebrew",
    "notosanscjksc",
    "notosanscjkjp",
    "notosanscjkkr",
    "wenquanyizenhei",
    "droidsansfallback",
    "notosanssymbols",
    "notosanssymbols2",
    "notosansmath",
    "arialunicodems",
    "segoeui",
    "segoeuisymbol",
    "microsoftyahei",
    "msgothic",
    "malgungothic",
    "applesdgothicneo",
    "pingfang",
    "notocoloremoji",
    "notoemoji",
    "segoeuiemoji",
    "applecoloremoji",
    "symbola",
)
#: Bitmap emoji fonts open at one size only and are scaled afterwards.
_BITMAP_SIZES = (109, 136, 160)

#: Scripts whose letters change with their neighbours, by the first word of their characters' names.
_SCRIPTS = {
    "ARABIC": "Arab",
    "HEBREW": "Hebr",
    "SYRIAC": "Syrc",
    "THAANA": "Thaa",
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
_RTL_SCRIPTS = frozenset({"Arab", "Hebr", "Syrc", "Thaa"})

_RIGHT_TO_LEFT = frozenset({"R", "AL", "RLE", "RLO", "RLI"})
_LEFT_TO_RIGHT = frozenset({"L", "LRE", "LRO", "LRI"})
_DIGITS = frozenset({"EN", "AN"})


@dataclass(frozen=True, slots=True)
class TextRun:
    """A part of a line in one direction, its characters in reading order."""

    text: str
    rtl: bool


def visual_runs(text: str) -> list[TextRun]:
    """A line's runs from left to right, as they stand.

    A short form of the Unicode bidirectional algorithm: the first strong character gives the line's direction,
    numbers run from left to right, neutral characters go with equal neighbours on both sides and else with the line.
    """
    kinds = [unicodedata.bidirectional(character) for character in text]
    strong = [
        True if kind in _RIGHT_TO_LEFT else False if kind in _LEFT_TO_RIGHT or kind in _DIGITS else None
        for kind in kinds
    ]
    if True not in strong:
        return [TextRun(text, False)] if text else []
    line = first_direction(text) is True
    at = 0
    while at < len(strong):
        if strong[at] is not None:
            at += 1
            continue
        end = at
        while end < len(strong) and strong[end] is None:
            end += 1
        before = strong[at - 1] if at else line
        after = strong[end] if end < len(strong) else line
        strong[at:end] = [before if before == after else line] * (end - at)
        at = end
    same = itertools.groupby(zip(text, strong, strict=True), key=lambda one: one[1])
    runs = [TextRun("".join(character for character, _ in part), bool(rtl)) for rtl, part in same]
    return runs[::-1] if line else runs


def first_direction(text: str) -> bool | None:
    """Whether the first strong character runs from right to left; `None` if there is none."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in _RIGHT_TO_LEFT or kind in _LEFT_TO_RIGHT:
            return kind in _RIGHT_TO_LEFT
    return None


def clusters(text: str) -> list[str]:
    """Characters with what belongs to them: combining marks, joiners, skin tones, variation selectors."""
    found: list[str] = []
    for character in text:
        joined = bool(found) and (
            unicodedata.combining(character) != 0
            or unicodedata.category(character) in ("Mn", "Me")
            or character in "\u200d\ufe0e\ufe0f"
            or 0x1F3FB <= ord(character) <= 0x1F3FF
            or found[-1].endswith("\u200d")
        )
        if joined:
            found[-1] += character
        else:
            found.append(character)
    return found


@lru_cache(maxsize=1)
def plain_fonts() -> tuple[str, str]:
    """The files of the plain and the bold font where a good one is found; empty for pygame's own."""
    spec = find_spec("matplotlib")
    if spec is not None and spec.origin:
        folder = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"
        files = folder / "DejaVuSans.ttf", folder / "DejaVuSans-Bold.ttf"
        if all(file.is_file() for file in files):
            return str(files[0]), str(files[1])
    system = find_font("dejavusans")
    if system:
        regular, bold = (Path(system).with_name(name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"))
        if regular.is_file() and bold.is_file():
            return str(regular), str(bold)
    return "", ""


@lru_cache(maxsize=512)
def find_font(name: str) -> str:
    """The file of a font of this machine; empty if there is none."""
    with warnings.catch_warnings():
        # pygame warns when it cannot list a machine's fonts; then there are none.
        warnings.simplefilter("ignore")
        try:
            file = pygame.font.match_font(name)
        except Exception:
            # Font lists of machines are of any shape; drawing must not depend on them.
            return ""
    return file if file and os.path.isfile(file) else ""


class Face:
    """One font file (empty for pygame's own) at one size in pixels, in both directions."""

    def __init__(self, file: str, size: int) -> None:
        self.scale = 1.0
        self._file = file or str(Path(pygame.__file__).parent / pygame.font.get_default_font())
        self._fonts: dict[str, pygame.font.Font] = {}
        for self._size in (size, *_BITMAP_SIZES):
            try:
                drawn = self._font("").render("\U0001f600", True, (0, 0, 0)).get_height()
                break
            except pygame.error:
                self._fonts.clear()
        else:
            raise pygame.error(f"{self._file}: cannot be opened at any size")
        if drawn > 2 * size + 4:
            # A font of bitmaps draws at its own size, whatever it is asked for.
            self.scale = size * 1.12 / drawn
        # From the top of a line to where letters stand, and its height: some fonts draw higher lines than they say.
        self.ascent = round(self._font("").get_ascent() * self.scale)
        self.height = round(self._font("").render("Ág", True, (0, 0, 0)).get_height() * self.scale)
        self._lacking = self._picture(_LACKING)
        self._known: dict[str, bool] = {}

    def has(self, cluster: str) -> bool:
        """Whether the font has the first character of a cluster."""
        character = cluster[0]
        known = self._known.get(character)
        if known is None:
            known = self._known[character] = character.isspace() or self._picture(character) != self._lacking
        return known

    def render(self, text: str, colour: tuple[int, int, int], script: str) -> pygame.Surface:
        """Text of one script (see `script_of`) as a picture with a transparent background; emoji keep their colours."""
        picture = self._font(script).render(text, True, colour)
        if self.scale != 1.0:
            size = [max(1, round(side * self.scale)) for side in picture.get_size()]
            picture = pygame.transform.smoothscale(picture, size)
        return picture

    def width(self, text: str, script: str) -> int:
        """How wide `render` would make it."""
        wide: int = self._font(script).size(text)[0]
        return wide if self.scale == 1.0 else max(1, round(wide * self.scale))

    def _font(self, script: str) -> pygame.font.Font:
        font = self._fonts.get(script)
        if font is None:
            font = self._fonts[script] = pygame.font.Font(self._file, self._size)
            if script in _SCRIPTS.values():
                # Without text shaping (another SDL, another pygame) letters stay apart, which can still be read.
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
    emoji = ord(character) >= 0x1F000 or 0x2600 <= ord(character) <= 0x27BF
    likely = ("notocoloremoji", "segoeuiemoji", "applecoloremoji", "notoemoji") if emoji else (f"notosans{script}",)
    return (*likely, *_FALLBACKS)


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The four-letter code of a script that needs shaping; empty for all others."""
    if character.isascii():
        return ""
    return _SCRIPTS.get(unicodedata.name(character, "unknown").split()[0], "")

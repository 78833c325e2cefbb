"""Text in any script, with no font of this machine taken for granted."""

import pytest

from llm_coop_envs.render.screen.glyphs import TextRun, clusters, first_direction, visual_runs
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.text import Fonts, printable

INK = (0, 0, 0)


@pytest.fixture(scope="module")
def plain():
    return Fonts(system=False)


def painted(surface):
    return surface.get_bounding_rect().width


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "plain",
        "\n\t\x00\x1b[31m",
        "lone \ud800 surrogate",
        "x" * 3000,
        "👩‍👩‍👧 👍🏽 ✅",
        "مرحبا 12 (abc) שלום",
        "e\u0301\u0323\u200d",
        "\u202eevil\u202c",
        "\U0010ffff\U000f1234",
    ],
)
@pytest.mark.parametrize("system", [False, True])
def test_any_text_is_drawn(text, system):
    fonts = Fonts(system=system)
    surface = fonts.line(text, 13, INK)
    assert surface.get_height() == fonts.height(13)
    assert surface.get_width() >= 1
    for line in fonts.wrap(text, 13, 120, lines=3):
        assert fonts.width(line, 13) <= 120


def test_what_no_font_has_is_a_visible_box(plain):
    assert {sign for sign in "a中😀" if plain._face(sign, 12, False) is None} == {"中", "😀"}
    assert painted(plain.line("中", 13, INK)) > 4
    assert plain.width("中中中", 13) == 3 * plain.width("中", 13)


def test_wrapping_keeps_every_word_and_the_width(plain):
    text = "the quick brown fox jumps over the lazy dog again and again"
    lines = plain.wrap(text, 13, 90)
    assert " ".join(lines) == text
    assert len(lines) > 3
    assert all(plain.width(line, 13) <= 90 for line in lines)


def test_long_words_are_broken_and_long_texts_cut(plain):
    assert "".join(plain.wrap("x" * 100, 13, 60)) == "x" * 100
    cut = plain.wrap("word " * 100, 13, 60, lines=2)
    assert len(cut) == 2
    assert cut[-1].endswith("…")
    assert plain.wrap("one\n\n\ntwo", 13, 200) == ["one", "two"]


def test_fit(plain):
    assert plain.fit("short", 13, 500) == "short"
    cut = plain.fit("a rather long line of text", 13, 60)
    assert cut.endswith("…")
    assert plain.width(cut, 13) <= 60


def test_directions():
    assert visual_runs("abc") == [TextRun("abc", False)]
    assert visual_runs("") == []
    assert visual_runs("שלום") == [TextRun("שלום", True)]
    # In a right-to-left line what comes first stands at the right; numbers keep their order.
    assert visual_runs("שלום 12 abc") == [TextRun("12 abc", False), TextRun("שלום ", True)]
    assert visual_runs("abc שלום def") == [TextRun("abc ", False), TextRun("שלום", True), TextRun(" def", False)]
    assert first_direction("12 !") is None
    assert first_direction("12 ש") is True


def test_clusters_stay_together():
    assert clusters("e\u0301a") == ["e\u0301", "a"]
    assert clusters("👍🏽👩‍👧") == ["👍🏽", "👩‍👧"]


def test_what_has_no_picture_is_dropped():
    assert printable("a\r\nb\x07\u202ec") == "a\nbc"
    assert printable("\ud800") == "\ufffd"


def test_lines_are_kept_and_shared(plain):
    assert plain.line("same", 13, INK) is plain.line("same", 13, INK)
    assert plain.line("same", 13, INK) is not plain.line("same", 13, (1, 1, 1))


def test_brackets_in_right_to_left_text_stand_where_they_belong(plain):
    """The bracket that opens after a number stands left of it, and the space between them stays there."""
    (run,) = [run for run in visual_runs("ש 3 (ש)") if run.text.startswith(" (")]
    closing, _, opening = plain._split_run(run, 13, False)
    for part, drawn in ((closing, "("), (opening, ") ")):
        turned, expected = part.face.render(part.text, INK, part.script), part.face.render(drawn, INK, "")
        assert pygame.image.tobytes(turned, "RGBA") == pygame.image.tobytes(expected, "RGBA")


def test_widths_are_those_of_what_is_drawn(plain):
    for text in ("plain words", "中 boxes", "e\u0301 Привет", "שלום (3) abc"):
        assert plain.width(text, 14) == plain.line(text, 14, INK).get_width()

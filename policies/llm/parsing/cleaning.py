"""Cleaning an answer: one kind of minus and space, and no thoughts, template tokens, code fences or markdown."""

from __future__ import annotations

import re
from collections.abc import Collection
from unicodedata import normalize

from llm_coop_envs.policies.llm.parsing.answer_reading import EMPTY, TRUNCATED, UNREADABLE
from llm_coop_envs.policies.llm.parsing.objects import MARK, mark_objects
from llm_coop_envs.policies.llm.parsing.tokens import (
    LONGEST,
    TOO_LONG,
    remove_template_tokens,
    remove_thoughts,
    shorten,
)

# A space that may stand inside a number ("1 200"); ordinary spaces do not.
NARROW_SPACE = "\u00a0"

_CHARACTERS: dict[int, str] = {
    **dict.fromkeys(map(ord, "\u2212\ufe63\u2010\u2011\u207b"), "-"),
    **dict.fromkeys(map(ord, "\u2007\u2008\u2009\u202f"), NARROW_SPACE),
    **dict.fromkeys(map(ord, "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u200a\u205f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u2032\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d"), '"'),
    ord("\u066b"): ".",
    ord("\u066c"): ",",
    ord("\u3002"): ". ",
    ord("\u3001"): ", ",
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{ord(sign): sign + " " for sign in "\uff0c\uff1a\uff1b\uff1f\uff01"},
    ord("\uff0c"): ", ",
    ord("\uff1a"): ": ",
    ord("\uff1b"): "; ",
    ord("\uff1f"): "? ",
    ord("\uff01"): "! ",
    # Keycap emoji are a digit and this sign.
    ord("\u20e3"): "",
}
# "½"
_FRACTION = re.compile("[\u00bc-\u00be\u2150-\u215e]")
# A whole number with a fraction: "7 1/2", "7 and 1/2", "7-1/2"
_MIXED = re.compile(
    r"(?<![\w./,-])(\d{1,4})(?: {1,6}and {1,6}| {1,6}|-)([1-9]\d?)/([1-9]\d?)(?![\w/]|[.,]\d)", re.IGNORECASE
)
# A fraction above 1 behind a colon or "=", at the end of a line: "answer: 15/2"
_IMPROPER = re.compile(r"([:=][^\w\n]{0,4})(\d{1,4})/([1-9]\d?)(?=\W{0,3}$)", re.MULTILINE)

# "<answer>7</answer>", "<final_price>7</final_price>"
_ANSWER_TAG = re.compile(
    r"<((?:(?:my|final|chosen|your)[_ -]?)?(?:answer|response|output|result|price|number|choice|exit|move|decision"
    r"|action|guess|bid"
    r"|option|submission|value|letter|direction)|final)>([^<>]{0,2000})</\1>",
    re.IGNORECASE,
)
# TeX, in this order: "\boxed{7}", "\frac{1}{2}", "\times", "\text{left}", "\(7\)", "$7$"
_BOXED = re.compile(r"\\{1,4}boxed ?\{((?:[^{}\\]|\\[^{}b]|\\?\{[^{}]{0,200}\}){0,400})\}")
_TEX_FRACTION = re.compile(r"\\{1,4}[dt]?frac ?\{(\d{1,6})\}\{(\d{1,6})\}")
_TEX_TIMES = re.compile(r"\\{1,4}(?:times|cdot)\b")
_TEX_TEXT = re.compile(r"\\{1,4}(?:text|mathrm|mathbf|textbf|mathit|operatorname) ?\{([^{}\\]{0,400})\}")
_TEX_MARKS = re.compile(r"\\{1,4}[()\[\],;!]|\$\$")
_TEX_INLINE = re.compile(r"\$(-?[\d.,]{1,40}|[A-Za-z])\$")
# A line break that was escaped twice: "7\nBecause"
_ESCAPED_LINE = re.compile(r"(?:\\n)+(?![a-z])")
# A sign that was escaped: "\$7", "\*"
_ESCAPED = re.compile(r"\\{1,4}([$%_#*`>~.\-])")
# "<b>7</b>", "<br>"
_TAG = re.compile(r"</?(?:b|i|u|em|strong|p|br|div|span|code|pre|sub|sup|h[1-6]|li|ul|ol)\b[^<>]{0,80}>", re.IGNORECASE)
# What a program prints, as its comment says: "print(price) # 7"
_PRINTED = re.compile(
    r"^\W{0,4}print\([^\n]{1,80}\) ?# ?(?:output|prints?|->|=>)?[:= ]{0,2}(-?[\w.]{1,20})$",
    re.MULTILINE | re.IGNORECASE,
)
# "```python"
_FENCE = re.compile(r"^(?:```|~~~)[\w+-]{0,20}$", re.MULTILINE)
# "~~7~~"
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
# "**7**", "__7__", "`7`"
_BOLD = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__|`")
# "*7*"
_STARRED = re.compile(r"(?<![\w*])\*([^*\s][^*\n]{0,400})\*(?![\w*])")
# What is played and not said: "*looks around* Left!"
_PLAYED = re.compile(r"^[*_(]([a-z]+(?:s|ing)\b[^*_()\n]{0,80})[*_)] (?=\S)", re.MULTILINE | re.IGNORECASE)
# "_7_"
_UNDERLINED = re.compile(r"(?<![\w_])_([^_\s][^_\n]{0,400})_(?![\w_])")
# "## 7", "> 7", "- 7", "• 7"
_LINE_MARK = re.compile(r"^(?:#{1,6} |(?:>(?!=) ?){1,8}|[*+\u2022\u25cf\u25aa\u2192] |- ){1,3}", re.MULTILINE)
# "---", "|---|---|"
_RULE = re.compile(r"^[-=*_|: \u2014]{3,}$", re.MULTILINE)
# A line that is crossed out: "\u274c 7"
_CROSSED = re.compile("^[\u274c\u274e\u2717\u2718\U0001f6ab\u26d4]\ufe0f?(?= ?[^\\s\u2705])", re.MULTILINE)
_BLANKS = re.compile(r"[ \t\v\f]+|\u00a0{2,}")
# "https://example.org/7"
_ADDRESS = re.compile(r"\bhttps?://\S{1,400}", re.IGNORECASE)
# "<7>"
_IN_ANGLES = re.compile(r"<(-?[\d.,]{1,30})>")
# "!!!!!!!!": no answer holds so much of one sign.
_REPEATED = re.compile(r"([^\w\s])\1{7,}")


def clean_words(text: str) -> tuple[str, tuple[str, ...]]:
    """Remove thoughts and template tokens from an answer.

    Returns:
        The answer's words; and flags for what else was removed, see `tokens`.
    """
    cut = shorten(text, LONGEST)
    spoken, flags = remove_template_tokens(remove_thoughts(cut))
    return spoken.strip(), flags if cut == text else (TOO_LONG, *flags)


def prepare(text: str, keys: Collection[str], truncated: bool) -> tuple[str, tuple[str, ...], str]:
    """Make an answer ready for the rules that find its number or option.

    Args:
        text: the answer.
        keys: under which key of an object the answer may stand, best first.
        truncated: whether the provider cut the answer.

    Returns:
        The plain answer; flags for what was removed; and the status of an answer in which nothing is left.
    """
    answer, flags = clean_words(text)
    if not answer:
        return "", flags, TRUNCATED if truncated else EMPTY
    answer, has_broken_object = mark_objects(answer, keys)
    short = shorten(answer)
    if short != answer and TOO_LONG not in flags:
        flags = (TOO_LONG, *flags)
    answer = remove_markup(shorten(unify_characters(short)))
    if answer:
        return answer, flags, ""
    return "", flags, TRUNCATED if truncated and has_broken_object else UNREADABLE


def unify_characters(text: str) -> str:
    """Write one kind of minus, quotation mark and space, full-width letters as plain ones, fractions as decimals."""
    if not text.isascii():
        text = _FRACTION.sub(
            lambda match: f" {normalize('NFKC', match[0])}".replace("\u2044", "/"), text.translate(_CHARACTERS)
        )
    if "/" in text:
        text = _IMPROPER.sub(_improper_to_decimal, text)
        text = _MIXED.sub(_mixed_to_decimal, text)
    return text


def _improper_to_decimal(match: re.Match[str]) -> str:
    label, numerator, denominator = match[1], int(match[2]), int(match[3])
    return f"{label}{numerator / denominator:.12g}" if numerator > denominator else match[0]


def _mixed_to_decimal(match: re.Match[str]) -> str:
    whole, numerator, denominator = map(int, match.groups())
    return f"{whole + numerator / denominator:.12g}" if numerator < denominator else match[0]


def remove_markup(text: str) -> str:
    """Remove markdown, TeX and simple HTML, empty lines, and spaces around lines.

    What is marked as the answer gets a line of its own that begins with `MARK`.
    """
    # A look for a sign costs a hundredth of a pattern that begins with it.
    text = _REPEATED.sub(r"\1\1\1", text)
    if "://" in text:
        text = _ADDRESS.sub(" ", text)
    text = strip_lines(_IN_ANGLES.sub(r"\1", text) if "<" in text else text)
    if "<" in text:
        text = _ANSWER_TAG.sub(lambda match: f"\n{MARK}{match[2].strip()}\n", text)
        text = _TAG.sub(_line_break_for_tag, text)
    if "\\" in text:
        text = _remove_tex(text)
    if "$" in text:
        text = _TEX_INLINE.sub(r"\1", text)
    return _remove_markdown(text)


def _line_break_for_tag(match: re.Match[str]) -> str:
    return "\n" if match[0].lower().startswith(("<br", "<p", "</p", "<li", "</li")) else ""


def _remove_tex(text: str) -> str:
    text = _ESCAPED_LINE.sub("\n", text)
    text = _TEX_TIMES.sub("*", _TEX_TEXT.sub(r"\1", _TEX_FRACTION.sub(r"\1/\2", text)))
    text = _BOXED.sub(lambda match: f"\n{MARK}{match[1].strip()}\n", text)
    return _ESCAPED.sub(r"\1", _TEX_MARKS.sub(" ", text))


def _remove_markdown(text: str) -> str:
    has_stars, has_underscores, has_backticks = "*" in text, "_" in text, "`" in text
    if has_stars or has_underscores or "(" in text:
        text = _PLAYED.sub(r"\1\n", text)
    if "print(" in text.lower():
        text = _PRINTED.sub(lambda match: f"{MARK}{match[1]}", text)
    if has_backticks or "~" in text:
        text = _STRUCK.sub(" ", _FENCE.sub("", text))
    text = _RULE.sub("", text)
    if has_stars or has_underscores or "`" in text:
        text = _BOLD.sub("", text)
    text = _LINE_MARK.sub("", text)
    if not text.isascii():
        text = _CROSSED.sub("not ", text)
    if has_stars:
        text = _STARRED.sub(r"\1", text)
    return strip_lines(_UNDERLINED.sub(r"\1", text) if has_underscores else text)


def strip_lines(text: str) -> str:
    """Remove empty lines, spaces around lines, and all but one of several spaces."""
    lines = (line.strip(" ") for line in _BLANKS.sub(" ", text).splitlines())
    return "\n".join(line for line in lines if line)

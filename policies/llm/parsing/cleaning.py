"""Making an answer plain: one kind of minus and space, and no thoughts, fences or markdown."""

from __future__ import annotations

import re

# Longer answers are garbage; their beginning and end are where an answer would stand.
MAX_LENGTH = 20_000
_HEAD = 4_000

# A space that may stand inside a number ("1 200"); ordinary spaces do not.
NARROW = "\u00a0"

_CHARACTERS: dict[int, str] = {
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u2061\u2062\u2063\ufe0e\ufe0f"), ""),
    **dict.fromkeys(map(ord, "\u2212\ufe63\u2010\u2011\u207b"), "-"),
    **dict.fromkeys(map(ord, "\u2007\u2008\u2009\u202f"), NARROW),
    **dict.fromkeys(map(ord, "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u200a\u205f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u2032\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d"), '"'),
    ord("\u066b"): ".",
    ord("\u066c"): ",",
    ord("\u3002"): ". ",
    ord("\u3001"): ", ",
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    # Keycap emoji are a digit and this sign.
    ord("\u20e3"): "",
}
_HALVES = {"½": ".5", "¼": ".25", "¾": ".75"}
_HALF = re.compile(r"(\d?)([½¼¾])")

_THOUGHT_NAMES = r"(?:think|thinking|thought|thoughts|reasoning|scratchpad|reflection|analysis)"
_THOUGHT = re.compile(rf"<({_THOUGHT_NAMES})\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_THOUGHT_END = re.compile(rf"^.*</{_THOUGHT_NAMES}\s*>", re.IGNORECASE | re.DOTALL)
_THOUGHT_OPEN = re.compile(rf"<{_THOUGHT_NAMES}\b[^<>]*>.*\Z", re.IGNORECASE | re.DOTALL)
_CHANNEL = re.compile(r"^.*<\|channel\|>\s*final\s*<\|message\|>", re.DOTALL)
_SPECIAL = re.compile(r"<\|[^|<>]{1,40}\|>|</?s>|\[/?INST\]|<(?:end|start)_of_turn>", re.IGNORECASE)

_ANSWER_TAG = re.compile(
    r"<(final[_ -]?answer|answer|response|output|result|price|number|choice|exit|move)>(.*?)</\1>",
    re.IGNORECASE | re.DOTALL,
)
_BOXED = re.compile(r"\\+boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_TEX_TEXT = re.compile(r"\\+(?:text|mathrm|mathbf|textbf|mathit|operatorname)\s*\{([^{}]*)\}")
_TEX_MARKS = re.compile(r"\\+[()\[\],;!]|\$\$")
_TEX_INLINE = re.compile(r"\$(-?[\d.,]+)\$")
_ESCAPED = re.compile(r"\\+([$%_#*`>~.\-])")
_TAG = re.compile(r"</?(?:b|i|u|em|strong|p|br|div|span|code|pre|sub|sup|h[1-6]|li|ul|ol)\b[^<>]{0,80}>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w+-]*[ \t]*$", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]*~~")
_BOLD = re.compile(r"\*\*+|__+(?=\W|$)|(?<!\w)__+|`+")
_STARRED = re.compile(r"(?<![\w*])\*(\S|\S[^*\n]*\S)\*(?![\w*])")
_UNDERLINED = re.compile(r"(?<!\w)_(\S|\S[^_\n]*\S)_(?!\w)")
_LINE_MARK = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|(?:>[ \t]*)+|[*+\u2022\u25cf\u25aa\u2192][ \t]+|-[ \t]+)", re.MULTILINE
)
_MARKS = re.compile(r"[-*_`#>=\u2022\u25cf\u25aa\u2192\u2014]")
_RULE = re.compile(r"^[ \t]*(?:[-=*_\u2014]{3,})[ \t]*$", re.MULTILINE)

#: What stands before an answer that was marked as such, after `plain`.
MARK = "\x02"


def shorten(text: str) -> str:
    """The beginning and the end of an answer that is too long to be one."""
    if len(text) <= MAX_LENGTH:
        return text
    return text[:_HEAD] + "\n" + text[_HEAD - MAX_LENGTH :]


def spoken(text: str) -> str:
    """An answer without the model's thoughts and its provider's special tokens.

    Thoughts that were opened and not closed go to the end; if only their end is there, they began before it.
    """
    if "<" in text or "[" in text:
        text = _CHANNEL.sub("", text)
        if "</" in text:
            text = _THOUGHT_END.sub("", _THOUGHT.sub("", text))
        text = _THOUGHT_OPEN.sub("", text)
        text = _SPECIAL.sub("", text)
    return text.strip()


def characters(text: str) -> str:
    """One kind of minus, quotation mark and space; full-width letters and fractions as plain ones."""
    if text.isascii():
        return text
    text = _HALF.sub(lambda m: m[1] + _HALVES[m[2]] if m[1] else "0" + _HALVES[m[2]], text)
    return text.translate(_CHARACTERS)


def plain(text: str) -> str:
    """An answer without markdown, TeX and simple HTML.

    What is marked as the answer gets a line of its own that begins with `MARK`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace(MARK, " ")
    if "<" in text:
        text = _ANSWER_TAG.sub(lambda m: f"\n{MARK}{m[2].strip()}\n", text)
        text = _TAG.sub(lambda m: "\n" if m[0].lower().startswith(("<br", "<p", "</p", "<li", "</li")) else "", text)
    if "\\" in text:
        text = _BOXED.sub(lambda m: f"\n{MARK}{m[1].strip()}\n", text)
        text = _TEX_TEXT.sub(r"\1", text)
        text = _TEX_MARKS.sub(" ", text)
        text = _ESCAPED.sub(r"\1", text)
    if "$" in text:
        text = _TEX_INLINE.sub(r"\1", text)
    if "`" in text or "~" in text:
        text = _FENCE.sub("", text)
        text = _STRUCK.sub(" ", text)
    if _MARKS.search(text):
        text = _BOLD.sub("", _RULE.sub("", text))
        text = _LINE_MARK.sub("", text)
        text = _STARRED.sub(r"\1", text)
        text = _UNDERLINED.sub(r"\1", text)
    return text.strip()


def lines_of(text: str) -> list[str]:
    """The lines that are not empty, without spaces around them."""
    return [line.strip() for line in text.split("\n") if line.strip()]

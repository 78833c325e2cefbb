"""Making an answer plain: one kind of minus and space, and no thoughts, fences or markdown."""

from __future__ import annotations

import re
from collections.abc import Collection
from unicodedata import normalize

from llm_coop_envs.policies.llm.parsing.objects import MARK, marked
from llm_coop_envs.policies.llm.parsing.reading import EMPTY, TRUNCATED, UNREADABLE
from llm_coop_envs.policies.llm.parsing.tokens import LONGEST, TOO_LONG, shorten, spoken, without_tokens

# A space that may stand inside a number ("1 200"); ordinary spaces do not.
NARROW = "\u00a0"

_CHARACTERS: dict[int, str] = {
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
    **{ord(sign): sign + " " for sign in "\uff0c\uff1a\uff1b\uff1f\uff01"},
    ord("\uff0c"): ", ",
    ord("\uff1a"): ": ",
    ord("\uff1b"): "; ",
    ord("\uff1f"): "? ",
    ord("\uff01"): "! ",
    # Keycap emoji are a digit and this sign.
    ord("\u20e3"): "",
}
_FRACTION = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_MIXED = re.compile(
    r"(?<![\w./,-])(\d{1,4})(?: {1,2}and {1,2}| {1,3}|-)([1-9]\d?)/([1-9]\d?)(?![\w/]|[.,]\d)", re.IGNORECASE
)

_IMPROPER = re.compile(r"([:=][^\w\n]{0,4})(\d{1,4})/([1-9]\d?)(?=\W{0,3}$)", re.MULTILINE)

_ANSWER_TAG = re.compile(
    r"<((?:(?:my|final|chosen|your)[_ -]?)?(?:answer|response|output|result|price|number|choice|exit|move|decision"
    r"|action|guess|bid"
    r"|option|submission|value|letter|direction)|final)>([^<>]{0,2000})</\1>",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\{1,4}boxed ?\{((?:[^{}\\]|\\[^{}b]|\\?\{[^{}]{0,200}\}){0,400})\}")
_TEX_FRACTION = re.compile(r"\\{1,4}[dt]?frac ?\{(\d{1,6})\}\{(\d{1,6})\}")
_TEX_TIMES = re.compile(r"\\{1,4}(?:times|cdot)\b")
_TEX_TEXT = re.compile(r"\\{1,4}(?:text|mathrm|mathbf|textbf|mathit|operatorname) ?\{([^{}\\]{0,400})\}")
_TEX_MARKS = re.compile(r"\\{1,4}[()\[\],;!]|\$\$")
_TEX_INLINE = re.compile(r"\$(-?[\d.,]{1,40}|[A-Za-z])\$")
_ESCAPED_LINE = re.compile(r"(?:\\n)+(?![a-z])")
_ESCAPED = re.compile(r"\\{1,4}([$%_#*`>~.\-])")
_TAG = re.compile(r"</?(?:b|i|u|em|strong|p|br|div|span|code|pre|sub|sup|h[1-6]|li|ul|ol)\b[^<>]{0,80}>", re.IGNORECASE)
# What a program prints, as its comment says.
_PRINTED = re.compile(
    r"^\W{0,4}print\([^\n]{1,80}\) ?# ?(?:output|prints?|->|=>)?[:= ]{0,2}(-?[\w.]{1,20})$", re.MULTILINE
)
_FENCE = re.compile(r"^(?:```|~~~)[\w+-]{0,20}$", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
_BOLD = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__|`")
_STARRED = re.compile(r"(?<![\w*])\*([^*\s][^*\n]{0,400})\*(?![\w*])")
# What is played and not said, as in "*looks around* Left!".
_PLAYED = re.compile(r"^[*_(]([a-z]+(?:s|ing)\b[^*_()\n]{0,80})[*_)] (?=\S)", re.MULTILINE | re.IGNORECASE)
_UNDERLINED = re.compile(r"(?<![\w_])_([^_\s][^_\n]{0,400})_(?![\w_])")
_LINE_MARK = re.compile(r"^(?:#{1,6} |(?:>(?!=) ?){1,8}|[*+\u2022\u25cf\u25aa\u2192] |- ){1,3}", re.MULTILINE)
_RULE = re.compile(r"^[-=*_|: \u2014]{3,}$", re.MULTILINE)
_BLANKS = re.compile(r"[ \t\v\f]+|\u00a0{2,}")
# No answer holds so much of one sign.
_ADDRESS = re.compile(r"\bhttps?://\S{1,400}", re.IGNORECASE)
_IN_ANGLES = re.compile(r"<(-?[\d.,]{1,30})>")
_REPEATED = re.compile(r"([^\w\s])\1{7,}")


def uncovered(text: str) -> tuple[str, tuple[str, ...]]:
    """An answer without thoughts and template tokens, and flags for what else was taken away."""
    cut = shorten(text, LONGEST)
    bare, flags = without_tokens(spoken(cut))
    return bare.strip(), flags if cut == text else (TOO_LONG, *flags)


def prepared(text: str, keys: Collection[str], truncated: bool) -> tuple[str, tuple[str, ...], str]:
    """An answer made ready for reading.

    Args:
        text: the answer.
        keys: under which key of an object the answer may stand, best first.
        truncated: whether the provider cut the answer.

    Returns:
        The plain answer; flags for what was taken away; and the status of an answer in which nothing is left.
    """
    answer, flags = uncovered(text)
    if not answer:
        return "", flags, TRUNCATED if truncated else EMPTY
    answer, broken = marked(answer, keys)
    short = shorten(answer)
    if short != answer and TOO_LONG not in flags:
        flags = (TOO_LONG, *flags)
    answer = plain(shorten(characters(short)))
    if answer:
        return answer, flags, ""
    return "", flags, TRUNCATED if truncated and broken else UNREADABLE


def characters(text: str) -> str:
    """One kind of minus, quotation mark and space; full-width letters as plain ones, mixed fractions as decimals."""
    if not text.isascii():
        text = _FRACTION.sub(
            lambda m: f" {normalize('NFKC', m[0])}".replace("\u2044", "/"), text.translate(_CHARACTERS)
        )
    if "/" in text:
        text = _IMPROPER.sub(lambda m: f"{m[1]}{int(m[2]) / int(m[3]):.12g}" if int(m[2]) > int(m[3]) else m[0], text)
        text = _MIXED.sub(_decimal, text)
    return text


def _decimal(match: re.Match[str]) -> str:
    whole, over, under = map(int, match.groups())
    return f"{whole + over / under:.12g}" if over < under else match[0]


def plain(text: str) -> str:
    """An answer without markdown, TeX and simple HTML: lines without spaces around them, none of them empty.

    What is marked as the answer gets a line of its own that begins with `MARK`.
    """
    # A look for a sign costs a hundredth of a pattern that begins with it.
    text = _REPEATED.sub(r"\1\1\1", text)
    if "://" in text:
        text = _ADDRESS.sub(" ", text)
    text = lined(_IN_ANGLES.sub(r"\1", text) if "<" in text else text)
    if "<" in text:
        text = _ANSWER_TAG.sub(lambda m: f"\n{MARK}{m[2].strip()}\n", text)
        text = _TAG.sub(lambda m: "\n" if m[0].lower().startswith(("<br", "<p", "</p", "<li", "</li")) else "", text)
    if "\\" in text:
        text = _ESCAPED_LINE.sub("\n", text)
        text = _TEX_TIMES.sub("*", _TEX_TEXT.sub(r"\1", _TEX_FRACTION.sub(r"\1/\2", text)))
        text = _BOXED.sub(lambda m: f"\n{MARK}{m[1].strip()}\n", text)
        text = _ESCAPED.sub(r"\1", _TEX_MARKS.sub(" ", text))
    if "$" in text:
        text = _TEX_INLINE.sub(r"\1", text)
    starred, underlined = "*" in text, "_" in text
    if starred or underlined or "(" in text:
        text = _PLAYED.sub(r"\1\n", text)
    text = _PRINTED.sub(lambda m: f"{MARK}{m[1]}", text) if "print" in text else text
    if "`" in text or "~" in text:
        text = _STRUCK.sub(" ", _FENCE.sub("", text))
    text = _RULE.sub("", text)
    if starred or underlined or "`" in text:
        text = _BOLD.sub("", text)
    text = _LINE_MARK.sub("", text)
    if starred:
        text = _STARRED.sub(r"\1", text)
    return lined(_UNDERLINED.sub(r"\1", text) if underlined else text)


def lined(text: str) -> str:
    """A text with single spaces, and without empty lines and spaces around the others."""
    lines = (line.strip(" ") for line in _BLANKS.sub(" ", text).splitlines())
    return "\n".join(line for line in lines if line)

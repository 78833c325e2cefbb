"""Finding the numbers in a plain answer, and which of them could be meant as the answer.

A number in an answer is often something else: a round, a player, a fraction of the mean, the end of a range, what is
not going to be named. Such numbers are recognised by what stands beside them, on their own line, and are no candidates.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from llm_coop_envs.policies.llm.parsing.cleaning import NARROW

_CURRENCY = r"(?:US\$|CA\$|AU\$|\$|€|£|¥|₹|USD\s?|EUR\s?|GBP\s?|Rs\.?\s?)"
_NUMBER = re.compile(
    rf"(?P<minus>-\s?)?(?P<currency>{_CURRENCY})?\s?(?P<sign>[-+])?"
    rf"(?P<digits>\d+(?:[.,'{NARROW}]\d+)*|[.,]\d+)(?P<power>[eE][+-]?\d{{1,2}}(?!\w))?"
)
_UNIT = (
    r"(?:%|percent|per cent|prozent|[$€£¥]|usd|eur|gbp|dollars?|euros?|pounds?|bucks|marks?|credits?|points?|coins?"
    r"|currency units?|money units?|taler|\(?dollars\)?)"
)
_GLUED = re.compile(r"(?:usd|eur|gbp|dollars?|euros?|marks?|credits?|points?)(?![a-z])", re.IGNORECASE)

# What stands before a number that counts or names something else.
_NAMED = re.compile(
    r"(?:\b(?:rounds?|players?|firms?|exchanges?|turns?|steps?|days?|weeks?|phases?|levels?|periods?|options?|person"
    r"|evacuees?|agents?|groups?|examples?|stages?|iterations?|games?|trials?|chapter|table|runden?|spieler|firma"
    r"|gruppe"
    r"|schritt|stufe|order|version|part|blocks?|bins?|lines?|zeile)\s*(?:=|no\.?|number|nr\.?)?|#|\b[kntqmN]\s*="
    r"|\bno\.|\bnr\.)[\s_]*$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:above|below|beneath|under|over|exceed(?:s|ing)?|beyond|at least|at most|no less than|no more than|up to|than"
    r"|minimum(?: of| is)?|maximum(?: of| is)?|max|min|out of|mindestens|höchstens|über|unter|als|nearly all"
    r"|first|last|past"
    r"|previous|next|letzten?|every|each|all)\s+(?:\w+\s+){0,1}$",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|avoid(?:ing)?|instead of|rather than|against|except|without|n't|don't|won't|nicht|statt|kein"
    r"|(?:any|every|no)thing but|all but)\b"
    r"[^.,;:\n\d]{0,24}$",
    re.IGNORECASE,
)
_STATISTIC = re.compile(
    r"\b(?:mean|averag\w*|avg|median|midpoint|target|sum|total|expect\w*|assum\w*|suppos\w*|if\b[^,;.\n]{0,40}"
    r"|cost(?:s|ing)?|costs? of|sold|sells?|demand(?:ed)?|profits?|earn(?:ed|s)?|made|gained|mittelwert"
    r"|durchschnitt|mittel"
    r"|kosten|gewinn)\b[^.,;:\n\d]{0,28}$",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:last|previous|prior|earlier|past|former|initial|before|their|rival'?s?|opponent'?s?|competitor'?s?|other'?s?"
    r"|his|her|its|others|they|was|were|had|did|letzte[nr]?|vorige[nr]?|bisher\w*)\b[^.,;:\n\d]{0,28}$",
    re.IGNORECASE,
)
# What others are expected to do.
_OTHERS = re.compile(
    r"\b(?:\w+_\d+|rivals?|competitors?|opponents?|everyone|everybody|most(?: players)?|people)\s"
    r"(?:(?!\b(?:I|and)\b)[^.,;:\n\d]){0,14}\b(?:will|would|might|may|could|should|likely|probably"
    r"|to)\b[^.,;:\n\d]{0,20}$",
    re.IGNORECASE,
)
# An old price, a cost, or by how much something changes.
_ASIDE = re.compile(
    r"\b(?:previous|prior|old|last|former|costs?|margin|profit|demand|sales)\w*(?:\s+\w+)?\s*[:=]\s*$"
    r"|\bby\s+(?:about\s+)?$",
    re.IGNORECASE,
)
_RANGE_START = re.compile(
    r"(?:\b(?:between|middle of|from|zwischen|von|range of|range)|[\[(])\s*(?:\$|€)?$", re.IGNORECASE
)
# What stands after such a number.
_COUNTED = re.compile(
    r"[\s-]*(?:rounds?|players?|firms?|people|persons?|others?|times|turns?|exchanges?|periods?|competitors?"
    r"|participants?"
    r"|sentences?|words?|numbers?|options?|choices?|runden|spielern?|leuten?|personen|mal|groups?|members?|steps?"
    r"|cells?"
    r"|days?|weeks?|units|percent|per cent|prozent|%|cents?|levels?|votes?|messages?|characters?|digits?|decimals?"
    r"|of (?:the|us|them)|von uns|thirds?|halves|quarters?)(?![a-z])",
    re.IGNORECASE,
)
_FRACTION_AFTER = re.compile(r"\s*/\s*\d")
_OPERATOR_AFTER = re.compile(r"\s*(?:[*\u00d7·÷^]\s*[\d($]|[x]\s+[\d($]|x\d|\+\s*[\d($]|\s-\s+[\d($]|\)\s*[*\u00d7/÷])")
_OPERATOR_BEFORE = re.compile(r"(?:[\d)%]\s*(?:[*\u00d7·÷^+/±]|(?<=[\s\d])x)|[\d)]\s+-)\s*\$?\(?$")
_RANGE_AFTER = re.compile(r"\s*(?:[-\u2013\u2014~]|to\b|bis\b|through\b|\.\.+)\s*(?:\$|€)?\d", re.IGNORECASE)
_RANGE_BEFORE = re.compile(r"\d\s*[$€]?\s*(?:[-\u2013\u2014~]|\bbis|\bthrough|\.\.+)\s*(?:\$|€)?$", re.IGNORECASE)
_BETWEEN_BEFORE = re.compile(
    r"(?:between|middle of|from|zwischen|von|range of|range|[\[(])\s*(?:\$|€)?[\d.,]+\s*(?:and|to|und|bis"
    r"|,)\s*(?:\$|€)?$",
    re.IGNORECASE,
)
_PLAIN_TO_BEFORE = re.compile(r"(?:^|[\s(\[])(?:\$|€)?[\d.,]*\d\s*to\s*(?:\$|€)?$", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:lower|rais|increas|reduc|decreas|cut|drop|mov|chang|adjust|bring|tak|go|senk|erhöh)\w*\b(?:[^.;:\n]"
    r"|\.\d){0,60}$",
    re.IGNORECASE,
)
_BETWEEN_AFTER = re.compile(r"\s*(?:and|und|,)\s*(?:\$|€)?\d", re.IGNORECASE)
_RATIO_AFTER = re.compile(r":\d")
# An answer with more numbers is garbage; its first and last ones are looked at.
_MANY = 200
_LIST_MARK = re.compile(r"^\(?(\d{1,2})[.)]\s+\S", re.MULTILINE)


@dataclass(frozen=True)
class Numeral:
    """One number in an answer.

    Attributes:
        values: what it may stand for; more than one if a separator can be read in two ways.
        start: where it begins, sign and currency included.
        end: where it ends.
        text: the answer it stands in.
        counts: whether it only counts a line of a list.
    """

    values: tuple[float, ...]
    start: int
    end: int
    text: str
    counts: bool

    @functools.cached_property
    def candidate(self) -> bool:
        """Whether it may be meant as the answer; found out when a rule asks, since most answers need no such rule."""
        return not self.counts and _may_be_meant(self.text, self.start, self.end)


def numerals(text: str) -> list[Numeral]:
    """All numbers of a plain answer, first to last.

    Args:
        text: the answer, after `cleaning.characters` and `cleaning.plain`.
    """
    marks = _list_marks(text)
    found: list[Numeral] = []
    matches = list(_NUMBER.finditer(text))
    if len(matches) > _MANY:
        matches = matches[: _MANY // 2] + matches[-_MANY // 2 :]
    for match in matches:
        whole = _whole(text, match)
        if whole is None:
            continue
        start, end, values = whole
        found.append(Numeral(values, start, end, text, start in marks))
    return found


def _whole(text: str, match: re.Match[str]) -> tuple[int, int, tuple[float, ...]] | None:
    """Where a number stands and what it may be, or `None` if it is part of a name such as `player_3` or `2nd`."""
    begin = match.start("digits")
    before = text[begin - 1] if begin else " "
    if match["currency"] is None and match["sign"] is None and (before.isalnum() or before in "_#"):
        return None
    start, negative = match.start(), False
    if match["sign"] is not None:
        # A sign belongs to the number if nothing is glued to its other side: "8-7" is no -7.
        at = match.start("sign")
        ahead = text[at - 1] if at else " "
        negative = match["sign"] == "-" and (match["currency"] is not None or not (ahead.isalnum() or ahead in ")_"))
        if not negative and match["currency"] is None:
            start = begin
    elif match["minus"] is not None:
        ahead = text[start - 1] if start else " "
        tight = not match["minus"].endswith(" ")
        negative = tight and not (ahead.isalnum() or ahead in ")_")
    if match["currency"] is None and match["sign"] is None and not negative:
        start = begin
    end = match.end()
    after = text[end : end + 12]
    if (after[:1].isalpha() or after[:1] == "_") and not _GLUED.match(after):
        return None
    values = _values(match["digits"])
    if match["power"]:
        values = tuple(value * 10.0 ** int(match["power"][1:]) for value in values)
    if not values:
        return None
    return start, end, tuple(-value if negative else value for value in values)


def _values(digits: str) -> tuple[float, ...]:
    """What digits with separators may stand for, likeliest first; nothing if they are no number (`3.5.2`)."""
    if len(digits) > 40:
        return (float("inf"),)
    separators = [c for c in digits if not c.isdigit()]
    if not separators:
        return (float(digits),)
    kinds = dict.fromkeys(separators)
    parts = re.split(r"\D", digits)
    grouped = len(parts[0]) in (1, 2, 3) and parts[0] != "0" and all(len(part) == 3 for part in parts[1:])
    if len(kinds) == 1:
        kind = separators[0]
        if kind in f"'{NARROW}":
            return (float("".join(parts)),) if grouped else ()
        if len(separators) == 1:
            decimal = float(digits.replace(",", "."))
            if not grouped or not parts[0]:
                return (decimal,)
            thousands = float("".join(parts))
            return (thousands, decimal) if kind == "," else (decimal, thousands)
        return (float("".join(parts)),) if grouped else ()
    # The last separator is the decimal mark if it is another one than those before.
    if len(kinds) == 2 and separators.count(separators[-1]) == 1 and separators[-1] in ".,":
        groups = parts[:-1]
        if len(groups[0]) in (1, 2, 3) and all(len(part) == 3 for part in groups[1:]):
            return (float("".join(groups) + "." + parts[-1]),)
    return ()


def _may_be_meant(text: str, start: int, end: int) -> bool:
    """Whether a number could be the answer, judged by its own line."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    before = text[max(line_start, start - 80) : start]
    after = text[end : min(len(text) if line_end < 0 else line_end, end + 40)]
    if not before.strip() and not after.strip(" .!"):
        return True
    if any(pattern.match(after) for pattern in (_COUNTED, _FRACTION_AFTER, _OPERATOR_AFTER, _RATIO_AFTER)):
        return False
    if any(p.search(before) for p in (_NAMED, _OPERATOR_BEFORE, _BOUND, _DENIED)):
        return False
    if _in_range_words(before, after):
        return False
    return not any(pattern.search(before) for pattern in (_STATISTIC, _PAST, _OTHERS, _ASIDE))


def _in_range_words(before: str, after: str) -> bool:
    """Whether a number is an end of a range; the second number of "lower it from 7 to 6.5" is not."""
    if _RANGE_AFTER.match(after):
        return True
    if _RANGE_START.search(before) and (_BETWEEN_AFTER.match(after) or before.rstrip(" $€").lower().endswith("from")):
        return True
    if _PLAIN_TO_BEFORE.search(before) or _BETWEEN_BEFORE.search(before):
        return not _CHANGED.search(before)
    return bool(_RANGE_BEFORE.search(before))


def _list_marks(text: str) -> set[int]:
    """Where numbers stand that only count the lines of a list: two or more that follow each other."""
    marks = {int(match[1]): match.start(1) for match in _LIST_MARK.finditer(text)}
    return {at for number, at in marks.items() if number - 1 in marks or number + 1 in marks}


UNIT = _UNIT

"""Finding the numbers in a plain answer, and which of them cannot be meant as the answer.

A number in an answer is often something else: a round, a player, a fraction of the mean, the end of a range. Such
numbers are recognised by what stands beside them in their sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm_coop_envs.policies.llm.parsing.cleaning import NARROW
from llm_coop_envs.policies.llm.parsing.judging import NAMED, X, ends_of, stated
from llm_coop_envs.policies.llm.parsing.numberwords import SPELLED

_CURRENCY = r"(?:(?:us|ca|au)?\$|€|£|¥|₹|(?:usd|eur|gbp|chf) ?|rs\.? ?)"
_UNIT = (
    r"(?: ?(?:%|percent\b|per cent\b|prozent\b|[$€£¥₹]|usd\b|eur\b|gbp\b|chf\b|dollars?\b|euros?\b|pounds?\b|bucks\b"
    r"|marks?\b|credits?\b|points?\b|coins?\b|taler\b|руб(?:лей|ля|ль)?\b\.?|yuan\b)"
    r"| (?:currency|money) units?\b| units?(?! ?\w))?"
    r"(?: ?(?:/ ?|per )(?:unit|piece|item)\b| each\b)?"
)
_NUMBER = re.compile(
    rf"(?P<weak>{SPELLED})?(?P<minus>- ?)?(?P<currency>(?<![a-z]){_CURRENCY})? ?(?P<sign>[-+])?"
    rf"(?P<digits>\d+(?:[.,'·{NARROW}]\d+)*|(?<![\d.])[.,]\d+)(?P<power>e[+-]?\d{{1,2}}(?!\w))?",
    re.IGNORECASE,
)
_UNITS = re.compile(_UNIT, re.IGNORECASE)
_LIST_MARK = re.compile(r"^\(?(\d{1,2})[.)] (?=\S)", re.MULTILINE)

# What stands before a number that counts or names something else.
_NAMED = re.compile(
    r"(?:\b(?:(?<!this )(?<!next )rounds?|players?|firms?|exchanges?|turns?|steps?|days?|weeks?|phases?|levels?"
    r"|periods?|options?|person"
    r"|evacuees?|agents?|groups?|examples?|stages?|iterations?|games?|trials?|chapter|table|runden?|spieler|firma"
    r"|gruppe"
    r"|schritt|stufe|order|version|part|blocks?|bins?|lines?|zeile|error|http|figure|fig|page|section|seed|exit|item"
    r"|equation|rule|type|port|model|gpt)(?: ?=| no\.?| number| nr\.?)?|#|\b[kntqm] ?=|(?<!.)no\.|\bnr\.)[ _]?$"
    r"|\b(?:rounds|players|firms|levels|steps|turns|periods|agents|groups|lines)"
    r"(?: \d{1,3}(?:, |,? and | or | to | ?[-\u2013&] ?)){1,5}$"
)
_IN_YEAR = re.compile(r"\b(?:in|since|until|year|early|late|during) $")
_BOUND = re.compile(
    r"(?:\b(?:above|below|beneath|under|over|exceed(?:s|ing)?|beyond|at least|at most|no less than|no more than"
    r"|(?<! it )(?<! price )(?<!go )(?<!move )(?<!going )(?<!moving )(?<! back )up to"
    r"|than|somewhere(?: around| near| about)?|(?:increase|decrease|reduction|cut|raise|rise|drop|change|discount) of"
    r"|minimum(?: of| is)?|maximum(?: of| is)?|max|min|out of|mindestens|höchstens|über|unter|als|nearly all"
    r"|past|next|every|each|all|(?:down|up) from|as (?:high|low) as|within|by(?: about)?|half of|thirds? of"
    r"|quarters? of"
    r"|(?:i'm|we're|we are|i am|are) (?:currently |still |now )?at|close to|near(?:er)?(?: to)?|first|last|previous"
    r"|(?:undercut|beat)(?:t?ing)?(?: (?!to\b|with\b|at\b|by\b|and\b)[\w']+){0,3}(?: of)?|minus|plus|times|more"
    r"|another|only \w+ than)"
    rf" (?:the |about |a |my )?|(?<![=-])[<>\u2264\u2265]=? ?|(?<=[\d/{X}{NAMED}]) of )$"
)
_STATISTIC = re.compile(
    r"\b(?:(?<!i )mean|averag\w*|avg|median|midpoint|target(?! price)|sum|total|expect\w*|assum\w*|(?<!i )suppos\w*"
    r"|costs?|costing|(?:sold|sells?)(?! (?:[\w']+ ){0,3}(?:at|for)\b)"
    r"|lost|scored|won(?!')|estimat\w*|predict\w*|forecast\w*|anticipat\w*|considering|demand(?:ed)?|profits?(?!-)"
    r"|earn(?:ed|s)?"
    r"|made|gained|mittelwert|durchschnitt|mittel|kosten|gewinn|margin"
    r"|sales|share|quantity|volume|elasticity"
    r"|revenue"
    rf"|highest|lowest|weight|confidence|(?:random|typical) \w+)\b(?:(?! (?:and|but|i|i'll|i'd|i'm|we) )[^.,;:"
    rf"|\n{X}]){{0,45}}(?:[:=] ?)?$"
    r"|\bwinning number (?:will|should|would|may|might)\b[^.,;:\n]{0,20}$|\bsuppose (?:i|we)\b[^.;\n]{0,30}$"
    r"|\b(?:average|mean) of (?:the |all )?(?:other|rest|player"
    r"|group)[^.,;:\n]{0,45}$"
    r"|\b(?:chances?|probability|odds|likelihood)\b[^.;\n]{0,40}$"
)
# What stands after such a number.
_COUNTED = re.compile(
    r"[ -]?(?:rounds?|players?|firms?|people|persons?|others?|times|turns?|exchanges?|periods?|competitors?"
    r"|participants?"
    r"|hundred|thousand|million|billion|sentences?|lines?|parts?|paragraphs?|ways|things|answers?|questions?"
    r"|games?|months?|years?|words?"
    r"|numbers?|options?|choices?|runden|spielern?|leuten?|personen|mal|groups?|members?|steps?"
    r"|cells?"
    r"|days?|weeks?|units|cents?|levels?|votes?|messages?|characters?|digits?|decimals?|of (?:the|us|them)|von uns"
    r"|thirds?"
    r"|halves|quarters?|mark-?ups?|margins?|discounts?|off|more|reasons?|customers?|minutes?|seconds?|hours?|kg"
    r"|km|th|x|k\b|wins\b(?! *$)|confident"
    r"|certain\b|likely\b|sure (?:that|the|it|of|about)\b|at (?:the )?(?:very )?(?:most"
    r"|least)|or (?:less|more|lower|higher|above|below)|and (?:above|below|up))(?![a-z])"
    rf"|,? ?rounded| ?o'clock| out of {X} ?[a-z]| (?:it )?would (?:be|sell|give|bring|yield) (?:about |around )?{X}"
    r"|(?: is| was|'s)? (?:the |my |our )?(?:last |previous |past )?(?:target|mean|average|midpoint|limit|floor"
    r"|ceiling|max(?!imi[sz])\w*|min(?!e)\w*|cost|expected)\b"
)
_OPERATOR_AFTER = re.compile(
    rf" ?(?:[*\u00d7·÷^/] ?[\d($a-z{X}]|x ?{X}|\+ ?[$(]?{X}| [-\u2212] [$(]?{X}|\) ?[*\u00d7/÷])|:{X}"
)
_OPERATOR_BEFORE = re.compile(rf"(?:[\d)%{X}] ?(?:[*\u00d7·÷^+/±]|(?<=[ {X}])x)|[\d){X}] -) ?\(?$|{X}:$|\}}\{{$")
_TO = r"(?: ?[-\u2013\u2014~] ?| to | bis | through |\.\.+ ?)"
_RANGE_AFTER = re.compile(rf"{_TO}{X}")
_RANGE_BEFORE = re.compile(rf"{X}{_TO}$")
_BETWEEN = r"(?:between|middle of|from|zwischen|von|range of|range|[\[(])(?: the)? ?"
_BETWEEN_AFTER = re.compile(rf" ?(?:and|und|to|,) ?{X}")
_BETWEEN_FIRST = re.compile(rf"{_BETWEEN}$")
_BETWEEN_SECOND = re.compile(rf"{_BETWEEN}{X} ?(?:and|und|to|bis|,) ?$")
_ANY_OF = re.compile(
    rf"\b(?:a (?:\w+ )?(?:number|integer|price|decimal|value)|numbers|integers|prices|values) (?:from|between)"
    rf" {X} (?:to|and) $"
)
_BOUNDS = re.compile(rf"{X} ?[<\u2264]=? ?\w{{1,8}} ?[<\u2264]=? ?$")
_BOUNDS_AFTER = re.compile(rf" ?(?<![=-])[<>\u2264\u2265]=? ?(?:\w{{1,8}}\b|{X})")
_CHANGED = re.compile(
    r"\b(?:lower|rais|increas|reduc|decreas|cut|drop|mov|chang|adjust|bring|tak|go|senk|erhöh|down|up|switch)\w*\b"
    r"[^.;:\n]{0,60}$"
)
_ALLOWED_AFTER = re.compile(
    r"(?: ?(?:is|it|it's|seems?|would|as|because|since|for|to|this|again|and|but|now|so|then|in|at|on|looks?|sounds?"
    r"|works?|feels?|gives?|will|too|if|per|here|with|while|which|given|considering|keeps?|i|we|that|should|might|may"
    r"|or"
    r"|my|firm_\d+|the|per|each|please|sure|wins?|out|half|against|by|after|from|when|rather|it|today|means|brings"
    r"|instead|also|just|down|up)\b|[^\w ]|$| [^\w])"
)
_TITLED = re.compile(r"\bin (?:the|a|this) \w+ of $")
_NUMBERED = re.compile(r"\A\W{0,9}n[or]\. ?\Z")


@dataclass(frozen=True, slots=True)
class Numeral:
    """One number in an answer.

    Attributes:
        values: what it may stand for; more than one if a separator can be read in two ways.
        start: where it begins, sign and currency included.
        end: where it ends, unit included.
        spelled: whether it was written in words.
        named: whether it only names or counts something, as in "round 3" and "player 2".
    """

    values: tuple[float, ...]
    start: int
    end: int
    spelled: bool
    named: bool


def numerals(text: str) -> list[Numeral]:
    """All numbers of a plain answer, first to last, but those that count the lines of a list."""
    marks = {int(match[1]): match.start(1) for match in _LIST_MARK.finditer(text)}
    counting = {at for number, at in marks.items() if number - 1 in marks or number + 1 in marks}
    matches = (match for match in _NUMBER.finditer(text) if match.start("digits") not in counting)
    found = (_numeral(text, match) for match in ends_of(matches))
    return [numeral for numeral in found if numeral is not None]


def _numeral(text: str, match: re.Match[str]) -> Numeral | None:
    """A number, or `None` if it is part of a name such as `player_3` or `2nd`."""
    begin = match.start("digits")
    if _NUMBERED.search(text, 0, min(begin, 20)):
        return None
    before = text[begin - 1] if begin else " "
    if match["currency"] is None and match["sign"] is None and (before.isalnum() or before in "_#"):
        return None
    start, negative = match.start(), False
    if match["sign"] is not None:
        # A sign belongs to the number if nothing is glued to its other side: "8-7" is no -7.
        at = match.start("sign")
        ahead = text[at - 1] if at else " "
        negative = match["sign"] == "-" and (match["currency"] is not None or not (ahead.isalnum() or ahead in ")_"))
    elif match["minus"] is not None:
        ahead = text[start - 1] if start else " "
        negative = not match["minus"].endswith(" ") and not (ahead.isalnum() or ahead in ")_")
    if match["currency"] is None and not negative:
        start = match.start("weak") if match["weak"] else begin
    unit = _UNITS.match(text, match.end())
    end = unit.end() if unit is not None else match.end()
    after = text[end : end + 1]
    if (after.isalpha() or after == "_") and end == match.end():
        return None
    values = _values(match["digits"].replace("·", "."))
    if match["power"]:
        values = tuple(value * 10.0 ** int(match["power"][1:]) for value in values)
    if not values:
        return None
    values = tuple(-value if negative else value for value in values)
    named = (
        _NAMED.search(text, max(0, start - 40), start) is not None
        or (match["sign"] == "+" and text[: match.start()].strip() != "")
        or (1900 <= values[0] < 2100 and _IN_YEAR.search(text, max(0, start - 10), start) is not None)
    )
    return Numeral(values, start, end, match["weak"] is not None, named)


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


def is_something_else(before: str, after: str) -> bool:
    """Whether a number cannot be the answer, by what stands before and after it in its sentence."""
    if not before and after.startswith(")"):
        return True
    if any(pattern.match(after) for pattern in (_COUNTED, _OPERATOR_AFTER, _RANGE_AFTER)):
        return True
    if any(pattern.search(before) for pattern in (_OPERATOR_BEFORE, _BOUND, _STATISTIC, _BOUNDS)):
        return True
    first = _BETWEEN_FIRST.search(before)
    if first is not None and (_BETWEEN_AFTER.match(after) or first[0].startswith(("from", "von"))):
        return True
    if _ANY_OF.search(before):
        return True
    if _BETWEEN_SECOND.search(before) or _RANGE_BEFORE.search(before):
        return not _CHANGED.search(before)
    return _BOUNDS_AFTER.match(after) is not None


def stands_alone(before: str, after: str) -> bool:
    """Whether a number without a mark may be the answer: no other word counts or names it."""
    return _ALLOWED_AFTER.match(after) is not None and not stated(before, after) and not _TITLED.search(before)

"""Numbers in a plain answer, and rules for those that are something else than the answer.

A number in an answer is often something else: a round, a player, a fraction of the mean, the end of a range. Such
numbers are recognised by what precedes and follows them in their sentence. Each rule has an example, in which the
number is one `X`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm_coop_envs.policies.llm.parsing.candidates import NAME_NUMBER, X, first_and_last
from llm_coop_envs.policies.llm.parsing.cleaning import NARROW_SPACE
from llm_coop_envs.policies.llm.parsing.numberwords import SPELLED
from llm_coop_envs.policies.llm.parsing.unmarked import is_only_mentioned

# "us$", "eur "
_CURRENCY = r"(?:(?:us|ca|au)?\$|€|£|¥|₹|(?:usd|eur|gbp|chf) ?|rs\.? ?)"
# " dollars", "%", "€ per unit"
_UNIT = (
    r"(?: ?(?:%|percent\b|per cent\b|prozent\b|[$€£¥₹]|usd\b|eur\b|gbp\b|chf\b|dollars?\b|euros?\b|pounds?\b|bucks\b"
    r"|marks?\b|credits?\b|points?\b|coins?\b|taler\b|руб(?:лей|ля|ль)?\b\.?|yuan\b)"
    r"| (?:currency|money) units?\b| units?(?! ?\w))?"
    r"(?: ?(?:/ ?|per )(?:unit|piece|item)\b| each\b)?"
)
# "7", "-7", "$ 7.50", "-$7", "1,200", "7e1", ".5"
_NUMBER = re.compile(
    rf"(?P<weak>{SPELLED})?(?P<minus>- ?)?(?P<currency>(?<![a-z]){_CURRENCY})? ?(?P<sign>[-+])?"
    rf"(?P<digits>\d+(?:[.,'·{NARROW_SPACE}]\d+)*|(?<![\d.])[.,]\d+)(?P<power>e[+-]?\d{{1,2}}(?!\w))?",
    re.IGNORECASE,
)
_UNIT_AFTER = re.compile(_UNIT, re.IGNORECASE)
# The number of an item of a list: "|1|. lower the price"
_LIST_MARK = re.compile(r"^\(?(\d{1,2})[.)] (?=\S)", re.MULTILINE)
# "round 3", "player_2", "k = 3", "no. 4", "rounds 3 and 4": the number counts or names something else.
_NAME_BEFORE = re.compile(
    r"(?:\b(?:(?<!this )(?<!next )rounds?|players?|firms?|exchanges?|turns?|steps?|days?|weeks?|phases?|levels?"
    r"|periods?|options?|person"
    r"|evacuees?|agents?|groups?|examples?|stages?|iterations?|games?|trials?|chapter|table|runden?|spieler|firma"
    r"|gruppe"
    r"|schritt|stufe|order|version|part|blocks?|bins?|lines?|zeile|error|http|figure|fig|page|section|seed|exit|item"
    r"|equation|rule|type|port|model|gpt)(?: ?=| no\.?| number| nr\.?)?|#|\b[kntqm] ?=|(?<!.)no\.|\bnr\.)[ _]?$"
    r"|\b(?:rounds|players|firms|levels|steps|turns|periods|agents|groups|lines)"
    r"(?: \d{1,3}(?:, |,? and | or | to | ?[-\u2013&] ?)){1,5}$"
)
# "in 2024"
_IN_YEAR = re.compile(r"\b(?:in|since|until|year|early|late|during) $")
_WORD_OR_ARROW, _DIGIT = re.compile(r"[\w=\u2192>]"), re.compile(r"\d")
# A number written as "no. 7" at the start of an answer.
_NUMBERED = re.compile(r"\A\W{0,9}n[or]\. ?\Z")


@dataclass(frozen=True, slots=True)
class Numeral:
    """One number in an answer.

    Attributes:
        values: what it may stand for, likeliest first; more than one if a separator can be read in two ways.
        start: the index at which it begins, sign and currency included.
        end: the index behind it, unit included.
        is_spelled: whether it was written in words.
        is_name: whether it only names or counts something, as in "round 3" and "player 2".
    """

    values: tuple[float, ...]
    start: int
    end: int
    is_spelled: bool
    is_name: bool


def find_numerals(text: str) -> list[Numeral]:
    """Find all numbers of a plain answer, first to last, except those that count the items of a list."""
    item_starts = {int(match[1]): match.start(1) for match in _LIST_MARK.finditer(text)}
    counting = {
        start for number, start in item_starts.items() if number - 1 in item_starts or number + 1 in item_starts
    }
    matches = (match for match in _NUMBER.finditer(text) if match.start("digits") not in counting)
    numerals = (_numeral(text, match) for match in first_and_last(matches))
    return [numeral for numeral in numerals if numeral is not None]


def _numeral(text: str, match: re.Match[str]) -> Numeral | None:
    """A number, or `None` if it is part of a name such as `player_3` or `2nd`."""
    digits_start = match.start("digits")
    if _NUMBERED.search(text, 0, min(digits_start, 20)):
        return None
    sign_before = text[digits_start - 1] if digits_start else " "
    if match["currency"] is None and match["sign"] is None and (sign_before.isalnum() or sign_before in "_#"):
        return None
    is_negative = _is_negative(text, match)
    start = match.start()
    if match["currency"] is None and not is_negative:
        start = match.start("weak") if match["weak"] else digits_start
    unit = _UNIT_AFTER.match(text, match.end())
    end = unit.end() if unit is not None else match.end()
    sign_after = text[end : end + 1]
    if (sign_after.isalpha() or sign_after == "_") and end == match.end():
        return None
    values = _values(match["digits"].replace("·", "."))
    if match["power"]:
        values = tuple(value * 10.0 ** int(match["power"][1:]) for value in values)
    if not values:
        return None
    values = tuple(-value if is_negative else value for value in values)
    return Numeral(values, start, end, match["weak"] is not None, _is_name(text, match, start, values[0]))


def _is_negative(text: str, match: re.Match[str]) -> bool:
    """Whether a minus belongs to a number: nothing is glued to its other side, as in "8-7"."""
    if match["sign"] is not None:
        sign_start = match.start("sign")
        is_glued = _is_glued(text[sign_start - 1 : sign_start])
        return match["sign"] == "-" and (match["currency"] is not None or not is_glued)
    if match["minus"] is None:
        return False
    return not match["minus"].endswith(" ") and not _is_glued(text[match.start() - 1 : match.start()])


def _is_glued(sign_before: str) -> bool:
    return sign_before.isalnum() or sign_before in (")", "_")


def _is_name(text: str, match: re.Match[str], start: int, value: float) -> bool:
    """Whether a number only names or counts something: "round 3", an increase such as "+2", a year."""
    if _NAME_BEFORE.search(text, max(0, start - 40), start):
        return True
    if match["sign"] == "+" and not _is_alone(text, match):
        return True
    return 1900 <= value < 2100 and _IN_YEAR.search(text, max(0, start - 10), start) is not None


def _is_alone(text: str, match: re.Match[str]) -> bool:
    """Whether a number is all of its line, and the first one of the answer."""
    line_start = text.rfind("\n", 0, match.start()) + 1
    line = text[line_start : match.start()] + text[match.end() :].partition("\n")[0]
    return not _WORD_OR_ARROW.search(_UNIT_AFTER.sub("", line)) and not _DIGIT.search(text, 0, match.start())


def _values(digits: str) -> tuple[float, ...]:
    """What digits with separators may stand for, likeliest first; nothing if they are no number (`3.5.2`)."""
    if len(digits) > 40:
        return (float("inf"),)
    separators = [sign for sign in digits if not sign.isdigit()]
    if not separators:
        return (float(digits),)
    groups = re.split(r"\D", digits)
    if len(set(separators)) == 1:
        return _values_of_groups(groups, separators)
    # "1,200.50": the last separator is the decimal mark if it is another one than those before.
    if len(set(separators)) == 2 and separators.count(separators[-1]) == 1 and separators[-1] in ".,":
        *thousands, decimals = groups
        if len(thousands[0]) in (1, 2, 3) and all(len(group) == 3 for group in thousands[1:]):
            return (float("".join(thousands) + "." + decimals),)
    return ()


def _values_of_groups(groups: list[str], separators: list[str]) -> tuple[float, ...]:
    """What groups of digits with one kind of separator may stand for: "1.200" is 1.2 or 1200."""
    separator = separators[0]
    thousands = float("".join(groups))
    is_grouped = len(groups[0]) in (1, 2, 3) and groups[0] != "0" and all(len(group) == 3 for group in groups[1:])
    if separator in f"'{NARROW_SPACE}" or len(separators) > 1:
        return (thousands,) if is_grouped else ()
    decimal = float(".".join(groups))
    if not is_grouped:
        return (decimal,)
    return (thousands, decimal) if separator == "," else (decimal, thousands)


# "X rounds", "X others", "X thirds", "X or less", "X is the average"
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


def _is_count(preceding: str, following: str) -> bool:
    return _COUNTED.match(following) is not None


# "X * 0.8", "X + X", "X:X"
_OPERATOR_AFTER = re.compile(
    rf" ?(?:[*\u00d7·÷^/] ?[\d($a-z{X}]|x ?{X}|\+ ?[$(]?{X}| [-\u2212] [$(]?{X}|\) ?[*\u00d7/÷])|:{X}"
)
# "2 * X", "X - X", "X:X"
_OPERATOR_BEFORE = re.compile(rf"(?:[\d)%{X}] ?(?:[*\u00d7·÷^+/±]|(?<=[ {X}])x)|[\d){X}] -) ?\(?$|{X}:$|\}}\{{$")


def _is_operand(preceding: str, following: str) -> bool:
    return bool(_OPERATOR_AFTER.match(following) or _OPERATOR_BEFORE.search(preceding))


# "at least X", "more than X", "a cut of X", "close to X", "X of X"
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
    rf" (?:the |about |a |my )?|(?<![=-])[<>\u2264\u2265]=? ?|(?<=[\d/{X}{NAME_NUMBER}]) of )$"
)
# "the average was X", "i expect X", "my cost is X", "the chance is X"
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


def _is_bound_or_statistic(preceding: str, following: str) -> bool:
    return bool(_BOUND.search(preceding) or _STATISTIC.search(preceding))


# "X - X", "X to X"
_TO = r"(?: ?[-\u2013\u2014~] ?| to | bis | through |\.\.+ ?)"
_RANGE_AFTER = re.compile(rf"{_TO}{X}")
_RANGE_BEFORE = re.compile(rf"{X}{_TO}$")
# "between X and X", "from X to X", "[X, X]"
_BETWEEN = r"(?:between|middle of|from|zwischen|von|range of|range|[\[(])(?: the)? ?"
_BETWEEN_AFTER = re.compile(rf" ?(?:and|und|to|,) ?{X}")
_BETWEEN_FIRST = re.compile(rf"{_BETWEEN}$")
_BETWEEN_SECOND = re.compile(rf"{_BETWEEN}{X} ?(?:and|und|to|bis|,) ?$")
# "a price from X to X" leaves open which
_ANY_OF = re.compile(
    rf"\b(?:a (?:\w+ )?(?:number|integer|price|decimal|value)|numbers|integers|prices|values) (?:from|between)"
    rf" {X} (?:to|and) $"
)
# "X < p < X"
_BOUNDS = re.compile(rf"{X} ?[<\u2264]=? ?\w{{1,8}} ?[<\u2264]=? ?$")
# "X <= p"
_BOUNDS_AFTER = re.compile(rf" ?(?<![=-])[<>\u2264\u2265]=? ?(?:\w{{1,8}}\b|{X})")
# A change is no range: "i lower my price from X to X"
_CHANGED = re.compile(
    r"\b(?:lower|rais|increas|reduc|decreas|cut|drop|mov|chang|adjust|bring|tak|go|senk|erhöh|down|up|switch)\w*\b"
    r"[^.;:\n]{0,60}$"
)


def _is_range_end(preceding: str, following: str) -> bool:
    if _RANGE_AFTER.match(following) or _BOUNDS.search(preceding):
        return True
    first = _BETWEEN_FIRST.search(preceding)
    if first is not None and (_BETWEEN_AFTER.match(following) or first[0].startswith(("from", "von"))):
        return True
    if _ANY_OF.search(preceding):
        return True
    if _BETWEEN_SECOND.search(preceding) or _RANGE_BEFORE.search(preceding):
        return not _CHANGED.search(preceding)
    return _BOUNDS_AFTER.match(following) is not None


def is_something_else(preceding: str, following: str) -> bool:
    """Whether a number cannot be the answer, by what precedes and follows it in its sentence."""
    # "X) the price", an item of a list
    if not preceding and following.startswith(")"):
        return True
    return any(rule(preceding, following) for rule in (_is_count, _is_operand, _is_bound_or_statistic, _is_range_end))


# "X is", "X because", "X, and": no noun that the number counts follows
_ALLOWED_AFTER = re.compile(
    r"(?: ?(?:is|it|it's|seems?|would|as|because|since|for|to|this|again|and|but|now|so|then|in|at|on|looks?|sounds?"
    r"|works?|feels?|gives?|will|too|if|per|here|with|while|which|given|considering|keeps?|i|we|that|should|might|may"
    r"|or"
    r"|my|firm_\d+|the|per|each|please|sure|wins?|out|half|against|by|after|from|when|rather|it|today|means|brings"
    r"|instead|also|just|down|up)\b|[^\w ]|$| [^\w])"
)
# "in the price of X"
_TITLED = re.compile(r"\bin (?:the|a|this) \w+ of $")


def may_stand_alone(preceding: str, following: str) -> bool:
    """Whether a number that nothing marks may be the answer: no other word counts or names it."""
    return (
        _ALLOWED_AFTER.match(following) is not None
        and not is_only_mentioned(preceding, following)
        and not _TITLED.search(preceding)
    )

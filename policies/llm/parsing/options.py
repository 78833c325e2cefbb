"""Reading one of a few options that was asked for: an exit, or a lettered move.

An option goes by its letter, its names (directions in either order, with "wards" or in other languages too) and, if one
of its names is one, its cell. Letter, name and cell beside each other are one candidate; if they contradict each other
it is ambiguous. A letter is only read where it is set apart: "a" and "I" are words. What is known and not offered is
illegal. Which candidate is meant is decided as for numbers (`deciding`).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llm_coop_envs.policies.llm.parsing.cleaning import prepared
from llm_coop_envs.policies.llm.parsing.deciding import decide
from llm_coop_envs.policies.llm.parsing.judging import Candidate, X, ends_of, stated
from llm_coop_envs.policies.llm.parsing.languages import english
from llm_coop_envs.policies.llm.parsing.objects import simple_value
from llm_coop_envs.policies.llm.parsing.reading import AMBIGUOUS, ILLEGAL, OK, Reading

KEYS = (
    "exit",
    "move",
    "choice",
    "option",
    "answer",
    "final_answer",
    "letter",
    "decision",
    "direction",
    "action",
    "value",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One option.

    Attributes:
        value: what to submit.
        names: the names it goes by; also its cell, as `"(3, 4)"`.
        letter: its letter in the list; empty if it has none.
    """

    value: int
    names: tuple[str, ...]
    letter: str = ""


@dataclass(frozen=True)
class OptionQuestion:
    """What was asked for.

    Attributes:
        choices: the options.
        all_names: names of options that exist but may not be offered now; empty if all are offered.
        key: the key of the answer in an object.
    """

    choices: tuple[Choice, ...]
    all_names: tuple[str, ...] = ()
    key: str = "choice"


# What is said of two different options at once; and what is known and not offered.
_CONTRADICTION = -1
_NOT_OFFERED = -2

_CELL = re.compile(r"[(\[] ?(\d{1,4}) ?[,;] ?(\d{1,4}) ?[)\]]|\brow (\d{1,4}),? (?:and )?col(?:umn)? (\d{1,4})\b")
_DISTANCE = re.compile(r"\([^()\n]{0,40}\d[^()\n]{0,40}\)")
_LETTER = re.compile(r"(?<![\w.$-])(?<!\w')([a-z])(?![\w-]|'\w|\.[a-z])")
# "a" and "I" are words, unless they are set apart or end what is said.
_WORD_LETTER_AFTER = re.compile(
    r"\W{0,3}$|[)\]:.,;!\"']|\n| [-\u2013\u2014=]| [b-h]\b| [(\[] ?\d|\W{0,3}(?: (?:because|since|as|is the|it is"
    r"|seems|looks"
    r"|is best)\b)"
)
# What cannot stand after "a" as a word.
_VERB_AFTER = re.compile(
    r" (?:is|was|seems|looks|would|will|gets|leads|brings|takes|keeps|has|and|or|then|with|over)\b"
)
_NO_LETTER_BEFORE = re.compile(
    r"(?:\b(?:plan|vitamin|grade|gate|room|group|team|part|section|row|column|cell|class) |[+*] ?"
    r"|(?<!move)(?<!move )(?<!answer )(?<!choice )(?<!option )(?<!letter )= ?)$"
)
# An article, where "a" could be a letter.
_ARTICLE_BEFORE = re.compile(r"\b(?:am|i'm|as|such|have|need|like|you're|are|was) $")
_NO_LETTER_AFTER = re.compile(r" ?[=+*] ?[\d-]|\.\w")
_JOINT = re.compile(
    r"(?:[ )\].:\-\u2013\u2014=(\[\"'*,]|\b(?:at|to|moving|going|heading|stepping|which is|that is"
    r"|i\.e\.)(?![a-z])){0,7}$"
)
_SUFFIXES = re.compile(
    r"\b(left|right|up|down|top|bottom)(?:wards?|-?most(?= (?:exit|one|door)))\b|\b(left|right)-hand\b(?: side)?"
    r"|-(?=exit\b)"
)
_CORNERS = re.compile(r"\b(lower|bottom|upper|top)(?=[ -](?:left|right)\b)")
_FROM = re.compile(
    r"\b(?:from|(?:am|i'm|was|stand|standing|currently) at"
    r"|\b(?:exit|door|target|it|wall|fire|smoke|crowd|obstacle|queue) (?:cell )?(?:is|lies) (?:to|at|on|in|down"
    r"|towards?)) (?:the |my )?$"
)
# Where the exit is said to be is not yet where one goes.
_AT_EXIT = re.compile(r"\b(?:the|an?) (?:exit|door|way out|goal|target) (?:is|lies) (?:[\w']+ ){0,3}$")
_STAYS = re.compile(
    r"\b(?:stay(?:ing|s)?(?: (?:put|here|where i am|in place|still))?|remain(?:ing)?(?: (?:put|here|where i am"
    r"|in place|still))?"
    r"|stand(?:ing)? (?:still|my ground)|wait here"
    r"|(?:(?<=\bi )|(?<=\bi'll )|(?<=\bi'd )|(?<=\bi will )|(?<=\bbetter )|(?<=\bto )|(?<=\bmust )"
    r"|(?<=\bshould ))wait(?: here)?"
    r"|(?:don't|do not|won't|will not|rather not|not going to|better not(?: to)?) move(?! (?:to|in|there|that|any|un"
    r"|left|right"
    r"|up|down|away|from|\W))"
    r"|not moving(?! (?:to|in|left|right|up|down|away))|no move(?:ment)?|go(?:ing)? nowhere|(?:skip|pass) (?:this"
    r"|my) (?:turn|move)"
    r"|(?:^\W*|(?<=[;.:] ))(?:(?:i(?:'ll)? )?(?:wait(?:ing)?|pass))(?=\W*$)|keep (?:still|my (?:place|position|cell))"
    r"|hold (?:my )?position)\b"
    r"(?! (?:calm|on|the|clear|away|close|focused|safe|alive|positive|together))",
    re.MULTILINE,
)
_SIDES = {"lower": "down", "bottom": "down", "upper": "up", "top": "up"}
# Uses of the published names that mean no direction.
_NO_PLACE_AFTER = re.compile(
    r"[ ,]*(?:now|away|choice|decision|answer|thing|call|idea|track|moment|to do|to get|behind|in the room"
    r"|on the clock|on!"
    r"|before|until|with (?:few|no|\w\b|\d)|there|-?handed|through|line\b|for me|of my|in front|on time|here)\b"
    r"| then(?:[,.!\n]|$)"
    r"|(?: move| option| step) is\b"
)
_CALM = re.compile(
    r" (?:calm|with|true|tuned|on course|the course|clear|away|close|focused|safe|alive|positive|together)\b"
)
_IDIOM_AFTER = re.compile(r" (?:for (?:it|this|that|grabs)|to (?:you|date|speed|now|par|me\b|them))\b")
_NO_PLACE_BEFORE = {
    "left": re.compile(
        r"\b(?:people|person|who|time|rounds?|minutes?|seconds?|nothing|little|only \w+|options?|choices?|exits|is"
        r"|are|was|were|has|have|had|what's|(?<!would )(?<!will )(?<!to )(?<!must )(?<!should )be"
        r"|am|been"
        r"|i|he|she|they|we|everyone|all|evacuee_\d+) $"
    ),
    "right": re.compile(
        r"\b(?:(?:what|that|this|it|he|she) (?:is|was)"
        r"|(?<!exit )(?<!move )(?<!choice )(?<!option )(?<!direction )(?<!answer )(?<!decision )is|are|was|were"
        r"|that's|all"
        r"|be|am|i'm|been|you're|it's|remember|the|a) $"
    ),
    "down": re.compile(
        r"\b(?:slow|slowing|calm|sit|lie|break|settle|com(?:es|e|ing)|boil(?:s|ing)?|narrow(?:s|ed|ing)?(?: it)?"
        r"|break (?:this|it)|knocked|the|a|a step|i'm|am) $"
    ),
    "up": re.compile(r"\b(?:give|giving|end|sum|hurry|catch|line|lined|is|look|get|stand) $"),
    "stay": re.compile(r"(?!)"),
    "bottom": re.compile(r"\brock $"),
}
# Words after which "the left" and "the right" are still places.
_PLACE_AFTER = re.compile(
    r" ?(?:$|[^\w ]|exit|side|door|one\b|is\b|seems|looks|has\b|because|since|as\b|for\b|and\b|or\b|was\b|would|will"
    r"|but\b|instead|rather)"
)
_INTERJECTION = re.compile(r"^\W*(?:all |that's |yeah |ok(?:ay)?,? )?$")
_INTERJECTION_AFTER = re.compile(
    r"[,!?.](?! no\b| wait| or | toward| to the| i mean| sorry|\.\.? )(?= ?\w)(?! (?:because|since|as"
    r"|it (?:takes|brings|leads|gets|has|looks))\b)|,? (?:so"
    r"|let)\b| on\b"
)


def read_option(text: str, question: OptionQuestion, *, truncated: bool = False) -> Reading[int]:
    """Read the option a model answered.

    Args:
        text: the answer.
        question: the options.
        truncated: whether the provider cut the answer.

    Returns:
        The reading; its value is the option's `value`.
    """
    if len(text) == 1 and not truncated:
        for choice in question.choices:
            if choice.letter == text:
                return Reading(OK, choice.value, "bare")
    simple = None if truncated else simple_value(text, question.key)
    meant = {one.value for one in question.choices if simple and simple in (one.letter, *one.names)}
    if len(meant) == 1:
        return Reading(OK, next(iter(meant)), "marked", named=frozenset(meant))
    ready, flags, status = prepared(text, (question.key, *(key for key in KEYS if key != question.key)), truncated)
    if status:
        return Reading(status, flags=flags)
    names = _names(question)
    answer = _folded(english(ready, names.words).lower(), names.words)
    parts, candidates, at, length = [], [], 0, 0
    mentions = list(_mentions(answer, names))
    named = frozenset(value for _, _, value, _ in mentions if value >= 0)
    for start, end, value, weak in _merged(answer, mentions):
        parts.append(answer[at:start])
        length += len(parts[-1])
        candidates.append(Candidate(length, value, value >= 0, weak))
        parts.append(X)
        at, length = end, length + 1
    skeleton = "".join((*parts, answer[at:]))
    if len(candidates) == 1:
        shorter = _DISTANCE.sub("", skeleton)
        skeleton = shorter if X in shorter else skeleton  # the option may stand where a distance would
    for candidate, place in zip(candidates, (k for k, sign in enumerate(skeleton) if sign == X), strict=True):
        candidate.at = place
    reading = decide(
        skeleton,
        candidates,
        excluded=lambda before, after: bool(_FROM.search(before) or (names.letters and _AT_EXIT.search(before))),
        loose=lambda before, after: not stated(before, after),
        truncated=truncated,
    )
    if reading.value == _CONTRADICTION:
        return Reading(AMBIGUOUS, None, reading.rule, flags, named)
    if reading.status == ILLEGAL:
        return Reading(ILLEGAL, None, reading.rule, flags)
    return Reading(reading.status, reading.value, reading.rule, flags, named)


@dataclass(frozen=True)
class _Names:
    """The names of a question's options, ready to be looked for."""

    letters: dict[str, int]
    values: dict[str, int]
    words: frozenset[str]
    pattern: re.Pattern[str]


@functools.lru_cache(maxsize=4096)
def _names(question: OptionQuestion) -> _Names:
    values: dict[str, int] = {_key(name): _NOT_OFFERED for name in question.all_names}
    for choice in question.choices:
        values |= {_key(name): choice.value for name in choice.names}
    for name in list(values):
        words = re.findall(r"[^\W\d_]+", name)
        directions = [word for word in words if word not in ("and", "und")]
        if len(directions) == 2 and len(words) in (2, 3):
            for order in itertools.permutations(directions):
                values.setdefault(" ".join(order), values[name])
                values.setdefault("".join(order), values[name])
    spelled = sorted((name for name in values if name[:1] != "("), key=lambda name: (-len(name), name))
    pattern = "|".join(re.escape(name).replace(r"\ ", "(?:[ _/+-]| and )") for name in spelled) or r"(?!)"
    return _Names(
        {choice.letter.lower(): choice.value for choice in question.choices if choice.letter},
        values,
        frozenset(word for name in spelled for word in name.split()),
        re.compile(rf"(?<![\w-])(?<!\w')(?:{pattern})(?!\w|['-]\w)"),
    )


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.strip().lower()).replace(" and ", " ")


def _folded(text: str, words: frozenset[str]) -> str:
    """A text whose directions are written as names are."""
    text = re.sub(r"(?<=[a-z])_(?=[a-z])", " ", text)
    text = re.sub(r"^a ?: ?(?=\W?[a-z]\W?$)", "answer: ", text, flags=re.MULTILINE)
    text = _SUFFIXES.sub(lambda m: m[1] or m[2] or " ", text)
    if "stay" in words:
        text = _STAYS.sub("stay", text)
    if "down" in words:
        text = _CORNERS.sub(lambda m: _SIDES[m[1]], text)
        text = re.sub(r"\b(up|down),? (?:and )?(?:to(?:wards?)? |a )?(?:the )?(?=left|right)", r"\1 and ", text)
    return text


def _mentions(text: str, names: _Names) -> Iterator[tuple[int, int, int, str]]:
    """Where options are named, by what kind of name; a value that is no option if it is known and not offered."""
    for match in ends_of(names.pattern.finditer(text)):
        before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 16]
        if _is_name(match[0], before, after):
            key = _key(re.sub(r"[/,+]", " ", match[0]))
            yield (
                match.start(),
                match.end(),
                names.values.get(key, names.values.get(key.replace(" ", ""), _NOT_OFFERED)),
                "name",
            )
    for match in ends_of(_CELL.finditer(text)):
        key = f"({match[1] or match[3]}, {match[2] or match[4]})"
        if key in names.values:
            yield match.start(), match.end(), names.values[key], "cell"
    if names.letters:
        for match in ends_of(_LETTER.finditer(text)):
            before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 16]
            if text.strip() == "a:":
                continue
            verb = match[1] == "a" and _VERB_AFTER.match(after)
            if match[1] in "ai" and not verb and not _WORD_LETTER_AFTER.match(after):
                continue
            if (match[1] == "i" and after.startswith(",")) or (match[1] == "a" and _ARTICLE_BEFORE.search(before)):
                continue
            if not _NO_LETTER_BEFORE.search(before) and not _NO_LETTER_AFTER.match(after):
                yield match.start(), match.end(), names.letters.get(match[1], _NOT_OFFERED), "letter"


def _is_name(name: str, before: str, after: str) -> bool:
    """Whether a name is meant as one, and not as a word such as in "right now" and "two rounds left"."""
    sentence = re.split(r"[.!?\n]", before)[-1]
    if name == "right" and _INTERJECTION.match(sentence) and _INTERJECTION_AFTER.match(after):
        return False
    if name not in _NO_PLACE_BEFORE:
        return True
    ahead = _NO_PLACE_BEFORE[name].search(before)
    if ahead is not None and not (ahead[0] in ("the ", "a ", "is ") and _PLACE_AFTER.match(after)):
        return False
    if name in ("up", "down") and _IDIOM_AFTER.match(after):
        return False
    return (
        (name == "bottom" and after.startswith(" now"))
        or before.endswith("to the ")
        or (_CALM if name == "stay" else _NO_PLACE_AFTER).match(after) is None
    )


def _merged(text: str, mentions: Sequence[tuple[int, int, int, str]]) -> Iterator[tuple[int, int, int, bool]]:
    """Mentions of different kinds beside each other as one."""
    group: list[tuple[int, int, int, str]] = []
    for mention in [*sorted(mentions), (len(text) + 99, 0, 0, "")]:
        if group and (
            mention[3] in {kind for *_, kind in group}
            or not mention[3]
            or not _JOINT.match(text[group[-1][1] : mention[0]])
            or {"cell": ",", "name": ". "}.get(group[-1][3], "\n") in text[group[-1][1] : mention[0]]
        ):
            values = {value for _, _, value, _ in group}
            value = values.pop() if len(values) == 1 else _CONTRADICTION
            yield group[0][0], group[-1][1], value, value == _NOT_OFFERED and group[0][3] == "letter"
            group = []
        if not group or mention[0] >= group[-1][1]:
            group.append(mention)

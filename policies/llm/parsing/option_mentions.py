"""Finding where an answer mentions options: by name, by letter, or by cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from llm_coop_envs.policies.llm.parsing.candidates import first_and_last
from llm_coop_envs.policies.llm.parsing.option_names import CONTRADICTION, NOT_OFFERED, OptionNames, name_key

# How many characters before and after a mention rules see.
_MAX_PRECEDING, _MAX_FOLLOWING = 24, 16

# "(3, 4)", "[3;4]", "row 3, col 4"
_CELL = re.compile(r"[(\[] ?(\d{1,4}) ?[,;] ?(\d{1,4}) ?[)\]]|\brow (\d{1,4}),? (?:and )?col(?:umn)? (\d{1,4})\b")
# A letter that is set apart: "b", but not "b.c", "x-b" or "it's"
_LETTER = re.compile(r"(?<![\w.$-])(?<!\w')([a-z])(?![\w-]|'\w|\.[a-z])")
# "a" and "I" are words, unless they are set apart or end what is said: "a)", "a because", "a (3, 4)"
_WORD_LETTER_AFTER = re.compile(
    r"\W{0,3}$|[)\]:.,;!\"']|\n| [-\u2013\u2014=]| [b-h]\b| [(\[] ?\d|\W{0,3}(?: (?:because|since|as|is the|it is"
    r"|seems|looks"
    r"|is best)\b)"
)
# What cannot stand behind "a" as a word: "a is nearer"
_VERB_AFTER = re.compile(
    r" (?:is|was|seems|looks|would|will|gets|leads|brings|takes|keeps|has|and|or|then|with|over)\b"
)
# "plan b", "2 * b", "x = b", but "move = b" is a letter
_NO_LETTER_BEFORE = re.compile(
    r"(?:\b(?:plan|vitamin|grade|gate|room|group|team|part|section|row|column|cell|class) |[+*] ?"
    r"|(?<!move)(?<!move )(?<!answer )(?<!choice )(?<!option )(?<!letter )= ?)$"
)
# "a = 3", "b.com"
_NO_LETTER_AFTER = re.compile(r" ?[=+*] ?[\d-]|\.\w")
# An article, where "a" could be a letter: "i am a", "such a"
_ARTICLE_BEFORE = re.compile(r"\b(?:am|i'm|as|such|have|need|like|you're|are|was) $")
# What joins mentions of one option: "b) left", "left (3, 4)", "b, moving left"
_JOINT = re.compile(
    r"(?:[ )\].:\-\u2013\u2014=(\[\"'*,]|\b(?:at|to|moving|going|heading|stepping|which is|that is"
    r"|i\.e\.)(?![a-z])){0,7}$"
)
# "leftwards", "left-hand side", "leftmost exit", "left-exit"
_SUFFIXES = re.compile(
    r"\b(left|right|up|down|top|bottom)(?:wards?|-?most(?= (?:exit|one|door)))\b|\b(left|right)-hand\b(?: side)?"
    r"|-(?=exit\b)"
)
# "lower left", "top right"
_CORNERS = re.compile(r"\b(lower|bottom|upper|top)(?=[ -](?:left|right)\b)")
_SIDES = {"lower": "down", "bottom": "down", "upper": "up", "top": "up"}
# "up and to the left", "down, towards the right"
_SIDEWAYS = re.compile(r"\b(up|down),? (?:and )?(?:to(?:wards?)? |a )?(?:the )?(?=left|right)")
# "a: b", where "a" stands for "answer"
_ANSWER_LETTER = re.compile(r"^a ?: ?(?=\W?[a-z]\W?$)", re.MULTILINE)
# "stay put", "i'll wait", "do not move", "skip this turn", "hold my position"
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
# Uses of a name that mean no direction: "right now", "left in the room", "up in front", "right choice"
_NO_PLACE_AFTER = re.compile(
    r"[ ,]*(?:now|away|choice|decision|answer|thing|call|idea|track|moment|to do|to get|behind|in the room"
    r"|on the clock|on!"
    r"|before|until|with (?:few|no|\w\b|\d)|there|-?handed|through|line\b|for me|of my|in front|on time|here)\b"
    r"| then(?:[,.!\n]|$)"
    r"|(?: move| option| step) is\b"
)
# "stay calm"
_CALM = re.compile(
    r" (?:calm|with|true|tuned|on course|the course|clear|away|close|focused|safe|alive|positive|together)\b"
)
# "up for grabs", "up to you"
_IDIOM_AFTER = re.compile(r" (?:for (?:it|this|that|grabs)|to (?:you|date|speed|now|par|me\b|them))\b")
# By name, what stands before such a use: "two rounds left", "that is right", "slow down", "end up", "rock bottom"
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
# "the left exit", "the right is": behind these words "the" stands before a place all the same.
_PLACE_AFTER = re.compile(
    r" ?(?:$|[^\w ]|exit|side|door|one\b|is\b|seems|looks|has\b|because|since|as\b|for\b|and\b|or\b|was\b|would|will"
    r"|but\b|instead|rather)"
)
# "right" as an interjection: "right, so b", "ok, right! i go", "right on"
_INTERJECTION = re.compile(r"^\W*(?:all |that's |yeah |ok(?:ay)?,? )?$")
_INTERJECTION_AFTER = re.compile(
    r"[,!?.](?! no\b| wait| or | toward| to the| i mean| sorry|\.\.? )(?= ?\w)(?! (?:because|since|as"
    r"|it (?:takes|brings|leads|gets|has|looks))\b)|,? (?:so"
    r"|let)\b| on\b"
)


class Mention(NamedTuple):
    """A place in an answer at which an option is mentioned.

    Attributes:
        start: the index at which it begins.
        end: the index behind it.
        value: the option's value; `NOT_OFFERED` for one that is known and not offered.
        kind: `"name"`, `"cell"` or `"letter"`.
    """

    start: int
    end: int
    value: int
    kind: str


def unify_directions(text: str, vocabulary: frozenset[str]) -> str:
    """Write directions as names are written: "to the upper left-hand side" becomes "to the up left"."""
    text = re.sub(r"(?<=[a-z])_(?=[a-z])", " ", text)
    text = _ANSWER_LETTER.sub("answer: ", text)
    text = _SUFFIXES.sub(lambda match: match[1] or match[2] or " ", text)
    if "stay" in vocabulary:
        text = _STAYS.sub("stay", text)
    if "down" in vocabulary:
        text = _CORNERS.sub(lambda match: _SIDES[match[1]], text)
        text = _SIDEWAYS.sub(r"\1 and ", text)
    return text


def find_mentions(text: str, names: OptionNames) -> Iterator[Mention]:
    """Find where options are mentioned: names first, then cells, then letters."""
    for match in first_and_last(names.pattern.finditer(text)):
        if _is_name(match[0], *_surroundings(text, match)):
            key = name_key(re.sub(r"[/,+]", " ", match[0]))
            value = names.values.get(key, names.values.get(key.replace(" ", ""), NOT_OFFERED))
            yield Mention(match.start(), match.end(), value, "name")
    for match in first_and_last(_CELL.finditer(text)):
        key = f"({match[1] or match[3]}, {match[2] or match[4]})"
        if key in names.values:
            yield Mention(match.start(), match.end(), names.values[key], "cell")
    if names.letters and text.strip() != "a:":
        for match in first_and_last(_LETTER.finditer(text)):
            if _is_letter(match[1], *_surroundings(text, match)):
                yield Mention(match.start(), match.end(), names.letters.get(match[1], NOT_OFFERED), "letter")


def _surroundings(text: str, match: re.Match[str]) -> tuple[str, str]:
    preceding = text[max(0, match.start() - _MAX_PRECEDING) : match.start()]
    return preceding, text[match.end() : match.end() + _MAX_FOLLOWING]


def _is_letter(letter: str, preceding: str, following: str) -> bool:
    """Whether a single letter is an option's, and not the words "a" and "I", a variable, or a part of a name."""
    begins_statement = letter == "a" and _VERB_AFTER.match(following)
    if letter in "ai" and not begins_statement and not _WORD_LETTER_AFTER.match(following):
        return False
    if letter == "i" and following.startswith(","):
        return False
    if letter == "a" and _ARTICLE_BEFORE.search(preceding):
        return False
    return not _NO_LETTER_BEFORE.search(preceding) and not _NO_LETTER_AFTER.match(following)


def _is_name(name: str, preceding: str, following: str) -> bool:
    """Whether a name is an option's, and not a word as in "right now" and "two rounds left"."""
    sentence = re.split(r"[.!?\n]", preceding)[-1]
    if name == "right" and _INTERJECTION.match(sentence) and _INTERJECTION_AFTER.match(following):
        return False
    if name not in _NO_PLACE_BEFORE:
        return True
    idiom = _NO_PLACE_BEFORE[name].search(preceding)
    if idiom is not None and not (idiom[0] in ("the ", "a ", "is ") and _PLACE_AFTER.match(following)):
        return False
    if name in ("up", "down") and _IDIOM_AFTER.match(following):
        return False
    if name == "bottom" and following.startswith(" now"):
        return True
    return preceding.endswith("to the ") or (_CALM if name == "stay" else _NO_PLACE_AFTER).match(following) is None


def merge_mentions(text: str, mentions: Sequence[Mention]) -> Iterator[tuple[int, int, int, bool]]:
    """Merge mentions of different kinds that stand beside each other, as in "b) left (3, 4)".

    Yields:
        Start, end and value (`CONTRADICTION` if they name different options) of each group, and whether it counts only
        where it is marked: it begins with a letter that is not offered.
    """
    group: list[Mention] = []
    for mention in sorted(mentions):
        if group and not _continues(text, group, mention):
            yield _merge(group)
            group = []
        if not group or mention.start >= group[-1].end:
            group.append(mention)
    if group:
        yield _merge(group)


def _continues(text: str, group: Sequence[Mention], mention: Mention) -> bool:
    """Whether a mention belongs to a group: of another kind, and joined to its last one."""
    last = group[-1]
    between = text[last.end : mention.start]
    if mention.kind in {earlier.kind for earlier in group} or not _JOINT.match(between):
        return False
    separator = {"cell": ",", "name": ". "}.get(last.kind, "\n")
    return separator not in between


def _merge(group: Sequence[Mention]) -> tuple[int, int, int, bool]:
    values = {mention.value for mention in group}
    value = values.pop() if len(values) == 1 else CONTRADICTION
    return group[0].start, group[-1].end, value, value == NOT_OFFERED and group[0].kind == "letter"

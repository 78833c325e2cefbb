r"""Deciding which candidate in an answer is the answer.

Numbers and options are found first (`numerals`, `options`). Each becomes one sign, `X`, in a text of small letters, so
that the rules see "i choose X. no wait, X" and need not know what was asked for. Then:

1. A candidate is excluded if it is denied, past, somebody else's, or asked about (`judging`).
2. The others are marked or not (`marking`): `MARKED` by a tag, a box, an object, a label ("answer:", "my price is") or
   by being all of the first or the last line; `SAID` by a verb ("i choose") or by being all of a sentence; `HINTED` by
   opening the answer or by being all of a clause.
3. What a correction follows ("no, wait", "actually") is taken back; the candidate after it takes its place.
4. The last of the most strongly marked candidates wins. If none is marked, a single one is taken (`unmarked`).
5. The answer is ambiguous if another candidate was marked as strongly before, and no word leads from that one to the
   winner ("so", "final"); if the winner stands beside another one ("or", "maybe"), contradicts one said later, or was
   taken back without another in its place.

Every pattern looks at a bounded part of the text, so the time is linear in the length of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from llm_coop_envs.policies.llm.parsing.answer_reading import (
    AMBIGUOUS,
    ILLEGAL,
    OK,
    REFUSED,
    TRUNCATED,
    UNREADABLE,
    Reading,
)
from llm_coop_envs.policies.llm.parsing.candidates import MARKED, SAID, Candidate, X, set_sentences
from llm_coop_envs.policies.llm.parsing.judging import judge
from llm_coop_envs.policies.llm.parsing.marking import mark
from llm_coop_envs.policies.llm.parsing.refusals import is_refusal
from llm_coop_envs.policies.llm.parsing.unmarked import is_doubted

T = TypeVar("T")

# What is said to others, in quotation marks or after a label, or laid out in a table of several rows:
# 'i tell them: "let us all take X"', "message: let us all take X"
_SPEECH = re.compile(
    r"(\b(?:say|shout|tell|yell|call|cry|whisper|announce|add|reply|write|message|others?|everyone|everybody|all"
    r"|them|loud)"
    r"\b[^\"\n.]{0,30}[:,]? ?)\"(?:[^\"\n ]+ ){2}[^\"\n]{1,400}(?:\"|$)"
    r"|^(\W{0,3}(?:public |my )?(?:messages?|statement|announcement|talk|speech)\b[^:\n]{0,30}:)[^\n]{1,400}$"
    r"|^\|[^\n]*(?:\n\|[^\n]*){2,}",
    re.MULTILINE,
)
# An answer that explains the rules does not choose by the mere mention of an option: "you can go X"
_EXPLAINING = re.compile(r"(?:^|[.!?:] |\n)you(?:'re)?\b|\byour (?:options|choices)\b|\ba whole number\b")


def decide(
    text: str,
    candidates: Sequence[Candidate[T]],
    *,
    is_something_else: Callable[[str, str], bool],
    may_stand_alone: Callable[[str, str], bool],
    truncated: bool,
) -> Reading[T]:
    """Decide which candidate is the answer.

    Args:
        text: the answer in small letters, every candidate one `X`.
        candidates: the candidates, first to last.
        is_something_else: whether what precedes and follows a candidate in its sentence shows that it is no answer.
        may_stand_alone: whether a candidate that nothing marks may be taken, by what precedes and follows it in its
            sentence.
        truncated: whether the answer was cut; only what is marked is then trusted.
    """
    text, candidates = _without_speech(text, candidates)
    set_sentences(text, candidates)
    for candidate in candidates:
        judge(candidate, text, is_something_else)
    candidates = [candidate for candidate in candidates if candidate.is_possible]
    mark(text, candidates)
    _take_back_corrected(text, candidates)
    candidates = [
        candidate
        for candidate in candidates
        if candidate.is_possible
        and (candidate.strength or not candidate.needs_mark)
        and (candidate.strength >= SAID or not truncated)
    ]
    winner = _winner(text, candidates)
    if isinstance(winner, Candidate):
        status = OK if winner.is_legal and winner.value is not None else ILLEGAL
        return Reading(status, winner.value, winner.marked_by)
    if truncated:
        return Reading(TRUNCATED)
    return Reading(winner) if winner else _decide_unmarked(text, candidates, may_stand_alone)


def _decide_unmarked(
    text: str, candidates: Sequence[Candidate[T]], may_stand_alone: Callable[[str, str], bool]
) -> Reading[T]:
    """Decide where no candidate is marked: the answer is the only value that is named."""
    legal = [candidate for candidate in candidates if candidate.is_legal and candidate.value is not None]
    if is_refusal(text):
        return Reading(REFUSED)
    if len({candidate.value for candidate in legal or candidates}) > 1:
        return Reading(AMBIGUOUS)
    sentences = [candidate.sentence for candidate in legal if not candidate.is_aside]
    if not _EXPLAINING.search(text) and any(
        may_stand_alone(preceding, following) and not is_doubted(preceding, following)
        for preceding, following, _ in sentences
    ):
        if _UNDECIDED.search(text) or _is_taken_back(text, legal[-1]):
            return Reading(AMBIGUOUS)
        return Reading(OK, legal[-1].value, "only")
    if not legal and candidates:
        return Reading(ILLEGAL, candidates[0].value, "only")
    return Reading(UNREADABLE)


def _without_speech(text: str, candidates: Sequence[Candidate[T]]) -> tuple[str, Sequence[Candidate[T]]]:
    """Blank what is said to others or laid out in a table, if another part of the answer names a candidate."""
    blank = _SPEECH.sub(lambda match: (match[1] or match[2] or "").ljust(len(match[0])), text)
    outside = [candidate for candidate in candidates if blank[candidate.position] == X]
    return (blank, outside) if outside else (text, candidates)


# What takes back what was said: "no", "wait", "actually", "on second thought", "not" behind a comma
_CORRECTION = re.compile(
    r"\b(?:no(?! (?:more|less|one|longer|time|way|people|doubt|problem|other|need|reason|idea|point|exit|matter))"
    r"|nope|wait(?! (?:at|in|for|there|behind|here|near|until|on|by)\b)"
    r"|actually|rather|correct(?:ion|ed| that)|i mean|i meant|sorry|apologies|make (?:it|that)(?! (?:an?|the|to"
    r"|in|out|through)\b)|oops|scratch that"
    r"|strike that|ignore that|on (?:second|further) thoughts?|on reflection|upon (?:further )?\w+|come to think|edit"
    r"|revised|updated|chang\w+|reconsider\w*|hold on|instead|but now|or more precisely|take that back|withdraw\w*"
    r"|never ?mind|forget|mind|switch\w*|in fact|update|revision|(?<=^)not(?= ?,)|\bor not(?= ?,)"
    r"|(?<=[.,;\u2014\u2013-] )not(?= ?,)|kidding|joking"
    r"|(?<=[.!?] )moment(?= ?[,.!:])|hang on|thinking about it(?: more)?|finally|ultimately|in the end"
    r"|realistically)\b"
)


def _take_back_corrected(text: str, candidates: Sequence[Candidate[T]]) -> None:
    """Exclude what a correction follows, and mark what it is corrected to: "X. no wait, X"."""
    for k in range(1, len(candidates)):
        former, candidate = candidates[k - 1], candidates[k]
        between = text[former.position + 1 : candidate.position]
        if len(between) > 200 or former.value == candidate.value:
            continue
        corrections = list(_CORRECTION.finditer(between))
        if corrections and len(between) - corrections[-1].end() <= 45:
            candidate.strength = max(candidate.strength, former.strength, SAID)
            candidate.marked_by = "corrected"
            for earlier in candidates[:k]:
                earlier.is_possible = False


def _winner(text: str, candidates: Sequence[Candidate[T]]) -> Candidate[T] | str:
    """The marked candidate that wins; or `AMBIGUOUS` or `REFUSED`; an empty text if no candidate is marked."""
    marked = [candidate for candidate in candidates if candidate.strength]
    marked = [candidate for candidate in marked if not candidate.is_aside] or marked
    if not marked:
        return ""
    strength = max(candidate.strength for candidate in marked)
    strongest = [candidate for candidate in marked if candidate.strength == strength]
    winner = strongest[-1]
    if (
        _has_rival(text, winner, strongest)
        or any(_is_contradicted_by(text, winner, candidate) for candidate in candidates)
        or _is_one_of_several(text, winner, strongest, candidates)
        or _stands_beside_another(text, winner, candidates)
        or _is_taken_back(text, winner)
        or (winner.strength < MARKED and _is_undecided(text, winner))
    ):
        return AMBIGUOUS
    if winner.strength < MARKED and is_refusal(text[winner.position :]):
        return REFUSED
    return winner


# What leads from one marked candidate to the one that takes its place: "price: X. so my final price: X"
_REVISION = re.compile(
    rf"{_CORRECTION.pattern}|\b(?:final|so|therefore|thus|hence|but|better|new|conclusion|decision|hmm|mine|undercut"
    rf"|lower|raise|submit|let me|maybe not)\b"
)
# "my price: X"
_LABEL_BEFORE = re.compile(r"\w ?: ?$")
# "i" in "i set the price at X"
_FIRST_PERSON = re.compile(r"\b(?:i|we)(?:'\w+)? [^.\n]{0,30}$")


def _has_rival(text: str, winner: Candidate[T], strongest: Sequence[Candidate[T]]) -> bool:
    """Whether another value was marked as strongly before the winner, and no word leads from it to the winner."""
    rivals = [
        candidate
        for candidate in strongest
        if candidate.position < winner.position
        and candidate.value != winner.value
        and candidate.is_legal
        and (winner.strength == MARKED or candidate.marked_by == "said" == winner.marked_by)
    ]
    # "the price of X went well" before "price: X" is no second answer
    if _has_label(text, winner) and not any(_has_label(text, rival) or _is_own(text, rival) for rival in rivals):
        return False
    return bool(rivals) and not _REVISION.search(text, rivals[-1].position + 1, winner.position)


def _has_label(text: str, candidate: Candidate[T]) -> bool:
    """Whether a label with a colon stands right before a candidate ("price: X")."""
    return _LABEL_BEFORE.search(text, max(0, candidate.position - 20), candidate.position) is not None


def _is_own(text: str, candidate: Candidate[T]) -> bool:
    """Whether a candidate is an object's value, or what the answer's "I" or "we" does ("i charge X")."""
    start = max(0, candidate.position - 40)
    return candidate.marked_by == "object" or _FIRST_PERSON.search(text, start, candidate.position) is not None


# What explains a choice names other candidates without choosing them: "X because it is nearer than X"
_EXPLANATION = re.compile(
    r"\b(?:because|since|as|so that|given|where|which|while|although|though|who|for|with|than|if|reason\w*"
    r"|explanation|why)\b"
    r"|\n|\A ?[-\u2013\u2014] [a-z]"
)
# The sentence of a choice has ended: "i choose X. X is full"
_SENTENCE_BREAK = re.compile(r"(?<!\.)[.!] (?!or\b)")


def _is_contradicted_by(text: str, winner: Candidate[T], candidate: Candidate[T]) -> bool:
    """Whether a later candidate of another value does more than explain the winner ("i choose X. rather X then")."""
    is_later = candidate.position > winner.position and candidate.value != winner.value
    if not is_later or not candidate.is_legal or candidate.is_aside:
        return False
    between = text[winner.position + 1 : candidate.position]
    if candidate.strength >= SAID or (candidate.strength and _LABEL_BEFORE.search(between)):
        return True
    begins_answer = winner.marked_by == "opening" and not text[: winner.position].strip()
    is_statement = begins_answer or winner.marked_by in ("sentence", "said")
    if not candidate.strength and is_statement and _SENTENCE_BREAK.search(between):
        return False
    return winner.strength < MARKED and not _EXPLANATION.search(between)


def _is_one_of_several(
    text: str, winner: Candidate[T], strongest: Sequence[Candidate[T]], candidates: Sequence[Candidate[T]]
) -> bool:
    """Whether other values are marked in the winner's way: lines, sentences or openings of their own, or asides."""
    legal = [candidate for candidate in candidates if candidate.is_legal]
    if winner.is_aside and len({candidate.value for candidate in legal}) > 1:
        return True
    if winner.marked_by == "opening":
        openings = [candidate for candidate in legal if text[candidate.position - 1 : candidate.position] in ("", "\n")]
        if len({candidate.value for candidate in openings}) > 1:
            return True
    if winner.marked_by not in ("line", "sentence", "clause", "opening"):
        return False
    if winner.marked_by == "line":  # of "option #: X" above "option #: X" neither is the answer
        line = _line_of(text, winner)
        if any(other.value != winner.value and _line_of(text, other) == line for other in legal):
            return True
    alike = [candidate for candidate in strongest if candidate.marked_by == winner.marked_by or winner.strength == SAID]
    return len({candidate.value for candidate in alike}) > 1


def _line_of(text: str, candidate: Candidate[T]) -> str:
    start = text.rfind("\n", 0, candidate.position) + 1
    return text[start:].partition("\n")[0].strip(" .,;!")


# "X or X", "X, maybe X", "X / X", "X, X"
_BETWEEN_ALTERNATIVES = re.compile(
    rf"^[^{X}\n.]{{0,25}}?(?:\b(?:or|otherwise|else|alternatively|versus|vs|if not|o)\b|/)(?! (?:rather|more|no)\b)"
    rf"[^{X}.\n]{{0,25}}$|^[,.!]? ?-? ?(?:maybe|perhaps|possibly|then|or|and maybe|and then)\b[^{X}\n.]{{0,25}}$"
    r"|^\W{0,3}or\W{0,3}$|^ ?(?:|,|and|&|\||>|-)(?: (?:also )?(?:the|an?|option|exit|exit on the))? ?$"
)
# "X (the near one) or X"
_PARENTHESIS = re.compile(r"\([^()\n]{0,80}\)")


def _stands_beside_another(text: str, winner: Candidate[T], candidates: Sequence[Candidate[T]]) -> bool:
    """Whether the winner and a neighbour of another value are offered together ("X or X")."""
    k = candidates.index(winner)
    for neighbour in candidates[max(0, k - 1) : k + 2]:
        if neighbour.value == winner.value or not neighbour.is_legal:
            continue
        if neighbour.value is None and neighbour.needs_mark:
            continue
        first, second = sorted((neighbour.position, winner.position))
        between = _PARENTHESIS.sub("", text[first + 1 : second])
        if _BETWEEN_ALTERNATIVES.search(between) and (not neighbour.is_aside or between.endswith("or ")):
            return True
    return False


# An answer that does not decide: "if it is free X, otherwise X", "i am torn", "it depends", "first X, then"
_UNDECIDED = re.compile(
    rf"\btb[dc]\b|\b(?:if|unless|when)\b[^\n]{{1,120}}\b(?:if not|otherwise|else),? (?:[\w']+ ){{0,4}}{X}"
    r"|\b(?:don't|do not) (?:really )?know\b|\bno idea\b|"
    r"\b(?:not|n't) (?:yet )?(?:decided?|made up|chosen|know which)|\bundecided|\b(?:can't|cannot|can not|could not"
    r"|couldn't|unable to)(?: really| yet)? (?:decide|commit|settle|make up)"
    r"|\btorn\b|\brespectively\b|\bwhatever\b(?! \w)|\bdo(?:es)?n\'t (?:care|matter)\b"
    r"|\bdepends\b|(?<!at )\bfirst (?:choice )?[^.\n]{0,15}" + X + r"[^.\n]{0,40}\b(?:then|second)\b"
    r"|\bneed (?:to know|more|\w+ more)|\bno comment\b"
)
# A decision after all: "i don't know, but i take X"
_CONCLUSION = re.compile(r"\b(?:but|however|so|still|in the end|ok|okay|well|fine|nonetheless)\b")


def _is_undecided(text: str, winner: Candidate[T]) -> bool:
    """Whether an answer says that nothing is decided, and does not decide after that."""
    doubts = list(_UNDECIDED.finditer(text))
    if not doubts:
        return False
    return winner.strength != SAID or not _CONCLUSION.search(text, doubts[-1].end(), winner.position)


# "X. no, wait", "X. scratch that", "X? hmm, no", "X, but i won't"
_REVOKED = re.compile(
    r"(?:^|[.,;:!?\n\u2014\u2013(-] ?|\.\.\. ?)(?:(?:but|hmm+|no|oh|or|well),? ){0,3}(?:wait\b|no[.,!](?! one)"
    r"|hold on)"
    r"|\b(?:scratch|strike|ignore|disregard|forget) (?:that|this|it)|\bnever ?mind|\btake (?:that|it|this) back"
    r"|\bkidding|\bjoking|\bmaybe not\b|\bwithdraw|\bon (?:second|further) thought|\bon reflection|\b(?:but|hmm,?"
    r"|or) no\b|\blet me (?:re\w+|think)"
    r"|\bneed to (?:think|re)|\bbut i(?:'m not| won't| will not| shall not| refuse)"
)
# "X. that is too crowded", but not "X, unless it is blocked"
_COMPLAINT = re.compile(
    r"(?<!unless )(?<!since )(?<!because )(?<!as )(?<!if )(?<!though )(?<!when )(?<!while )\b(?:that|this|it)"
    r"(?:'s| is| would be| may be| might be| could be)(?: (?!less|not)\w+)? "
    r"(?:too (?:\w+)|a wall|blocked|wrong|a mistake|taken|occupied|full|packed|crowded|closed|on fire|jammed|locked)"
)


def _is_taken_back(text: str, winner: Candidate[T]) -> bool:
    """Whether the answer takes back a candidate, or complains of it before the next one."""
    start, end = winner.position + 1, winner.position + 400
    next_candidate = text.find(X, start, end)
    return bool(
        _REVOKED.search(text, start, end)
        or _COMPLAINT.search(text, start, end if next_candidate < 0 else next_candidate)
    )

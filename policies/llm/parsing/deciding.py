r"""Which of the candidates in an answer is meant.

Numbers and options are found first (`numerals`, `options`). Each becomes one sign, `X`, in a text of small letters: so
that the rules see "i choose X. no wait, X" and need not know what was asked for. Then:

1. A candidate that is denied, belongs to the past or to somebody else, or stands in a question, is not meant.
2. The others are marked or not: `MARKED` by a tag, a box, an object, a label ("answer:", "my price is") or by being all
   of the first or the last line; `SAID` by a verb ("I choose") or by being all of a sentence.
3. What a correction follows ("no, wait", "actually") is taken back; the candidate after it takes its place.
4. The last marked one wins, else the last said one. If nothing is marked, the only one there is.
5. It is ambiguous if another was marked in the same way before, and no word leads from that one to it ("so", "final");
   if it stands beside another ("or", "maybe"), contradicts another that was said later, or was taken back without
   another in its place.

Every pattern looks at a bounded part of the text, so the time is linear in the length of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from llm_coop_envs.policies.llm.parsing.judging import MARKED, SAID, Candidate, X, doubted, judge, sentences
from llm_coop_envs.policies.llm.parsing.marking import mark
from llm_coop_envs.policies.llm.parsing.reading import AMBIGUOUS, ILLEGAL, OK, REFUSED, TRUNCATED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.refusals import refuses

T = TypeVar("T")

_CUE = re.compile(
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
_REVOKED = re.compile(
    r"(?:^|[.,;:!?\n\u2014\u2013(-] ?|\.\.\. ?)(?:(?:but|hmm+|no|oh|or|well),? ){0,3}(?:wait\b|no[.,!](?! one)"
    r"|hold on)"
    r"|\b(?:scratch|strike|ignore|disregard|forget) (?:that|this|it)|\bnever ?mind|\btake (?:that|it|this) back"
    r"|\bkidding|\bjoking|\bmaybe not\b|\bwithdraw|\bon (?:second|further) thought|\bon reflection|\b(?:but|hmm,?"
    r"|or) no\b|\blet me (?:re\w+|think)"
    r"|\bneed to (?:think|re)|\bbut i(?:'m not| won't| will not| shall not| refuse)"
)
# What speaks against the option named last.
_COMPLAINED = re.compile(
    r"(?<!unless )(?<!since )(?<!because )(?<!as )(?<!if )(?<!though )(?<!when )(?<!while )\b(?:that|this|it)"
    r"(?:'s| is| would be| may be| might be| could be)(?: (?!less|not)\w+)? "
    r"(?:too (?:\w+)|a wall|blocked|wrong|a mistake|taken|occupied|full|packed|crowded|closed|on fire|jammed|locked)"
)
_BESIDE = re.compile(
    rf"^[^{X}\n.]{{0,25}}?(?:\b(?:or|otherwise|else|alternatively|versus|vs|if not|o)\b|/)(?! (?:rather|more|no)\b)"
    rf"[^{X}.\n]{{0,25}}$|^[,.!]? ?-? ?(?:maybe|perhaps|possibly|then|or|and maybe|and then)\b[^{X}\n.]{{0,25}}$"
    r"|^\W{0,3}or\W{0,3}$|^ ?(?:|,|and|&|\||>|-)(?: (?:also )?(?:the|an?|option|exit|exit on the))? ?$"
)
# What leads from one marked candidate to the one that takes its place.
_REVISED = re.compile(
    rf"{_CUE.pattern}|\b(?:final|so|therefore|thus|hence|but|better|new|conclusion|decision|hmm|mine|undercut"
    rf"|lower|raise|submit|let me|maybe not)\b"
)
_PARENTHESIS = re.compile(r"\([^()\n]{0,80}\)")
_SENTENCE = re.compile(r"(?<!\.)[.!] (?!or\b)")
_LABELLED = re.compile(r"\w ?: ?$")
_FIRST_PERSON = re.compile(r"\b(?:i|we)(?:'\w+)? [^.\n]{0,30}$")
_EXPLAINED = re.compile(
    r"\b(?:because|since|as|so that|given|where|which|while|although|though|who|for|with|than|if|reason\w*"
    r"|explanation|why)\b"
    r"|\n|\A ?[-\u2013\u2014] [a-z]"
)
_UNDECIDED = re.compile(
    rf"\btb[dc]\b|\b(?:if|unless|when)\b[^\n]{{1,120}}\b(?:if not|otherwise|else),? (?:[\w']+ ){{0,4}}{X}"
    r"|\b(?:don't|do not) (?:really )?know\b|\bno idea\b|"
    r"\b(?:not|n't) (?:yet )?(?:decided?|made up|chosen|know which)|\bundecided|\b(?:can't|cannot|can not|could not"
    r"|couldn't|unable to)(?: really| yet)? (?:decide|commit|settle|make up)"
    r"|\btorn\b|\brespectively\b|\bwhatever\b(?! \w)|\bdo(?:es)?n\'t (?:care|matter)\b"
    r"|\bdepends\b|(?<!at )\bfirst (?:choice )?[^.\n]{0,15}" + X + r"[^.\n]{0,40}\b(?:then|second)\b"
    r"|\bneed (?:to know|more|\w+ more)|\bno comment\b"
)
# What is said to the other players, quoted or after a label; and what is only laid out, in a table of several rows.
_BESIDES = re.compile(
    r"(\b(?:say|shout|tell|yell|call|cry|whisper|announce|add|reply|write|message|others?|everyone|everybody|all"
    r"|them|loud)"
    r"\b[^\"\n.]{0,30}[:,]? ?)\"(?:[^\"\n ]+ ){2}[^\"\n]{1,400}(?:\"|$)"
    r"|^(\W{0,3}(?:public |my )?(?:messages?|statement|announcement|talk|speech)\b[^:\n]{0,30}:)[^\n]{1,400}$"
    r"|^\|[^\n]*(?:\n\|[^\n]*){2,}",
    re.MULTILINE,
)
# What explains the rules to somebody does not choose by the mere mention of an option.
_EXPLAINING = re.compile(r"(?:^|[.!?:] |\n)you(?:'re)?\b|\byour (?:options|choices)\b|\ba whole number\b")
_CONCLUDED = re.compile(r"\b(?:but|however|so|still|in the end|ok|okay|well|fine|nonetheless)\b")


def decide(
    text: str,
    found: Sequence[Candidate[T]],
    *,
    excluded: Callable[[str, str], bool],
    loose: Callable[[str, str], bool],
    truncated: bool,
) -> Reading[T]:
    """Decide which candidate is meant.

    Args:
        text: the answer in small letters, every candidate one `X`.
        found: the candidates, first to last.
        excluded: whether a candidate cannot be meant by what stands before and after it in its sentence.
        loose: whether a candidate without a mark may be taken by what stands before and after it in its sentence.
        truncated: whether the answer was cut; only what is marked is then trusted.
    """
    text, found = _without_besides(text, found)
    around = sentences(text, found)
    for one in found:
        judge(one, text, *around[one.at], excluded)
    meant = [one for one in found if one.meant]
    mark(text, meant, around)
    _correct(text, meant)
    meant = [one for one in meant if one.meant and (one.mark or not one.weak)]
    if truncated:
        meant = [one for one in meant if one.mark >= SAID]
    winner = _winner(text, meant)
    if isinstance(winner, Candidate):
        if winner.value is None or not winner.legal:
            return Reading(ILLEGAL, winner.value, winner.rule)
        return Reading(OK, winner.value, winner.rule)
    if truncated:
        return Reading(TRUNCATED)
    if winner:
        return Reading(winner)
    legal = [one for one in meant if one.legal and one.value is not None]
    if refuses(text):
        return Reading(REFUSED)
    if len({one.value for one in legal or meant}) > 1:
        return Reading(AMBIGUOUS)
    places = [around[one.at][:2] for one in legal if not one.aside]
    if not _EXPLAINING.search(text) and any(loose(*place) and not doubted(*place) for place in places):
        return (
            Reading(AMBIGUOUS)
            if _UNDECIDED.search(text) or _taken_back(text, legal[-1])
            else Reading(OK, legal[-1].value, "only")
        )
    if not legal and meant:
        return Reading(ILLEGAL, meant[0].value, "only")
    return Reading(UNREADABLE)


def _without_besides(text: str, found: Sequence[Candidate[T]]) -> tuple[str, Sequence[Candidate[T]]]:
    """An answer of which what is said to others or laid out is blank, if something else in it could be meant."""
    blank = _BESIDES.sub(lambda match: (match[1] or match[2] or "").ljust(len(match[0])), text)
    outside = [one for one in found if blank[one.at] == X]
    return (blank, outside) if outside else (text, found)


def _correct(text: str, meant: Sequence[Candidate[T]]) -> None:
    """Take back what a correction follows."""
    for k in range(1, len(meant)):
        one, other = meant[k - 1], meant[k]
        between = text[one.at + 1 : other.at]
        if len(between) > 200 or one.value == other.value:
            continue
        cues = list(_CUE.finditer(between))
        if cues and len(between) - cues[-1].end() <= 45:
            other.mark = max(other.mark, one.mark, SAID)
            other.rule = "corrected"
            for earlier in meant[:k]:
                earlier.meant = False


def _named(text: str, one: Candidate[T]) -> bool:
    """Whether a label with a colon stands right before a candidate."""
    return _LABELLED.search(text, max(0, one.at - 20), one.at) is not None


def _own(text: str, one: Candidate[T]) -> bool:
    """Whether a candidate is an object's, or what the answer's "I" or "we" does."""
    return one.rule == "object" or _FIRST_PERSON.search(text, max(0, one.at - 40), one.at) is not None


def _winner(text: str, meant: Sequence[Candidate[T]]) -> Candidate[T] | str:
    """The marked candidate that wins; or a status; empty if nothing is marked."""
    marked = [one for one in meant if one.mark]
    marked = [one for one in marked if not one.aside] or marked
    if not marked:
        return ""
    most = max(one.mark for one in marked)
    winner = [one for one in marked if one.mark == most][-1]
    if winner.aside and len({one.value for one in meant if one.legal}) > 1:
        return AMBIGUOUS
    later = [one for one in meant if one.at > winner.at and one.legal and not one.aside and one.value != winner.value]
    later = [one for one in later if _contradicts(text, winner, one)]
    alike = {one.value for one in marked if one.mark == most and (one.rule == winner.rule or most == SAID)}
    heads = {one.value for one in meant if one.legal and text[one.at - 1 : one.at] in ("", "\n")}
    if winner.rule == "opening" and len(heads) > 1:
        return AMBIGUOUS
    rivals = [one for one in marked if one.mark == most and one.at < winner.at and one.value != winner.value]
    rivals = [one for one in rivals if one.legal and (most == MARKED or one.rule == "said" == winner.rule)]
    if _named(text, winner) and not any(_named(text, one) or _own(text, one) for one in rivals):
        rivals = []  # "the price of X went well" before "price: X" is no second answer
    if rivals and not _REVISED.search(text, rivals[-1].at + 1, winner.at):
        return AMBIGUOUS
    if later or (winner.rule in ("line", "sentence", "clause", "opening") and len(alike) > 1):
        return AMBIGUOUS
    k = meant.index(winner)
    for other in meant[max(0, k - 1) : k + 2]:
        if other.value != winner.value and other.legal and not (other.value is None and other.weak):
            low, high = sorted((other.at, winner.at))
            between = _PARENTHESIS.sub("", text[low + 1 : high])
            if _BESIDE.search(between) and (not other.aside or between.endswith("or ")):
                return AMBIGUOUS
    if _taken_back(text, winner) or (winner.mark < MARKED and _undecided(text, winner)):
        return AMBIGUOUS
    if winner.mark < MARKED and refuses(text[winner.at :]):
        return REFUSED
    return winner


def _contradicts(text: str, winner: Candidate[T], later: Candidate[T]) -> bool:
    """Whether what is said later is no mere explanation of what was said first."""
    if later.mark >= SAID or (later.mark and _LABELLED.search(text[winner.at + 1 : later.at])):
        return True
    between = text[winner.at + 1 : later.at]
    opened = winner.rule == "opening" and not text[: winner.at].strip()
    if not later.mark and (opened or winner.rule in ("sentence", "said")) and _SENTENCE.search(between):
        return False
    return winner.mark < MARKED and not _EXPLAINED.search(between)


def _undecided(text: str, winner: Candidate[T]) -> bool:
    """Whether an answer says that nothing is decided, and does not decide after that."""
    doubts = list(_UNDECIDED.finditer(text))
    concluded = winner.mark == SAID and bool(doubts) and _CONCLUDED.search(text, doubts[-1].end(), winner.at)
    return bool(doubts) and not concluded


def _taken_back(text: str, winner: Candidate[T]) -> bool:
    begin, end = winner.at + 1, winner.at + 400
    other = text.find(X, begin, end)
    return bool(_REVOKED.search(text, begin, end) or _COMPLAINED.search(text, begin, end if other < 0 else other))

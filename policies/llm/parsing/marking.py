"""Rules that mark a candidate as the answer: a label, a line or sentence of its own, a verb of choosing."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import TypeVar

from llm_coop_envs.policies.llm.parsing.candidates import HINTED, MARKED, SAID, UNMARKED, Candidate, X
from llm_coop_envs.policies.llm.parsing.judging import CLAUSE_START, VERB, is_pointed_at
from llm_coop_envs.policies.llm.parsing.objects import MARK

T = TypeVar("T")

# How far behind a label, and behind a verb of choosing, its candidate may stand.
_LABEL_REACH, _VERB_REACH = 45, 70

# "answer", "price", "exit"
_NOUN = (
    r"(?:answer|price|number|choice|pick|guess|bid|bet|decision|selection|offer|response|result|output|verdict"
    r"|submission"
    r"|conclusion|exit|move|letter|option|direction|action|destination|step|recommendation|vote|value|final"
    r"|best|goal)"
)
# What may stand before the noun: "my |final| answer", "the |best new| price"
_ADJECTIVES = (
    r"(?:(?:final|new|next|own|chosen|selected|best|optimal|ideal|recommended|suggested|proposed|revised|updated"
    r"|right"
    r"|corrected|correct|good|better|safe|safer|reasonable|sensible|smart|wise|rational|strategic|preferred"
    r"|desired|definitive|short|target|ultimate|actual|pricing|following|whole|second|recommend) ){0,3}"
)
# What may stand behind it: "my price |for this round| is X", "the number |i choose| is X"
_COMPLEMENT = (
    r"(?: \([^()\n]{0,40}\))?(?: (?:for|in) (?:this|the)? ?(?:current |next |new )?(?:round|period|turn)(?: #)?"
    r"| this round"
    r"| (?:that )?(?:i|we|i'm|i'll)(?: \w+){1,3}?| chosen| selected| it is| as follows"
    r"| (?:here|now|today|then|again|so far|overall)| (?:for|in|at) (?:[\w']+ ){0,2}(?!it)[\w']+"
    r"|,[^.;:\n]{3,60},(?= (?:is|will be|would be|remains)\b)"
    r"| per unit){0,2}(?: \([^()\n]{0,40}\))?"
)
# "answer: X", "my final price is X", "the move i choose = X", "mine: X", "edit: X", a heading "my choice" above "X"
_LABEL = re.compile(
    rf"(?:^\W{{0,4}}(?:[\w-]+ ){{0,2}}?|\b(?:(?:my|our|your|their|his|her) (?:\w+ )??|(?:the|mine|a) )|[.,;|(] ?(?:so "
    rf"|and )?){_ADJECTIVES}\b{_NOUN}\b{_COMPLEMENT}"
    r"(?:'s(?= )|(?: (?:is(?! (?:to|at|in|on|near|located)\b)|would be|will be|should be|shall be|must be|has to be"
    r"|ought to be|is going to be|of|at|set at|set to|lies at"
    r"|remains"
    r"|stays|becomes|equals|stands at)\b(?: at\b)?)"
    r"| ?(?:[:=|\u2192\u2013\u2014]"
    r"|[-=]{1,2}>|- )"
    r"|[^\w\n.]?\n)"
    r"|\b(?:mine|ours)(?: is\b| will be\b| ?[:=])|(?:^|[.,;] )(?:me|us) ?[:=]|^\W{0,3}(?:line|round) # ?:"
    r"|^\W{0,3}a ?:(?= \S+$)|\b(?:correction|corrected|edit|revised|revision|update|updated|new|final|next)\W{0,3}:",
    re.MULTILINE,
)
# A labelled candidate that is the subject of a statement: in "the exit X is jammed" no exit is chosen.
_SUBJECT = re.compile(r"(?: exit| side| door| one)? (?:is|are|was|were|has|have|gets|looks|seems)\b")
# A step that is one of several compared: "moving X leaves me 3 cells away"
_COMPARED = re.compile(r"\)? (?:leaves|brings|takes|keeps|gets)\b")
# A label that is somebody else's, past, or no decision: "my rival's price: X", "the average number is X"
_LABEL_OF_OTHERS = re.compile(
    r"\b(?:rival|competitor|opponent|other|their|his|her|last|previous|prior|old|expected?|average|mean|first|initial"
    r"|earlier|draft|past|was|competitive|market|current|cost|marginal|collusive|cartel|maximum|minimum|highest"
    r"|lowest|(?<=of )(?:firm|player|evacuee)_\d+|if|equilibrium|monopoly|nash|nearest|closest|[123](?:st|nd"
    r"|rd)|second (?=choice))\b"
)
# "line # :", where several lines are asked for
_LINE_LABEL = re.compile(r"\W{0,3}(?:line|round) # ?:")
# A verb of choosing: "i will choose X", "let's go X", "that leaves me with X", "i'm fine with X", "2/3 of 33 -> X"
_SAID = re.compile(
    r"\b(?:i|we)(?:'ll|'d|'m|'ve)?(?: (?:will|would|shall|am|should|must|now|therefore|thus|hence|also|going to"
    r"|like to"
    r"|plan to|intend to|have decided to|have|decide to|decided to|want to|need to|have to|might|may|still|just"
    r"|simply"
    rf"|think i|think i'll|think|better|instead|rather|currently|hereby|then|once more|again|in fact"
    rf"|try to)){{0,4}},? {VERB}\b"
    rf"|\b(?:let me|let's(?: \w+)?|let us(?: both| all)?|going to|best to|better to|decided to|so:?|therefore,?"
    rf"|thus,?|hence,?|will"
    rf"|should) {VERB}\b"
    rf"|^\W{{0,4}}(?:ok(?:ay)?,? |sure[,!]? |so,? |then )?(?!answer){VERB}\b(?! (?:is|was|in|of)\b)"
    rf"|[.;:!] (?:so )?{VERB}\b"
    r"|\b(?:what(?:'s| is) left|what remains|all that(?:'s| is) left|what i(?:'ll| will| would"
    r"|'d)? \w+)(?: for me)? is\b"
    r"|\b(?:which|that|this|it) leaves(?: me| us)?(?: with)?(?: only)?\b|\bleaving (?:me with |us with |only )"
    rf"|\bfrom {X} to\b|\b(?:i|we)(?:'ve| have) (?:now |also |just )?(?:chosen|selected|settled|opted)\b"
    r"|\bi (?!not|never|love|like|hate|wish|want|hope|rather|have|had|doubt|expect|think|know|believe|listen|react"
    r"|respond"
    r"|refer|reply|look|point|object|thought|went|came|lost|was|am|\w+ed\b)\w+(?: (?:it|down|up|my \w+|the price))? "
    r"(?:at|to|with|for|on)\b"
    r"|\b(?:gut|instinct|intuition|feeling|experience|logic|math|strategy) (?:says|tells me|suggests|points to)\b"
    rf"|\b(?:it|this|that|which) (?:has to|must|shall|will|should|would) be (?={X})|\bis to (?:\w+ly )?(?:go|choose"
    rf"|pick|take|move|set|charge|stay|use|play|head|run|submit|name)\b"
    r"|\b(?:smallest|shortest|least|minimal) (?:distance|path|route|way)\b[^.;:,\n]{0,20}\b(?:is|with|by|via"
    r"|through)\b"
    r"|\bmak(?:es|ing) (?:it|my (?:choice|guess|number|price|answer))\b|\b(?:gives|leaves|brings|leads|gets"
    r"|takes|puts) (?:me|us) (?!(?:\w+ )*(?:closer|nearer) to)(?:to |at |with )?"
    r"|, (?:going|heading|taking|moving|choosing|staying|running|setting|charging|naming)\b"
    r"|\b(?:i'm|i am|i'd be|we are) (?:making my way|(?:happy|fine|okay|left|good|comfortable) (?:with|at)) "
    rf"|\band (?:will |then )?{VERB}\b"
    r"|\b(?:i(?:'d|'ll| will| would) (?!not|never|love|like|hate|wish|want|hope|rather|have|doubt)\w+|i(?:'m"
    r"| am) (?:\w+ing|in|set|settled|inclined))"
    r"(?: it| (?:my|the) price)?(?: up| down| back| a (?:bit|little))? (?:at|to|with|for|on)\b"
    rf"|(?<!{X})(?<!{X} )(?:[-=]{{1,2}}>|[\u2192\u21d2\u2234])(?= ?{X}[^\w{X}\n]{{0,20}}$)",
    re.MULTILINE,
)
# What stands right before the choice: "so: X", "i would like to X" (stay), "it is X"
_SAID_BEFORE = re.compile(
    r"\b(?:(?:so|hence|thus|therefore|now|this (?:time|round|turn)|for now|today)[,:]? ?|(?:option|letter) [^\w]?"
    r"|(?:i|we)(?:'ll|'d|'m)?(?: (?:will|would|shall|like to|want to|just|am|now|must|should|have to|can only)){0,3} "
    r"|(?:it is|it's|that is|that's|this is)(?: the)?(?: (?:number|price|exit|option))? )$"
)
# What is said behind the choice: "X is the safest", "X is my answer", "X it is", "X for me"
_SAID_AFTER = re.compile(
    r"^(?: exit| one| option)? (?:(?:is|seems|looks|would be|feels|sounds|seem|should be|must be|will be"
    r"|remains) (?:to be "
    r"|like )?(?:about |just )?(?:the |my |a |am )?(?:best|closest"
    r"|least|fewest|emptiest|quickest|fastest|nearest|safest|optimal|clearest|easiest|wisest|smartest|winner"
    r"|shortest|only (?:\w+)|obvious|better|safer|wiser|smarter|likelier|faster|quicker|emptier|(?:more"
    r"|most)(?! (?:crowd|congest|danger|distan|risk|expens|popul)) \w+"
    r"|(?:\w+ )?(?:choice|answer"
    r"|option|pick|letter|winner)|okay|ok|fine|good|solid|decent"
    r"|safe|reasonable|realistic|feasible"
    r"|ideal|perfect|appropriate|sweet spot|right(?! (?:of|next|behind|in|on|there|here)\b))\b(?! for (?:them|him"
    r"|her))|it (?:is|shall be|will be|stays"
    r"|remains)\b"
    r"|is (?:my|what i)\b(?! (?:cost|last|previous|profit|limit|max|min|floor|ceiling|upper|lower|reserv))"
    r"|(?:beats|wins|prevails|gets my vote)\b|(?:for )?(?:me|mine|us|ours)\b|(?:strikes|balances"
    r"|makes sense|maximi[sz]es my|gets me|keeps me|gives me)\b|now\b|this time\b)"
)
# An answer that begins with its choice, and goes on: "X, because it is near"
_OPENED = re.compile(
    r"^[)\]\"']?(?: exit)?(?:[,:;]| [-\u2013\u2014] | \(| (?:because|since|as|brings|for|rather than|instead of|over"
    r"|until|while|so that|to)\b)"
    rf"(?! ?(?:(?:or|and|maybe|perhaps|no|wait|then)\b|{X}))(?![^\n]{{0,60}}\bor (?:maybe )?{X})"
)
# A list of candidates with what is said of each: "X: full, X: free"
_LISTED = re.compile(rf"{X}(?::| ?\()[^\n]*{X}")
# "X because it is near", "X - the nearest"
_CLAUSE_END = re.compile(r"[,;(\u2014]| - |\b(?:because|since)\b")
# What ends the reach of a label or verb: "i choose now. X", "i will go if X"
_STOP = re.compile(
    r"[.!?;]\s|\n|\b(?:if|because|since|unless|but|while|although|when|as it|as there|which|where|than|or|before"
    r"|so)\b"
)
_FILLER_WORDS = """
finally ultimately realistically definitely surely certainly simply really obviously clearly next me for namely e.g.
even flat the exit option letter move choice door go head toward towards to please direction one step answer i is my
cell at diagonal diagonally about approximately approx around roughly circa exactly just only then so thus hence
therefore ok okay sure yes well now again here number price final no nope wait actually hmm hm oh sorry correction
edit rather instead better mean meant say maybe perhaps probably likely it make that it's would be still on second
thought reflection oops scratch alright all side out of bucks each per unit decision response result think guess as
turn time agreed fact in choose straight we line ah um uh apologies revised updated i'd
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_WORD = re.compile(r"[^\W_][\w']*")
# A numbered list: "1. X is full" above "2. X is free"
_NUMBERED = re.compile(r"1[.)] [^\n]*\n2[.)] ")
# Items of a list that hold a candidate only: "1. X" above "2. X"
_BARE_ITEMS = re.compile(rf"\d{{1,2}}[.)] {X}\W*\n\d{{1,2}}[.)] {X}")
# The number of an item: "|2|) X"
_ENUMERATED = re.compile(r"\A\d{1,2}\b|\b\d{1,2}\Z")


def mark(text: str, candidates: Sequence[Candidate[T]]) -> None:
    """Mark each candidate with the strongest rule that singles it out as the answer.

    Args:
        text: the answer in small letters, every candidate one `X`.
        candidates: those that can be the answer, first to last.
    """
    _mark_labelled(text, candidates)
    _mark_lines(text, candidates)
    for verb in _SAID.finditer(text):
        _mark_next(text, candidates, verb.end(), _VERB_REACH, SAID, "said")
    _mark_in_sentences(text, candidates)


def _mark_labelled(text: str, candidates: Sequence[Candidate[T]]) -> None:
    """Mark what stands behind a label; what stands right behind somebody else's label is an aside."""
    several_lines = len(_LINE_LABEL.findall(text)) > 1
    for match in _LABEL.finditer(text):
        if several_lines and _LINE_LABEL.fullmatch(match[0]):
            continue
        label = re.split(r"[\n.,;|]", text[max(0, match.start() - 20) : match.end()].rstrip("\n|"))[-1]
        if not _LABEL_OF_OTHERS.search(label):
            _mark_next(text, candidates, match.end(), _LABEL_REACH, MARKED, "label")
        elif (candidate := _next_candidate(candidates, match.end(), 6)) is not None:
            candidate.is_aside = not is_pointed_at(text, candidate.position)


def _next_candidate(candidates: Sequence[Candidate[T]], start: int, reach: int) -> Candidate[T] | None:
    """The first candidate from a position on, if it is no further away than `reach`."""
    k = bisect.bisect_left(candidates, start, key=lambda candidate: candidate.position)
    return candidates[k] if k < len(candidates) and candidates[k].position - start <= reach else None


def _mark_next(text: str, candidates: Sequence[Candidate[T]], start: int, reach: int, strength: int, rule: str) -> None:
    """Mark the candidate that a label or verb introduces, if there is one and it is not marked as strongly.

    Args:
        text: the answer.
        candidates: the candidates.
        start: where the label or verb ends.
        reach: how far behind it the candidate may stand.
        strength: how strongly it is marked.
        rule: the rule's name.
    """
    candidate = _next_candidate(candidates, start, reach)
    if candidate is None or candidate.strength >= strength:
        return
    start += text.startswith("\n", start)
    between = text[start : candidate.position]
    if (
        not _is_unclear_below_heading(text, start, candidate)
        and not _is_subject(text, start, candidate, rule)
        and not _STOP.search(between.lstrip(" \n*"))
    ):
        candidate.strength, candidate.marked_by = strength, rule


def _is_unclear_below_heading(text: str, start: int, candidate: Candidate[T]) -> bool:
    """Whether a candidate stands below a heading, but is neither all of its line nor opens it."""
    if text[start - 1 : start] not in ("\n", "|"):
        return False
    if _WORD.search(text[start : candidate.position]):
        return True
    line = text[start : start + 200].partition("\n")[0]
    opens = _OPENED.match(text[candidate.position + 1 :][:70]) and not _LISTED.search(line)
    return not (_is_bare(line) or opens)


def _is_subject(text: str, start: int, candidate: Candidate[T], rule: str) -> bool:
    """Whether something is said of a candidate behind a label or a verb ("the exit X is jammed")."""
    if rule == "label" and _SUBJECT.match(text, candidate.position + 1):
        return True
    return text.endswith("ing", 0, start) and _COMPARED.match(text, candidate.position + 1) is not None


def _mark_lines(text: str, candidates: Sequence[Candidate[T]]) -> None:
    """Mark values of tags and objects, candidates that are all of the first or last line, and "so: X"."""
    for candidate in candidates:
        if candidate.strength:
            continue
        line_start = text.rfind("\n", 0, candidate.position) + 1
        line = text[line_start : line_start + 200].partition("\n")[0]
        if line.startswith(MARK):
            if MARK not in text[line_start + 1 : candidate.position]:
                candidate.strength, candidate.marked_by = MARKED, "marked"
        elif _is_answer_line(text, candidate.position, line_start, line):
            span = range(line_start, line_start + len(line))
            if _is_only_one(text, candidate, [other for other in candidates if other.position in span]):
                candidate.strength, candidate.marked_by = MARKED, "line"
        elif _SAID_BEFORE.search(candidate.sentence.preceding):
            candidate.strength, candidate.marked_by = SAID, "said"


def _is_answer_line(text: str, position: int, line_start: int, line: str) -> bool:
    """Whether a line is the first or last one, says nothing but its candidates, and is no item of a list or table."""
    first_end, last_start = text.find("\n"), text.rfind("\n")
    is_first = first_end < 0 or (position <= first_end and not _NUMBERED.match(text))
    return (
        (is_first or position > last_start)
        and _is_bare(line)
        and not _is_table_row(text, line_start)
        and not _BARE_ITEMS.match(text, text.rfind("\n", 0, max(line_start - 1, 0)) + 1)
    )


def _is_table_row(text: str, line_start: int) -> bool:
    """Whether the line that starts here is a row of a table below another one."""
    above = text.rfind("\n", 0, max(line_start - 1, 0)) + 1
    return line_start > 0 and text[line_start] == "|" and text[above] == "|"


def _is_only_one(text: str, candidate: Candidate[T], line: Sequence[Candidate[T]]) -> bool:
    """Whether the candidates of a line agree; in a list ("X, X") what is not legal may stand beside what is."""
    others = [other for other in line if other.value != candidate.value]
    return not others or (
        candidate.is_legal
        and len(line) <= 3
        and not any(other.is_legal for other in others)
        and any(sign in text[line[0].position : line[-1].position] for sign in ",;|")
    )


def _mark_in_sentences(text: str, candidates: Sequence[Candidate[T]]) -> None:
    """Mark candidates that are all of a sentence, open the answer, or are all of a clause."""
    for candidate in candidates:
        if candidate.strength != UNMARKED:
            continue
        if _is_sentence(candidate):
            candidate.strength, candidate.marked_by = SAID, "sentence"
        elif _is_opening(text, candidate):
            candidate.strength, candidate.marked_by = HINTED, "opening"
        elif _is_clause(candidate, candidates):
            candidate.strength, candidate.marked_by = HINTED, "clause"


def _is_sentence(candidate: Candidate[T]) -> bool:
    # "hm, X then." but not "X: 5" or "X: X"
    preceding, following, _ = candidate.sentence
    is_paired = following.startswith(":") or preceding.endswith(f"{X}: ")
    return not is_paired and _is_bare(preceding + following)


def _is_opening(text: str, candidate: Candidate[T]) -> bool:
    # "X is the safest", "X, because it is near", "X looks free. i'll take it"
    if _SAID_AFTER.match(candidate.sentence.following):
        return True
    if candidate.is_aside:
        return False
    if _OPENED.match(candidate.sentence.following) and _is_bare(text[: candidate.position]):
        return True
    return is_pointed_at(text, candidate.position)


def _is_clause(candidate: Candidate[T], candidates: Sequence[Candidate[T]]) -> bool:
    # "it is crowded, so X": all of a clause, and no other value in the same sentence unless a colon leads to this one
    preceding, following, _ = candidate.sentence
    start, end = candidate.position - len(preceding), candidate.position + len(following)
    values = {other.value for other in candidates if start <= other.position <= end}
    is_introduced = preceding.endswith(": ") and f": {X}" not in preceding
    return (len(values) == 1 or is_introduced) and _is_bare(
        CLAUSE_START.split(preceding)[-1] + _CLAUSE_END.split(following)[0]
    )


def _is_bare(text: str) -> bool:
    """Whether a text says nothing besides its candidates ("ok, the final answer is X")."""
    if len(text) >= 90:
        return False
    return all(word in _FILLERS for word in _WORD.findall(_ENUMERATED.sub(" ", text.strip())))

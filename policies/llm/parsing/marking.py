"""What marks a candidate as the answer: a label, a verb, a line or sentence of its own."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import TypeVar

from llm_coop_envs.policies.llm.parsing.judging import (
    CLAUSE_START,
    HINTED,
    MARKED,
    POINTED,
    SAID,
    VERB,
    Candidate,
    X,
)
from llm_coop_envs.policies.llm.parsing.objects import MARK

T = TypeVar("T")

_NOUN = (
    r"(?:answer|price|number|choice|pick|guess|bid|bet|decision|selection|offer|response|result|output|verdict"
    r"|submission"
    r"|conclusion|exit|move|letter|option|direction|action|destination|step|recommendation|vote|value|final"
    r"|best|goal)"
)
_KIND = (
    r"(?:(?:final|new|next|own|chosen|selected|best|optimal|ideal|recommended|suggested|proposed|revised|updated"
    r"|right"
    r"|corrected|correct|good|better|safe|safer|reasonable|sensible|smart|wise|rational|strategic|preferred"
    r"|desired|definitive|short|target|ultimate|actual|pricing|following|whole|second|recommend) ){0,3}"
)
_WHEN = (
    r"(?: \([^()\n]{0,40}\))?(?: (?:for|in) (?:this|the)? ?(?:current |next |new )?round(?: #)?| this round"
    r"| (?:that )?(?:i|we|i'm|i'll)(?: \w+){1,3}?| chosen| selected| it is| as follows"
    r"| (?:here|now|today|then|again|so far|overall)| (?:for|in|at) (?:[\w']+ ){0,2}(?!it)[\w']+"
    r"|,[^.;:\n]{3,60},(?= (?:is|will be|would be|remains)\b)"
    r"| per unit){0,2}(?: \([^()\n]{0,40}\))?"
)
_LABEL = re.compile(
    rf"(?:^\W{{0,4}}(?:[\w-]+ ){{0,2}}?|\b(?:(?:my|our|your|their|his|her) (?:\w+ )??|(?:the|mine|a) )|[.,;|(] ?(?:so "
    rf"|and )?){_KIND}\b{_NOUN}\b{_WHEN}"
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
# What makes a labelled candidate the subject of a statement, as in "the exit on the left is jammed".
_SUBJECT = re.compile(r"(?: exit| side| door| one)? (?:is|are|was|were|has|have|gets|looks|seems)\b")
# What makes a step that is named one of several that are compared, as in "moving up leaves me 3 cells away".
_COMPARED = re.compile(r"\)? (?:leaves|brings|takes|keeps|gets)\b")
_NO_LABEL = re.compile(
    r"\b(?:rival|competitor|opponent|other|their|his|her|last|previous|prior|old|expected?|average|mean|first|initial"
    r"|earlier|draft|past|was|competitive|market|current|cost|marginal|collusive|cartel|maximum|minimum|highest"
    r"|lowest|(?<=of )(?:firm|player|evacuee)_\d+|if|equilibrium|monopoly|nash|nearest|closest|[123](?:st|nd"
    r"|rd)|second (?=choice))\b"
)
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
# What stands right before what is said; the verb may be the name itself, as in "I would like to stay".
_SAID_BEFORE = re.compile(
    r"\b(?:(?:so|hence|thus|therefore|now|this (?:time|round|turn)|for now|today)[,:]? ?|(?:option|letter) [^\w]?"
    r"|(?:i|we)(?:'ll|'d|'m)?(?: (?:will|would|shall|like to|want to|just|am|now|must|should|have to|can only)){0,3} "
    r"|(?:it is|it's|that is|that's|this is)(?: the)?(?: (?:number|price|exit|option))? )$"
)
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
_OPENED = re.compile(
    r"^[)\]\"']?(?: exit)?(?:[,:;]| [-\u2013\u2014] | \(| (?:because|since|as|brings|for|rather than|instead of|over"
    r"|until|while|so that|to)\b)"
    rf"(?! ?(?:(?:or|and|maybe|perhaps|no|wait|then)\b|{X}))(?![^\n]{{0,60}}\bor (?:maybe )?{X})"
)
# A list of candidates with what is said of each.
_LISTED = re.compile(rf"{X}(?::| ?\()[^\n]*{X}")
_CLAUSE_END = re.compile(r"[,;(\u2014]| - |\b(?:because|since)\b")
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
_NUMBERED = re.compile(r"1[.)] [^\n]*\n2[.)] ")
_ITEMS = re.compile(rf"\d{{1,2}}[.)] {X}\W*\n\d{{1,2}}[.)] {X}")
_ENUMERATED = re.compile(r"\A\d{1,2}\b|\b\d{1,2}\Z")


_ROUND = re.compile(r"\W{0,3}(?:line|round) # ?:")


def mark(text: str, meant: Sequence[Candidate[T]], around: dict[int, tuple[str, str, str]]) -> None:
    """Say which candidates are marked, and by what."""
    places = [one.at for one in meant]

    def following(start: int, gap: int, mark: int, rule: str) -> None:
        k = bisect.bisect_left(places, start)
        if k < len(meant) and meant[k].mark < mark and places[k] - start <= gap:
            start += text.startswith("\n", start)
            between = text[start : places[k]]
            # What stands below a heading must be all of its line.
            line = text[start : start + 200].partition("\n")[0]
            heads = text[start - 1 : start] in ("\n", "|") and (
                _WORD.search(between)
                or not (_is_bare(line) or (_OPENED.match(text[places[k] + 1 :][:70]) and not _LISTED.search(line)))
            )
            subject = (rule == "label" and _SUBJECT.match(text, places[k] + 1)) or (
                text.endswith("ing", 0, start) and _COMPARED.match(text, places[k] + 1)
            )
            if not heads and not subject and not _STOP.search(between.lstrip(" \n*")):
                meant[k].mark, meant[k].rule = mark, rule

    rounds = len(_ROUND.findall(text)) > 1
    for match in _LABEL.finditer(text):
        if rounds and _ROUND.fullmatch(match[0]):
            continue
        label = re.split(r"[\n.,;|]", text[max(0, match.start() - 20) : match.end()].rstrip("\n|"))[-1]
        if not _NO_LABEL.search(label):
            following(match.end(), 45, MARKED, "label")
        elif (k := bisect.bisect_left(places, match.end())) < len(meant) and places[k] - match.end() <= 6:
            meant[k].aside = not POINTED.match(text, places[k] + 1)
    first, last = text.find("\n"), text.rfind("\n")
    listed = _NUMBERED.match(text) is not None
    for one in meant:
        begin = text.rfind("\n", 0, one.at) + 1
        line = text[begin : begin + 200].partition("\n")[0]
        if one.mark:
            continue
        if line.startswith(MARK):
            if MARK not in text[begin + 1 : one.at]:
                one.mark, one.rule = MARKED, "marked"
        elif (
            (first < 0 or (one.at <= first and not listed) or one.at > last)
            and _is_bare(line)
            and not _in_table(text, begin)
            and not _ITEMS.match(text, text.rfind("\n", 0, max(begin - 1, 0)) + 1)
        ):
            if _alone(text, one, [other for other in meant if begin <= other.at < begin + len(line)]):
                one.mark, one.rule = MARKED, "line"
        elif _SAID_BEFORE.search(around[one.at][0]):
            one.mark, one.rule = SAID, "said"
    for match in _SAID.finditer(text):
        following(match.end(), 70, SAID, "said")
    for one in meant:
        if not one.mark:
            before, after, _ = around[one.at]
            opens = not one.aside and _is_bare(text[: one.at]) and _OPENED.match(after)
            near = {other.value for other in meant if one.at - len(before) <= other.at <= one.at + len(after)}
            paired = after.startswith(":") or before.endswith(f"{X}: ")
            if _is_bare(before + after) and not paired:
                one.mark, one.rule = SAID, "sentence"
            elif _SAID_AFTER.match(after) or opens or (not one.aside and POINTED.match(text, one.at + 1)):
                one.mark, one.rule = HINTED, "opening"
            elif (len(near) == 1 or (before.endswith(": ") and f": {X}" not in before)) and _is_bare(
                CLAUSE_START.split(before)[-1] + _CLAUSE_END.split(after)[0]
            ):
                one.mark, one.rule = HINTED, "clause"


def _in_table(text: str, begin: int) -> bool:
    """Whether the line that begins here is a row below another."""
    above = text.rfind("\n", 0, max(begin - 1, 0)) + 1
    return begin > 0 and text[begin] == "|" and text[above] == "|"


def _alone(text: str, one: Candidate[T], line: Sequence[Candidate[T]]) -> bool:
    """Whether a line says one thing only; what is not legal may stand beside it in a list."""
    others = [other for other in line if other.value != one.value]
    return not others or (
        one.legal
        and len(line) <= 3
        and not any(other.legal for other in others)
        and any(sign in text[line[0].at : line[-1].at] for sign in ",;|")
    )


def _is_bare(text: str) -> bool:
    """Whether a text says nothing but what is in it."""
    words = _WORD.findall(_ENUMERATED.sub(" ", text.strip())) if len(text) < 90 else ["too long"]
    return all(word in _FILLERS for word in words)

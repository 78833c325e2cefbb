r"""Which of the candidates in an answer is meant.

Numbers and options are found first (`numerals`, `options`). Each becomes one sign, `X`, in a text of small letters: so
that the rules see "i choose X. no wait, X" and need not know what was asked for. Then:

1. A candidate that is denied, belongs to the past or to somebody else, or stands in a question, is not meant.
2. The others are marked or not: `MARKED` by a tag, a box, an object, a label ("answer:", "my price is") or by being all
   of the first or the last line; `SAID` by a verb ("I choose") or by being all of a sentence.
3. What a correction follows ("no, wait", "actually") is taken back; the candidate after it takes its place.
4. The last marked one wins, else the last said one. If nothing is marked, the only one there is.
5. It is ambiguous if it stands beside another ("or", "maybe"), contradicts another that was said later, or was taken
   back without another in its place.

Every pattern looks at a bounded part of the text, so the time is linear in the length of the answer.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from llm_coop_envs.policies.llm.parsing.objects import MARK
from llm_coop_envs.policies.llm.parsing.reading import AMBIGUOUS, ILLEGAL, OK, REFUSED, TRUNCATED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.refusals import refuses

S = TypeVar("S")
T = TypeVar("T")
X = "\ue000"
PLAIN, HINTED, SAID, MARKED = 0, 1, 2, 3
_BEFORE, _AFTER = 90, 60
# An answer with more candidates is garbage; its first and last ones are looked at.
_MANY = 60


@dataclass(slots=True)
class Candidate(Generic[T]):
    """Something in an answer that could be meant.

    Attributes:
        at: where its sign stands.
        value: what it says; `None` if it says nothing that was offered.
        legal: whether it may be answered.
        weak: whether it counts only where it is marked.
        meant: whether it may be meant.
        aside: whether it is said on a condition, for later, or as a reason: it counts only if nothing else does.
        mark: `PLAIN`, `HINTED`, `SAID` or `MARKED`.
        rule: what marked it.
    """

    at: int
    value: T | None
    legal: bool = True
    weak: bool = False
    meant: bool = True
    aside: bool = False
    mark: int = PLAIN
    rule: str = "only"


_SENTENCE_END = re.compile(r"[.!?;]+(?=[\s\"')\]]|$)|\n|\.\.+")
_CLAUSE_START = re.compile(
    r"[,;:\u2014\u2013(]|\b(?:but|so|then|now|hence|while|unless|if|because|since|when|although)\b"
)

_DENIED = re.compile(
    r"(?:\b(?:not|never|no longer|no reason to|neither|nor|forget|scrap|avoid\w*|instead of|rather than|(?:any|every"
    r"|no)(?:thing|where) but|all but|except"
    r"|without|cannot|refus\w+|reject\w*|disagree\w*|against|unlike|away from|clear of|than|no to|under no \w+"
    r"|skip\w*|leav\w* behind|over|withdraw\w*|retract\w*|abandon\w*|discard\w*|dismiss\w*|doubt\w*|(?:done"
    r"|finished|through) with)|n't)\b"
    rf"(?:(?! but\b|(?<!think)(?<!believe) (?:i|we)\b)[^.,;:\n{X}]){{0,45}}(?:{X} ?(?:or|and|nor) ?){{0,4}}$"
)
_IS = r"(?:is|are|was|looks|seems|would be|will be|might be|may be|could be|feels|gets|appears|remains|sounds|'s)"
_DENIED_AFTER = re.compile(
    rf"^(?:,? (?:and|or|nor) (?:the )?{X})*(?: exits?| sides?| doors?| ones?)?(?:"
    rf" {_IS}(?: (?:already|also|both|all|far|way|much|just|simply|very|really|quite|now|rather|a (?:bit"
    rf"|little))){{0,2}}"
    r" (?:too \w|not\b|never\b|out of\b|taken|occupied|blocked|full\b|\w*crowded|packed|closed|jammed|unavailable"
    r"|impossible|wrong|foolish|risky|dangerous|unsafe|(?:a|the) (?:mistake|wall|bad|wrong|trap)|no\b|worse|bad\b"
    r"|congested|unreachable|collusion|far\b|cheating|stupid|suicide|an? (?:un|im)\w+)"
    r"| (?:taken|occupied|blocked|full|packed|jammed|closed|congested|(?:over)?crowded)\b"
    r"|: (?:no|nope|never|bad|blocked|full|occupied|taken|too \w+)\b"
    r"| too (?:high|low|risky|greedy|far|crowded|narrow|slow|dangerous|expensive|cheap)\b"
    r"|(?: \w+){0,1}n't\b| (?:cannot|will not|does not|would not|should not|can not|has no|did not)\b"
    r"|,? (?:no|not any|any) (?:more|longer|way)\b)"
)
_PAST = re.compile(
    rf"\b(?:last|previous(?:ly)?|prior|earlier|past|former(?:ly)?|initial(?:ly)?|before|was|were|had|did|used to"
    rf"|chose"
    r"|named|charged|asked|went|moved|picked|took|came|come|coming|at first|first (?=i |thought|idea)"
    r"|originally|until now|headed|ran"
    rf"|would have|could have)\b(?:(?!\b(?:will|now|i'll|but|so|stay|keep|remain|set"
    rf"|choose)\b)[^.,;:\n{X}]){{0,30}}(?:{X} and )?$"
)
_PAST_SENTENCE = re.compile(
    r"^\W*(?:in |at |on )?(?:the |my )?(?:last|previous|prior|earlier|past|before|previously|first(?= i |,? i )"
    r"|at first"
    rf"|initially|originally)\b(?:(?!\b(?:now|but|so|this|therefore|i'll|i will)\b)[^.;:\n{X}]){{0,70}}$"
)
_PAST_AFTER = re.compile(
    r"^ ?(?:in )?(?:the )?(?:last|previous) (?:round|time|turn)|^ (?:earned|brought|gave|made|yielded|sold|led|got"
    r"|attracted|resulted|generated|produced|worked)\b|^ (?:before|earlier|a moment ago)\b"
)
_WHO = (
    r"(?:\w{1,20}_\d+|rivals?|competitors?|opponents?|others?|they|theirs?|everyone|everybody|no one|nobody|anyone"
    r"|someone|somebody|whoever|most|people|crowd|he|she|his|her|players?)"
)
_OTHERS_AFTER = re.compile(rf" (?:is|was)(?: what| (?:the )?\w+ (?:of|by))? (?:the |my )?{_WHO}\b")
_OTHERS = re.compile(
    rf"\b(?:{_WHO}|you (?:should|must|can|could|need|go|take))\b(?! (?:is|are) (?:right|correct))(?:(?<!\d)"
    rf"|(?=['\w ]{{0,45}}[a-z]))[^.,;:\n{X}]{{0,45}}$"
)
_OWN = re.compile(r"\b(?:i|i'll|i'd|i'm|we|let's|mine|so)\b")
_PAST_LABEL = re.compile(
    r"\b(?:(?:previous|prior|old|last|was|earlier|initial|first|draft)(?: \w{1,12})?"
    r"|^\W{0,3}(?:everyone|everybody|they|others?|rivals?|competitors?|opponents?)(?:'s)?(?: \w{1,12})?) ?[:=] ?$"
)
# What makes what the others do one's own.
_SAME = re.compile(r"\b(?:so i do|i do (?:too|so|the same|likewise))\b|\bso do i\b|\bme too\b|\bi (?:follow|join)\b")
_EXPECTED = re.compile(r"\b(?:expect|assum|suppos|think|believ|guess|predict|bet|hope|fear|told|know|see|saw|heard)\w*")
_ASIDE = re.compile(
    rf"\b(?:if|unless|whether|(?<!i )suppos\w+|assuming|in case|could|next (?:round|time|turn)|tomorrow"
    rf"|later)\b[^.;\n{X}]{{0,60}}$"
)
# What is done in one case of several.
_CONDITION = re.compile(rf"\W*(?:if|when|unless|in case)\b(?:(?!\b(?:so|hence|therefore|thus)\b)[^{X}]){{0,80}}{X}")
# What would be done if the world were another one; but not politeness, as in "if I had to choose".
_UNREAL = re.compile(
    rf"^(?:if|had|were)\b(?! (?:i (?:had|have|must|may|remember)|(?:you|we) |forced|pressed|pushed|so|not)\b)"
    rf"[^.;\n{X}]{{0,70}}\b(?:i|we)(?:'d| would| could| might)\b[^,.;\n{X}]{{0,30}}$"
)
# What stands in the clause of a number or name that is not meant, though nothing says so outright.
_DOUBTED = re.compile(
    r"\b(?:not|never|no|mistake|wrong|foolish|too|worse|avoid\w*|unclear|unsure|love to|wanted|wish|instead of)\b"
    r"|n't\b|\bbut\b"
)
_ASIDE_LINE = re.compile(
    r"^\W*(?:reason(?:ing|s)?|thinking|thoughts?|analysis|explanation|notes?|rationale|justification|why|strategy)\b"
    r"[^\w\n]{0,3}[:\u2013\u2014-]"
)
_ASIDE_AFTER = re.compile(
    r"^(?: exit)?,? (?:would (?!be\b)\w+|if|unless|when|in case|otherwise|only if|as long as"
    r"|(?:in the )?next (?:round|turn|step|time|move)|tomorrow|later|afterwards)\b"
)
_HEDGED = re.compile(rf"\b(?:might|may)\b[^.;,\n{X}]{{0,40}}$")
_HEDGED_AFTER = re.compile(r"^ (?:could|might|may) be\b|^-?ish\b|^ came to mind")

_NOUN = (
    r"(?:answer|price|number|choice|pick|guess|bid|decision|selection|offer|response|result|output|verdict|submission"
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
    rf"(?: \([^()\n]{{0,40}}\))?(?: (?:for|in) (?:this|the)? ?(?:current |next |new )?round(?: {X})?| this round"
    r"| (?:that )?(?:i|we|i'm|i'll)(?: \w+){1,3}?| chosen| selected| it is| as follows"
    r"| per unit){0,2}(?: \([^()\n]{0,40}\))?"
)
_LABEL = re.compile(
    rf"(?:^\W{{0,4}}(?:[\w-]+ ){{0,2}}?|\b(?:(?:my|our|your) (?:\w+ )??|(?:the|mine|a) )|[.,;|(] ?(?:so "
    rf"|and )?){_KIND}\b{_NOUN}\b{_WHEN}"
    r"(?:'s(?= )|(?: (?:is(?! (?:to|at|in|on|near|located)\b)|would be|will be|should be|of|at|lies at|remains"
    r"|stays|becomes|equals|stands at)\b(?: at\b)?)"
    r"| ?(?:[:=|\u2192\u2013\u2014]"
    r"|[-=]{1,2}>|- )"
    r"|[^\w\n]?\n)"
    r"|\b(?:mine|ours)(?: is\b| will be\b| ?[:=])|(?:^|[.,;] )(?:me|us) ?[:=]|^\W{0,3}(?:line|round) " + X + r" ?:"
    r"|^\W{0,3}a ?:(?= \S+$)|\b(?:correction|corrected|edit|revised|revision|update|updated|new|final|next)\W{0,3}:",
    re.MULTILINE,
)
# What makes a labelled candidate the subject of a statement, as in "the exit on the left is jammed".
_SUBJECT = re.compile(r"(?: exit| side| door| one)? (?:is|are|was|were|has|have|gets|looks|seems)\b")
_NO_LABEL = re.compile(
    r"\b(?:rival|competitor|opponent|other|their|his|her|last|previous|prior|old|expected?|average|mean|first|initial"
    r"|earlier|draft|past|was|competitive|market|current|cost|marginal|collusive|cartel|maximum|minimum|highest"
    r"|lowest|if|equilibrium|monopoly|nash|nearest|closest|[123](?:st|nd|rd)|second (?=choice))\b"
)
_VERB = (
    r"(?:choos(?:e|ing)|pick(?:ing)?|select(?:ing)?|nam(?:e|ing)|go(?:ing)?(?: up| down| back)?"
    r"|submit(?:ting)?|opt(?:ing)? for|settl(?:e|ing)|settled|stick(?:ing)?|stay(?:ing)?|keep(?:ing)?|charg(?:e|ing)"
    r"|set(?:ting)?|offer(?:ing)?|pric(?:e|ing)|guess(?:ing)?|bid(?:ding)?|play(?:ing)?|say|answer(?:ing)?"
    r"|try(?:ing)?"
    r"|ask(?:ing)?|remain(?:ing)?|lower(?:ing)?|rais(?:e|ing)|increas(?:e|ing)|reduc(?:e|ing)|decreas(?:e|ing)|match"
    r"|undercut|adjust(?:ing)?|maintain(?:ing)?|hold(?:ing)?|decid(?:e|ing)|decided|propos(?:e|ing)|enter(?:ing)?"
    r"|writ(?:e|ing)|tak(?:e|ing)|mov(?:e|ing)|head(?:ing)?|step(?:ping)?|us(?:e|ing)|prefer|continu(?:e|ing)"
    r"|run(?:ning)?|test(?:ing)?|experiment(?:ing)? with|nudg(?:e|ing)|match(?:ing)?|repeat(?:ing)?|reus(?:e|ing)"
    r"|thinking|aim(?:ing)? for|respond(?:ing)?|shift(?:ing)?"
    r"|leav(?:e|ing) (?:through|by|via)|evacuat(?:e|ing)|switch(?:ing)?|chang(?:e|ing)|mak(?:e|ing)|lean(?:ing)?"
    r"|follow(?:ing)?|commit(?:ting)?|turn(?:ing)?|get(?: out)?|vote|do)"
)
_SAID = re.compile(
    r"\b(?:i|we)(?:'ll|'d|'m|'ve)?(?: (?:will|would|shall|am|should|must|now|therefore|thus|hence|also|going to"
    r"|like to"
    r"|plan to|intend to|have decided to|have|decide to|decided to|want to|need to|have to|might|may|still|just"
    r"|simply"
    rf"|think i|think i'll|think|better|instead|rather|currently|hereby|then|once more|again|in fact"
    rf"|try to)){{0,4}},? {_VERB}\b"
    rf"|\b(?:let me|let's(?: \w+)?|let us(?: both| all)?|going to|best to|better to|decided to|so:?|therefore,?"
    rf"|thus,?|hence,?|will"
    rf"|should) {_VERB}\b"
    rf"|^\W{{0,4}}(?:ok(?:ay)?,? |sure[,!]? |so,? |then )?(?!answer){_VERB}\b|[.;:!] (?:so )?{_VERB}\b"
    rf"|\bfrom {X} to\b|\b(?:i|we)(?:'ve| have) (?:now |also |just )?(?:chosen|selected|settled|opted)\b"
    r"|, (?:going|heading|taking|moving|choosing|staying|running|setting|charging|naming)\b"
    r"|\b(?:i'm|i am|i'd be|we are) (?:making my way|(?:happy|fine|okay|left|good|comfortable) (?:with|at)) "
    rf"|\band (?:will |then )?{_VERB}\b"
    r"|\b(?:i(?:'d|'ll| will| would) (?!not|never|love|like|hate|wish|want|hope|rather|have|doubt)\w+|i(?:'m"
    r"| am) (?:\w+ing|in|set|settled|inclined))"
    r"(?: it| (?:my|the) price)?(?: up| down| back)? (?:at|to|with|for|on)\b"
    rf"|(?<!{X})(?<!{X} )(?:[-=]{{1,2}}>|[\u2192\u21d2\u2234])(?= ?{X}[^\w{X}]*\Z)",
    re.MULTILINE,
)
# What stands right before what is said; the verb may be the name itself, as in "I would like to stay".
_SAID_BEFORE = re.compile(
    r"\b(?:(?:so|hence|thus|therefore|now|this time)[,:]? ?|(?:option|letter) [^\w]?"
    r"|(?:i|we)(?:'ll|'d|'m)?(?: (?:will|would|shall|like to|want to|just|am|now|must|should|have to|can only)){0,3} "
    r"|(?:it is|it's|that is|that's|this is)(?: the)?(?: (?:number|price|exit|option))? )$"
)
_SAID_AFTER = re.compile(
    r"^(?: exit)? (?:(?:is|seems|looks|would be|feels|seem) (?:to be |like )?(?:the |my |a |am )?(?:best|closest"
    r"|least|fewest|emptiest|quickest|fastest|nearest|safest|optimal"
    r"|shortest|only (?:\w+)|obvious|better|safer|wiser|smarter|likelier|more \w+|okay|ok|fine|good|reasonable"
    r"|ideal|perfect|appropriate|sweet spot|right (?:price|number|choice|balance|level|one))\b(?! for (?:them|him"
    r"|her))|it (?:is|shall be|will be|stays"
    r"|remains)\b"
    r"|is (?:my|what i)\b(?! (?:cost|last|previous|profit))|(?:for )?(?:me|mine|us|ours)\b|(?:strikes|balances"
    r"|makes sense|maximi[sz]es my|gets me|keeps me|gives me)\b|now\b|this time\b)"
)
# What points back to it: "I'll take it", "that is where I'm going".
_POINTED = re.compile(
    rf"[^{X}]{{0,60}}?(?:\b(?:i(?:'ll|'m|'d)?|we|so|let's)(?: will| am| shall| would)? (?!under|low|rais|incr|red"
    rf"|decr|chan|adj){_VERB} (?:for |to |with |on )?"
    r"(?:it|that(?: one)?|this(?: one)?|there)\b(?! (?:at|to|by|up|down|a bit|slightly|lower|higher)\b)|\b(?:that"
    r"|this|it)(?:'s| is) (?:where|what|the one) (?:i|we)\b)"
)
_OPENED = re.compile(
    r"^[)\]\"']?(?: exit)?(?:[,:;]| [-\u2013\u2014] | \(| (?:because|since|as|brings|for|until|while|so that|to)\b)"
    rf"(?! ?(?:(?:or|and|maybe|perhaps|no|wait|then)\b|{X}))(?![^\n]{{0,60}}\bor (?:maybe )?{X})"
)
_CLAUSE_END = re.compile(r"[,;(\u2014]| - |\b(?:because|since)\b")
_STOP = re.compile(
    r"[.!?;]\s|\n|\b(?:if|because|since|unless|but|while|although|when|as it|as there|which|where|than|or|before"
    r"|so)\b"
)

_CUE = re.compile(
    r"\b(?:no(?! (?:more|less|one|longer|time|way|people|doubt|problem|other|need|reason|idea|point|exit|matter))"
    r"|nope|wait"
    r"|actually|rather|correct(?:ion|ed| that)|i mean|i meant|sorry|apologies|make (?:it|that)|oops|scratch that"
    r"|strike that|ignore that|on (?:second|further) thoughts?|on reflection|upon (?:further )?\w+|come to think|edit"
    r"|revised|updated|chang\w+|reconsider\w*|hold on|instead|but now|or more precisely|take that back|withdraw\w*"
    r"|never ?mind|forget|mind|switch\w*|in fact|update|revision|not(?= ?,)|kidding|joking"
    r"|thinking about it(?: more)?|finally|ultimately|in the end|realistically)\b"
)
_REVOKED = re.compile(
    r"(?:^|[.,;:!?\n\u2014\u2013(-] ?|\.\.\. ?)(?:(?:but|hmm+|no|oh|or|well),? ){0,3}(?:wait\b|no[.,!](?! one)"
    r"|hold on)"
    r"|\b(?:scratch|strike|ignore|disregard|forget) (?:that|this|it)|\bnever ?mind|\btake (?:that|it|this) back"
    r"|\bkidding|\bjoking|\bmaybe not\b|\bwithdraw|\bon (?:second|further) thought|\bon reflection|\b(?:but|hmm,?"
    r"|or) no\b|\blet me (?:re\w+|think)"
    r"|\bneed to (?:think|re)|(?<!since )(?<!because )(?<!as )(?<!if )(?<!though )(?<!when )(?<!while )\b(?:that|this"
    r"|it)"
    r"(?:'s| is| would be| may be| might be| could be)(?: (?!less|not)\w+)? "
    r"(?:too (?:\w+)|a wall|blocked|wrong|a mistake|taken|occupied|full|packed|crowded|closed)|\bbut i(?:'m not"
    r"| won't| will not| shall not| refuse)"
)
_BESIDE = re.compile(
    rf"^[^{X}\n.]{{0,25}}?(?:\b(?:or|otherwise|else|alternatively|versus|vs|if not|o)\b|/)(?! (?:rather|more|no)\b)"
    rf"[^{X}.\n]{{0,25}}$|^[,.!]? ?-? ?(?:maybe|perhaps|possibly|then|or|and maybe|and then)\b[^{X}\n.]{{0,25}}$"
    r"|^\W{0,3}or\W{0,3}$|^ ?(?:|,|and|&|\||>|-) ?$"
)
_LABELLED = re.compile(r"\w ?: ?$")
_EXPLAINED = re.compile(
    r"\b(?:because|since|as|so that|given|where|which|while|although|though|who|for|with|than|if|reason\w*"
    r"|explanation|why)\b"
    r"|\n"
)
_UNDECIDED = re.compile(
    r"\btb[dc]\b|"
    r"\b(?:not|n't) (?:yet )?(?:decided?|made up|chosen|know which)|\bundecided|\b(?:can't|cannot|could not) decide"
    r"|\btorn\b"
    r"|\bdepends\b|(?<!at )\bfirst (?:choice )?[^.\n]{0,15}" + X + r"[^.\n]{0,40}\b(?:then|second)\b"
    r"|\bneed (?:to know|more|\w+ more)|\bno comment\b"
)
_CONCLUDED = re.compile(r"\b(?:but|however|so|still|in the end|ok|okay|well|fine|nonetheless)\b")
_FILLER_WORDS = """
finally ultimately realistically definitely surely certainly simply really obviously clearly next me for namely e.g.
even flat the exit option letter move choice door go head toward towards to please direction one step answer i is my
cell at diagonal diagonally about approximately approx around roughly circa exactly just only then so thus hence
therefore ok okay sure yes well now again here number price final no nope wait actually hmm hm oh sorry correction
edit rather instead better mean meant say maybe perhaps probably likely it make that it's would be still on second
thought reflection oops scratch alright all side out of bucks each per unit decision response result think guess as
agreed fact in choose straight we line ah um uh apologies revised updated i'd
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_WORD = re.compile(r"[^\W_][\w']*")
_ENUMERATED = re.compile(r"\A\d{1,2}\b|\b\d{1,2}\Z")


def ends_of(found: Iterable[S]) -> list[S]:
    """The first and the last of what was found, where that is too much for an answer."""
    every = list(found)
    return every if len(every) <= _MANY else every[: _MANY // 3] + every[_MANY // 3 - _MANY :]


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
    ends = [match.start() for match in _SENTENCE_END.finditer(text)]
    around = [_sentence(text, one.at, ends) for one in found]
    for one, (before, after, end) in zip(found, around, strict=True):
        _judge(one, text, before, after, end, excluded)
    meant = [one for one in found if one.meant]
    _mark(text, meant, {one.at: place for one, place in zip(found, around, strict=True)})
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
    places = [around[found.index(one)] for one in legal]
    sure = [
        not one.aside and loose(*place[:2]) and not _doubted(*place[:2])
        for one, place in zip(legal, places, strict=True)
    ]
    if any(sure):
        return (
            Reading(AMBIGUOUS)
            if _UNDECIDED.search(text) or _taken_back(text, legal[-1])
            else Reading(OK, legal[-1].value, "only")
        )
    if not legal and meant:
        return Reading(ILLEGAL, meant[0].value, "only")
    return Reading(UNREADABLE)


def _doubted(before: str, after: str) -> bool:
    rest = re.split(rf"[;:]|, (?!but\b)|\b(?:and|rather)\b|{X}", after)[0]
    return _DOUBTED.search(re.split(rf"[,;:]|\b(?:and|but)\b|{X}", before)[-1] + X + rest) is not None


def _sentence(text: str, at: int, ends: Sequence[int]) -> tuple[str, str, str]:
    """What stands before and after a candidate in its sentence, and what ends it."""
    k = bisect.bisect_left(ends, at)
    begin = ends[k - 1] + 1 if k else 0
    end = ends[k] if k < len(ends) else len(text)
    before = text[max(begin, at - _BEFORE) : at].lstrip(" .!?;")
    return before, text[at + 1 : min(end, at + 1 + _AFTER)], text[end : end + 1]


def _judge(
    one: Candidate[T], text: str, before: str, after: str, end: str, excluded: Callable[[str, str], bool]
) -> None:
    if not before.strip(" \"'(*") and not after.strip(" \"').*") and end != "?":
        return
    starts = [match.end() for match in _CLAUSE_START.finditer(before)]
    clause = before[starts[-1] :] if starts else before
    pointed = _POINTED.match(text, one.at + 1) is not None
    others = (
        not _SAME.search(text, one.at, one.at + 60)
        and not pointed
        and _OTHERS.search(clause) is not None
        and (not _OWN.search(clause) or _EXPECTED.search(clause) is not None)
    )
    one.meant = not (
        (end == "?" and len(after) < _AFTER)
        or others
        or _OTHERS_AFTER.match(after)
        or _DENIED.search(before)
        or _DENIED_AFTER.match(after)
        or (not pointed and _PAST.search(clause))
        or _PAST_LABEL.search(before)
        or _PAST_SENTENCE.search(before)
        or _PAST_AFTER.match(after)
        or _CONDITION.match(before)
        or _UNREAL.search(before)
        or excluded(before, after)
    )
    if one.meant:
        line = text[text.rfind("\n", 0, one.at) + 1 :][:40]
        one.aside = bool(
            _ASIDE.search(before)
            or _ASIDE_AFTER.match(after)
            or _HEDGED.search(clause)
            or _HEDGED_AFTER.match(after)
            or _ASIDE_LINE.match(line)
        )


def _mark(text: str, meant: Sequence[Candidate[T]], around: dict[int, tuple[str, str, str]]) -> None:
    """Say which candidates are marked, and by what."""
    places = [one.at for one in meant]

    def following(start: int, gap: int, mark: int, rule: str) -> None:
        k = bisect.bisect_left(places, start)
        if k < len(meant) and meant[k].mark < mark and places[k] - start <= gap:
            between = text[start : places[k]]
            # What stands below a heading must be all of its line.
            heads = text[start - 1 : start] in ("\n", "|") and _WORD.search(between)
            subject = rule == "label" and _SUBJECT.match(text, places[k] + 1)
            if not heads and not subject and not _STOP.search(between.lstrip(" \n*")):
                meant[k].mark, meant[k].rule = mark, rule

    for match in _LABEL.finditer(text):
        label = re.split(r"[\n.,;|]", text[max(0, match.start() - 20) : match.end()].rstrip("\n|"))[-1]
        if not _NO_LABEL.search(label):
            following(match.end(), 45, MARKED, "label")
        elif (k := bisect.bisect_left(places, match.end())) < len(meant) and places[k] - match.end() <= 6:
            meant[k].aside = not _POINTED.match(text, places[k] + 1)
    first, last = text.find("\n"), text.rfind("\n")
    for one in meant:
        begin = text.rfind("\n", 0, one.at) + 1
        line = text[begin : begin + 200].partition("\n")[0]
        if one.mark:
            continue
        if line.startswith(MARK):
            if MARK not in text[begin + 1 : one.at]:
                one.mark, one.rule = MARKED, "marked"
        elif (first < 0 or one.at <= first or one.at > last) and _is_bare(line):
            if _alone(text, one, [other for other in meant if begin <= other.at < begin + len(line)]):
                one.mark, one.rule = MARKED, "line"
        elif _SAID_BEFORE.search(around[one.at][0]):
            one.mark, one.rule = SAID, "said"
    for match in _SAID.finditer(text):
        following(match.end(), 70, SAID, "said")
    for one in meant:
        if not one.mark:
            before, after, _ = around[one.at]
            opens = (one.at <= first or first < 0) and _is_bare(text[: one.at]) and _OPENED.match(after)
            near = {other.value for other in meant if one.at - len(before) <= other.at <= one.at + len(after)}
            if _is_bare(before + after):
                one.mark, one.rule = SAID, "sentence"
            elif _SAID_AFTER.match(after) or opens or (not one.aside and _POINTED.match(text, one.at + 1)):
                one.mark, one.rule = HINTED, "opening"
            elif (len(near) == 1 or (before.endswith(": ") and f": {X}" not in before)) and _is_bare(
                _CLAUSE_START.split(before)[-1] + _CLAUSE_END.split(after)[0]
            ):
                one.mark, one.rule = HINTED, "clause"


def _alone(text: str, one: Candidate[T], line: Sequence[Candidate[T]]) -> bool:
    """Whether a line says one thing only; what is not legal may stand beside it in a list."""
    others = [other for other in line if other.value != one.value]
    return not others or (
        one.legal
        and not any(other.legal for other in others)
        and any(sign in text[line[0].at : line[-1].at] for sign in ",;|")
    )


def _is_bare(text: str) -> bool:
    """Whether a text says nothing but what is in it."""
    words = _WORD.findall(_ENUMERATED.sub(" ", text.strip())) if len(text) < 90 else ["too long"]
    return all(word in _FILLERS for word in words)


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
    if later or (winner.rule in ("line", "sentence", "clause", "opening") and len(alike) > 1):
        return AMBIGUOUS
    k = meant.index(winner)
    for other in meant[max(0, k - 1) : k + 2]:
        if other.value != winner.value and other.legal and not other.aside and not (other.value is None and other.weak):
            low, high = sorted((other.at, winner.at))
            if _BESIDE.search(text[low + 1 : high]):
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
    return winner.mark < MARKED and not _EXPLAINED.search(text[winner.at + 1 : later.at])


def _undecided(text: str, winner: Candidate[T]) -> bool:
    """Whether an answer says that nothing is decided, and does not decide after that."""
    doubts = list(_UNDECIDED.finditer(text))
    concluded = winner.mark == SAID and bool(doubts) and _CONCLUDED.search(text, doubts[-1].end(), winner.at)
    return bool(doubts) and not concluded


def _taken_back(text: str, winner: Candidate[T]) -> bool:
    return _REVOKED.search(text, winner.at + 1, winner.at + 400) is not None

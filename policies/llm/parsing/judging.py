"""Whether a candidate in an answer may be meant, by its sentence: not what is denied, past, another's or asked."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")
#: The sign of a candidate; and of a number that only names something, as in "round 3".
X, NAMED = "\ue000", "#"
PLAIN, HINTED, SAID, MARKED = 0, 1, 2, 3
_BEFORE, _AFTER = 90, 60
# An answer with more candidates is garbage; its first and last ones are looked at.
_MANY = 45


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
CLAUSE_START = re.compile(
    r"[,;:\u2014\u2013(]|\b(?:but|so|then|now|hence|while|unless|if|because|since|when|although)\b"
)

# Where a sentence turns to what follows from it: what was supposed or doubted before does not hold after.
_TURN = re.compile(
    r"[,:;)\u2014\u2013] ?(?:and )?(?:but|so(?! (?:that|as|long))|yet|therefore|hence|thus|however|still|which is why"
    r"|that's why|nevertheless|nonetheless|in any case|either way|anyway)\b|[;\u2014] "
)

_DENIED = re.compile(
    r"(?:\b(?:not|never|no longer|no reason to|no way(?: (?:that )?i\S{0,3})?|neither|nor|forget|scrap|avoid\w*"
    r"|instead of|rather than|(?:any|every"
    r"|no)(?:thing|where) but|all but|except"
    r"|without|cannot|refus\w+|reject\w*|disagree\w*|against|unlike|away from|clear of|than|no to|under no \w+"
    r"|skip\w*|giv\w* up|leav\w* behind|over|withdraw\w*|retract\w*|abandon\w*|discard\w*|dismiss\w*|doubt\w*"
    r"|should have"
    r"|wonder\w*|so (?:is|are)|(?:done"
    r"|finished|through) with)|n't)\b"
    rf"(?! (?:\w+ )?(?:chang|alter|deviat|adjust|touch)\w*\b)(?:(?! but\b|(?<!think)(?<!believe) (?:i"
    rf"|we)\b)[^.,;:\n{X}]){{0,45}}(?:{X} ?(?:or|and|nor) ?){{0,4}}$"
)
_IS = r"(?:is|are|was|looks|seems|would be|will be|might be|may be|could be|feels|gets|appears|remains|sounds|'s)"
_DENIED_AFTER = re.compile(
    rf"^\)?(?:,? (?:and|or|nor) (?:the )?{X}\)?)*(?: exits?| sides?| doors?| ones?)?(?:"
    rf" {_IS}(?: (?:already|also|both|all|far|way|much|just|simply|very|really|quite|now|rather|a (?:bit"
    rf"|little))){{0,2}}"
    r" (?:too \w|not\b|never\b|out of\b|taken|occupied|blocked|full\b|\w*crowded|packed|closed|jammed|unavailable"
    r"|impossible|risky|dangerous|unsafe|(?:a |the )?(?:mistake|wall|wrong|trap|death|nightmare|disaster|foolish"
    r"|silly|stupid|crazy|dumb|terrible|horrible|awful|poor|ridiculous|absurd|insane|naive|reckless|pointless"
    r"|bad)\b|no\b|worse"
    r"|congested|unreachable|collusion|far\b|cheating|suicid\w+|on fire|burning|in flames|smok\w+|an? (?:un|im)\w+)"
    r"| (?:taken|occupied|blocked|full|packed|jammed|closed|congested|(?:over)?crowded)\b"
    r"|: (?:only |about )?\d+ (?:people|persons|evacuees|others|m\b|met(?:er|re)s|cells|steps)"
    r"|: (?:no|nope|never|bad|blocked|full|occupied|taken|too \w+)\b"
    r"| too (?:high|low|risky|greedy|far|crowded|narrow|slow|dangerous|expensive|cheap)\b"
    r"| makes? (?:no|little) (?:\w+ )?sense\b"
    r"| (?:leads|takes|brings|moves|goes|gets)(?: me| us)? (?:away|nowhere|further|farther|back)\b"
    r"|(?: \w+){0,1}n't\b| (?:cannot|will not|does not|would not|should not|can not|has no|did not)\b"
    r"|,? (?:no|not any|any) (?:more|longer|way)\b)"
)
_PAST = re.compile(
    rf"\b(?:last|previous(?:ly)?|prior|earlier|past|former(?:ly)?|initial(?:ly)?|before|was|were|had|did|used to"
    rf"|chose"
    r"|named|charged|asked|went|moved|picked|took|came|come|coming|at first|first (?=i |thought|idea)"
    r"|originally|until now|headed|ran"
    r"|(?:rais|lower|increas|reduc|cut|decreas|mov|chang|adjust)\w* (?:my|our|the) \w+ of"
    rf"|would have|could have|should have|sold|earned|tried|promised|old)\b(?:(?!\b(?:will|now|in the end|i'll"
    rf"|but|so|stay"
    rf"|keep|remain|set"
    rf"|choose)\b)[^.,;:\n{X}]){{0,30}}(?:{X} (?:and|\w+ (?:at|for)) )?$"
    r"|\b(?:earned|gained|sold)\b(?:(?!\b(?:will|now|i'll|but|so|i|choose|set)\b)[^.,;:\n]){0,60}$"
)
_PAST_SENTENCE = re.compile(
    r"^\W*(?:in |at |on )?(?:the |my )?(?:last|previous|prior|earlier|past|before|previously|first(?= i |,? i )"
    r"|at first"
    rf"|initially|originally)\b(?:(?!\b(?:now|but|so|this|therefore|i'll|i will)\b)[^.;:\n{X}]){{0,70}}$"
    rf"|\bwhen (?:i|we|they) \w+ed\b[^.,;:\n{X}]{{0,40}}$"
)
_PAST_AFTER = re.compile(
    r"^ ?(?:in )?(?:the )?(?:last|previous) (?:round|time|turn)|^ (?:earned|brought|gave|made|yielded|sold|led|got"
    r"|attracted|resulted|generated|produced|worked)\b|^ (?:before|earlier|a moment ago)\b|^ (?:is|was"
    r"|were) (?:what i (?:said|chose|picked|had|wanted|took|used|named|did)"
    r"|(?:my|the|his|her|their|our)? ?(?:last|previous|earlier|old|first|initial) )"
)
_WHO = (
    r"(?:\w{1,20}_\d+|rivals?|competitors?|opponents?|others?|they|theirs?|everyone|everybody|no one|nobody|anyone"
    r"|someone|somebody|whoever|most|people|crowd|he|she|his|her|players?|person|man|woman|guy|girl|boy|neighbou?rs?"
    r"|friends?|strangers?|colleagues?|family|group|wife|husband|mother|father|brother|sister|son|daughter|kids?"
    r"|child|children|both (?:firms|players|sides|companies))"
)
# Anybody who is said to choose: "Anna will pick", "my neighbour takes".
_THIRD = (
    r"(?!(?:i|we|you|it|that|this|which|what|let|price|answer|choice|number|guess|pick|decision|mine|and|or|so"
    r"|then|now|move|step|exit|option|way|path|route|door|trend)\b)(?<!my )(?<!our )[^\W\d_]{2,20} (?:(?:will|would"
    r"|might|may"
    r"|is going to|plans to|wants to|'d|'ll) "
    r"(?:(?:probably|likely|surely|also|again|just|maybe|all) )?"
    r"(?:choose|pick|take|charge|set|name|go|head|run|move|play|ask|say|stay|guess|use|submit|answer|price|sell)"
    r"|(?:chooses|picks|takes|charges|sets|names|goes|heads|runs|plays|asks|guesses|submits|moves)\b)"
)
_OTHERS_AFTER = re.compile(
    rf" (?:\((?=[\w ]{{1,20}}\))|(?:(?:is|was)(?: what| (?:the )?\w+ (?:of|by))?|from|by) (?:the "
    rf"|my )?)(?!(?<=the )most\b){_WHO}\b"
)
_OTHERS = re.compile(
    rf"\b(?:{_WHO}|{_THIRD}|you (?:should|must|can|could|need|go|take|charge|set|choose|pick))\b(?! (?:is"
    rf"|are) (?:right"
    rf"|correct))(?:(?<!\d)"
    rf"|(?=['\w ]{{0,45}}[a-z]))[^.,;:\n{X}]{{0,45}}$"
    rf"|\b(?:{_WHO}\b[^.,;:\n{X}]{{0,30}}|{_THIRD} ){X},? and (?!(?:i|i'll|i'm|i'd|we|so|then|my|now|let"
    rf"|therefore)\b)[^\W\d_]+ (?:\w+ )?$"
    rf"|\b(?:firm|player|competitor|rival|agent) {NAMED} (?:\w+s|will|would|has|is going to)\b[^.,;:\n{X}]{{0,25}}$"
)
# A list of what others do, as in "player_1 takes 7, player_2 8".
_NAMED = re.compile(rf"\W*{_WHO} ")
_OWN = re.compile(r"\b(?:i|i'll|i'd|i'm|we|let's|mine|so)\b")
_PAST_LABEL = re.compile(
    r"\b(?:(?:previous|prior|old|last|was|earlier|initial|first|draft)(?: \w{1,12})?"
    r"|(?:second(?:ary)?(?: choice| option)?|back-?up(?: \w+)?|fallback|alternative|plan b|runner-up)"
    r"|^\W{0,3}(?:everyone|everybody|they|others?|rivals?|competitors?|opponents?)(?:'s)?(?: \w{1,12})?) ?[:=] ?$"
    rf"|^(?:the |a |my |our )?{_WHO}\b[^.;:\n{X}]{{0,30}} (?:shout|say|yell|call|scream|announce|said)\w* ?[:,] ?\"?$"
)
# What makes a past value the present one.
_KEPT = re.compile(
    r"\b(?:i|i'll|i'd|we|let me|let's|will) (?:will |just |simply |again )?(?:keep|repeat|stick|maintain|reuse|hold)\b"
    r"|\b(?:no (?:reason|need) to|not|never) (?:\w+ )?(?:chang|alter|adjust|deviat|touch)\w*"
    r"|\b(?:keeping|repeating|sticking|maintaining|unchanged)\b|\bsame (?:\w+ )?as\b"
)
# What makes what the others do one's own.
_SAME = re.compile(
    r"\b(?:so i do|i do (?:too|so|the same|likewise))\b|\b(?:so|as) (?:do|will|shall|would|am) i\b|\bme too\b"
    r"|\b(?:i|i'll|i will|i'm) (?:follow|join|do the same|go with (?:him|her|them))(?:ing)?\b"
)
_MATCHED = re.compile(r"\bmatch(?:ing)? (?:the |my )?[\w']{1,20}(?: \w+(?: of| at)?)? $")
_EXPECTED = re.compile(
    r"\b(?:expect|assum|suppos|think|believ|guess|predict|bet|hope|fear|told|know|reckon|figure|imagin|estimat"
    r"|anticipat|see|saw|heard|suggest|recommend|urg|want|wish)\w*"
)
_ASIDE = re.compile(
    rf"\b(?:if(?! (?:i'm|i am) (?:right|correct|honest|not mistaken))|unless|whether|(?<!i )suppos\w+|assuming"
    rf"|in (?:the )?case|could|next (?:round|time|turn)|tomorrow"
    rf"|later)\b[^.;\n{X}]{{0,60}}$"
)
# What is done in one case of several.
_CONDITION = re.compile(
    rf"\W*(?:if|when|unless|in (?:the )?case|should (?:the )?(?:every\w*|most|all|they|others?|players?"
    rf"|rivals?))\b(?:(?!\b(?:so|hence|therefore|thus)\b)[^{X}]){{0,80}}{X}"
)
# What is supposed, as in "if I set 5, they will follow"; and what shows that the supposition ends.
_SUPPOSED = re.compile(
    rf"(?:^|[,;:\u2014\u2013(] ?)(?:but |and |so )?(?:if|when|whenever|unless|suppos\w+"
    rf"|assuming)\b[^,;:.\n{X}]{{0,60}}$"
)
_SUPPOSED_END = re.compile(rf"[^.;\n{X}]{{0,40}}, ?(?!right|so\b)\w|[^.;,\n{X}]{{0,40}} then ")
# What would be done if the world were another one; but not politeness, as in "if I had to choose".
_UNREAL = re.compile(
    rf"^(?:if|had|were)\b(?! (?:i (?:had|have|must|may|remember)|(?:you|we) |forced|pressed|pushed|so|not)\b)"
    rf"[^.;\n{X}]{{0,70}}\b(?:i|we)(?:'d| would| could| might)\b[^,.;\n{X}]{{0,30}}$"
)
# What a statement is made about, as in "22 won"; and what one says of something else, as in "its equilibrium is 0".
_SUBJECT = re.compile(
    r"(?: exits?| sides?| doors?| ones?| option)?,? (?:is|are|was|were|has|had|looks|seems|sounds|feels|lies|wins"
    r"|won|would"
    r"|will|can|could|may|might|did|does)\b"
)
_PREDICATE = re.compile(
    r"(?<!\bit)(?<!\bthat)(?<!\bthis)(?<!\bprice)(?<!\bnumber)(?<!\bx)(?<!\bp)(?<!\bin the end) (?:is|was|are"
    r"|were|equals|lies)"
    r" (?:(?:at|on|in|to|near) )?(?:the )?$|\bpredicts? $|\bconverg\w* (?:to|towards|on) $"
    r"|\b(?:regret|need|imagine|ideally|eventually|hate|fear|know|find)\b[^,;:.]{0,30}$"
)
_PROPOSED = re.compile(
    r"\b(?:a|the|my) (?:new )?(?:price|number|guess|bid) of (?:about )?$|\bonly (?:the )?$"
    r"|\b(?:best|good|better|sensible|reasonable|safer?|safest|shortest|quickest|fastest|smart|wise|natural|obvious"
    r"|ideal"
    r"|optimal|compromise|bet|lucky|favou?rite)\b[^,;:.]{0,30} is (?:the |to |at )?$"
)
_OWN_NOUN = re.compile(r"\b(?:my|our) (?:\w+ )?\w+ is (?:(?:at|on|in|to) )?(?:the )?$")
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
    r"^\)?(?: exit)?,? (?:would (?!be\b)\w+|if|unless|when|in case|otherwise|only if|provided|assuming|as long as"
    r"|(?:in the )?next (?:round|turn|step|time|move|one)|tomorrow|later|afterwards)\b"
)
_HEDGED = re.compile(rf"\b(?:might|may)\b[^.;,\n{X}]{{0,40}}$")
_HEDGED_AFTER = re.compile(r"^(?: exit| option)? (?:could|might|may)\b|^-?ish\b|^ came to mind")
VERB = (
    r"(?:choos(?:e|ing)|pick(?:ing)?|select(?:ing)?|nam(?:e|ing)|go(?:ing)?(?: up| down| back)?"
    r"|submit(?:ting)?|opt(?:ing)? for|settl(?:e|ing)|settled|stick(?:ing)?|stay(?:ing)?|keep(?:ing)?|charg(?:e|ing)"
    r"|set(?:ting)?|offer(?:ing)?|pric(?:e|ing)|guess(?:ing)?|bid(?:ding)?|play(?:ing)?|say|answer(?:ing)?"
    r"|try(?:ing)?"
    r"|ask(?:ing)?|remain(?:ing)?|lower(?:ing)?|rais(?:e|ing)|increas(?:e|ing)|reduc(?:e|ing)|decreas(?:e|ing)|match"
    r"|undercut|adjust(?:ing)?|maintain(?:ing)?|hold(?:ing)?|decid(?:e|ing)|decided|propos(?:e|ing)|enter(?:ing)?"
    r"|writ(?:e|ing)|tak(?:e|ing)|mov(?:e|ing)|head(?:ing)?|step(?:ping)?|us(?:e|ing)|prefer|continu(?:e|ing)"
    r"|run(?:ning)?|test(?:ing)?|experiment(?:ing)? with|nudg(?:e|ing)|match(?:ing)?|repeat(?:ing)?|reus(?:e|ing)"
    r"|thinking|accept(?:ing)?|sell(?:ing)?|aim(?:ing)? for|respond(?:ing)?|shift(?:ing)?"
    r"|leav(?:e|ing) (?:through|by|via)|evacuat(?:e|ing)|switch(?:ing)?|chang(?:e|ing)|mak(?:e|ing)|lean(?:ing)?"
    r"|follow(?:ing)?|commit(?:ting)?|turn(?:ing)?|get(?: out)?|vote|do)"
)
# What points back to it: "I'll take it", "that is where I'm going".
POINTED = re.compile(
    rf"[^{X}]{{0,60}}?(?:\b(?:i(?:'ll|'m|'d)?|we|so|let's)(?: will| am| shall| would)? (?!under|low|rais|incr|red"
    rf"|decr|chan|adj){VERB} (?:for |to |with |on )?"
    r"(?:it|that(?: one)?|this(?: one)?|there)\b(?! (?:at|to|by|up|down|a bit|slightly|lower|higher)\b)"
    r"|(?<!of )\b(?:that"
    r"|this|it)(?:'s| is) (?:(?:where|what|the one) (?:i|we)|(?:my|our) (?:final )?(?:price|number|answer|choice|pick"
    r"|guess|exit|move|decision))\b)"
)


def ends_of(found: Iterable[S]) -> list[S]:
    """The first and the last of what was found, where that is too much for an answer."""
    every = list(found)
    return every if len(every) <= _MANY else every[: _MANY // 3] + every[_MANY // 3 - _MANY :]


def sentences(text: str, found: Sequence[Candidate[T]]) -> dict[int, tuple[str, str, str]]:
    """What stands before and after each candidate (by its place) in its sentence, and what ends it."""
    ends = [match.start() for match in _SENTENCE_END.finditer(text)]
    return {one.at: _sentence(text, one.at, ends) for one in found}


def _sentence(text: str, at: int, ends: Sequence[int]) -> tuple[str, str, str]:
    k = bisect.bisect_left(ends, at)
    begin = ends[k - 1] + 1 if k else 0
    end = ends[k] if k < len(ends) else len(text)
    before = text[max(begin, at - _BEFORE) : at].lstrip(" .!?;")
    return before, text[at + 1 : min(end, at + 1 + _AFTER)], text[end : end + 1]


def judge(
    one: Candidate[T], text: str, before: str, after: str, end: str, excluded: Callable[[str, str], bool]
) -> None:
    """Say whether a candidate may be meant, and whether it is an aside.

    Args:
        one: the candidate.
        text: the answer.
        before: what stands before it in its sentence.
        after: what stands after it.
        end: what ends the sentence.
        excluded: whether something else is named, by `before` and `after`.
    """
    if not before.strip(" \"'(*") and not after.strip(" \"').*") and end != "?":
        return
    starts = [match.end() for match in CLAUSE_START.finditer(before)]
    clause = before[starts[-1] :] if starts else before
    turns = [match.start() for match in _TURN.finditer(before)]
    part = before[turns[-1] :] if turns else before
    pointed = POINTED.match(text, one.at + 1) is not None
    kept = _KEPT.search(before) is not None
    others = (
        not _MATCHED.search(before)
        and not _SAME.search(text, one.at, one.at + 60)
        and not pointed
        and _OTHERS.search(clause) is not None
        and (not _OWN.search(clause) or _EXPECTED.search(clause) is not None)
    )
    one.meant = not (
        (end == "?" and len(after) < _AFTER)
        or others
        or (_NAMED.fullmatch(clause) and (first := _NAMED.match(before)) and before[first.end() :][:1].isalpha())
        or _OTHERS_AFTER.match(after)
        or _DENIED.search(before)
        or _DENIED_AFTER.match(after)
        or (not pointed and not kept and _PAST.search(clause))
        or (not kept and (_PAST_LABEL.search(before) or _PAST_SENTENCE.search(before)))
        or _PAST_AFTER.match(after)
        or _CONDITION.match(part)
        or _UNREAL.search(part)
        or (_SUPPOSED.search(before) and _SUPPOSED_END.match(after))
        or (not pointed and excluded(before, after))
    )
    if one.meant:
        line = text[text.rfind("\n", 0, one.at) + 1 :][:40]
        one.aside = bool(
            _ASIDE.search(part)
            or _ASIDE_AFTER.match(after)
            or _HEDGED.search(clause)
            or _HEDGED_AFTER.match(after)
            or _ASIDE_LINE.match(line)
        )


def stated(before: str, after: str) -> bool:
    """Whether a candidate is only spoken of: a statement is made about it, or it is said of something else."""
    if _PROPOSED.search(before):
        return False
    return _SUBJECT.match(after) is not None or _PREDICATE.search(_OWN_NOUN.sub("", before)) is not None


def doubted(before: str, after: str) -> bool:
    """Whether the clause of a candidate speaks against it, though nothing says so outright."""
    rest = re.split(rf"[;:]|, (?!but\b)|\b(?:and|rather)\b|{X}", after)[0]
    return _DOUBTED.search(re.split(rf"[,;:]|\b(?:and|but)\b|{X}", before)[-1] + X + rest) is not None

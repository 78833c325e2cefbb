"""Rules that exclude a candidate by its sentence: it is denied, past, somebody else's, only supposed or asked about.

Rules see an answer in small letters in which every candidate is one `X`; see `deciding`. Each rule has an example of
a candidate that it excludes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from llm_coop_envs.policies.llm.parsing.candidates import MAX_FOLLOWING, NAME_NUMBER, Candidate, Sentence, X

T = TypeVar("T")

# Where a clause begins: "they went up, |but| X".
CLAUSE_START = re.compile(
    r"[,;:\u2014\u2013(]|\b(?:but|so|then|now|hence|while|unless|if|because|since|when|although)\b"
)

# Where a sentence turns to what follows from it: what was supposed or doubted before does not hold after.
# "if they go up, they lose, |so| X"
_TURN = re.compile(
    r"[,:;)\u2014\u2013] ?(?:and )?(?:but|so(?! (?:that|as|long))|yet|therefore|hence|thus|however|still|which is why"
    r"|that's why|nevertheless|nonetheless|in any case|either way|anyway)\b|[;\u2014] "
)


@dataclass(slots=True)
class _Context:
    """What the rules look at around a candidate.

    Attributes:
        text: the whole answer.
        position: the candidate's position in it.
        preceding: the candidate's sentence before it.
        following: the sentence after it.
        terminator: the sign that ends the sentence.
        clause: the end of `preceding`, from its last clause on.
        since_turn: the end of `preceding`, from its last turn on.
        is_pointed_at: whether the answer points back at the candidate ("X. i'll take it").
        keeps_earlier: whether the sentence says that an earlier value stays ("i keep my last price, X").
    """

    text: str
    position: int
    preceding: str
    following: str
    terminator: str
    clause: str
    since_turn: str
    is_pointed_at: bool
    keeps_earlier: bool


def _context(text: str, position: int, sentence: Sentence) -> _Context:
    preceding, following, terminator = sentence
    clause_starts = [match.end() for match in CLAUSE_START.finditer(preceding)]
    turns = [match.start() for match in _TURN.finditer(preceding)]
    return _Context(
        text,
        position,
        preceding,
        following,
        terminator,
        clause=preceding[clause_starts[-1] :] if clause_starts else preceding,
        since_turn=preceding[turns[-1] :] if turns else preceding,
        is_pointed_at=is_pointed_at(text, position),
        keeps_earlier=_UNCHANGED.search(preceding) is not None,
    )


def _is_question(context: _Context) -> bool:
    # "should i choose X?"
    return context.terminator == "?" and len(context.following) < MAX_FOLLOWING


# "i will not go to X", "anything but X", "i am done with X"
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
_COPULA = r"(?:is|are|was|looks|seems|would be|will be|might be|may be|could be|feels|gets|appears|remains|sounds|'s)"
# "X is too crowded", "X: blocked", "X makes no sense", "X isn't safe"
_DENIED_AFTER = re.compile(
    rf"^\)?(?:,? (?:and|or|nor) (?:the )?{X}\)?)*(?: exits?| sides?| doors?| ones?)?(?:"
    rf" {_COPULA}(?: (?:already|also|both|all|far|way|much|just|simply|very|really|quite|now|rather|a (?:bit"
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


def _is_denied(context: _Context) -> bool:
    return bool(_DENIED.search(context.preceding) or _DENIED_AFTER.match(context.following))


# "i charged X", "we used to ask X", "my old price of X"
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
# "in the last round the price was X", "when we talked i said X"
_PAST_SENTENCE = re.compile(
    r"^\W*(?:in |at |on )?(?:the |my )?(?:last|previous|prior|earlier|past|before|previously|first(?= i |,? i )"
    r"|at first"
    rf"|initially|originally)\b(?:(?!\b(?:now|but|so|this|therefore|i'll|i will)\b)[^.;:\n{X}]){{0,70}}$"
    rf"|\bwhen (?:i|we|they) \w+ed\b[^.,;:\n{X}]{{0,40}}$"
)
# "X last round", "X earned me little", "X is what i chose"
_PAST_AFTER = re.compile(
    r"^ ?(?:in )?(?:the )?(?:last|previous) (?:round|time|turn)|^ (?:earned|brought|gave|made|yielded|sold|led|got"
    r"|attracted|resulted|generated|produced|worked)\b|^ (?:before|earlier|a moment ago)\b|^ (?:is|was"
    r"|were) (?:what i (?:said|chose|picked|had|wanted|took|used|named|did)"
    r"|(?:my|the|his|her|their|our)? ?(?:last|previous|earlier|old|first|initial) )"
)
# Words for somebody else: "player_2", "my rival", "everyone"
_OTHER = (
    r"(?:\w{1,20}_\d+|rivals?|competitors?|opponents?|others?|they|theirs?|everyone|everybody|no one|nobody|anyone"
    r"|someone|somebody|whoever|most|people|crowd|he|she|his|her|players?|person|man|woman|guy|girl|boy|neighbou?rs?"
    r"|friends?|strangers?|colleagues?|family|group|wife|husband|mother|father|brother|sister|son|daughter|kids?"
    r"|child|children|both (?:firms|players|sides|companies))"
)
# "previous price: X", "plan b: X", "rivals: X", "the man shouts: X"
_PAST_LABEL = re.compile(
    r"\b(?:(?:previous|prior|old|last|was|earlier|initial|first|draft)(?: \w{1,12})?"
    r"|(?:second(?:ary)?(?: choice| option)?|back-?up(?: \w+)?|fallback|alternative|plan b|runner-up)"
    r"|^\W{0,3}(?:everyone|everybody|they|others?|rivals?|competitors?|opponents?)(?:'s)?(?: \w{1,12})?) ?[:=] ?$"
    rf"|^(?:the |a |my |our )?{_OTHER}\b[^.;:\n{X}]{{0,30}} (?:shout|say|yell|call|scream|announce|said)\w* ?[:,] ?\"?$"
)
# What makes a past value the present one: "i'll keep my last price of X", "no reason to change X"
_UNCHANGED = re.compile(
    r"\b(?:i|i'll|i'd|we|let me|let's|will) (?:will |just |simply |again )?(?:keep|repeat|stick|maintain|reuse|hold)\b"
    r"|\b(?:no (?:reason|need) to|not|never) (?:\w+ )?(?:chang|alter|adjust|deviat|touch)\w*"
    r"|\b(?:keeping|repeating|sticking|maintaining|unchanged)\b|\bsame (?:\w+ )?as\b"
)


def _is_past(context: _Context) -> bool:
    if _PAST_AFTER.match(context.following):
        return True
    if context.keeps_earlier:
        return False
    if not context.is_pointed_at and _PAST.search(context.clause):
        return True
    return bool(_PAST_LABEL.search(context.preceding) or _PAST_SENTENCE.search(context.preceding))


# Somebody who is said to choose: "anna will pick", "my neighbour takes"
_THIRD = (
    r"(?!(?:i|we|you|it|that|this|which|what|let|price|answer|choice|number|guess|pick|decision|mine|and|or|so"
    r"|then|now|move|step|exit|option|way|path|route|door|trend)\b)(?<!my )(?<!our )[^\W\d_]{2,20} (?:(?:will|would"
    r"|might|may"
    r"|is going to|plans to|wants to|'d|'ll) "
    r"(?:(?:probably|likely|surely|also|again|just|maybe|all) )?"
    r"(?:choose|pick|take|charge|set|name|go|head|run|move|play|ask|say|stay|guess|use|submit|answer|price|sell)"
    r"|(?:chooses|picks|takes|charges|sets|names|goes|heads|runs|plays|asks|guesses|submits|moves)\b)"
)
# "my rival will choose X", "anna picks X", "you should take X", "player_1 takes X, and player_2 X", "firm # charges X"
_OTHERS = re.compile(
    rf"\b(?:{_OTHER}|{_THIRD}|you (?:should|must|can|could|need|go|take|charge|set|choose|pick))\b(?! (?:is"
    rf"|are) (?:right"
    rf"|correct))(?:(?<!\d)"
    rf"|(?=['\w ]{{0,45}}[a-z]))[^.,;:\n{X}]{{0,45}}$"
    rf"|\b(?:{_OTHER}\b[^.,;:\n{X}]{{0,30}}|{_THIRD} ){X},? and (?!(?:i|i'll|i'm|i'd|we|so|then|my|now|let"
    rf"|therefore)\b)[^\W\d_]+ (?:\w+ )?$"
    rf"|\b(?:firm|player|competitor|rival|agent) {NAME_NUMBER} (?:\w+s|will|would|has|is going to)\b"
    rf"[^.,;:\n{X}]{{0,25}}$"
)
# "X (player_2)", "X is the price of my rival", "X from the others"
_OTHERS_AFTER = re.compile(
    rf" (?:\((?=[\w ]{{1,20}}\))|(?:(?:is|was)(?: what| (?:the )?\w+ (?:of|by))?|from|by) (?:the "
    rf"|my )?)(?!(?<=the )most\b){_OTHER}\b"
)
# What makes what the others do one's own: "everyone goes X and so do i", "they take X, me too"
_SAME_AS_OTHERS = re.compile(
    r"\b(?:so i do|i do (?:too|so|the same|likewise))\b|\b(?:so|as) (?:do|will|shall|would|am) i\b|\bme too\b"
    r"|\b(?:i|i'll|i will|i'm) (?:follow|join|do the same|go with (?:him|her|them))(?:ing)?\b"
)
# "i match my rival's X"
_MATCHING = re.compile(r"\bmatch(?:ing)? (?:the |my )?[\w']{1,20}(?: \w+(?: of| at)?)? $")
# "i" in "i think they choose X" does not choose
_EXPECTATION = re.compile(
    r"\b(?:expect|assum|suppos|think|believ|guess|predict|bet|hope|fear|told|know|reckon|figure|imagin|estimat"
    r"|anticipat|see|saw|heard|suggest|recommend|urg|want|wish)\w*"
)
# A verb of the answer's own after somebody else: "most go down and i take X"
_FIRST_PERSON = re.compile(r"\b(?:i|i'll|i'd|i'm|we|let's|mine|so)\b")


def _is_choice_of_others(context: _Context) -> bool:
    if _OTHERS_AFTER.match(context.following):
        return True
    return (
        not _MATCHING.search(context.preceding)
        and not _SAME_AS_OTHERS.search(context.text, context.position, context.position + 60)
        and not context.is_pointed_at
        and _OTHERS.search(context.clause) is not None
        and (not _FIRST_PERSON.search(context.clause) or _EXPECTATION.search(context.clause) is not None)
    )


# The clause of one who was named with a verb before: "player_1 takes X, player_2 X"
_OTHER_FIRST = re.compile(rf"\W*{_OTHER} ")


def _is_in_list_of_others(context: _Context) -> bool:
    if not _OTHER_FIRST.fullmatch(context.clause):
        return False
    first_of_list = _OTHER_FIRST.match(context.preceding)
    return first_of_list is not None and context.preceding[first_of_list.end() :][:1].isalpha()


# What is done in one case of several: "if the others go left, X"
_ONE_CASE = re.compile(
    rf"\W*(?:if|when|unless|in (?:the )?case|should (?:the )?(?:every\w*|most|all|they|others?|players?"
    rf"|rivals?))\b(?:(?!\b(?:so|hence|therefore|thus)\b)[^{X}]){{0,80}}{X}"
)
# What is supposed: "if i set X, they will follow"; the supposition ends at ", they"
_SUPPOSED = re.compile(
    rf"(?:^|[,;:\u2014\u2013(] ?)(?:but |and |so )?(?:if|when|whenever|unless|suppos\w+"
    rf"|assuming)\b[^,;:.\n{X}]{{0,60}}$"
)
_SUPPOSED_END = re.compile(rf"[^.;\n{X}]{{0,40}}, ?(?!right|so\b)\w|[^.;,\n{X}]{{0,40}} then ")
# What would be done in another world, but not politeness ("if i had to choose"): "if i were rich i would charge X"
_UNREAL = re.compile(
    rf"^(?:if|had|were)\b(?! (?:i (?:had|have|must|may|remember)|(?:you|we) |forced|pressed|pushed|so|not)\b)"
    rf"[^.;\n{X}]{{0,70}}\b(?:i|we)(?:'d| would| could| might)\b[^,.;\n{X}]{{0,30}}$"
)

# "X would be best, if it were free", "i'd pick X if nobody stood there", "X would be ideal were it not occupied"
_PRAISED = re.compile(
    rf"[^.;\n{X}]{{0,40}}?\b(?:if (?:only )?(?!i\b|you\b|we\b)(?:[\w']+ ){{1,4}}?(?:were|weren't|was|wasn't|did|didn't"
    r"|had|hadn't|stood)\b|were (?:it|that|this|they|there|the)\b)"
)
_WOULD = re.compile(r"\b(?:would|'d|could|might)\b|\b\w+'d\b")


def _is_supposed(context: _Context) -> bool:
    praise = _PRAISED.match(context.following)
    if praise and _WOULD.search(context.since_turn + praise[0]):
        return True
    return bool(
        _ONE_CASE.match(context.since_turn)
        or _UNREAL.search(context.since_turn)
        or (_SUPPOSED.search(context.preceding) and _SUPPOSED_END.match(context.following))
    )


_EXCLUSIONS: tuple[Callable[[_Context], bool], ...] = (
    _is_question,
    _is_choice_of_others,
    _is_in_list_of_others,
    _is_denied,
    _is_past,
    _is_supposed,
)

# "if it is full, X", "next round X", "i could take X"
_CONDITIONAL = re.compile(
    rf"\b(?:if(?! (?:i'm|i am) (?:right|correct|honest|not mistaken))|unless|whether|(?<!i )suppos\w+|assuming"
    rf"|in (?:the )?case|could|next (?:round|time|turn)|tomorrow"
    rf"|later)\b[^.;\n{X}]{{0,60}}$"
)
# "X if it is free", "X next round", "X would cost more"
_CONDITIONAL_AFTER = re.compile(
    r"^\)?(?: exit)?,? (?:would (?!be\b)\w+|if|unless|when|in case|otherwise|only if|provided|assuming|as long as"
    r"|(?:in the )?next (?:round|turn|step|time|move|one)|tomorrow|later|afterwards)\b"
)
# "X is the best move if nobody stands there", "X would be fine unless it is taken"
_PRAISED_ON_CONDITION = re.compile(
    rf" (?:is|looks|seems|would be)\b[^.;\n{X}]{{0,40}}\b(?:if|unless|provided|as long as|assuming)\b"
)
# "i might take X", "normally i would choose X"
_HEDGED = re.compile(
    rf"\b(?:might|may)\b[^.;,\n{X}]{{0,40}}$"
    rf"|\b(?:normally|usually|ordinarily|ideally),? i(?: would|'d)\b[^.;,\n{X}]{{0,30}}$"
)
# "X could work", "X-ish", "X came to mind"
_HEDGED_AFTER = re.compile(r"^(?: exit| option)? (?:could|might|may)\b|^-?ish\b|^ came to mind")
# "reasoning: the mean will be X"
_REASONING_LINE = re.compile(
    r"^\W*(?:reason(?:ing|s)?|thinking|thoughts?|analysis|explanation|notes?|rationale|justification|why|strategy)\b"
    r"[^\w\n]{0,3}[:\u2013\u2014-]"
)


def _is_aside(context: _Context) -> bool:
    """Whether a candidate is conditional, hedged, for later, or part of a line of reasons."""
    line_start = context.text.rfind("\n", 0, context.position) + 1
    return bool(
        _CONDITIONAL.search(context.since_turn)
        or _CONDITIONAL_AFTER.match(context.following)
        or _PRAISED_ON_CONDITION.match(context.following)
        or _HEDGED.search(context.clause)
        or _HEDGED_AFTER.match(context.following)
        or _REASONING_LINE.match(context.text[line_start : line_start + 40])
    )


def judge(candidate: Candidate[T], text: str, is_something_else: Callable[[str, str], bool]) -> None:
    """Set whether a candidate can be the answer, and whether it is an aside.

    Args:
        candidate: the candidate, with its sentence.
        text: the answer.
        is_something_else: whether what precedes and follows a candidate in its sentence shows that it is no answer,
            as in "at least X".
    """
    preceding, following, terminator = candidate.sentence
    if not preceding.strip(" \"'(*") and not following.strip(" \"').*") and terminator != "?":
        return
    context = _context(text, candidate.position, candidate.sentence)
    candidate.is_possible = not (
        any(excludes(context) for excludes in _EXCLUSIONS)
        or (not context.is_pointed_at and is_something_else(preceding, following))
    )
    candidate.is_aside = candidate.is_possible and _is_aside(context)


# Verbs of choosing: "choose", "going up", "stick"
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
# "X: i'll take it", "X, and that is my final price"
_POINTED_AT = re.compile(
    rf"[^{X}]{{0,60}}?(?:\b(?:i(?:'ll|'m|'d)?|we|so|let's)(?: will| am| shall| would)? (?!under|low|rais|incr|red"
    rf"|decr|chan|adj){VERB} (?:for |to |with |on )?"
    r"(?:it|that(?: one)?|this(?: one)?|there)\b(?! (?:at|to|by|up|down|a bit|slightly|lower|higher)\b)"
    rf"|, which (?:i(?:'ll|'d| will| would| shall)?|we(?:'ll| will)?) {VERB}\b(?= ?(?:[.,;!]|$|as\b|for\b|now\b))"
    r"|(?<!of )\b(?:that"
    r"|this|it)(?:'s| is) (?:(?:where|what|the one) (?:i|we)|(?:my|our) (?:final )?(?:price|number|answer|choice|pick"
    r"|guess|exit|move|decision))\b)"
)


def is_pointed_at(text: str, position: int) -> bool:
    """Whether the answer points back at the candidate at a position, as in "X looks free. I'll take it"."""
    return _POINTED_AT.match(text, position + 1) is not None

"""Rules for candidates that nothing marks as the answer: whether one is only mentioned, or doubted."""

from __future__ import annotations

import re

from llm_coop_envs.policies.llm.parsing.candidates import X

# What a statement is made about: "X won last time", "X exit is near"
_SUBJECT = re.compile(
    r"(?: exits?| sides?| doors?| ones?| option)?,? (?:is|are|was|were|has|had|looks|seems|sounds|feels|lies|wins"
    r"|won|would"
    r"|will|can|could|may|might|did|does)\b"
)
# What is said of something else: "its equilibrium is X", "prices converge to X", "i regret X"
_PREDICATE = re.compile(
    r"(?<!\bit)(?<!\bthat)(?<!\bthis)(?<!\bprice)(?<!\bnumber)(?<!\bx)(?<!\bp)(?<!\bin the end) (?:is|was|are"
    r"|were|equals|lies)"
    r" (?:(?:at|on|in|to|near) )?(?:the )?$|\bpredicts? $|\bconverg\w* (?:to|towards|on) $"
    r"|\b(?:regret|need|imagine|ideally|eventually|hate|fear|know|find)\b[^,;:.]{0,30}$"
)
# A statement that proposes: "a price of X is best", "the safest exit is X", "only X"
_PROPOSAL = re.compile(
    r"\b(?:a|the|my) (?:new )?(?:price|number|guess|bid) of (?:about )?$|\bonly (?:the )?$"
    r"|\b(?:best|good|better|sensible|reasonable|safer?|safest|shortest|quickest|fastest|smart|wise|natural|obvious"
    r"|ideal"
    r"|optimal|compromise|bet|lucky|favou?rite)\b[^,;:.]{0,30} is (?:the |to |at )?$"
)
# "my best price is X"
_OWN_NOUN = re.compile(r"\b(?:my|our) (?:\w+ )?\w+ is (?:(?:at|on|in|to) )?(?:the )?$")


def is_only_mentioned(preceding: str, following: str) -> bool:
    """Whether a candidate is only spoken of: "X won", "the equilibrium is X"."""
    if _PROPOSAL.search(preceding):
        return False
    return _SUBJECT.match(following) is not None or _PREDICATE.search(_OWN_NOUN.sub("", preceding)) is not None


# "it is unclear whether X", "X, but not now"
_DOUBT = re.compile(
    r"\b(?:not|never|no|mistake|wrong|foolish|too|worse|avoid\w*|unclear|unsure|love to|wanted|wish|instead of)\b"
    r"|n't\b|\bbut\b"
)


def is_doubted(preceding: str, following: str) -> bool:
    """Whether the clause of a candidate speaks against it, though no rule excludes it ("X is unclear")."""
    clause_start = re.split(rf"[,;:]|\b(?:and|but)\b|{X}", preceding)[-1]
    clause_end = re.split(rf"[;:]|, (?!but\b)|\b(?:and|rather)\b|{X}", following)[0]
    return _DOUBT.search(clause_start + X + clause_end) is not None

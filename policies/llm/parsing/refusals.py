"""Recognising a refusal to answer."""

from __future__ import annotations

import re

# "I'm sorry, but", "I cannot", "As an AI", "against my guidelines", "es tut mir leid"
_REFUSAL = re.compile(
    r"\bI(?:'m| am) (?:really |very |so |truly )?(?:sorry|unable|not able|not comfortable|not going to)\b(?! if\b)"
    r"|\b(?:sorry|apologi[sz]e|apologies),? (?:but |for )"
    r"|\bI (?:can't|cannot|can not|won't|will not|must decline|have to decline|decline|am not allowed|refuse)\b"
    r"|\bI(?:'d| would) (?:rather not|prefer not)\b"
    r"|\bas an? (?:AI|artificial|large language|language)\b"
    r"|\b(?:against|violates?) (?:my|the|our|OpenAI) ?\w* (?:guidelines|policy|policies|principles)"
    r"|\bI do(?:n't| not) (?:feel comfortable|have (?:personal|enough|sufficient))"
    r"|\b(?:es )?tut mir (?:wirklich )?leid\b|\bich kann (?:dabei |dir |ihnen |das )?nicht\b|\bals KI\b",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether an answer from which nothing could be read refuses to answer."""
    return _REFUSAL.search(text) is not None

"""Saying the same in other words, by a table: the same for the same text, with every number and name as it was."""

from __future__ import annotations

import re

# Pairs of phrases; the first one that fits is taken, and nothing is replaced twice.
_PHRASES: tuple[tuple[str, str], ...] = (
    ("i will", "I am going to"),
    ("i'll", "I am going to"),
    ("we will", "we are going to"),
    ("we'll", "we are going to"),
    ("i'm", "I am"),
    ("i think", "in my view"),
    ("i believe", "it seems to me"),
    ("i suggest", "my proposal is"),
    ("i propose", "my proposal is"),
    ("i choose", "my choice is"),
    ("i agree", "that is my opinion too"),
    ("agreed", "all right"),
    ("we should", "it would be good if we"),
    ("let us", "why don't we"),
    ("let's", "why don't we"),
    ("don't", "do not"),
    ("can't", "cannot"),
    ("won't", "will not"),
    ("everyone", "everybody"),
    ("everybody", "everyone"),
    ("all of us", "each of us"),
    ("together", "jointly"),
    ("maybe", "perhaps"),
    ("perhaps", "maybe"),
    ("because", "since"),
    ("in order to", "to"),
    ("a lot of", "many"),
    ("very", "really"),
    ("hello", "hi"),
    ("hi", "hello"),
    ("thanks", "thank you"),
    ("okay", "all right"),
    ("ok", "all right"),
    ("this round", "in this round"),
    ("also", "as well"),
    ("near", "close to"),
    ("quickly", "fast"),
)
_TABLE = dict(_PHRASES)
_FOUND = re.compile(rf"(?<!\w)(?:in )?(?:{'|'.join(map(re.escape, _TABLE))})(?!\w)", re.IGNORECASE)


def paraphrase(text: str) -> str:
    """An English text in other words; sentences in which no phrase is known get a beginning of their own."""
    paraphrased = _FOUND.sub(_replaced, text)
    return paraphrased if paraphrased != text or not text.strip() else f"What I want to say is this: {text}"


def _replaced(match: re.Match[str]) -> str:
    phrase = match[0].lower()
    if phrase not in _TABLE:  # "in this round" stays
        return match[0]
    other = _TABLE[phrase]
    return other[0].upper() + other[1:] if match[0][0].isupper() else other

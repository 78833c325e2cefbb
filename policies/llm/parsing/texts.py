"""Reading what a model says, plans or feels: its words as they are, without what it puts around them."""

from __future__ import annotations

import re

from llm_coop_envs.policies.llm.parsing.cleaning import uncovered
from llm_coop_envs.policies.llm.parsing.objects import find_objects
from llm_coop_envs.policies.llm.parsing.reading import EMPTY, OK, REFUSED, TRUNCATED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.tokens import without_tokens

_LABEL = re.compile(
    r"^(?:\*\*|__)?(?:(?:my |your )?(?:message|reply|answer|response|statement|plan|strategy|feeling|thoughts?"
    r"|nachricht|antwort"
    r"|plan|strategie|gefühl))\s*(?:\*\*|__)?\s*:\s*(?:\*\*|__)?\s*",
    re.IGNORECASE,
)
_FENCED = re.compile(r"\A```[\w+-]*\n(.*?)\n?```\Z", re.DOTALL)
_SILENT = re.compile(
    r"[(\[<*]\s*(?:(?:i |you |he |she |they )?(?:say|says|stay|stays|remain|remains|keep|keeps)\s+(?:nothing"
    r"|silent|quiet)|silence"
    r"|silent|no (?:message|answer|response|reply|comment)|nothing|empty(?: (?:message|answer|string|response))?"
    r"|none|pass|schweigt|nichts"
    r"|keine nachricht)\s*\.?\s*[)\]>*]",
    re.IGNORECASE,
)
_OPENING = frozenset("([<*")
_PAIRS = {'"': '"', "“": "”", "„": "“", "«": "»", "'": "'"}


def read_text(
    text: str, *, key: str = "message", speaker: str = "", truncated: bool = False, refused: bool = False
) -> Reading[str]:
    """Read words a model was asked for.

    Thoughts, a fence around everything, a label or the speaker's own name in front, and quotation marks around
    everything are taken off; nothing else is changed. "(silence)", "[no message]" and the like are silence.

    Args:
        text: the answer.
        key: the key of the words in an object.
        speaker: the speaker's name.
        truncated: whether the provider cut the answer; cut words are still words.
        refused: whether the provider says that the model refused.
    """
    words, flags = uncovered(text)
    if refused:
        return Reading(REFUSED)
    fenced = _FENCED.match(words)
    if fenced is not None:
        words = fenced[1].strip()
    if words.startswith("{"):
        objects = list(find_objects(words))
        values = [one.value((key, "message", "text", "answer", "response", "content")) for one in objects]
        given = next((value for value in reversed(values) if value is not None), None)
        if isinstance(given, str):
            words, inside = without_tokens(given)
            words, flags = words.strip(), tuple(dict.fromkeys((*flags, *inside)))
        elif given is not None or not objects or objects[0].fields is None:
            return Reading(TRUNCATED if truncated else UNREADABLE, rule="json", flags=flags)
    words = _unwrapped(words, speaker)
    if not words:
        return Reading(TRUNCATED if truncated else EMPTY, flags=flags)
    return Reading(OK, words, "text", flags)


def _unwrapped(words: str, speaker: str) -> str:
    for _ in range(3):
        before = words
        if ":" in words:
            words = _unlabelled(words, speaker)
        close = _PAIRS.get(words[:1])
        if close and len(words) > 1 and words.endswith(close) and not set(words[1:-1]) & {words[0], close}:
            words = words[1:-1].strip()
        if words == before:
            break
    return "" if words[:1] in _OPENING and _SILENT.fullmatch(words) else words


def _unlabelled(words: str, speaker: str) -> str:
    """Words without a label or the speaker's name in front."""
    words = _LABEL.sub("", words, count=1)
    if speaker:
        words = re.sub(rf"\A(?:\*\*)?(?:{re.escape(speaker)}|You)(?:\*\*)?\s*:\s*(?:\*\*)?", "", words, count=1)
    return words

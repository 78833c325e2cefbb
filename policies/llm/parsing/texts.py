"""Reading what a model says, plans or feels: its words unchanged, without a label or quotation marks around them."""

from __future__ import annotations

import re

from llm_coop_envs.policies.llm.parsing.answer_reading import EMPTY, OK, REFUSED, TRUNCATED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.cleaning import clean_words
from llm_coop_envs.policies.llm.parsing.objects import find_objects
from llm_coop_envs.policies.llm.parsing.tokens import LONGEST, remove_template_tokens

# "**My message:** let us go", "Reply: let us go"
_LABEL = re.compile(
    r"^(?:\*\*|__)?(?:(?:my |your )?(?:message|reply|answer|response|statement|plan|strategy|feeling|thoughts?"
    r"|nachricht|antwort"
    r"|plan|strategie|gefühl))\s*(?:\*\*|__)?\s*:\s*(?:\*\*|__)?\s*",
    re.IGNORECASE,
)
# "```\nLet us go.\n```": a fence around the whole answer
_FENCED = re.compile(r"\A```[\w+-]*\n(.*?)\n?```\Z", re.DOTALL)
# "(silence)", "[no message]", "*says nothing*"
_SILENT = re.compile(
    r"[(\[<*]\s*(?:(?:i |you |he |she |they )?(?:say|says|stay|stays|remain|remains|keep|keeps)\s+(?:nothing"
    r"|silent|quiet)|silence"
    r"|silent|no (?:message|answer|response|reply|comment)|nothing|empty(?: (?:message|answer|string|response))?"
    r"|none|pass|schweigt|nichts"
    r"|keine nachricht)\s*\.?\s*[)\]>*]",
    re.IGNORECASE,
)
_OPENING = frozenset("([<*")
# Words in which no thought, template token, fence or object can begin; and {"message": "..."} with such words.
_PLAIN = re.compile(r"[^<>\[\](){}*`\x80-\U0010ffff]*")
_SIMPLE = re.compile(
    r'[ \n]?\{[ \n]{0,4}"([a-z]+)"[ \n]?:[ \n]?"([^<>\[\](){}*`"\\\x00-\x1f\x80-\U0010ffff]*)"[ \n]{0,4}\}[ \n]?'
)
_PAIRS = {'"': '"', "“": "”", "„": "“", "«": "»", "'": "'"}


def read_text(
    text: str, *, key: str = "message", speaker: str = "", truncated: bool = False, refused: bool = False
) -> Reading[str]:
    """Read a message that a model was asked for.

    Thoughts, a fence around the whole answer, a label or the speaker's own name in front, and quotation marks around
    everything are removed; nothing else is changed. "(silence)", "[no message]" and the like are silence.

    Args:
        text: the answer.
        key: the key of the message in an object.
        speaker: the speaker's name.
        truncated: whether the provider cut the answer; what is there of a message is still read.
        refused: whether the provider says that the model refused.
    """
    if refused:
        return Reading(REFUSED)
    flags: tuple[str, ...] = ()
    message = _simple_words(text, key)
    if message is None:
        message, flags = clean_words(text)
        unpacked = _unpack(message, key)
        if unpacked is None:
            return Reading(TRUNCATED if truncated else UNREADABLE, rule="json", flags=flags)
        message, flags = unpacked[0], tuple(dict.fromkeys((*flags, *unpacked[1])))
    message = _unwrap(message, speaker)
    if not message:
        return Reading(TRUNCATED if truncated else EMPTY, flags=flags)
    return Reading(OK, message, "text", flags)


def _simple_words(text: str, key: str) -> str | None:
    """The words of an answer that is nothing but plain words, or one simple object with them; else `None`.

    A short cut: the rules find the same words in ten times the time.
    """
    if len(text) > LONGEST:
        return None
    if _PLAIN.fullmatch(text):
        return text.strip()
    match = _SIMPLE.fullmatch(text)
    return match[2].strip() if match is not None and match[1] == key else None


def _unpack(message: str, key: str) -> tuple[str, tuple[str, ...]] | None:
    """A message without a fence or an object around it, and flags for what was removed; `None` if it has no text."""
    fenced = _FENCED.match(message)
    if fenced is not None:
        message = fenced[1].strip()
    if message.startswith("{"):
        objects = list(find_objects(message))
        values = [
            json_object.value((key, "message", "text", "answer", "response", "content")) for json_object in objects
        ]
        value = next((value for value in reversed(values) if value is not None), None)
        if isinstance(value, str):
            message, flags = remove_template_tokens(value)
            return message.strip(), flags
        if value is not None or not objects or objects[0].fields is None:
            return None
    return message, ()


def _unwrap(message: str, speaker: str) -> str:
    """A message without labels and quotation marks around it; empty if it only says that it says nothing."""
    for _ in range(3):
        wrapped = message
        if ":" in message:
            message = _remove_label(message, speaker)
        closing = _PAIRS.get(message[:1])
        if (
            closing
            and len(message) > 1
            and message.endswith(closing)
            and not set(message[1:-1]) & {message[0], closing}
        ):
            message = message[1:-1].strip()
        if message == wrapped:
            break
    return "" if message[:1] in _OPENING and _SILENT.fullmatch(message) else message


def _remove_label(message: str, speaker: str) -> str:
    """A message without a label or the speaker's name in front ("**player_1:** let us go")."""
    message = _LABEL.sub("", message, count=1)
    if speaker:
        name = rf"(?:{re.escape(speaker)}|You)"
        message = re.sub(rf"\A(?:\*\*)?{name}(?:\*\*)?\s*:\s*(?:\*\*)?", "", message, count=1)
    return message

"""Scripted answers: legal answers to questions that are given as data, without any language model.

A request to a model whose name begins with `scripted`, or to a chat that says it is scripted, carries its question in
the request's `metadata`: kind, bounds, options, and the form of the answer. The answer depends on the question and
the prompt alone, so that runs can be repeated. It is for tests, dry runs and loopback servers, and says nothing about
any model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.policies.llm.tokens import estimate_tokens

MODEL = "scripted"
QUESTION = "question"
NO_QUESTION = (
    "This is a scripted server and no language model. It answers requests that carry their question as data, as those "
    "of llm-coop to a model called 'scripted' do, and this is none of them."
)
_REASON = "It seems to be a good choice by what is known so far."
_MOVES = frozenset(("several", "ranking", "shares", "parts"))
_SENTENCES = (
    "I have thought about it and would like to hear from the rest of you.",
    "Let us see what the others are going to do.",
    "I am not sure yet, but I keep what was said in mind.",
)


def scripted_answer(prompt: str, metadata: Mapping[str, str] | None = None) -> str:
    """Answer a prompt, in the form that its question asks for.

    Args:
        prompt: the text of a request's messages.
        metadata: the request's metadata; `question` holds the question as JSON.
    """
    question_json = (metadata or {}).get(QUESTION)
    if question_json is None:
        return NO_QUESTION
    question = json.loads(question_json)
    drawn = int.from_bytes(hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    value: Any
    if "says" in question:  # the question brings its answer along, as those for descriptions of people do
        return str(question["says"])
    if question["kind"] in _MOVES or (question.get("passing") and drawn % 4 == 3):
        value, text = _move(question, prompt, drawn // 3)
    elif question["kind"] == "text":
        value = text = f"{_SENTENCES[drawn % 3]} {drawn % 43 + 7} comes to my mind."
    elif question["kind"] == "number":
        value = _number(question, prompt, drawn // 3)
        text = f"{value:.12g}"
    else:
        value = text = _option(question["options"], prompt, drawn // 3)
    if question["form"] == "json":
        reasoned = {} if question["repair"] or question["kind"] == "text" else {"reason": _REASON}
        return json.dumps({**reasoned, question["key"]: value}, ensure_ascii=False)
    if question["kind"] == "text" or question["repair"]:
        return text
    if question["form"] == "reason":
        return f"{_REASON}\nAnswer: {text}"
    return (text, f"My choice is {text}.", f"{_REASON}\n{text}")[drawn % 3]


def _move(question: Mapping[str, Any], prompt: str, drawn: int) -> tuple[Any, str]:
    """A move that is more than a number or an option, as JSON and as the line that a person would type."""
    names = [label.rpartition(") ")[2] for label in question["options"]]
    if question["kind"] in ("several", "ranking"):
        fewest = question.get("fewest", 0)
        count = fewest + drawn % (question["most"] - fewest + 1)
        first = drawn // 7 % len(names)
        named = (names[first:] + names[:first])[:count]
        return named, (" > " if question["kind"] == "ranking" else ", ").join(named) or "none"
    if question["kind"] == "shares":
        shares = dict.fromkeys(names, 0) | {names[drawn % len(names)]: 100 - drawn // 7 % 101}
        shares[names[(drawn + 1) % len(names)]] += 100 - sum(shares.values())
        return shares, ", ".join(f"{name}: {share}" for name, share in shares.items())
    if question["kind"] != "parts":
        return None, "none"
    values: dict[str, Any] = {}
    for part in question["parts"]:
        labels = [label.rpartition(") ")[2] for label in part["options"]]
        if part["only_with"] and not set(part["only_with"]) & {str(value) for value in values.values()}:
            values[part["key"]] = None
        elif part["kind"] == "option":
            values[part["key"]] = labels[drawn % len(labels)]
        elif part["kind"] == "number":
            values[part["key"]] = _number({**part, "repair": False}, prompt, drawn)
        else:
            values[part["key"]] = _SENTENCES[drawn % 3] if part["kind"] == "words" else labels[: part["most"]]
    texts = {key: ", ".join(value) if isinstance(value, list) else value for key, value in values.items()}
    return values, "; ".join(f"{key}: {text}" for key, text in texts.items() if text is not None)


def _number(question: Mapping[str, Any], prompt: str, drawn: int) -> float:
    """Choose one of the listed numbers, or one between the bounds and away from them."""
    if question["allowed"]:
        number: float = question["allowed"][drawn % len(question["allowed"])]
        return number
    low, high = float(question["low"]), float(question["high"])
    if question["repair"]:  # the last number that the quoted answer names
        quoted = re.findall(r'"(?:[^"\\]|\\.)*"', prompt)
        named = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", quoted[-1])] if quoted else []
        if named and low <= named[-1] <= high:
            return named[-1]
    number = low + (high - low) * (0.2 + 0.4 * (drawn % 997) / 997)
    return round(number) if question["integer"] else float(f"{number:.4g}")


def _option(options: Sequence[str], prompt: str, drawn: int) -> str:
    """Choose an option that the prompt mentions, so that evacuees find their way out.

    Of lettered options (steps) it is the letter of the one mentioned last before they are listed; of others (exits) the
    one mentioned most often.
    """
    names = {label.rpartition(") ")[2]: label.partition(") ")[0] for label in options}
    spelled = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    named = re.findall(rf"(?<!\w)(?:{spelled})(?!\w)", prompt)
    if ") " in options[0] and len(named) > len(options):
        return names[named[-len(options) - 1]]
    counts = Counter(named)
    best = [answer for name, answer in names.items() if counts[name] == max(counts.values(), default=0)]
    return best[drawn % len(best)]


class ScriptedChat:
    """A `Chat` of scripted answers, in this process.

    Attributes:
        requests: how many requests were answered.
    """

    scripted = True

    def __init__(self) -> None:
        self.requests = 0

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Answer a request by script; its usage is estimated."""
        self.requests += 1
        prompt = "\n\n".join(message.content for message in request.messages)
        text = scripted_answer(prompt, request.extra.get("metadata"))
        usage = Usage(estimate_tokens(prompt), estimate_tokens(text), estimated=True)
        return ChatReply(text=text, usage=usage, finish_reason="stop", model=MODEL, latency=0.0)

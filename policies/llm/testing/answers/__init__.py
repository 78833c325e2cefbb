"""Scripted answers: text in, text out, without any language model.

Each answer is decided by rules from the text of its prompt alone. A legal, complete episode can therefore only come
about if the prompts carry all that a player needs; that is what they are for, together with dry runs and loopback
servers. Nothing they do says anything about any model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from llm_coop_envs.policies.llm.chat import ChatMessage, ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.policies.llm.playing.calls import CALLS
from llm_coop_envs.policies.llm.playing.tokens import estimate_tokens
from llm_coop_envs.policies.llm.testing.answers import players
from llm_coop_envs.policies.llm.testing.answers.phrases import Phrases, recognise, search

__all__ = ["ScriptedChat", "scripted_answer", "scripted_reply"]

MODEL = "scripted"

_WORDS: dict[str, Callable[[Phrases, str], str]] = {
    "kbc/talk": players.kbc_talk,
    "bertrand/talk": players.bertrand_talk,
    "bertrand/plan": players.bertrand_plan,
    "evacuation/talk": players.evacuation_talk,
    "evacuation/panic": players.evacuation_panic,
    "evacuation/evaluate": players.evacuation_evaluate,
}
_CHOICES: dict[str, Callable[[Phrases, str], tuple[str, str]]] = {
    "kbc/choose": players.kbc_choose,
    "bertrand/price": players.bertrand_price,
    "evacuation/exit": players.evacuation_exit,
    "evacuation/move": players.evacuation_move,
}


def scripted_answer(prompt: str) -> str:
    """Answer a prompt of a shipped pack, in the form that it asks for.

    Args:
        prompt: the text of a user message.

    Raises:
        LookupError: it is no prompt of a shipped pack, or does not carry what an answer needs.
    """
    phrases, call = recognise(prompt)
    if call == "summary":
        return players.summary(phrases, prompt)
    wants_object = search(phrases.as_object, prompt) is not None
    if call == "repair":
        return _repaired(phrases, prompt, wants_object)
    key = CALLS[tuple(call.split("/"))].key  # type: ignore[index]
    if call in _WORDS:
        words = _WORDS[call](phrases, prompt)
        return players.as_object(key, words, "") if wants_object else words
    reason, value = _CHOICES[call](phrases, prompt)
    if wants_object:
        return players.as_object(key, value, reason)
    if search(phrases.as_reason, prompt) is not None:
        return f"{reason}\nAnswer: {value}"
    if call != "kbc/choose":
        return value
    return f"{value}\n{reason}" if search(phrases.number_first, prompt) is not None else f"{reason}\n{value}"


def _repaired(phrases: Phrases, prompt: str, wants_object: bool) -> str:
    value = players.repair(phrases, prompt)
    if not wants_object:
        return value
    key = re.findall(r'\{"(\w+)":', prompt)[-1]
    return f'{{"{key}": null}}' if value == "none" else players.as_object(key, value, "")


def scripted_reply(messages: Sequence[ChatMessage | Mapping[str, str]]) -> str:
    """Answer a conversation: its last user message.

    Args:
        messages: `ChatMessage`s, or the mappings of a request body.
    """
    texts = [
        (message.role, message.content) if isinstance(message, ChatMessage) else (message["role"], message["content"])
        for message in messages
    ]
    return scripted_answer([content for role, content in texts if role == "user"][-1])


class ScriptedChat:
    """A `Chat` of scripted answers, in this process.

    Attributes:
        requests: how many were answered.
    """

    def __init__(self) -> None:
        self.requests = 0

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The scripted answer to a request; its usage is estimated."""
        self.requests += 1
        text = scripted_reply(request.messages)
        asked = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(asked, estimate_tokens(text), estimated=True)
        return ChatReply(text=text, usage=usage, finish_reason="stop", model=MODEL, latency=0.0)

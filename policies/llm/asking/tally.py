"""What an episode's answers used, counted where they arrive: live, from the journal and in a replay alike."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.policies.llm.chat import Chat, ChatReply, ChatRequest, RequestKey


@dataclass(slots=True)
class Used:
    """What the answers to one kind of call used.

    Attributes:
        answers: how many arrived.
        prompt_tokens: tokens of the questions.
        completion_tokens: tokens of the answers.
        estimated: answers whose tokens the provider did not state.
        costs: US dollars of each answer whose price is known.
        unpriced: answers whose price is not known.
    """

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0
    costs: list[float] = field(default_factory=list)
    unpriced: int = 0


class Tally:
    """A `Chat` that counts what the answers of another one used.

    Args:
        chat: is asked.

    Attributes:
        by_call: what was used, by kind of call.
        models: answers by the model that the provider reports.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.by_call: dict[str, Used] = {}
        self.models: Counter[str] = Counter()

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The other chat's answer."""
        reply = await self._chat.ask(key, request)
        used = self.by_call.get(key.call)
        if used is None:
            used = self.by_call[key.call] = Used()
        used.answers += 1
        used.prompt_tokens += reply.usage.prompt_tokens
        used.completion_tokens += reply.usage.completion_tokens
        used.estimated += reply.usage.estimated
        if reply.cost is None:
            used.unpriced += 1
        else:
            used.costs.append(reply.cost)
        self.models[reply.model] += 1
        return reply

    def to_json(self) -> dict[str, dict[str, Any]]:
        """All counts as plain data, calls in alphabetical order."""
        return {
            call: {
                "answers": used.answers,
                "prompt_tokens": used.prompt_tokens,
                "completion_tokens": used.completion_tokens,
                "estimated": used.estimated,
                # Answers arrive in any order; the exact sum does not depend on it.
                "cost": math.fsum(used.costs),
                "unpriced": used.unpriced,
            }
            for call, used in sorted(self.by_call.items())
        }

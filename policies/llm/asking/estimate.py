"""What a study would cost: a chat that asks nobody and counts what would have been asked."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.policies.llm.tokens import TokenCounter, counter_for

Number = TypeVar("Number", int, float)


@dataclass
class Estimate:
    """What one episode would ask.

    Attributes:
        completion_tokens: how many the scripted answers have.
        most_completion_tokens: how many the answers may have; `None` if nothing limits one of them.
        usd: what that costs with the scripted answers; `None` if a price is not known.
        most_usd: what it costs if every answer is as long as it may be; `None` likewise, or if nothing limits one.
        chains: by step, how many questions each player was asked.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    most_completion_tokens: int | None = 0
    usd: float | None = 0.0
    most_usd: float | None = 0.0
    chains: dict[int, Counter[str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rounds(self) -> int:
        """How many questions have to wait for each other: no number of requests at once makes it fewer.

        The steps of an environment follow each other; in a step the players are asked at the same time, and each
        player's own questions follow each other.
        """
        return sum(max(chain.values()) for chain in self.chains.values())


class DryChat:
    """A `Chat` for estimates: the real prompts, scripted answers, nobody asked, nothing written.

    Args:
        answer: the answer to a prompt, given as the texts of its messages with empty lines between, and to the
            request's metadata; as for the scripted server.

    Attributes:
        estimates: by episode (`RequestKey.episode`).
    """

    scripted = True

    def __init__(
        self,
        answer: Callable[[str, Mapping[str, str]], str],
        price_of: Callable[[str], Price | None],
        counter_of: Callable[[str], tuple[TokenCounter, str]] = counter_for,
    ) -> None:
        self._answer = answer
        self._price_of = functools.lru_cache(price_of)
        self._counter_of = functools.lru_cache(counter_of)
        self.estimates: dict[str, Estimate] = {}

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Answer with the script, and count."""
        prompt = "\n\n".join(message.content for message in request.messages)
        text = self._answer(prompt, request.extra.get("metadata", {}))
        count, _ = self._counter_of(request.model)
        price = self._price_of(request.model)
        usage = Usage(count(prompt), count(text), estimated=True)
        most = request.max_tokens
        if most is None and price is not None:
            most = price.longest_answer
        cost = None if price is None else price.cost(usage)
        dearest = None if price is None or most is None else price.most(usage.prompt_tokens, most)
        estimate = self.estimates.setdefault(key.episode, Estimate())
        estimate.calls += 1
        estimate.chains.setdefault(key.step, Counter())[key.agent] += 1
        estimate.prompt_tokens += usage.prompt_tokens
        estimate.completion_tokens += usage.completion_tokens
        estimate.most_completion_tokens = _sum(estimate.most_completion_tokens, most)
        estimate.usd = _sum(estimate.usd, cost)
        estimate.most_usd = _sum(estimate.most_usd, dearest)
        return ChatReply(text, usage, "stop", request.model, 0.0, cost)


def _sum(one: Number | None, other: Number | None) -> Number | None:
    return None if one is None or other is None else one + other

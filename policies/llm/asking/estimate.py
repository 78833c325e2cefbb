"""Estimate what a study would cost, with a chat that asks no model and counts the questions."""

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
    """The questions of one episode, and what they would cost.

    Attributes:
        calls: questions.
        prompt_tokens: tokens of the questions.
        completion_tokens: tokens of the scripted answers.
        most_completion_tokens: the most tokens that answers may have; `None` if one of them has no limit.
        usd: US dollars with the scripted answers; `None` if a price is not known.
        most_usd: US dollars if every answer is as long as allowed; `None` if a price or a limit is not known.
        chains: by step, the number of questions to each player.
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
        """The length of the longest chain of questions that wait for each other, however many are sent at once.

        Steps follow each other. Within a step the players are asked at the same time, but each player's own questions
        follow each other.
        """
        return sum(max(chain.values()) for chain in self.chains.values())


class DryChat:
    """A `Chat` for estimates: real prompts, scripted answers; no model is asked and nothing is written.

    Args:
        answer: returns the answer to a prompt (the texts of its messages, separated by empty lines) and to the
            request's metadata, as for the scripted server.
        price_of: returns a model's price.
        counter_of: returns a model's token counter.

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
        """Return the scripted answer and count the question."""
        prompt = "\n\n".join(message.content for message in request.messages)
        text = self._answer(prompt, request.extra.get("metadata", {}))
        count, _ = self._counter_of(request.model)
        price = self._price_of(request.model)
        usage = Usage(count(prompt), count(text), estimated=True)
        longest_answer = request.max_tokens
        if longest_answer is None and price is not None:
            longest_answer = price.longest_answer
        cost = None if price is None else price.cost(usage)
        dearest = (
            None if price is None or longest_answer is None else price.upper_bound(usage.prompt_tokens, longest_answer)
        )
        estimate = self.estimates.setdefault(key.episode, Estimate())
        estimate.calls += 1
        estimate.chains.setdefault(key.step, Counter())[key.agent] += 1
        estimate.prompt_tokens += usage.prompt_tokens
        estimate.completion_tokens += usage.completion_tokens
        estimate.most_completion_tokens = _sum(estimate.most_completion_tokens, longest_answer)
        estimate.usd = _sum(estimate.usd, cost)
        estimate.most_usd = _sum(estimate.most_usd, dearest)
        return ChatReply(text, usage, "stop", request.model, 0.0, cost)


def _sum(total: Number | None, amount: Number | None) -> Number | None:
    return None if total is None or amount is None else total + amount

"""What a study would cost: a chat that asks nobody and counts what would have been asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.policies.llm.prices import Price, estimate_tokens, likely_prompt_tokens


@dataclass
class Estimate:
    """What one episode would ask.

    Attributes:
        calls: questions.
        prompt_tokens: about how many tokens they have.
        completion_tokens: about how many their answers have, as long as the scripted ones.
        most_completion_tokens: how many the answers may have, where `max_tokens` limits them.
        usd: about what that costs; `None` if a price is not known.
        most_usd: what it costs if every answer is as long as it may be.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    most_completion_tokens: int = 0
    usd: float | None = 0.0
    most_usd: float | None = 0.0


class DryChat:
    """A `Chat` for estimates: the real prompts, scripted answers, nobody asked, nothing written.

    Args:
        answer: the answer to a prompt, given as the texts of its messages with empty lines between; as for the
            scripted server.
        price_of: a model's price, or `None`.

    Attributes:
        estimates: by episode (`RequestKey.episode`).
    """

    def __init__(self, answer: Callable[[str], str], price_of: Callable[[str], Price | None]) -> None:
        self._answer = answer
        self._price_of = price_of
        self.estimates: dict[str, Estimate] = {}

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Answer with the script, and count."""
        text = self._answer("\n\n".join(message.content for message in request.messages))
        usage = Usage(likely_prompt_tokens(request), estimate_tokens(text), estimated=True)
        most = max(usage.completion_tokens, request.max_tokens or 0)
        price = self._price_of(request.model)
        estimate = self.estimates.setdefault(key.episode, Estimate())
        estimate.calls += 1
        estimate.prompt_tokens += usage.prompt_tokens
        estimate.completion_tokens += usage.completion_tokens
        estimate.most_completion_tokens += most
        cost = None if price is None else price.cost(usage)
        dearest = None if price is None else price.most(usage.prompt_tokens, most)
        estimate.usd = _sum(estimate.usd, cost)
        estimate.most_usd = _sum(estimate.most_usd, dearest)
        return ChatReply(text, usage, "stop", request.model, 0.0, cost)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other

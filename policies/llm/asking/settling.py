"""Check the token counts and costs that a provider states against what is possible; record only plausible ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from llm_coop_envs.policies.llm.asking.prices import (
    BYTES_PER_TOKEN,
    Price,
    likely_prompt_tokens,
    most_answer_tokens,
    most_prompt_tokens,
)
from llm_coop_envs.policies.llm.chat import UNREAD, ChatReply, ChatRequest, Usage

# Bounds for models without known limits: longer than any model writes, dearer than any answer.
MOST_TOKENS = 10_000_000
MOST_USD = 1000.0
# A token is three to six bytes of ordinary text. If a server reports one token for more than ten bytes of a long
# question, it has not read all of it (Ollama before 2026 cuts questions like this).
CUT_RATIO = 10
CUT_FROM = 8000


@dataclass(frozen=True, slots=True)
class SettledReply:
    """An answer as it is recorded, and what it takes from the budget.

    Attributes:
        reply: the answer, with plausible tokens and cost.
        tokens: tokens that count against the budget.
        usd: US dollars that count against the budget.
        doubts: sentences for the user about odd counts, by kind.
    """

    reply: ChatReply
    tokens: int
    usd: float
    doubts: dict[str, str]


def settle(request: ChatRequest, reply: ChatReply, price: Price | None, where: str) -> SettledReply:
    """Check the tokens and the cost that a provider states for an answer.

    Token counts are implausible if they are zero or less, or higher than possible. A cost is implausible if it is no
    number, negative, zero although tokens are not free, or higher than the price allows. Implausible figures are
    replaced by our own upper bound, and the answer is marked as `estimated`.

    Args:
        request: the question.
        reply: the provider's answer.
        price: the model's price; `None` if not known.
        where: the endpoint as messages name it.
    """
    doubts: dict[str, str] = {}
    usage = reply.usage
    bound = Usage(most_prompt_tokens(request), _most_answer(reply), estimated=True)
    counted = usage
    if usage.estimated:
        doubts["none"] = f"{where} does not say how many tokens it counts; a budget is charged the most there can be"
        counted = bound
    elif usage is not UNREAD:
        wrong = _wrong_tokens(request, reply, price, bound)
        if wrong is not None:
            doubts["tokens"] = f"{where} counts {wrong}; our own upper estimate counts instead"
            counted = usage = bound
        else:
            doubts.update(_odd_tokens(request, usage, bound, where))
            counted = usage = _with_parts_in_bounds(usage)
    cost = None if price is None else price.cost(usage)
    usd = cost or 0.0
    if counted.estimated and price is not None:
        usd = price.upper_bound(counted.prompt_tokens, counted.completion_tokens)
        cost = usd if usage is bound else cost
    if reply.cost is not None:
        wrong_cost = _wrong_cost(reply.cost, counted, price)
        if wrong_cost is None:
            cost = reply.cost
            usd = max(usd, cost) if counted.estimated else cost
        else:
            doubts["cost"] = f"{where} states a cost of ${reply.cost:.6g}, {wrong_cost}"
            usage = replace(usage, estimated=True)
            if price is not None:
                cost = usd = price.upper_bound(counted.prompt_tokens, counted.completion_tokens)
    latency = round(reply.latency, 6)  # an answer and its replay are equal
    if usage is not reply.usage or cost is not reply.cost or latency != reply.latency:
        reply = replace(reply, usage=usage, latency=latency, cost=cost)
    return SettledReply(reply, counted.prompt_tokens + counted.completion_tokens, usd, doubts)


def _most_answer(reply: ChatReply) -> int:
    return most_answer_tokens(reply.text) + most_answer_tokens(reply.reasoning or "")


def _wrong_tokens(request: ChatRequest, reply: ChatReply, price: Price | None, bound: Usage) -> str | None:
    """What is impossible about the stated tokens, as part of a sentence; `None` if nothing is."""
    prompt, answer = reply.usage.prompt_tokens, reply.usage.completion_tokens
    longest = request.max_tokens or (price.longest_answer if price is not None else None) or MOST_TOKENS
    longest = max(longest, bound.completion_tokens)
    if prompt < 1 or answer < (1 if reply.text or reply.reasoning else 0):
        return f"{_format_count(prompt)} tokens for a question and {_format_count(answer)} for its answer"
    if prompt > bound.prompt_tokens or answer > longest:
        return f"{_format_count(prompt + answer)} tokens where there can be {bound.prompt_tokens + longest} at most"
    return None


def _format_count(count: int) -> str:
    return str(count) if abs(count) < 10**18 else f"{'-' * (count < 0)}10^{round(math.log10(abs(count)))}"


def _odd_tokens(request: ChatRequest, usage: Usage, bound: Usage, where: str) -> dict[str, str]:
    """Sentences about stated tokens that are possible but odd, by kind."""
    prompt, answer = usage.prompt_tokens, usage.completion_tokens
    doubts = {}
    if request.max_tokens is not None and answer > request.max_tokens:
        doubts["more"] = (
            f"{where} counts {answer} tokens for an answer that may have {request.max_tokens}; a budget may be passed "
            "by the difference"
        )
    # The upper bound on a question's tokens is about its length in bytes, so most questions need no closer look.
    size = likely_prompt_tokens(request) * BYTES_PER_TOKEN if 2 * bound.prompt_tokens > CUT_RATIO * prompt else 0
    if size > CUT_FROM and size > CUT_RATIO * prompt:
        doubts["less"] = (
            f"{where} counts {prompt} tokens for a question of {size} bytes: it has probably cut the question "
            "short without saying so; give it a longer context (for Ollama: OLLAMA_CONTEXT_LENGTH)"
        )
    return doubts


def _with_parts_in_bounds(usage: Usage) -> Usage:
    reasoning = min(max(usage.reasoning_tokens, 0), MOST_TOKENS)  # some providers do not count it with the answer
    cached = min(max(usage.cached_tokens, 0), usage.prompt_tokens)
    if (reasoning, cached) == (usage.reasoning_tokens, usage.cached_tokens):
        return usage
    return replace(usage, reasoning_tokens=reasoning, cached_tokens=cached)


def _wrong_cost(cost: float, usage: Usage, price: Price | None) -> str | None:
    """Why a stated cost is impossible and what counts instead, as part of a sentence; `None` if it is possible."""
    if price is None:
        possible = 0 <= cost <= MOST_USD
        return None if possible else "which cannot be; what this answer cost is not known"
    highest = price.upper_bound(usage.prompt_tokens, usage.completion_tokens)
    if 0 < cost <= highest * (1 + 1e-9) or cost == highest:
        return None
    if cost > highest:
        return (
            f"more than the ${highest:.6g} that it costs at most by {price.source}, which counts; correct it (--prices)"
        )
    return f"which cannot be; ${highest:.6g} counts, its price by {price.source}"

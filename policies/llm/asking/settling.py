"""What a provider says of tokens and money, held against what there can be: only what is plausible is recorded."""

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

# Where nobody knows how long or dear an answer may be: more than any model writes, and than any answer costs.
MOST_TOKENS = 10_000_000
MOST_USD = 1000.0
# Tokenizers make a token of three to six bytes of ordinary text; where a server reports one for more than ten, in a
# question of some length, it has not read all of it (Ollama before 2026 cuts questions so).
CUT_RATIO = 10
CUT_FROM = 8000


@dataclass(frozen=True, slots=True)
class SettledReply:
    """An answer as it is recorded, and what of it counts against the budget.

    Attributes:
        doubts: what the user should be told, by kind.
    """

    reply: ChatReply
    tokens: int
    usd: float
    doubts: dict[str, str]


def settle(request: ChatRequest, reply: ChatReply, price: Price | None, where: str) -> SettledReply:
    """Check what an answer is said to have used.

    Implausible are token counts of zero or less, or higher than there can be; and costs that are no number, negative,
    zero where tokens are not free, or higher than the price allows. Our own upper estimate replaces them, and the
    answer is marked as `estimated`.
    """
    doubts: dict[str, str] = {}
    usage = reply.usage
    most = Usage(most_prompt_tokens(request), _most_answer(reply), estimated=True)
    counted = usage
    if usage.estimated:
        doubts["none"] = f"{where} does not say how many tokens it counts; a budget is charged the most there can be"
        counted = most
    elif usage is not UNREAD:
        wrong = _wrong_tokens(request, reply, price, most)
        if wrong is not None:
            doubts["tokens"] = f"{where} counts {wrong}; our own upper estimate counts instead"
            counted = usage = most
        else:
            doubts.update(_odd_tokens(request, usage, most, where))
            counted = usage = _with_parts_in_bounds(usage)
    cost = None if price is None else price.cost(usage)
    usd = cost or 0.0
    if counted.estimated and price is not None:
        usd = price.most(counted.prompt_tokens, counted.completion_tokens)
        cost = usd if usage is most else cost
    if reply.cost is not None:
        wrong_cost = _wrong_cost(reply.cost, counted, price)
        if wrong_cost is None:
            cost = reply.cost
            usd = max(usd, cost) if counted.estimated else cost
        else:
            doubts["cost"] = f"{where} states a cost of ${reply.cost:.6g}, {wrong_cost}"
            usage = replace(usage, estimated=True)
            if price is not None:
                cost = usd = price.most(counted.prompt_tokens, counted.completion_tokens)
    settled = ChatReply(
        text=reply.text,
        usage=usage,
        finish_reason=reply.finish_reason,
        model=reply.model,
        latency=round(reply.latency, 6),  # so that an answer and its replay are equal
        cost=cost,
        refusal=reply.refusal,
        reasoning=reply.reasoning,
    )
    return SettledReply(settled, counted.prompt_tokens + counted.completion_tokens, usd, doubts)


def _most_answer(reply: ChatReply) -> int:
    return most_answer_tokens(reply.text) + most_answer_tokens(reply.reasoning or "")


def _wrong_tokens(request: ChatRequest, reply: ChatReply, price: Price | None, most: Usage) -> str | None:
    """What cannot be in the tokens that were counted, or `None`."""
    prompt, answer = reply.usage.prompt_tokens, reply.usage.completion_tokens
    longest = request.max_tokens or (price.longest_answer if price is not None else None) or MOST_TOKENS
    longest = max(longest, most.completion_tokens)
    if prompt < 1 or answer < (1 if reply.text or reply.reasoning else 0):
        return f"{_shown(prompt)} tokens for a question and {_shown(answer)} for its answer"
    if prompt > most.prompt_tokens or answer > longest:
        return f"{_shown(prompt + answer)} tokens where there can be {most.prompt_tokens + longest} at most"
    return None


def _shown(count: int) -> str:
    return str(count) if abs(count) < 10**18 else f"{'-' * (count < 0)}10^{round(math.log10(abs(count)))}"


def _odd_tokens(request: ChatRequest, usage: Usage, most: Usage, where: str) -> dict[str, str]:
    """What is possible, and worth knowing."""
    prompt, answer = usage.prompt_tokens, usage.completion_tokens
    found = {}
    if request.max_tokens is not None and answer > request.max_tokens:
        found["more"] = (
            f"{where} counts {answer} tokens for an answer that may have {request.max_tokens}; a budget may be passed "
            "by the difference"
        )
    # The most tokens of a question are about its bytes, and known already.
    size = likely_prompt_tokens(request) * BYTES_PER_TOKEN if 2 * most.prompt_tokens > CUT_RATIO * prompt else 0
    if size > CUT_FROM and size > CUT_RATIO * prompt:
        found["less"] = (
            f"{where} counts {prompt} tokens for a question of {size} bytes: it has probably cut the question "
            "short without saying so; give it a longer context (for Ollama: OLLAMA_CONTEXT_LENGTH)"
        )
    return found


def _with_parts_in_bounds(usage: Usage) -> Usage:
    reasoning = min(max(usage.reasoning_tokens, 0), MOST_TOKENS)  # some providers do not count it with the answer
    cached = min(max(usage.cached_tokens, 0), usage.prompt_tokens)
    if (reasoning, cached) == (usage.reasoning_tokens, usage.cached_tokens):
        return usage
    return replace(usage, reasoning_tokens=reasoning, cached_tokens=cached)


def _wrong_cost(cost: float, usage: Usage, price: Price | None) -> str | None:
    """Why a cost cannot be, and what counts instead; or `None`."""
    if price is None:
        possible = 0 <= cost <= MOST_USD
        return None if possible else "which cannot be; what this answer cost is not known"
    most = price.most(usage.prompt_tokens, usage.completion_tokens)
    if 0 < cost <= most * (1 + 1e-9) or cost == most:
        return None
    if cost > most:
        return f"more than the ${most:.6g} that it costs at most by {price.source}, which counts; correct it (--prices)"
    return f"which cannot be; ${most:.6g} counts, its price by {price.source}"

"""Totals of tokens, costs and answers: of a journal, of a running chat, and of a policy's calls."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.policies.llm.chat import Chat, ChatReply, ChatRequest, RequestKey


@dataclass(kw_only=True)
class AnswerTotals:
    """Sums over answers.

    Attributes:
        answers: how many answers.
        prompt_tokens: tokens of the questions.
        completion_tokens: tokens of the answers.
        estimated: answers whose tokens the provider did not state.
        cost: US dollars of the answers whose price is known.
        unpriced: answers whose price is not known.
        models: answers by the model that the provider reports.
        filtered: questions and answers that the provider's content filter rejected.
    """

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0
    cost: float = 0.0
    unpriced: int = 0
    models: Counter[str] = field(default_factory=Counter)
    filtered: int = 0

    def add(self, reply: ChatReply) -> None:
        """Count an answer."""
        usage = reply.usage
        self.answers += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.estimated += usage.estimated
        self.models[reply.model] += 1
        self.filtered += reply.finish_reason == "content_filter"
        if reply.cost is None:
            self.unpriced += 1
        else:
            self.cost += reply.cost


@dataclass(kw_only=True)
class RequestCounters(AnswerTotals):
    """Live counters of a chat, over the answers of this session; read them at any time, from the same thread.

    Attributes:
        calls: attempts sent to an endpoint in this session.
        retries: attempts after the first one at the same question.
        replayed: answers taken from the journal.
        cached: answers taken from the cache.
        in_flight: attempts in flight now.
        waiting: questions waiting to be sent now.
        limit: the current limit on attempts in flight, all endpoints together.
        maybe_cost: the most, in US dollars, that attempts without an answer may have cost.
        maybe_paid: the number of such attempts, including those of a killed session.
        spent: US dollars counted against the budget, including earlier sessions and `maybe_cost`.
        errors: failed attempts by kind.
        forms: by model, the form (`wire.FORMS`) in which an answer of a JSON schema was given.
        paused: why nothing is being sent now, or `None`.
    """

    calls: int = 0
    retries: int = 0
    replayed: int = 0
    cached: int = 0
    in_flight: int = 0
    waiting: int = 0
    limit: int = 0
    maybe_cost: float = 0.0
    maybe_paid: int = 0
    spent: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    forms: dict[str, str] = field(default_factory=dict)
    paused: str | None = None

    def line(self) -> str:
        """One line for a progress display."""
        parts = [f"{self.answers} answers"]
        if self.replayed:
            parts.append(f"{self.replayed} from the journal")
        if self.cached:
            parts.append(f"{self.cached} from the cache")
        parts.append(f"{self.in_flight} in flight")
        if self.retries:
            parts.append(f"{self.retries} retries")
        parts.append(f"{self.prompt_tokens + self.completion_tokens} tokens")
        money = f"${self.cost:.4f}"
        if self.unpriced:
            money += f" and {self.unpriced} of unknown price"
        parts.append("price unknown" if self.unpriced == self.answers > 0 else money)
        if self.paused:
            parts.append(f"paused: {self.paused}")
        return ", ".join(parts)

    def plain(self) -> dict[str, Any]:
        """The counters as JSON data, for a run's manifest."""
        sorted_ = {name: dict(sorted(getattr(self, name).items())) for name in ("errors", "models")}
        return {**vars(self), **sorted_}


class TotalsByCall:
    """A `Chat` that passes questions on to another one and sums up tokens and costs by kind of call."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._calls: defaultdict[str, tuple[AnswerTotals, list[float]]] = defaultdict(lambda: (AnswerTotals(), []))

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Return the other chat's answer."""
        reply = await self._chat.ask(key, request)
        totals, costs = self._calls[key.call]
        totals.add(reply)
        if reply.cost is not None:
            costs.append(reply.cost)
        return reply

    @property
    def most(self) -> int:
        """The most requests that the other chat has in flight at the same time; 0 if it does not say."""
        return getattr(self._chat, "most", 0)

    @property
    def models(self) -> Counter[str]:
        """Answers by the model that the provider reports."""
        return sum((totals.models for totals, _ in self._calls.values()), Counter())

    def to_json(self) -> dict[str, dict[str, Any]]:
        """The totals as plain data, calls in alphabetical order."""
        names = ("answers", "prompt_tokens", "completion_tokens", "estimated")
        return {
            call: {
                **{name: getattr(totals, name) for name in names},
                # Answers arrive in any order; `fsum` does not depend on it.
                "cost": math.fsum(costs),
                "unpriced": totals.unpriced,
            }
            for call, (totals, costs) in sorted(self._calls.items())
        }

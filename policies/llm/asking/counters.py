"""What a run has asked, got and paid so far, live."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.policies.llm.totals import AnswerTotals


@dataclass(kw_only=True)
class RequestCounters(AnswerTotals):
    """Live counters of a chat, over the answers of this session; read them at any time, from the same thread.

    Attributes:
        calls: attempts sent to an endpoint in this session.
        retries: attempts that were not the first at their question.
        replayed: answers taken from the journal.
        cached: answers taken from the cache.
        in_flight: attempts under way now.
        waiting: questions that wait to be sent now.
        limit: the limit on attempts in flight in force now, all endpoints together.
        maybe_cost: US dollars, at most, that attempts without an answer may have cost.
        maybe_paid: how many such attempts there were, those of a killed session included.
        spent: US dollars counted against the budget, earlier sessions and `maybe_cost` included.
        errors: failed attempts by kind.
        forms: by model, how answers of a JSON schema are asked for (`wire.FORMS`), once one was answered.
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

"""What a run has asked, got and paid so far, live."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Counters:
    """Live counters of a chat; read them at any time, from the same thread.

    Attributes:
        calls: attempts sent to an endpoint in this session.
        answers: answers that arrived in this session.
        retries: attempts that were not the first at their question.
        replayed: answers taken from the journal.
        cached: answers taken from the cache.
        in_flight: attempts under way now.
        waiting: questions that wait to be sent now.
        limit: the limit on attempts in flight in force now, all endpoints together.
        prompt_tokens: tokens of the questions answered in this session.
        completion_tokens: tokens of their answers.
        estimated: answers whose tokens the provider did not state.
        cost: US dollars for this session's answers whose price is known.
        unpriced: answers whose price is not known.
        maybe_cost: US dollars, at most, that attempts without an answer may have cost.
        maybe_paid: how many such attempts there were, those of a killed session included.
        spent: US dollars counted against the budget, earlier sessions and `maybe_cost` included.
        errors: failed attempts by kind.
        models: answers by the model that the provider reports.
        paused: why nothing is being sent now, or `None`.
    """

    calls: int = 0
    answers: int = 0
    retries: int = 0
    replayed: int = 0
    cached: int = 0
    in_flight: int = 0
    waiting: int = 0
    limit: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0
    cost: float = 0.0
    unpriced: int = 0
    maybe_cost: float = 0.0
    maybe_paid: int = 0
    spent: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
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
            money = (
                "price unknown" if self.unpriced == self.answers else f"{money} and {self.unpriced} of unknown price"
            )
        parts.append(money)
        if self.paused:
            parts.append(f"paused: {self.paused}")
        return ", ".join(parts)

    def plain(self) -> dict[str, Any]:
        """The counters as JSON data, for a run's manifest."""
        found = dict(vars(self))
        found["errors"] = dict(sorted(self.errors.items()))
        found["models"] = dict(sorted(self.models.items()))
        return found

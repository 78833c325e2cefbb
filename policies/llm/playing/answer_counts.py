"""Counts of what became of the answers: read, repaired, asked for again, replaced by a fallback."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

_LONGEST_EXAMPLE = 1_000


@dataclass(slots=True)
class CallCounts:
    """What became of the answers to one kind of call.

    Every decision ends as one of `answered`, `repaired`, `retried` and `fallbacks`; the other counts say what happened
    on the way.

    Attributes:
        asked: decisions that a model was asked for.
        requests: requests that were made for them.
        answered: decisions whose first answer could be used.
        repaired: decisions that were read after the model was asked what its answer meant.
        retried: decisions that were read after the question was put again.
        fallbacks: decisions that were never read: the environment's fallback stands in (a choice), the player is silent
            (talk), or nothing new is remembered (plan, feeling, evaluation, summary).
        empty: empty answers.
        silent: of the decisions `answered`, those that said nothing on purpose (talk only).
        refused: answers that refused.
        truncated: answers that were cut by their length, readable or not.
        unreadable: answers that do not answer the question, and repairs that name a value the answer did not.
        ambiguous: answers in which several values could be the answer.
        illegal: answers that were clear and not legal.
        too_long: answers that were cut before they were read.
        cleaned: answers that held template tokens or invisible characters.
        rounded: numbers rounded to the integers that were asked for.
        shortened: prompts made shorter because the provider found them too long.
        left_out: list items (messages, averages, plans) left out of prompts to keep them inside the context.
        overlong: prompts that were too long even with all left out that may be.
    """

    asked: int = 0
    requests: int = 0
    answered: int = 0
    repaired: int = 0
    retried: int = 0
    fallbacks: int = 0
    empty: int = 0
    silent: int = 0
    refused: int = 0
    truncated: int = 0
    unreadable: int = 0
    ambiguous: int = 0
    illegal: int = 0
    too_long: int = 0
    cleaned: int = 0
    rounded: int = 0
    shortened: int = 0
    left_out: int = 0
    overlong: int = 0

    @property
    def ended(self) -> int:
        """The number of decisions that ended, in whatever way."""
        return self.answered + self.repaired + self.retried + self.fallbacks

    def add(self, other: CallCounts) -> None:
        """Add the counts of `other` to these."""
        for field_ in fields(self):
            setattr(self, field_.name, getattr(self, field_.name) + getattr(other, field_.name))


@dataclass(slots=True)
class Unread:
    """Decisions that fell back for one reason, with the first answer of which none could be read."""

    count: int = 0
    example: str = ""


@dataclass(slots=True)
class AnswerCounts:
    """Counts by kind of call, such as `"price"`.

    Attributes:
        by_call: the counts.
        unread: the decisions that fell back, by the status of their last answer.
    """

    by_call: dict[str, CallCounts] = field(default_factory=dict)
    unread: dict[str, Unread] = field(default_factory=dict)

    def add(self, other: AnswerCounts) -> None:
        """Add the counts of `other` to these."""
        for call, counts in other.by_call.items():
            self.for_call(call).add(counts)
        for status, unread in other.unread.items():
            self.note_unread(status, unread.example, unread.count)

    def note_unread(self, status: str, example: str, count: int = 1) -> None:
        """Count decisions that fell back after an answer of this status; the first answer is the example."""
        unread = self.unread.setdefault(status, Unread(example=example[:_LONGEST_EXAMPLE]))
        unread.count += count

    def for_call(self, call: str) -> CallCounts:
        """The counts of a kind of call, such as `"price"`; they are made when first asked for."""
        counts = self.by_call.get(call)
        if counts is None:
            counts = self.by_call[call] = CallCounts()
        return counts

    def total(self) -> CallCounts:
        """The counts of all calls together."""
        total = CallCounts()
        for counts in self.by_call.values():
            total.add(counts)
        return total

    @property
    def fallback_share(self) -> float:
        """The share of decisions for which no answer could be read; 0 if there were none."""
        total = self.total()
        return total.fallbacks / total.asked if total.asked else 0.0

    def to_json(self) -> dict[str, dict[str, int]]:
        """All counts as plain data, calls in alphabetical order."""
        return {
            call: {field_.name: getattr(counts, field_.name) for field_ in fields(counts)}
            for call, counts in sorted(self.by_call.items())
        }

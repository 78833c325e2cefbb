"""Which conditions' answers cannot be read while a run is played; `runs.validity` says it of one that is done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from llm_coop_envs.policies import Policy
from llm_coop_envs.policies.llm.parsing.answer_reading import EMPTY, REFUSED, TRUNCATED
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.validity import ENOUGH, commonest_reason, shares_line, why_invalid_so_far

_CURES = {
    TRUNCATED: "allow longer answers: max_tokens in a file for --parameters",
    REFUSED: "another --model or another --pack may answer",
    EMPTY: "look whether the server answers at all (llm-coop transcript), or choose another --model",
}


class UnreadAnswers:
    """What became of the answers of a session, by condition; episodes that are being played count too."""

    def __init__(self) -> None:
        self._over: dict[str, AnswerCounts] = {}
        self._playing: dict[Any, tuple[str, Sequence[LLMPolicy]]] = {}
        self._asks_for_objects: set[str] = set()

    def begin(self, task: Any, condition: str, policies: Iterable[Policy]) -> None:
        """Follow an episode's policies."""
        models = [policy for policy in policies if isinstance(policy, LLMPolicy)]
        self._playing[task] = condition, models
        if any(policy.settings.answers == "json" for policy in models):
            self._asks_for_objects.add(condition)

    def end(self, task: Any) -> None:
        """Keep an episode's counts; it is over, or another part plays it now. Once more changes nothing."""
        condition, models = self._playing.pop(task, ("", ()))
        for policy in models:
            self._over.setdefault(condition, AnswerCounts()).add(policy.counters)

    def by_condition(self) -> dict[str, AnswerCounts]:
        """The counts of all conditions so far."""
        counts: dict[str, AnswerCounts] = {}
        for condition, over in self._over.items():
            counts.setdefault(condition, AnswerCounts()).add(over)
        for condition, models in self._playing.values():
            for policy in models:
                counts.setdefault(condition, AnswerCounts()).add(policy.counters)
        return counts

    def line(self) -> str:
        """The shares of repairs and fallbacks, for the progress line; empty if there were none."""
        return shares_line(self.by_condition().values())

    def rates(self) -> dict[str, int]:
        """Counts of questions, repairs and fallbacks in the episodes that are being played."""
        totals = [policy.counters.total() for _, models in self._playing.values() for policy in models]
        return {name: sum(getattr(total, name) for total in totals) for name in ("asked", "repaired", "fallbacks")}

    def invalid(self, *, without: Collection[str] = (), enough: int = ENOUGH) -> dict[str, str]:
        """Why each condition above the limit is invalid, by its name.

        Args:
            without: conditions that are not looked at.
            enough: kinds of call with fewer decisions are not looked at.
        """
        reasons = {}
        for condition, counts in self.by_condition().items():
            if condition not in without and (why := why_invalid_so_far(counts, enough)):
                reasons[condition] = why
        return reasons

    def warn(self, condition: str, why: str) -> str:
        """The warning of a condition above the limit: the commonest reason, an example, and what helps."""
        status, reason = commonest_reason(self.by_condition()[condition])
        objects = "ask for objects in a new run with --answers json"
        another = "choose another --model; this one already answers in objects"
        default = another if condition in self._asks_for_objects else objects
        return f"Condition '{condition}' becomes invalid: {why}{reason}. What helps: {_CURES.get(status, default)}"

"""A function as a policy: a rule in three lines, or a model of one's own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from llm_coop_envs.core.policy import Request
from llm_coop_envs.interface.question import Number, Question, Words
from llm_coop_envs.policies.base import Action, Policy


def from_function(function: Callable[[Request], Any]) -> Policy:
    """A policy that asks a function for each decision.

    Args:
        function: is given a `Request` and returns a number (a price, a number named, an option's choice), a text (a
            message while talking, else what a model said about its choice: the number or option in it is read), an
            action (`{"choice": ...}` or `{"message": ...}`), or `None` for nothing. It may be a coroutine function;
            then all players on turn are asked at once.
    """
    return FunctionPolicy(function)


class FunctionPolicy(Policy):
    """What `from_function` makes."""

    def __init__(self, function: Callable[[Request], Any]) -> None:
        self._function = function
        self.waits = inspect.iscoroutinefunction(function)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask the function for each action."""
        answers: list[Any] = [self._function(request) for request in requests]
        if self.waits:
            waited: list[Awaitable[Any]] = answers
            answers = await asyncio.gather(*waited)
        asked = [request.info["slots"].question for request in requests]
        return [to_action(question, answer) for question, answer in zip(asked, answers, strict=True)]


def to_action(question: Question, answer: Any) -> Action:
    """The action that an answer to a question means; what cannot be read is no choice, which is flagged."""
    if isinstance(answer, Mapping):
        return dict(answer)
    if isinstance(question, Words):
        return {"message": answer}
    if isinstance(answer, str):
        # Only here: whoever asks no model is spared what reads their answers.
        from llm_coop_envs.policies.llm.playing.answer_readers import reader_for

        answer = reader_for(question, str).read(answer, truncated=False, refused=False).value
    if isinstance(question, Number) and answer is not None:
        answer = question.choice(float(answer))
    return {"choice": answer}

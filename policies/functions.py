"""Functions as policies: a rule in three lines, or your own model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Request
from llm_coop_envs.interface.question import Number, Options, Question, Words

#: What makes a mapping an action rather than a move that is one.
_KEYS = frozenset(("choice", "message"))


def from_function(function: Callable[[Request], Any]) -> Policy:
    """Make a policy that calls a function for each decision.

    Args:
        function: takes a `Request` and returns one of these: a number (a price, a guess, an option's choice); a text
            (in talk the message, else a model's answer, from which the number or option is read); an action
            (`{"choice": ...}` or `{"message": ...}`); or `None` for nothing. A coroutine function is called for all
            players on turn at once.
    """
    return FunctionPolicy(function)


class FunctionPolicy(Policy):
    """The policy that `from_function` makes."""

    def __init__(self, function: Callable[[Request], Any]) -> None:
        self._function = function
        self.waits = inspect.iscoroutinefunction(function)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Call the function for each request."""
        answers: list[Any] = [self._function(request) for request in requests]
        if self.waits:
            waited: list[Awaitable[Any]] = answers
            answers = await asyncio.gather(*waited)
        questions = [request.info["slots"].question for request in requests]
        return [to_action(question, answer) for question, answer in zip(questions, answers, strict=True)]


def to_action(question: Question, answer: Any) -> Action:
    """Turn a function's answer into an action. An unreadable text becomes no choice, which is flagged."""
    is_list = isinstance(question, Number | Options) and not getattr(question, "passing", False)
    if isinstance(answer, Mapping) and (is_list or answer.keys() & _KEYS or isinstance(question, Words)):
        return dict(answer)
    if isinstance(question, Words):
        return {"message": answer}
    if isinstance(answer, str):
        # Imported here because only models' answers need the parser.
        from llm_coop_envs.policies.llm.playing.move_readers import reader_for

        reading = reader_for(question, str, numbered=True).read(answer, truncated=False, refused=False)
        if not is_list and not reading.ok:
            return {}
        answer = reading.value
    if isinstance(question, Number) and is_list and answer is not None:
        answer = question.choice(float(answer))
    return {"choice": answer}

"""Functions as policies: a rule in three lines, or your own model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Number as AnyNumber
from typing import Any

import numpy as np

from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Request
from llm_coop_envs.errors import ActionError, SettingsError
from llm_coop_envs.interface.move_spaces import is_one_number
from llm_coop_envs.interface.question import Number, Question, Words
from llm_coop_envs.util.waiting import call_apart

_KEYS = ("choice", "message", "paraphrase")
_USABLE = "a number, a text, an action such as {'choice': 3}, or None"
_USABLE_MOVE = "a move as events hold it, a text, or an action such as {'choice': ...}"


def from_function(function: Callable[[Request], Any]) -> Policy:
    """Make a policy that calls a function for each decision.

    Functions, methods, lambdas and objects with `__call__` will do. What they return may be awaitable, as the result of
    an `async def` is; then all players on turn are asked at once. A function that is not asynchronous is called for one
    player after the other, where no event loop runs; so it may run one itself, also in a notebook.

    Args:
        function: takes a `Request` and returns one of these: a number (a price, a guess, an option's choice); a text
            (in talk the message, else a model's answer, from which the number or option is read); an action
            (`{"choice": ...}` or `{"message": ...}`); `None` for nothing; or something to await that gives one of them.

    Raises:
        SettingsError: it cannot be called with one argument, or yields its answers.
        ActionError: raised in play, if it returns anything else.
    """
    return FunctionPolicy(function)


class FunctionPolicy(Policy):
    """The policy that `from_function` makes."""

    def __init__(self, function: Callable[[Request], Any]) -> None:
        _check_callable(function)
        self._function = function
        # Others are seen to wait by what they return: `lambda request: agent.run(...)` says nothing before.
        self.waits = any(map(inspect.iscoroutinefunction, _codes(function)))

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Call the function for each request."""
        if self.waits:
            answers = [self._function(request) for request in requests]
        else:
            answers = call_apart(lambda: [self._function(request) for request in requests])
        if any(map(inspect.isawaitable, answers)):
            if not self.waits:
                self.waits = True
                await asyncio.sleep(0)  # `run_through` goes on in a loop
            answers = await asyncio.gather(*map(_answer_of, answers))
        questions = [request.info["slots"].question for request in requests]
        return [to_action(question, answer) for question, answer in zip(questions, answers, strict=True)]


async def _answer_of(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _codes(function: Any) -> tuple[Any, Any]:
    """What may say of a callable that it is asynchronous: itself, and its `__call__`."""
    return function, getattr(type(function), "__call__", None)  # noqa: B004


def _check_callable(function: Any) -> None:
    if not callable(function):
        raise SettingsError(
            "function", function, f"cannot be called; give a function of a request that returns {_USABLE}"
        )
    if any(inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code) for code in _codes(function)):
        raise SettingsError("function", function, f"yields its answers; it must return one: {_USABLE}")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some that are written in C do not say what they take
        return
    try:
        signature.bind(None)
    except TypeError:
        reason = f"must take one argument, the request, and takes {signature}"
        raise SettingsError("function", function, reason) from None


def to_action(question: Question, answer: Any) -> Action:
    """Turn a function's answer into an action. An unreadable text becomes no choice, which is flagged.

    Raises:
        ActionError: the answer is of a kind that is none.
    """
    is_number = isinstance(question, Words) or is_one_number(question)
    if isinstance(answer, Mapping) and (is_number or set(answer) <= set(_KEYS)):
        if not answer or not set(answer) <= set(_KEYS):
            raise ActionError(
                f"the function of a policy returned {answer!r}; an action is {{'choice': ...}} or {{'message': ...}}"
            )
        return dict(answer)
    usable: Any = AnyNumber | str | np.generic | np.ndarray | None
    if not isinstance(answer, usable if is_number else usable | Mapping | list | tuple | set):
        usable_words = _USABLE if is_number else _USABLE_MOVE
        raise ActionError(
            f"the function of a policy returned a {type(answer).__name__}, {_shortened(answer)}; return {usable_words}"
        )
    if isinstance(question, Words):
        return {"message": answer}
    if isinstance(answer, str):
        # Imported here because only models' answers need the parser.
        from llm_coop_envs.policies.llm.playing.move_readers import reader_for

        reading = reader_for(question, str, numbered=True).read(answer, truncated=False, refused=False)
        if not is_number and not reading.ok:
            return {}
        answer = reading.value
    if isinstance(question, Number) and is_number and answer is not None:
        assert not isinstance(answer, Mapping)
        answer = question.choice(float(answer))
    return {"choice": answer}


def _shortened(answer: Any) -> str:
    """How an answer is named in an error."""
    text = repr(answer)
    return text if len(text) <= 80 else f"{text[:80]}..."

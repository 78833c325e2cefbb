"""A person at a window: the same questions, answered with keys and typed lines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import PlayerLeft
from llm_coop_envs.interface.question import Options, Words
from llm_coop_envs.interface.slots import Slots
from llm_coop_envs.policies.base import Action, Policy
from llm_coop_envs.policies.human.answers import Unusable, hint, list_options, read_answer

#: How often the window looks at its keys, per second.
AWAKE = 60


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What a window shows while somebody is asked.

    Attributes:
        agent: who is asked.
        text: everything the player may know, and the question.
        hint: what is to be typed, in a few words.
        steps: answers by direction, such as `"up"` or `"down and left"`, if steps are taken with arrow keys.
        longest: the most characters that can be typed.
        curves: numbers the player knows, by name, as (x, y) points; for a chart.
    """

    agent: str
    text: str
    hint: str
    steps: Mapping[str, str] = field(default_factory=dict)
    longest: int = 200
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


class PromptWindow(Protocol):
    """The window, as the policy knows it."""

    #: Whether the person closed it.
    closed: bool

    @property
    def lingers(self) -> bool:
        """Whether it shows how the game came out, until a key is pressed."""

    def ask(self, prompt: Prompt) -> None:
        """Show a question and begin to take an answer."""

    def tell(self, sentence: str) -> None:
        """Show what was wrong with the last answer."""

    def take(self) -> str | None:
        """The answer, if one was given since the last call."""

    def tick(self) -> None:
        """Look at keys, and draw what has changed."""


class WindowHuman(Policy):
    """A person at a window, for one seat or several."""

    def __init__(self, window: PromptWindow) -> None:
        self._window = window
        self._living: asyncio.Task[None] | None = None

    def begin(self, episode: Episode) -> None:
        """Start an episode; from now on the window answers keys, whoever is being asked."""
        super().begin(episode)
        if self._living is not None:
            self._living.cancel()
        self._living = asyncio.get_running_loop().create_task(self._live())

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask for each action until it is one.

        Raises:
            PlayerLeft: the window was closed.
        """
        return [await self._ask(request) for request in requests]

    async def close(self) -> None:
        """Let the window rest; where it shows how it came out, once the person has seen that."""
        while self._living is not None and not self._living.done() and self._window.lingers:
            await asyncio.sleep(1 / AWAKE)
        if self._living is not None:
            self._living.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._living
            self._living = None

    async def _live(self) -> None:
        while not self._window.closed:
            self._window.tick()
            await asyncio.sleep(1 / AWAKE)

    async def _ask(self, request: Request) -> Action:
        slots: Slots = request.info["slots"]
        assert slots.question is not None, "whoever is asked is on turn"
        self._window.ask(prompt(request.agent, slots, request.observation["text"]))
        while True:
            if self._living is not None and self._living.done() and not self._living.cancelled():
                # What went wrong while drawing must not leave everybody waiting.
                self._living.result()
            if self._window.closed:
                raise PlayerLeft("the window was closed")
            typed = self._window.take()
            if typed is not None:
                try:
                    return read_answer(slots.question, typed)
                except Unusable as why:
                    self._window.tell(str(why))
            await asyncio.sleep(1 / AWAKE)


def prompt(agent: str, slots: Slots, text: str) -> Prompt:
    """What a window shows of a request."""
    question = slots.question
    assert question is not None, "whoever is asked is on turn"
    steps: dict[str, str] = {}
    told = hint(question)
    longest = question.longest if isinstance(question, Words) else 40
    if isinstance(question, Options):
        if any(option.towards is None for option in question.options):
            told = f"{told}: {', '.join(list_options(question))}"
            longest = max(longest, *(len(option.name) for option in question.options))
        else:
            steps = {direction(*one.towards): one.letter or one.name for one in question.options if one.towards}
            told = "step with the arrow keys; diagonals: Home, Page Up, End, Page Down or the number pad; space stays"
    return Prompt(agent=agent, text=text, hint=told, steps=steps, longest=longest, curves=slots.series())


def direction(down: int, right: int) -> str:
    """A step's direction in words; `"stay"` for none."""
    return " and ".join(filter(None, (("", "down", "up")[down], ("", "right", "left")[right]))) or "stay"

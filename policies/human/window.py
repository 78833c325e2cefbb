"""A person at a window, who answers with keys and typed lines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import PlayerLeft
from llm_coop_envs.interface.moves import longest_line
from llm_coop_envs.interface.question import Options, Words
from llm_coop_envs.interface.slots import Slots
from llm_coop_envs.policies.human.answers import Unusable, hint, list_options, read_answer

#: How many times per second the window reads its keys.
AWAKE = 60


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What a window shows while a player is asked.

    Attributes:
        agent: the player.
        text: everything the player may know, and the question.
        hint: what to type, in a few words.
        steps: answers by direction, such as `"up"` or `"down and left"`, if the arrow keys answer.
        longest: the most characters that can be typed.
        curves: series that the player knows, by name, as (x, y) points; for a chart.
    """

    agent: str
    text: str
    hint: str
    steps: Mapping[str, str] = field(default_factory=dict)
    longest: int = 200
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


class PromptWindow(Protocol):
    """The interface of a window to the policy."""

    #: Whether the person has closed it.
    closed: bool

    @property
    def lingers(self) -> bool:
        """Whether it shows the game's result until a key is pressed."""
        ...

    def ask(self, prompt: Prompt) -> None:
        """Show a question and start to accept an answer."""

    def tell(self, sentence: str) -> None:
        """Show what was wrong with the last answer."""

    def take(self) -> str | None:
        """The answer given since the last call; `None` if there is none."""

    def tick(self) -> None:
        """Read keys, and draw what has changed."""


class WindowHuman(Policy):
    """A person at a window, for one seat or several."""

    def __init__(self, window: PromptWindow) -> None:
        self._window = window
        self._living: asyncio.Task[None] | None = None

    def begin(self, episode: Episode) -> None:
        """Start an episode; from now on the window responds to keys, whichever player is asked."""
        super().begin(episode)
        if self._living is not None:
            self._living.cancel()
        self._living = asyncio.get_running_loop().create_task(self._live())

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask for each action until the answer is usable.

        Raises:
            PlayerLeft: the window was closed.
        """
        return [await self._ask(request) for request in requests]

    async def close(self) -> None:
        """Stop the window; if it shows the game's result, wait until the person has seen it."""
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
                # An error while drawing must not leave the game waiting for ever.
                self._living.result()
            if self._window.closed:
                raise PlayerLeft("the window was closed")
            typed = self._window.take()
            if typed is not None:
                try:
                    return read_answer(slots.question, typed)
                except Unusable as error:
                    self._window.tell(str(error))
            await asyncio.sleep(1 / AWAKE)


def prompt(agent: str, slots: Slots, text: str) -> Prompt:
    """Make the prompt of a request for a window."""
    question = slots.question
    assert question is not None, "whoever is asked is on turn"
    steps: dict[str, str] = {}
    answer_hint = hint(question)
    longest = question.longest if isinstance(question, Words) else max(40, longest_line(question))
    if isinstance(question, Options):
        if any(option.towards is None for option in question.options):
            answer_hint = f"{answer_hint}: {', '.join(list_options(question))}"
            longest = max(longest, *(len(option.name) for option in question.options))
        else:
            steps = {
                direction(*option.towards): option.letter or option.name
                for option in question.options
                if option.towards
            }
            answer_hint = (
                "step with the arrow keys; diagonals: Home, Page Up, End, Page Down or the number pad; space stays"
            )
    return Prompt(agent=agent, text=text, hint=answer_hint, steps=steps, longest=longest, curves=slots.series())


def direction(down: int, right: int) -> str:
    """A step's direction in words; `"stay"` for none."""
    return " and ".join(filter(None, (("", "down", "up")[down], ("", "right", "left")[right]))) or "stay"

"""A person at a window: the same questions, answered with keys and typed lines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.slots import Slots
from llm_coop_envs.errors import PlayerLeft
from llm_coop_envs.evacuation.slots import EvacuationSlots
from llm_coop_envs.kbc.slots import KBCSlots
from llm_coop_envs.policies.base import Action, Policy
from llm_coop_envs.policies.human.answers import Unusable, hint, read_answer

#: How often the window looks at its keys, per second.
AWAKE = 60


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a window shows while somebody is asked.

    Attributes:
        agent: who is asked.
        text: everything the player may know, and the question.
        hint: what is to be typed, in a few words.
        steps: answers by the name of a step, if steps are taken with arrow keys.
        longest: the most characters that can be typed.
        curves: numbers the player knows, by name, as (x, y) points; for a chart.
    """

    agent: str
    text: str
    hint: str
    steps: Mapping[str, str] = field(default_factory=dict)
    longest: int = 200
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


class Seat(Protocol):
    """The window, as the policy knows it.

    Attributes:
        closed: whether the person closed it.
    """

    closed: bool

    def ask(self, question: Question) -> None:
        """Show a question and begin to take an answer."""
        ...

    def tell(self, sentence: str) -> None:
        """Show what was wrong with the last answer."""
        ...

    def take(self) -> str | None:
        """The answer, if one was given since the last call."""
        ...

    def tick(self) -> None:
        """Look at keys, and draw what has changed."""
        ...


class WindowHuman(Policy):
    """A person at a window, for one seat or several.

    Args:
        seat: the window.
    """

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
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
        """Let the window rest."""
        if self._living is not None:
            self._living.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._living
            self._living = None

    async def _live(self) -> None:
        while not self._seat.closed:
            self._seat.tick()
            await asyncio.sleep(1 / AWAKE)

    async def _ask(self, request: Request) -> Action:
        slots: Slots = request.info["slots"]
        self._seat.ask(question(request.agent, slots, request.observation["text"]))
        while True:
            if self._living is not None and self._living.done() and not self._living.cancelled():
                # What went wrong while drawing must not leave everybody waiting.
                self._living.result()
            if self._seat.closed:
                raise PlayerLeft("the window was closed")
            typed = self._seat.take()
            if typed is not None:
                try:
                    return read_answer(slots, typed)
                except Unusable as why:
                    self._seat.tell(str(why))
            await asyncio.sleep(1 / AWAKE)


def question(agent: str, slots: Slots, text: str) -> Question:
    """What a window shows of a request."""
    steps: dict[str, str] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    told = hint(slots)
    if isinstance(slots, EvacuationSlots) and slots.asked == "move":
        steps = {option.name: option.letter for option in slots.options}
        told = "step with the arrow keys; diagonals: Home, Page Up, End, Page Down or the number pad; space stays"
    elif isinstance(slots, EvacuationSlots) and slots.asked == "exit":
        told = "type an exit: " + ", ".join(f"{option.choice} {option.name}" for option in slots.options)
    elif isinstance(slots, BertrandSlots):
        rows = slots.history
        curves["your price"] = [(row.round, row.price) for row in rows]
        for place, name in enumerate(slots.rivals):
            curves[name] = [(row.round, row.rival_prices[place]) for row in rows]
    elif isinstance(slots, KBCSlots) and slots.past:
        curves["your number"] = [(row.round, row.own) for row in slots.past]
        curves["target"] = [(row.round, row.target) for row in slots.past]
    longest = slots.message_length if slots.phase == TALK else 40
    return Question(agent=agent, text=text, hint=told, steps=steps, longest=longest, curves=curves)

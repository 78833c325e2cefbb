"""A game's seat as an environment of TRL's `GRPOTrainer`: one learner among policies, which answers with tools.

Give `GRPOTrainer` a class of this file, or a function that makes its objects, as `environment_factory`. Each public
method is a typed tool of the model, described by its docstring. TRL itself is not imported here. `training.py` beside
this file trains a network in this way.
"""

from __future__ import annotations

from typing import Any

from llm_coop_envs.policies.llm.seats import ChatSeat


class Seat:
    """One learner's seat. TRL makes it once, resets it for each rollout, and asks for the reward at its end.

    Args:
        scenario: the name of the scenario.
        **game: further arguments of `ChatSeat`.

    Raises:
        SettingsError: the scenario, seat, policy or reward is unknown.
    """

    OVER = "The game is over."

    def __init__(self, scenario: str, **game: Any) -> None:
        self._seat = ChatSeat(scenario, **game)
        self._info: dict[str, Any] = {}
        self._reward, self._done = 0.0, True

    def reset(self, seed: int = 0, **row: Any) -> str:
        """Begin an episode; returns the first question, which TRL appends to the row's prompt.

        Args:
            seed: the environment's seed, from the row.
            **row: the other columns of the row, which are ignored.
        """
        messages = self._seat.init(seed)
        self._info = self._seat.seats.infos()[self._seat.agent]
        self._reward, self._done = 0.0, not messages
        return _join_messages(messages)

    def get_reward(self) -> float:
        """The seat's reward; decisions for which the model called no tool are forfeits."""
        while not self._done:
            self._take(None)
        return self._reward

    def say(self, message: str) -> str:
        """Say something to the other players, when you are asked for a message.

        Args:
            message: what you say; an empty text says nothing.
        """
        return self._answer(message, "talk")

    def answer(self, text: str) -> str:
        """Answer in words, when you are asked for something that no other tool gives.

        Args:
            text: the answer.
        """
        return self._answer(text)

    def _answer(self, reply: str, *calls: str) -> str:
        """Reply to the open question if it is one of `calls`; else raise an error, which TRL shows to the model."""
        if self._done:
            raise ValueError("the game is over")
        if calls and self._info["call"] not in calls:
            raise ValueError(f"you are asked for something else now: {self._info['call']}")
        return self._take(reply)

    def _take(self, reply: str | None) -> str:
        messages, reward, self._done, self._info = self._seat.step(reply)
        self._reward += reward
        return self.OVER if self._done else _join_messages(messages)


class Firm(Seat):
    """A firm in price competition."""

    def __init__(self, **game: Any) -> None:
        super().__init__("bertrand", **game)

    def set_price(self, price: float) -> str:
        """Set your price for this round.

        Args:
            price: the price.
        """
        return self._answer(str(price), "price")


class Contestant(Seat):
    """A player of the beauty contest."""

    def __init__(self, **game: Any) -> None:
        super().__init__("kbc", **game)

    def name_number(self, number: float) -> str:
        """Name your number.

        Args:
            number: the number.
        """
        return self._answer(str(number), "choose")


class Evacuee(Seat):
    """A person who leaves a room."""

    def __init__(self, **game: Any) -> None:
        super().__init__("evacuation", **game)

    def choose(self, option: str) -> str:
        """Choose one of the options that you are given.

        Args:
            option: its letter or its name.
        """
        return self._answer(option, "exit", "move")


def _join_messages(messages: list[dict[str, str]]) -> str:
    return "\n\n".join(message["content"] for message in messages)

"""What players submit in one step, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from llm_coop_envs.core.array_env import TALK, ArrayEnv
from llm_coop_envs.interface.actions import Indices


@dataclass(eq=False, slots=True)
class Submissions:
    """What some players submit in one step, by their places among those who are asked.

    Attributes:
        choices: a number for each place, as `ArrayEnv.advance` takes them; unused in talk phases.
        missing: the places of those who submitted nothing usable.
        messages: what is said, by place, in talk phases.
        paraphrases: the speakers' own paraphrases of what they say, by place, where they bring any.
    """

    choices: NDArray[Any]
    missing: list[int] = field(default_factory=list)
    messages: dict[int, object] = field(default_factory=dict)
    paraphrases: dict[int, str] = field(default_factory=dict)

    def merge(self, who: Indices, other: Submissions) -> None:
        """Add what players submit, at their own places.

        Raises:
            RuntimeError: there are not as many answers as players.
        """
        if len(other.choices) != len(who):
            raise RuntimeError(f"{len(other.choices)} answers for {len(who)} players; each must be answered, in order")
        self.choices[who] = other.choices
        self.missing += who[other.missing].tolist()
        if other.messages:
            names = who.tolist()
            self.messages.update((names[row], text) for row, text in other.messages.items())
            self.paraphrases.update((names[row], text) for row, text in other.paraphrases.items())


class SubmissionReader:
    """Reads players' actions, as `step` takes them, into arrays.

    Args:
        env: the environment.
        blank: takes them, and holds nothing yet.
    """

    def __init__(self, env: ArrayEnv, blank: Submissions) -> None:
        self._number = env.read_choice
        self._talking = env.phase == TALK
        self.submissions = blank
        # Where words are the move, whoever knows talk alone gives them as a message.
        self._key = "message" if env.phase_has_words else "choice"
        self._missing, self._messages = self.submissions.missing, self.submissions.messages

    def take(self, row: int, agent: str, action: object) -> None:
        """Read a player's action; anything but a mapping is none."""
        if not isinstance(action, Mapping):
            self._missing.append(row)
        elif self._talking:
            message = action.get("message")
            self._messages[row] = {"text": message, "to": action["to"]} if action.get("to") is not None else message
            paraphrase = action.get("paraphrase")
            if isinstance(paraphrase, str):
                self.submissions.paraphrases[row] = paraphrase
        elif self._key in action or "choice" in action:
            raw = action["choice"] if "choice" in action else action[self._key]
            self.submissions.choices[row] = self._number(raw, agent)
        else:
            self._missing.append(row)

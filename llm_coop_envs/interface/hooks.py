"""The hooks that `ArrayEnv` calls and a scenario fills in, with their defaults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.move_spaces import is_one_number
from llm_coop_envs.interface.moves import Shares
from llm_coop_envs.interface.question import Number, Options, Question, Unusable
from llm_coop_envs.util.packing import pack_value, unpack_value

Event = dict[str, Any]

TALK = "talk"
"""The phase in which players speak; every other name is one of an act phase, or of a regulator's."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase of a round.

    Attributes:
        phase: its name, `"talk"` or one of the scenario's act phases.
        levels: the players on turn, step by step; each an array or a list of indices.
    """

    phase: str
    levels: Sequence[Indices | list[int]]


@dataclass(frozen=True, slots=True)
class Over:
    """The end of an episode.

    Attributes:
        reason: the reason in a few words, for the record.
        truncated: whether a clock ended it (PettingZoo's truncation) rather than the game itself.
    """

    reason: str
    truncated: bool = False


class Hooks(ABC):
    """A scenario's part of an environment.

    Attributes:
        kept: attributes that a snapshot keeps; whatever `pack_value` takes.
        possible_agents: the players' names, in index order; after them the regulator's, if there is one.
        n_players: how many players there are.
        feature_names: the names of the feature columns.
        phase: the phase of the step to come.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    possible_agents: list[str]
    n_players: int
    feature_names: tuple[str, ...]
    phase: str
    #: What is asked in the phases that have a question of their own: by role, or under "" of everybody.
    _asking: dict[str, Mapping[str, Question]]

    @abstractmethod
    def role_of(self, index: int) -> str:
        """The role of a player."""

    @property
    @abstractmethod
    def np_random(self) -> np.random.Generator:
        """The episode's one generator."""

    @abstractmethod
    def nature(self, purpose: str) -> np.random.Generator:
        """A generator for what nature draws for a purpose in this round, whatever was said or chosen before."""

    @abstractmethod
    def _setup(self) -> None:
        """Set `n_players`, `feature_names`, `_feature_bounds`, `_state_bounds`; prepare tables."""

    def _seats(self) -> Mapping[str, int]:
        """How many players there are of each role, in the order of their indices: `{"seller": 3, "buyer": 2}`.

        By default `_setup` says how many there are, and all have the one `role` of the class.
        """
        return {}

    def _moves(self) -> Mapping[str, Question | Mapping[str, Question]]:
        """What each act phase asks for, by its name: the widest question, from which the phase's space follows.

        Where unlike roles are asked for unlike things, it is a mapping from roles to questions; a role that is left out
        has no turn in that phase. A phase that is not named here has the one space of `_choice_space`; without one, it
        does not exist. What a player is asked in a step may be narrower, see `_question`.
        """
        return {}

    def widest_question(self, index: int, phase: str | None = None) -> Question | None:
        """What a player is asked at most in a phase, by default the present one; `None` if `_moves` does not say."""
        by_role = self._asking.get(self.phase if phase is None else phase, {})
        return by_role.get("") or by_role.get(self.role_of(index))

    @property
    def _common_question(self) -> Question | None:
        """What everybody is asked at most in this phase; `None` if `_moves` does not say, or if roles differ."""
        return self._asking.get(self.phase, {}).get("")

    def _choice_space(self) -> spaces.Discrete | spaces.Box:
        """A fresh choice space of the phases that `_moves` leaves out: Discrete, or a Box of shape (1,) and float64."""
        raise NotImplementedError(f"{type(self).__name__}: say in _moves() what each act phase asks for")

    @abstractmethod
    def _begin(self, options: Mapping[str, Any]) -> None:
        """Start a new episode; draw from `self.np_random` only, and in rounds from `self.nature(purpose)`."""

    @abstractmethod
    def _next_stage(self) -> Stage | Over:
        """Settle what is due and say what comes next; called whenever a phase's levels are used up."""

    @abstractmethod
    def _apply(self, phase: str, who: Indices, choices: NDArray[Any]) -> None:
        """Take the legal choices of one act level; `choices[k]` is that of player `who[k]`."""

    @abstractmethod
    def _features(self) -> NDArray[np.float32]:
        """A fresh (players, features) matrix."""

    def _state_vector(self) -> NDArray[np.float64]:
        """The scenario's part of the global state, inside `_state_bounds`; by default everybody's features."""
        return self._features().astype(np.float64).ravel()

    def _snapshot(self) -> dict[str, Any]:
        """The scenario's part of `get_state`, as JSON data; by default the attributes named by `kept`."""
        return {name: pack_value(getattr(self, name)) for name in self.kept}

    def _restore(self, data: Mapping[str, Any]) -> None:
        """Continue from what `_snapshot` gave."""
        for name in self.kept:
            setattr(self, name, unpack_value(data[name]))

    def _picture(self) -> str:
        """A few lines that show the situation to an onlooker; by default everybody's features."""
        rows = [
            f"{name}: " + " ".join(f"{x:.4g}" for x in row)
            for name, row in zip(self.possible_agents, self._features().tolist(), strict=False)
        ]
        return "\n".join([", ".join(self.feature_names), *rows])

    def _legal(self) -> NDArray[np.int8] | None:
        """Legal choices, (players, choices) of 0 and 1; `None` if all are, or choices are continuous."""
        return None

    def _question(self, index: int) -> Question:
        """What a player on turn is asked in an act phase; by default what `_moves` says, or a number of the space."""
        question = self.widest_question(index)
        if isinstance(question, Options):
            legal = self._legal()
            if legal is None:
                return question
            options = tuple(option for option in question.options if legal[index, option.choice])
            return replace(question, options=options, known=tuple(option.name for option in question.options))
        if question is not None:
            return question
        space = self._choice_space()
        if isinstance(space, spaces.Discrete):
            legal = self._legal()
            if legal is None:
                return Number(low=0, high=int(space.n) - 1, integer=True, counted=True)
            listed = tuple((choice, choice) for choice in np.flatnonzero(legal[index]).tolist())
            return Number(low=listed[0][0], high=listed[-1][0], integer=True, listed=listed)
        return Number(low=float(space.low[0]), high=float(space.high[0]))

    def _fallback(self, who: Indices) -> NDArray[Any]:
        """Discrete choices that stand in for illegal or missing ones; by default the first legal one."""
        legal = self._legal()
        return np.zeros(len(who), dtype=np.int64) if legal is None else legal[who].argmax(axis=1)

    def _clean(self, who: Indices, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Usable values for continuous choices (NaN where nothing was given), and which were invalid.

        By default the nearest end of the space, and what `_missing` says for no number.
        """
        question = self._common_question
        if isinstance(question, Number):
            low, high = question.low, question.high
        else:
            space = self._choice_space()
            assert isinstance(space, spaces.Box), "only continuous choices are cleaned"
            low, high = float(space.low[0]), float(space.high[0])
        bad = ~((values >= low) & (values <= high))
        missing = np.isnan(values)
        given = np.where(missing, self._missing(who), values) if missing.any() else values
        return np.clip(given, low, high), bad

    def _missing(self, who: Indices) -> Any:
        """What counts for players whose choice is missing: a number, or one for each of them; or one move for each.

        A scenario has to say it where a number is asked for that may not be passed: no end of the space is harmless in
        every game, in an auction the lowest bid may win.
        """
        raise NotImplementedError(f"{type(self).__name__}: define _missing(who), what counts for a missing choice")

    def _stand_in(self, index: int) -> Any:
        """The move that stands in for a missing one where moves are more than a number."""
        try:
            return self._question(index).stand_in()
        except Unusable:
            return self._missing(np.array([index], dtype=np.intp))[0]

    def _longest_text(self) -> tuple[int, int]:
        """The most messages, and the most numbers or names in lists, that a player's text holds: for its space."""
        return len(self.possible_agents), 1000

    def _ordered(self, order: str) -> None:
        """Put a regulator's order into force; an empty one ends the last. By default only silence is known."""
        return None

    def _instead(self, index: int, choice: Any) -> Any:
        """The choice that counts in place of a vetoed one; by default the fallback of a missing choice."""
        player = np.array([index], dtype=np.intp)
        question = self._common_question
        if isinstance(question, Shares):
            return question.options[0].choice
        if self.phase in self._asking and (question is None or not is_one_number(question)):
            return self._stand_in(index)
        if isinstance(question, Options) or (isinstance(question, Number) and question.discrete):
            return self._fallback(player)[0].item()
        if isinstance(question, Number):
            return self._clean(player, np.array([np.nan]))[0][0].item()
        if isinstance(self._choice_space(), spaces.Discrete):
            return self._fallback(player)[0].item()
        return self._clean(player, np.array([np.nan]))[0][0].item()

    def _welfare(self) -> float:
        """The public's welfare of the last round, for a regulator whose reward it is; by default 0."""
        return 0.0

    def _start_event(self) -> Event:
        """What the scenario adds to the `start` event."""
        return {}

"""Perception: how much each player sees and remembers, by settings that may change between players and rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.interface.hooks import Hooks
from llm_coop_envs.util.draws import NOISE, Key, side_generator

ALL, OWN = "all", "own"
#: What players see and keep of what happens; a scenario that carries it out names it in `changeable`.
PERCEPTION = ("information", "observation_noise", "memory")


class Perception(Hooks):
    """The part of `ArrayEnv` that says how much each player sees and remembers."""

    settings: Any
    n_players: int
    possible_agents: list[str]
    round: int
    _key: Key

    def _perceive(self) -> None:
        """Note which settings can matter in an episode, so that others are never looked up."""
        reach = self.settings.reach
        self._noisy = any(reach("observation_noise"))
        self._hides = OWN in reach("information")
        self._forgets = any(rounds is not None for rounds in reach("memory"))

    def settings_of(self, index: int | None = None) -> Any:
        """The settings that hold in this round, for everybody or for one player."""
        return self.settings.in_round(self.round, None if index is None else self.possible_agents[index])

    @property
    def blind(self) -> NDArray[np.bool_]:
        """Whether each player learns in this round only of its own acts and rewards; (players,)."""
        return self._each(lambda now: now.information == OWN)

    @property
    def forgetful(self) -> NDArray[np.bool_]:
        """Whether each player has forgotten all rounds before this one; (players,)."""
        return self._each(lambda now: now.memory == 0)

    def error(self, index: int, round_: int, moment: int, size: int) -> NDArray[np.float64] | None:
        """A player's errors in what it sees of a round; `None` if it sees everything exactly.

        Args:
            index: the player.
            round_: the round that it sees; the noise in that round counts.
            moment: a number for what it sees. Errors of different moments are independent, those of one moment are the
                same whenever it looks.
            size: the number of errors.
        """
        noise = self.settings.in_round(round_, self.possible_agents[index]).observation_noise if self._noisy else 0.0
        return noise * side_generator(self._key, NOISE, index, moment).standard_normal(size) if noise else None

    def _each(self, holds: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """Whether a condition holds for each player's settings in this round; (players,)."""
        if not self.settings.changes:
            return np.full(self.n_players, holds(self.settings))
        return np.fromiter((holds(self.settings_of(i)) for i in range(self.n_players)), np.bool_, self.n_players)

    def _since(self, index: int) -> int | None:
        """The first round of which a player still remembers messages; `None` for all."""
        rounds = self.settings_of(index).memory if self._forgets else None
        return None if rounds is None else self.round - rounds

"""What players see and keep of what happens: settings that may differ between them, and from round to round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.draws import NOISE, Key, side_generator
from llm_coop_envs.core.hooks import Hooks

ALL, OWN = "all", "own"
#: What players see and keep of what happens; a scenario that carries it out names it in `changeable`.
PERCEPTION = ("information", "observation_noise", "memory")


class Perception(Hooks):
    """Who sees and remembers how much; the base of `ArrayEnv`."""

    settings: Any
    n_players: int
    possible_agents: list[str]
    round: int
    _key: Key

    def _perceive(self) -> None:
        """Find out what can happen in an episode, so that nothing is asked where nothing can."""
        reach = self.settings.reach
        self._noisy = any(reach("observation_noise"))
        self._hides = OWN in reach("information")
        self._forgets = any(rounds is not None for rounds in reach("memory"))

    def settings_of(self, index: int | None = None) -> Any:
        """The settings that hold in this round, for everybody or for one player."""
        return self.settings.in_round(self.round, None if index is None else self.possible_agents[index])

    @property
    def blind(self) -> NDArray[np.bool_]:
        """Who learns in this round only what it does itself and what that brings; (players,)."""
        return self._each(lambda now: now.information == OWN)

    @property
    def forgetful(self) -> NDArray[np.bool_]:
        """Who knows nothing in this round of those before it; (players,)."""
        return self._each(lambda now: now.memory == 0)

    def error(self, index: int, round_: int, moment: int, size: int) -> NDArray[np.float64] | None:
        """By how much a player is off in what it sees of a round; `None` where it sees all as it is.

        Args:
            index: the player.
            round_: the round of which it sees something: its noise then counts.
            moment: a number for what it sees; errors of different moments are independent, those of one are the same
                whenever it looks.
            size: how many errors.
        """
        noise = self.settings.in_round(round_, self.possible_agents[index]).observation_noise if self._noisy else 0.0
        return noise * side_generator(self._key, NOISE, index, moment).standard_normal(size) if noise else None

    def _each(self, holds: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """For which players something holds of the settings in this round; (players,)."""
        if not self.settings.changes:
            return np.full(self.n_players, holds(self.settings))
        return np.fromiter((holds(self.settings_of(i)) for i in range(self.n_players)), np.bool_, self.n_players)

    def _since(self, index: int) -> int | None:
        """The first round of which a player still knows what it heard; `None`: of all."""
        rounds = self.settings_of(index).memory if self._forgets else None
        return None if rounds is None else self.round - rounds

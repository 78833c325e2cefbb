"""Permanent departures: the `present` change removes players from a given round on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.wording import Templates, load_part
from llm_coop_envs.treatments.changes import Change
from llm_coop_envs.treatments.perception import Perception

STAYS = np.iinfo(np.int64).max
"""Departure round of a player who stays until the end."""

LEFT, ADDRESS = "left.jinja", "address.jinja"
MOST_NAMED = 10
"""If more players have left, texts give only their number."""


def load_left(wording: str) -> Templates:
    """Load the template that names the players who have left; a folder without it takes that of `en-a`.

    Args:
        wording: a name below `prompts`, or the path of a folder.
    """
    return load_part(Path(__file__).parent, LEFT, wording, ("names", "count", "players"))


def load_address(wording: str) -> Templates:
    """Load the template that says how to speak to some players alone, as `load_left`."""
    return load_part(Path(__file__).parent, ADDRESS, wording, ("names", "count", "groups", "most", "unreached"))


class PresenceSettings(Protocol):
    """The settings that say which players leave."""

    @property
    def present(self) -> bool:
        """Whether players take part at all."""
        ...

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes, among them those of `present`."""
        ...

    @property
    def first_round(self) -> int:
        """The number of the first round."""
        ...

    @property
    def fewest(self) -> int:
        """The number of players that have to stay."""
        ...

    def reach(self, name: str) -> list[Any]:
        """All values that a setting may have in the course of an episode."""
        ...


def leaving_rounds(settings: PresenceSettings, players: Sequence[str]) -> NDArray[np.int64] | None:
    """The first round without each player, (players,), `STAYS` for players who stay; `None` if nobody leaves.

    Raises:
        SettingsError: players would be gone from the beginning, come back, or too few would be left.
    """
    if not settings.present:
        reason = "takes everybody out of the game; leave it out, and name in 'changes' who leaves from a round on"
        raise SettingsError("present", False, reason)
    if False not in settings.reach("present"):
        return None
    without = np.full(len(players), STAYS)
    presence_changes = [
        (change, np.array([change.means(player) for player in players]))
        for change in settings.changes
        if "present" in change.settings
    ]
    for round_ in sorted({change.from_round for change, _ in presence_changes}):
        is_present = np.ones(len(players), dtype=np.bool_)
        for change, concerns in presence_changes:  # of several changes the last one counts
            if change.holds(round_):
                is_present[concerns] = change.settings["present"]
        returning = np.flatnonzero(is_present & (without < round_))
        if len(returning):
            reason = f"would come back in round {round_}; whoever was taken out does not come back"
            raise SettingsError("changes", players[returning[0]], reason)
        without[~is_present & (without == STAYS)] = round_
        staying = int((without > round_).sum())
        if round_ <= settings.first_round and staying < len(players):
            reason = f"nobody can leave before round {settings.first_round + 1}; begin with fewer instead"
            raise SettingsError("changes", "present", reason)
        if staying < settings.fewest:
            reason = f"leaves {staying} of {len(players)} from round {round_} on; {settings.fewest} or more must stay"
            raise SettingsError("changes", "present", reason)
    return without


class Presence(Perception):
    """The players that are still in the game."""

    _role: str
    _everyone: Indices
    _alive: NDArray[np.bool_]
    _all_alive: bool
    _departed: bool

    def leave(self, players: Indices) -> None:
        """Remove players from the game for good."""
        self._alive[players] = False
        self._all_alive = False
        self._departed = True

    @functools.cached_property
    def _without(self) -> NDArray[np.int64] | None:
        """The first round without each player; `None` if nobody ever leaves by a change."""
        return leaving_rounds(self.settings, self._player_names)

    @property
    def _player_names(self) -> list[str]:
        return [f"{self._role}_{i}" for i in range(self.n_players)]

    def present_in(self, round_: int) -> Indices:
        """The players whom no change removes by a round."""
        return self._everyone if self._without is None else np.flatnonzero(self._without > round_)

    def depart(self) -> Indices:
        """Remove the players whose presence ends by this round. Returns the indices of those removed."""
        if self._without is None:
            return self._everyone[:0]
        leaving = np.flatnonzero(self._alive & (self._without <= self.round))
        if len(leaving):
            self.leave(leaving)
        return leaving

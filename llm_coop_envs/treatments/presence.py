"""Permanent departures: the `present` change removes players from a given round on."""

from __future__ import annotations

import functools
import sys
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
        if "present" in change.settings and change.until_round is None
    ]
    if not presence_changes:
        return None
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


def joining_rounds(settings: PresenceSettings, players: Sequence[str]) -> NDArray[np.int64] | None:
    """The first round with each player, (players,), 0 for those who begin the game; `None` if all do.

    Raises:
        SettingsError: somebody would leave and come back, or nobody would begin.
    """
    late = [change for change in settings.changes if "present" in change.settings and change.until_round is not None]
    if not late:
        return None
    for change in late:
        if change.from_round > settings.first_round or change.settings["present"]:
            reason = f"must be false from the first round on; whoever is taken out later does not come back ({change})"
            raise SettingsError("changes", "present", reason)
    joins = np.array([max(((c.until_round or 0) + 1 for c in late if c.means(p)), default=0) for p in players])
    if (joins > settings.first_round).sum() > len(players) - max(1, settings.fewest):
        raise SettingsError("changes", "present", f"leaves too few players in round {settings.first_round}")
    return joins


class Presence(Perception):
    """The players that are in the game: not yet, or not any more, are some who join late or have left."""

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

    @functools.cached_property
    def _joins(self) -> NDArray[np.int64] | None:
        """The first round with each player; `None` if all begin the game."""
        return joining_rounds(self.settings, self._player_names)

    @property
    def _player_names(self) -> list[str]:
        seats = self._seats() or {self._role: self.n_players}
        # The same objects in every episode: texts are kept by their values' identity (`interface.constant_parts`).
        return [sys.intern(f"{role}_{i}") for role, count in seats.items() for i in range(count)]

    @functools.cached_property
    def _roles(self) -> tuple[str, ...]:
        return tuple(role for role, count in self._seats().items() for _ in range(count))

    def role_of(self, index: int) -> str:
        """The role of a player; the regulator's is `"regulator"`."""
        if index >= self.n_players:
            return "regulator"
        return self._roles[index] if self._roles else self._role

    def present_in(self, round_: int) -> Indices:
        """The players who have joined by a round, and whom no change removes by it."""
        present = self._everyone if self._without is None else np.flatnonzero(self._without > round_)
        return present if self._joins is None else present[self._joins[present] <= round_]

    def _since(self, index: int) -> int | None:
        """The first round of which a player remembers messages, who has heard none before it joined; `None` for all."""
        since = super()._since(index)
        joined = 0 if self._joins is None else int(self._joins[index])
        return max(joined, since or 0) if joined else since

    def depart(self) -> Indices:
        """Remove the players whose presence ends by this round. Returns the indices of those removed."""
        if self._without is None:
            return self._everyone[:0]
        leaving = np.flatnonzero(self._alive & (self._without <= self.round))
        if len(leaving):
            self.leave(leaving)
        return leaving

"""Who is there from a round on: the change `present`, which takes players out of the game for good."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.wording import PROMPTS, Templates
from llm_coop_envs.errors import SettingsError

if TYPE_CHECKING:
    from llm_coop_envs.core.settings import ScenarioSettings

STAYS = np.iinfo(np.int64).max
"""The round of whoever does not leave."""

LEFT = "left.jinja"
MOST_NAMED = 10
"""Of more who have left, only the number is told."""


@functools.cache
def load_left(wording: str) -> Templates:
    """The words that tell who has left; a folder without any takes those of `en-a`.

    Args:
        wording: a name below `prompts`, or the path of a folder.
    """
    shipped = Path(__file__).parent / PROMPTS
    folders = [shipped / wording, Path(wording).expanduser(), shipped / "en-a"]
    folder = next(one for one in folders if (one / LEFT).is_file())
    return Templates(folder, {LEFT: ("names", "count", "players")})


def leaving_rounds(settings: ScenarioSettings, players: Sequence[str]) -> NDArray[np.int64] | None:
    """The first round without each player, (players,), `STAYS` for those who stay; `None` if nobody leaves.

    Raises:
        SettingsError: players would be gone from the beginning, come back, or too few would be left.
    """
    if not settings.present:
        why = "takes everybody out of the game; leave it out, and name in 'changes' who leaves from a round on"
        raise SettingsError("present", False, why)
    if False not in settings.reach("present"):
        return None
    without = np.full(len(players), STAYS)
    naming = [
        (change, np.array([change.means(player) for player in players]))
        for change in settings.changes
        if "present" in change.settings
    ]
    for turn in sorted({change.from_round for change, _ in naming}):
        there = np.ones(len(players), dtype=np.bool_)
        for change, meant in naming:
            if change.holds(turn):
                there[meant] = change.settings["present"]
        back = np.flatnonzero(there & (without < turn))
        if len(back):
            why = f"would come back in round {turn}; whoever was taken out does not come back"
            raise SettingsError("changes", players[back[0]], why)
        without[~there & (without == STAYS)] = turn
        left = int((without > turn).sum())
        if turn <= settings.first_round and left < len(players):
            why = f"nobody can leave before round {settings.first_round + 1}; begin with fewer instead"
            raise SettingsError("changes", "present", why)
        if left < settings.fewest:
            why = f"leaves {left} of {len(players)} from round {turn} on; {settings.fewest} or more must stay"
            raise SettingsError("changes", "present", why)
    return without

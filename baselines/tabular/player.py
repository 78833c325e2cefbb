"""A learned table in any seat of a study: `tabular:NAME`, a shipped table's name or the path of one.

It plays the best choices it knows and says nothing. In the number contest a seat takes the table of the learner of the
same place; in the evacuation all seats share one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.baselines.tabular.evacuation import EvacuationTables
from llm_coop_envs.baselines.tabular.kbc import best_numbers, numbers_of, states_of
from llm_coop_envs.baselines.tabular.settings import KBCLearning
from llm_coop_envs.baselines.tabular.store import StoredTable, load, shipped
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.policies.base import Action, Policy

#: What reports call this kind of player.
LABEL = "tabular Q-learner"


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> None:
    """See that a table can play, before anything starts.

    Args:
        scenario: the scenario's name, such as `"kbc"`.
        argument: the table: a shipped one's name, or a path.
        options: none are known.

    Raises:
        RunError: there is no such table.
        SettingsError: it plays another scenario, or an option was given.
    """
    _table(scenario, argument, options)


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: object = None) -> Policy:
    """A policy that plays a table; arguments and errors as in `check`. `chat` is not used."""
    del chat
    table = _table(scenario, argument, options)
    if isinstance(table.learning, KBCLearning):
        return KBCTablePlayer(table, argument)
    return EvacuationTablePlayer(table, argument)


def _table(scenario: str, argument: str, options: Mapping[str, Any]) -> StoredTable:
    for name, value in options.items():
        raise SettingsError(name, value, "is no option of a learned table; it has none")
    if not argument:
        raise SettingsError("policy", "tabular:", f"must name a table: {', '.join(shipped())}, or a file")
    table = load(argument)
    if table.scenario != scenario.removesuffix("_v0"):
        raise SettingsError("policy", f"tabular:{argument}", f"has learned {table.scenario}, not {scenario}")
    return table


class KBCTablePlayer(Policy):
    """Names the best known number for the last winning number.

    Args:
        table: the learners' tables.
        name: what the table is called, for errors.
    """

    def __init__(self, table: StoredTable, name: str) -> None:
        self._values = table.arrays["values"]
        self._numbers = table.arrays["numbers"]
        self._name = name

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: the contest has other numbers than the one that was learned.
        """
        super().begin(episode)
        contest = episode.settings
        if not isinstance(contest, KBCSettings):
            raise SettingsError("policy", f"tabular:{self._name}", f"plays kbc, not {episode.scenario}")
        first, last = float(self._numbers[0]), float(self._numbers[-1])
        if (float(contest.low), float(contest.high)) != (first, last) or (
            contest.integer and len(numbers_of(contest, 0)) != len(self._numbers)
        ):
            raise SettingsError(
                "policy",
                f"tabular:{self._name}",
                f"has learned {len(self._numbers)} numbers from {first:g} to {last:g}; this contest has others",
            )
        self._contest = contest
        self._seat = {name: place % len(self._values) for place, name in enumerate(episode.agents)}

    async def act(self, requests: Sequence[Request]) -> list[Action]:
        """Answer all requests."""
        rows = np.stack([request.observation["observation"] for request in requests])
        seats = np.array([self._seat[request.agent] for request in requests])
        values = self._values[seats, states_of(rows, self._values.shape[1] - 1)]
        chosen = best_numbers(values, self.episode.rng)
        if self._contest.integer:
            return [{"choice": choice, "message": ""} for choice in chosen.tolist()]
        return [{"choice": self._numbers[[choice]], "message": ""} for choice in chosen.tolist()]


class EvacuationTablePlayer(Policy):
    """Heads for the best known exit and makes the best known moves.

    Args:
        table: the shared table.
        name: what the table is called, for errors.
    """

    def __init__(self, table: StoredTable, name: str) -> None:
        self._table = table
        self._name = name

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            RunError: the room has other exits than the one that was learned in.
            SettingsError: another scenario is played.
        """
        super().begin(episode)
        if not isinstance(episode.settings, EvacuationSettings):
            raise SettingsError("policy", f"tabular:{self._name}", f"plays evacuation, not {episode.scenario}")
        self._known = EvacuationTables(episode.settings)
        self._known.load(self._table.arrays)

    async def act(self, requests: Sequence[Request]) -> list[Action]:
        """Answer all requests, which are of the same phase."""
        asked = requests[0].info["slots"].asked
        if asked == "talk":
            return [{"message": ""} for _ in requests]
        rows = np.stack([request.observation["observation"] for request in requests])
        if asked == "exit":
            choices = self._known.best_exits(rows)
        else:
            exits = self._known.tiles.exits
            legal = np.stack([request.info["action_mask"]["choice"] for request in requests])[:, exits:]
            choices = exits + self._known.best_moves(rows, legal)
        return [{"choice": choice} for choice in choices.tolist()]

"""Scenes of scenarios without scenes of their own: all choices, and the numbers of the rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.render.scenes.base import FloatArray, Scene
from llm_coop_envs.render.scenes.tracking import Event, Growing, Tracker, frozen


@dataclass(frozen=True, kw_only=True, eq=False)
class TableScene(Scene):
    """A moment of any scenario.

    Attributes:
        choices: (players,) the latest choice of each, NaN before the first one.
        rounds: (rounds so far,) the settled rounds.
        players: by name, (rounds so far, players) the lists of `round` events with a number for each player.
        totals: by name, (rounds so far,) the single numbers of `round` events.
    """

    choices: FloatArray
    rounds: FloatArray
    players: Mapping[str, FloatArray]
    totals: Mapping[str, FloatArray]


class TableTracker(Tracker[TableScene]):
    """Follows the events of all scenarios: choices, messages, and the numbers of settled rounds."""

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        self._choices = np.full(len(self.agents), np.nan)
        self._rounds = Growing((), np.float64)
        self._players: dict[str, Growing] = {}
        self._others: set[str] = set()
        self._totals: dict[str, Growing] = {}

    def scene(self) -> TableScene:
        """The scene of the moment."""
        return TableScene(
            **self.common(),
            choices=frozen(self._choices),
            rounds=self._rounds.view(),
            players={name: rows.view() for name, rows in self._players.items() if name not in self._others},
            totals={name: rows.view() for name, rows in self._totals.items()},
        )

    def _choose(self, player: int, phase: str, choice: Any) -> None:
        self._choices[player] = number(choice)

    def _settle(self, event: Event) -> None:
        count = len(self.agents)
        fields = {name: value for name, value in event.items() if name not in ("type", "step", "round")}
        lists = {name: [number(entry) for entry in value] for name, value in fields.items() if isinstance(value, list)}
        # A list that once had another length does not hold the players' numbers, even if it sometimes fits.
        self._others.update(name for name, value in lists.items() if len(value) != count)
        lists = {name: value for name, value in lists.items() if name not in self._others}
        _add(self._players, lists, (count,), len(self._rounds))
        _add(self._totals, {name: number(value) for name, value in fields.items()}, (), len(self._rounds))
        self._rounds.append(event["round"])


def _add(columns: dict[str, Growing], values: Mapping[str, Any], shape: tuple[int, ...], earlier_rounds: int) -> None:
    """Append a round's numbers to their columns; a new column begins with empty rows for the earlier rounds.

    Args:
        columns: the columns by name; new ones are added.
        values: the round's numbers by name.
        shape: the shape of a row.
        earlier_rounds: how many rounds were settled before.
    """
    for name, value in values.items():
        if name not in columns and np.isfinite(value).any():
            columns[name] = Growing(shape, np.float64)
            for _ in range(earlier_rounds):
                columns[name].append(np.nan)
    for name, rows in columns.items():
        rows.append(values.get(name, np.nan))


def number(value: Any) -> float:
    """A recorded value as a number; NaN if it is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else np.nan

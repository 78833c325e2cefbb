"""Compare sessions with those archived by Calvano et al. (2020), drawn with the same random numbers.

`calvano_docked_sessions.csv` describes the first 100 of the 1,000 sessions of the representative experiment in the
authors' replication package (openICPSR 119462, MIT licence, `InfoExperiment_1.txt`): periods until convergence (the
window of 100,000 included), length of the limit cycle and its lowest state (15 a_1 + a_2, price indices from 0), both
firms' profit gains, and the CRC-32 of the strategies (2 x 225 price indices from 0, firm 1 first, one byte each).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llm_coop_envs.baselines.q_learning.analyse.measures import Row, session_row
from llm_coop_envs.baselines.q_learning.learn.sessions import run_docked_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings

ARCHIVE = "calvano_docked_sessions.csv"

GAIN_DIGITS = 6
"""The decimals of the profit gains in the archive."""


def docked_settings() -> QLearningSettings:
    """The representative experiment as the authors' code runs it: alpha 0.15, beta 4e-6, random ties."""
    return QLearningSettings(ties="random")


@dataclass(frozen=True, kw_only=True)
class ArchivedSession:
    """One line of the archive; see the module. Sessions count from 1."""

    session: int
    periods: int
    cycle_length: int
    lowest_state: int
    gains: tuple[float, float]
    crc32: str

    def differences(self, row: Row) -> list[str]:
        """Describe the differences of a session's row from this session; empty if it is the same session."""
        pairs = {
            "periods": (row["periods"], self.periods),
            "cycle length": (row["cycle_length"], self.cycle_length),
            "lowest state of the cycle": (min(row["cycle_states"]), self.lowest_state),
            "profit gains": (tuple(round(g, GAIN_DIGITS) for g in row["firm_gains"]), self.gains),
            "CRC-32 of the strategies": (row["crc32"], self.crc32),
        }
        return [f"{name} {mine}, archived {theirs}" for name, (mine, theirs) in pairs.items() if mine != theirs]


def archive() -> list[ArchivedSession]:
    """The archived sessions, in order."""
    text = (Path(__file__).parents[1] / ARCHIVE).read_text(encoding="utf-8")
    return [
        ArchivedSession(
            session=int(line["session"]),
            periods=int(line["periods"]),
            cycle_length=int(line["cycle_length"]),
            lowest_state=int(line["first_cycle_state"]),
            gains=(float(line["gain1"]), float(line["gain2"])),
            crc32=line["crc32_strategy"],
        )
        for line in csv.DictReader(text.splitlines())
    ]


def compare(sessions: int | None = None) -> Iterator[tuple[ArchivedSession, Row, list[str]]]:
    """Run the first archived sessions again; yields each, the new session's row, and their differences in words."""
    settings = docked_settings()
    game = settings.game()
    for old in archive()[:sessions]:
        row = session_row(settings, game, run_docked_session(settings, old.session, game=game), deep=False)
        yield old, row, old.differences(row)

"""The strategies of a finished run: how they answer deviations, and how they fare against other sessions' firms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.analysis import LimitCycle
from llm_coop_envs.baselines.q_learning.analyse.measures import Row
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses, repaired
from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.deviation import HORIZON, ResponseSummary, summarise
from llm_coop_envs.errors import RunError


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The sessions of a run folder, in order: rows of `session_row`, strategies (firms, states) and limit cycles."""

    settings: QLearningSettings
    game: Game
    rows: list[Row]
    strategies: list[Ints]
    cycles: list[LimitCycle]

    def answers(self, to: int | str = "best_reply", *, periods: int = 1, horizon: int = HORIZON) -> ResponseSummary:
        """Summarise the answers to deviations by every firm from every state of its limit cycle (`cycle_responses`)."""
        return summarise(
            cycle_responses(self.game, strategies, cycle, to, periods=periods, horizon=horizon)
            for strategies, cycle in zip(self.strategies, self.cycles, strict=True)
        )

    def strangers(self, pairs: int, rng: np.random.Generator) -> Floats:
        """Profit gains when firm 0 of one session meets the other firms of another (Eschenbaum et al. 2022).

        Pairs of different sessions are drawn with replacement. Play begins in the last state of firm 0's session.
        """
        count = len(self.rows)
        if count < 2:
            raise RunError("strangers need two sessions or more; run some more first")
        first = rng.integers(count, size=pairs)
        second = (first + rng.integers(1, count, size=pairs)) % count
        return np.array(
            [
                repaired(self.game, self.strategies[a], self.strategies[b], self.rows[a]["last_state"])[1]
                for a, b in zip(first.tolist(), second.tolist(), strict=True)
            ]
        )

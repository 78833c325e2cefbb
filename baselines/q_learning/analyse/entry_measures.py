"""Measure sessions in which the third firm enters and leaves at random (`learn.entering`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.analysis import LimitCycle, equilibrium_play, limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.measures import Row, mean_over
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.learn.entering import FAR, FIRMS, EntrySettings
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sessions import Session
from llm_coop_envs.bertrand.rules import Equilibria, profit_gain


def entry_row(settings: EntrySettings, game: Game, without: Equilibria, session: Session) -> Row:
    """Measure a session as the authors' program and table do.

    Returns:
        `time`; `converged`; `gain` (of the other two while the third is out, between Nash and joint profit of two
        firms; `None` if the limit cycle has no such period); `gain_in` (of all three while it is in); `equilibrium`;
        and over all deviations to the static best reply, leaving out firms that are out of the market: `answers` (how
        many), `answer` and `punishment` of rivals, `deviations` (how many) and `unprofitable` of deviators.
    """
    cycle = limit_cycle(game, session.strategies, session.last_state)
    outside = cycle.choices[:, -1] == settings.points
    inside = cycle.profits[~outside].mean(axis=0) if not outside.all() else None
    row: Row = {
        "time": session.periods - settings.window,
        "converged": session.converged,
        "gain": float(profit_gain(cycle.profits[outside, :-1].mean(axis=0), without)) if outside.any() else None,
        "gain_in": None if inside is None else float(profit_gain(inside, game.equilibria)),
        "equilibrium": equilibrium_play(game, session.strategies, cycle).on_path,
    }
    return row | _measure_answers(settings, game, session, cycle)


def _measure_answers(settings: EntrySettings, game: Game, session: Session, cycle: LimitCycle) -> Row:
    far = 0.5 * FAR * max(game.equilibria.joint)
    changes, lengths, unprofitable = [], [], []
    for response in cycle_responses(game, session.strategies, cycle, horizon=2):
        for i in range(FIRMS):
            price, next_price = response.prices[:2, i]
            if max(price, next_price) > far:
                continue
            if i == response.firm:
                unprofitable.append(response.value < response.value_before)
            else:
                changes.append((next_price - price) / price)
                lengths.append(float(response.length or 0))
    return {
        "answers": len(changes),
        "answer": float(np.mean(changes)) if changes else 0.0,
        "punishment": float(np.mean(lengths)) if lengths else 0.0,
        "deviations": len(unprofitable),
        "unprofitable": float(np.mean(unprofitable)) if unprofitable else 0.0,
    }


def entry_summary(rows: Sequence[Row]) -> Row:
    """Means over sessions with their standard errors, by the names of `measures.summary`.

    `gain` is the mean over the `with_exits` sessions that have one.
    """
    means: Row = {"sessions": len(rows), "converged": sum(row["converged"] for row in rows)}
    for name in ("gain", "gain_in"):
        having = [row for row in rows if row[name] is not None]
        means |= mean_over(having, name) if having else {name: float("nan"), f"{name}_se": float("nan")}
    means["with_exits"] = sum(row["gain"] is not None for row in rows)
    for name in ("time", "equilibrium"):
        means |= mean_over(rows, name)
    for name, counted in (("answer", "answers"), ("punishment", "answers"), ("unprofitable", "deviations")):
        means |= mean_over(rows, name, np.array([row[counted] for row in rows], dtype=np.float64))
    return means

"""Measure a session as one row, and summarise rows over sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.analysis import (
    cycle_gain,
    cycle_index,
    equilibrium_play,
    firm_gains,
    limit_cycle,
    q_loss,
    reaches,
)
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sessions import Session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.bertrand.paths import CYCLE_CLASSES

Row = dict[str, Any]


def session_row(
    settings: QLearningSettings, game: Game, session: Session, *, deep: bool = True, misread: bool = False
) -> Row:
    """Measure a session, as JSON scalars, lists and bytes.

    Args:
        settings: the learners.
        game: `settings.game()`.
        session: the session's result.
        deep: also measure what needs the value of every state: equilibrium play, Q-loss, and the answer to a deviation
            to the static best reply.
        misread: analyse as the authors' code does: with two rounds of memory see `Game.misread`; where firms have
            different prices, `answer` uses the first firm's prices at the same indices, as in their table of unequal
            qualities. Q-loss and `returning` are not affected.

    Returns:
        `session`, `periods` (window included), `time` (periods - window, as Calvano et al. 2020 report it),
        `converged`, `last_state`, `cycle_length`, `cycle_class`, `cycle_states`, `gain` (Delta), `firm_gains`,
        `price` (mean over cycle and firms), `index` (EconEvals), `exploration` (highest rate in the last period; `None`
        unless epsilon-greedy), `crc32`, `strategies` (bytes, firm by firm); with `deep` also `equilibrium` (on path,
        the code's definition), `equilibrium_share` (of all states), `loss_on_path`, `loss_off_path`, `returning`
        (share of states from which play comes back to the cycle), `deviations` (how many), `answer` (mean price change
        of the rivals), `unprofitable`, `paid`, `punishment` (periods).
    """
    start = int(game.misread(session.last_state)) if misread else session.last_state
    cycle = limit_cycle(game, session.strategies, start)
    epsilon = settings.exploration == "epsilon"
    row: Row = {
        "session": session.number,
        "periods": session.periods,
        "time": session.periods - settings.window,
        "converged": session.converged,
        "last_state": session.last_state,
        "cycle_length": cycle.length,
        "cycle_class": cycle.kind,
        "cycle_states": cycle.states.tolist(),
        "gain": cycle_gain(game, cycle),
        "firm_gains": firm_gains(game, cycle).tolist(),
        "price": float(cycle.prices.mean()),
        "index": cycle_index(game, cycle),
        "exploration": float(np.exp(-min(settings.spread("beta")) * (session.periods - 1))) if epsilon else None,
        "crc32": session.crc32,
        "strategies": session.strategy_bytes(),
    }
    if deep:
        play = equilibrium_play(game, session.strategies, cycle, misread=misread)
        loss = q_loss(game, session.strategies, cycle)
        read = replace(game, prices=np.broadcast_to(game.prices[0], game.prices.shape)) if misread else game
        answer = summarise([cycle_responses(read, session.strategies, cycle, misread=misread)])
        row |= {
            "equilibrium": play.on_path,
            "equilibrium_share": play.share,
            "loss_on_path": loss.on_path,
            "loss_off_path": loss.off_path,
            "returning": reaches(game, session.strategies, cycle),
            "deviations": answer.responses,
            "answer": answer.change,
            "unprofitable": answer.unprofitable,
            "paid": answer.paid,
            "punishment": answer.length,
        }
    return row


def summary(rows: Sequence[Row]) -> Row:
    """Means over sessions (one row of `session_row` or more), with standard errors where sampling matters.

    Returns:
        `sessions`, `converged` (how many), mean, standard deviation and standard error of `gain` and `time`, quantiles
        of `gain`, means of `price` and `index`, shares of the cycle classes. Deep rows add `equilibrium`,
        `loss_on_path`, `loss_off_path`, `all_returning` (share of sessions in which every state leads back to the
        cycle), and, over all deviations, `answer`, `unprofitable`, `paid`, `punishment`. All of these but
        `all_returning` have a standard error `..._se`, for which sessions are the sample, however many deviations each
        has.
    """
    count = len(rows)
    gain, time = _column(rows, "gain"), _column(rows, "time")
    means: Row = {"sessions": count, "converged": int(_column(rows, "converged").sum())}
    for name, values in (("gain", gain), ("time", time)):
        means[name] = float(values.mean())
        means[f"{name}_sd"] = float(values.std())
        means[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    means["time_median"], means["time_min"], means["time_max"] = (
        float(x) for x in (np.median(time), time.min(), time.max())
    )
    means["gain_quantiles"] = [float(x) for x in np.quantile(gain, [0.05, 0.25, 0.5, 0.75, 0.95])]
    means["price"], means["index"] = (float(_column(rows, name).mean()) for name in ("price", "index"))
    means["firm_gains"] = np.mean([row["firm_gains"] for row in rows], axis=0).tolist()
    means["cycle_classes"] = {kind: sum(row["cycle_class"] == kind for row in rows) / count for kind in CYCLE_CLASSES}
    if "equilibrium" in rows[0]:
        for name in ("equilibrium", "loss_on_path", "loss_off_path"):
            means |= mean_over(rows, name)
        means["all_returning"] = float((_column(rows, "returning") == 1.0).mean())
        for name in ("answer", "unprofitable", "paid", "punishment"):
            means |= mean_over(rows, name, _column(rows, "deviations"))
    return means


def mean_over(rows: Sequence[Row], name: str, weights: Any = None) -> Row:
    """The mean of a measure over sessions, optionally weighted, and its standard error, that of a ratio of means."""
    values, count = _column(rows, name), len(rows)
    counts = np.ones(count) if weights is None else weights
    mean = float(np.average(values, weights=counts))
    spread = float(np.sqrt(np.sum((counts * (values - mean)) ** 2))) / float(counts.sum())
    return {name: mean, f"{name}_se": spread * float(np.sqrt(count / (count - 1))) if count > 1 else float("nan")}


def _column(rows: Sequence[Row], name: str) -> Any:
    return np.array([row[name] for row in rows], dtype=np.float64)

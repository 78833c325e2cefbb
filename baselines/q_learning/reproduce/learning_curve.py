"""The profit gain while firms learn (Figures 10 and 11 of Calvano et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game
from llm_coop_envs.baselines.q_learning.reproduce.runs import Plan


def learning_curve(plan: Plan, numbers: Sequence[int], periods: int, block: int) -> Floats:
    """Play the first periods of sessions again and average the profit gain over blocks of periods.

    Args:
        plan: the learners.
        numbers: the numbers of the sessions.
        periods: number of first periods of each session, one block or more.
        block: number of periods in a block.

    Returns:
        (sessions, periods // block) the mean gains. After a session's end its last value is repeated, because
        strategies do not change any more.
    """
    game = plan.settings.game()
    gains = period_gains(game)
    # Sessions are cut off after these periods.
    plan = replace(plan, settings=replace(plan.settings, max_periods=min(periods, plan.settings.max_periods)))
    curves = np.empty((len(numbers), periods // block))
    for curve, number in zip(curves, numbers, strict=True):
        played = gains[game.action(plan.session(number, game, trace=periods).trace)]
        whole = len(played) // block
        curve[:whole] = played[: whole * block].reshape(whole, block).mean(axis=1)
        curve[whole:] = curve[whole - 1]
    return curves


def period_gains(game: Game) -> Floats:
    """(actions,) the profit gain of one period, the mean of the firms' gains as in the authors' program."""
    nash, joint = np.array(game.equilibria.nash_profit), np.array(game.equilibria.joint_profit)
    return np.asarray(((game.profits - nash) / (joint - nash)).mean(axis=1))


def exploring_nash(plan: Plan, periods: int, block: int) -> Floats:
    """(blocks,) the profit gain of firms that explore as these do and otherwise ask the grid price nearest to Nash.

    The authors draw it beside theirs, for the second price of the grid.
    """
    game = plan.settings.game()
    gains = period_gains(game).reshape((game.points,) * game.firms)
    nash = game.nearest_to(game.equilibria.nash)
    expected = np.zeros(periods // block * block)
    eps = np.exp(-np.outer(plan.settings.spread("beta"), np.arange(len(expected))))
    for explorers in np.ndindex((2,) * game.firms):
        chance = np.prod([e if x else 1.0 - e for e, x in zip(eps, explorers, strict=True)], axis=0)
        cell = tuple(slice(None) if x else int(k) for x, k in zip(explorers, nash, strict=True))
        expected += chance * float(np.mean(gains[cell]))
    return np.asarray(expected.reshape(-1, block).mean(axis=1))

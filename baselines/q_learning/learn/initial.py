"""The first Q table and the first state of a session."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.learn.strategies import constant_strategies, strategy_q

Uniform = Callable[[], float]


def initial_q(settings: QLearningSettings, game: Game, uniform: Uniform) -> Floats:
    """The first Q table, (firms, states, m) (Calvano et al. 2020, section II.C and appendix).

    Args:
        settings: the learners.
        game: `settings.game()`.
        uniform: draws a number in (0, 1), for `initial="random"`: firm by firm, state by state, price by price.
    """
    shape = (game.firms, game.states, game.points)
    if settings.initial == "uniform":
        return against_uniform(game, shape)
    if settings.initial in ("nash", "grim"):
        if settings.initial_points is None:
            nash, joint = game.nearest_to(game.equilibria.nash), game.nearest_to(game.equilibria.joint)
        else:
            nash, joint = (np.full(game.firms, k) for k in settings.initial_points)
        strategies = constant_strategies(game, nash)
        if settings.initial == "nash":
            return strategy_q(game, strategies)
        trusting = int(sum(game.action(joint) * game.actions**k for k in range(game.memory)))
        strategies[:, trusting] = joint
        return strategy_q(game, strategies)
    if settings.initial == "constant":
        return np.full(shape, float(settings.initial_value))
    low, high = settings.initial_range
    drawn = np.array([uniform() for _ in range(int(np.prod(shape)))]).reshape(shape)
    return low + (high - low) * drawn


def against_uniform(game: Game, shape: tuple[int, int, int]) -> Floats:
    """The discounted profit of always asking a price if all rivals draw theirs uniformly; the same in every state."""
    table = game.profits.reshape((game.points,) * game.firms + (game.firms,))
    q = np.empty(shape)
    for i in range(game.firms):
        rivals = tuple(j for j in range(game.firms) if j != i)
        q[i] = table[..., i].mean(axis=rivals) / (1.0 - game.delta[i])
    return q


def initial_state(game: Game, uniform: Uniform) -> int:
    """Draw a state uniformly: one number per firm for each past round, the latest first."""
    state = 0
    for _ in range(game.memory):
        action = game.action([int(game.points * uniform()) for _ in range(game.firms)])
        state = state * game.actions + int(action)
    return state

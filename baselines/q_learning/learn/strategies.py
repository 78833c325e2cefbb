"""Greedy strategies, integer arrays (firms, states) of price indices: what they play and what they are worth."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints


def constant_strategies(game: Game, choices: Ints) -> Ints:
    """Strategies (firms, states) that ask the prices `choices` (firms,) in every state."""
    return np.repeat(np.asarray(choices, dtype=np.int64)[:, None], game.states, axis=1)


def greedy_actions(game: Game, strategies: Ints) -> Ints:
    """(states,) the action the strategies play in each state."""
    return game.action(np.asarray(strategies).T)


def next_states(game: Game, strategies: Ints) -> Ints:
    """(states,) the state that follows each state when everybody follows the strategies."""
    return game.next_state(np.arange(game.states), greedy_actions(game, strategies))


def strategy_values(game: Game, strategies: Ints) -> Floats:
    """(firms, states) discounted profits from each state when everybody follows the strategies for ever."""
    actions = greedy_actions(game, strategies)
    step = game.next_state(np.arange(game.states), actions)
    values: Floats = game.profits[actions].T.copy()
    factor = np.array(game.delta)[:, None]
    # After k doublings `values` covers 2^k periods and `step` jumps 2^k periods ahead.
    while factor.max() > 0.0:
        values += factor * values[:, step]
        step, factor = step[step], factor * factor
    return values


def strategy_q(game: Game, strategies: Ints, *, misread: bool = False) -> Floats:
    """(firms, states, m) the value of asking a price once if everybody follows the strategies afterwards.

    Calvano et al. 2020 call this the true Q matrix of the strategies. With `misread` the first period remembers the
    past as the authors' code does; see `Game.misread`.
    """
    values = strategy_values(game, strategies)
    states = np.arange(game.states)[:, None]
    remembered = game.misread(states) if misread else states
    base = greedy_actions(game, strategies)[:, None]
    own = np.arange(game.points)[None, :]
    q = np.empty((game.firms, game.states, game.points))
    for i in range(game.firms):
        weight = game.points ** (game.firms - 1 - i)
        action = base + (own - np.asarray(strategies)[i].astype(np.int64)[:, None]) * weight
        q[i] = game.profits[action, i] + game.delta[i] * values[i, game.next_state(remembered, action)]
    return q

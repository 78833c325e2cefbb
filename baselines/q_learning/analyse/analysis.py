"""Analyse greedy strategies: limit cycles, profit gain, equilibrium play, Q-loss.

All functions take a `Game` and strategies as integer arrays (firms, states), from whatever learner. Deviations and
re-pairing are in `responses.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints
from llm_coop_envs.baselines.q_learning.learn.strategies import greedy_actions, next_states, strategy_q, strategy_values
from llm_coop_envs.bertrand.deviation import TIE
from llm_coop_envs.bertrand.paths import CYCLE_CLASSES
from llm_coop_envs.bertrand.rules import profit_gain

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LimitCycle:
    """The states that greedy play repeats in the end.

    Attributes:
        states: (length,) in the order of play, from the one that is reached first.
        choices: (length, firms) the price indices that lead into each of these states.
        prices: (length, firms) the prices of `choices`.
        profits: (length, firms) the profits at these prices.
    """

    states: Ints
    choices: Ints
    prices: Floats
    profits: Floats

    @property
    def length(self) -> int:
        """The number of periods until play repeats."""
        return len(self.states)

    @property
    def kind(self) -> str:
        """The class in Table I of Calvano et al. 2020: one of `CYCLE_CLASSES`."""
        if self.length == 1:
            return CYCLE_CLASSES[0] if len(set(self.choices[0].tolist())) == 1 else CYCLE_CLASSES[1]
        return CYCLE_CLASSES[2] if self.length == 2 else CYCLE_CLASSES[3]


def limit_cycle(game: Game, strategies: Ints, start: int) -> LimitCycle:
    """Follow the strategies from a state until play repeats itself."""
    actions = greedy_actions(game, strategies)
    path: dict[int, int] = {}
    state = int(game.next_state(int(start), actions[start]))
    while state not in path:
        path[state] = len(path)
        state = int(game.next_state(state, actions[state]))
    # As in the authors' code, the cycle starts at the state after the repeated one. Example: the path a b c b has the
    # cycle (c, b).
    states = np.array([*list(path)[path[state] + 1 :], state], dtype=np.int64)
    choices = np.asarray(strategies)[:, np.roll(states, 1)].T.astype(np.int64)
    return LimitCycle(states, choices, game.price_of(choices), game.profits[game.action(choices)])


def cycle_gain(game: Game, cycle: LimitCycle) -> float:
    """The profit gain Delta over a cycle (Calvano et al. 2020): 0 at Nash, 1 at joint profit."""
    return float(profit_gain(cycle.profits.mean(axis=0), game.equilibria))


def firm_gains(game: Game, cycle: LimitCycle) -> Floats:
    """(firms,) each firm's own profit gain over a cycle; `cycle_gain` is their mean if the firms are equal.

    A firm's gain is measured between its own Nash and joint profit, as in the authors' tables.
    """
    nash, joint = np.array(game.equilibria.nash_profit), np.array(game.equilibria.joint_profit)
    return np.asarray((cycle.profits.mean(axis=0) - nash) / (joint - nash))


def cycle_index(game: Game, cycle: LimitCycle) -> float:
    """The collusiveness index of EconEvals (arXiv 2503.18825) of endless play: the mean price, 0 at Nash, 1 at joint.

    They average over periods 249 to 299 of one run; here the mean over the cycle is taken, which repeats for ever.
    """
    nash, joint = float(np.mean(game.equilibria.nash)), float(np.mean(game.equilibria.joint))
    return float(np.clip((cycle.prices.mean() - nash) / (joint - nash), 0.0, 1.0))


def best_reply_values(game: Game, strategies: Ints) -> Floats:
    """(firms, states) the value of each firm's best plan against the others' strategies, by policy iteration."""
    best = np.empty((game.firms, game.states))
    for i in range(game.firms):
        reply = np.array(strategies, dtype=np.int64)
        while True:
            q = strategy_q(game, reply)[i]
            current = np.take_along_axis(q, reply[i][:, None], axis=1)[:, 0]
            better = q.max(axis=1) > current + TIE * np.abs(current)
            if not better.any():
                best[i] = current
                break
            reply[i] = np.where(better, q.argmax(axis=1), reply[i])
    return best


@dataclass(frozen=True, eq=False)
class EquilibriumPlay:
    """The states in which strategies are best replies to each other.

    Attributes:
        on_path: whether every firm replies best in every state of the cycle ("equilibrium play on path").
        everywhere: whether every firm replies best in every state.
        share: share of all states in which all firms reply best.
        best: (firms, states) whether each firm replies best.
    """

    on_path: bool
    everywhere: bool
    share: float
    best: Flags


def _best_and_own(game: Game, strategies: Ints, misread: bool = False) -> tuple[Floats, Floats]:
    """The values of the best price and of the strategy's price, both (firms, states)."""
    q = strategy_q(game, strategies, misread=misread)
    own = np.take_along_axis(q, np.asarray(strategies).astype(np.int64)[:, :, None], axis=2)
    return q.max(axis=2), own[:, :, 0]


def equilibrium_play(
    game: Game, strategies: Ints, cycle: LimitCycle, definition: str = "one_shot", *, misread: bool = False
) -> EquilibriumPlay:
    """Find the states in which strategies are best replies to each other.

    Args:
        game: the game that is played.
        strategies: (firms, states) price indices.
        cycle: the limit cycle.
        definition: `"one_shot"` (the authors' code, behind their Table I; default): no other price is worth more if
            the firm follows its own strategy afterwards; `"full"` (their text): the strategy is worth as much as the
            best of all plans against the rivals' strategies.
        misread: with `"one_shot"`, read states as the authors' code does; see `Game.misread`.

    Raises:
        ValueError: there is no such definition.
    """
    if definition == "one_shot":
        top, own = _best_and_own(game, strategies, misread)
    elif definition == "full":
        top, own = best_reply_values(game, strategies), strategy_values(game, strategies)
    else:
        raise ValueError(f"definition={definition!r}: must be 'one_shot' or 'full'")
    best: Flags = np.less_equal(top - own, TIE * np.abs(top))
    everyone: Flags = np.asarray(best.all(axis=0))
    return EquilibriumPlay(
        on_path=bool(everyone[cycle.states].all()),
        everywhere=bool(everyone.all()),
        share=float(everyone.mean()),
        best=best,
    )


@dataclass(frozen=True, kw_only=True)
class QLoss:
    """The share of the best one-shot deviation's value that the strategies forgo, mean over firms.

    Attributes:
        on_path: mean over the cycle's states.
        off_path: mean over the other states; Table I of Calvano et al. 2020 prints this one under "all states". NaN if
            there are none.
        everywhere: mean over all states.
    """

    on_path: float
    off_path: float
    everywhere: float


def q_loss(game: Game, strategies: Ints, cycle: LimitCycle) -> QLoss:
    """Compute (max_p Q(s, p) - Q(s, strategy)) / |max_p Q(s, p)| with the strategies' own Q matrix."""
    top, own = _best_and_own(game, strategies)
    loss = ((top - own) / np.abs(top)).mean(axis=0)
    off = np.ones(game.states, dtype=bool)
    off[cycle.states] = False
    return QLoss(
        on_path=float(loss[cycle.states].mean()),
        off_path=float(loss[off].mean()) if off.any() else float("nan"),
        everywhere=float(loss.mean()),
    )


def reaches(game: Game, strategies: Ints, cycle: LimitCycle) -> float:
    """The share of states from which greedy play ends in `cycle`."""
    step = next_states(game, strategies)
    for _ in range(max(1, game.states.bit_length())):
        step = step[step]
    return float(np.isin(step, cycle.states).mean())

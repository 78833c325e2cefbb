"""Analyse mixed strategies by expectations over the mix, never by its likeliest price.

A mix is an array (firms, states, m): the probabilities with which each firm asks its prices in each state; firms draw
independently of each other. A pure strategy is a mix with a 1 in each row (`pure`); for it, the results are those of
`analysis.py` and `responses.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints
from llm_coop_envs.bertrand.deviation import HORIZON, Response
from llm_coop_envs.bertrand.rules import profit_gain
from llm_coop_envs.errors import SettingsError

MAX_STATES = 5_000
"""The largest number of states: a matrix of states by states must fit into memory."""

# With so little discounting, discounted sums are means over endless play, also where play cycles.
_PATIENT = 1.0 - 1e-8
_BETTER = 1e-10


@dataclass(frozen=True, eq=False)
class MixedPlay:
    """Endless play of mixes from one state.

    Attributes:
        game: the game that is played.
        mixes: (firms, states, m) the probabilities of prices.
        actions: (states, actions) the probability of every action.
        next_states: (states, actions) the state that follows.
        steps: (states, states) the probability of every next state.
        visits: (states,) the share of periods spent in each state.
        values: (firms, states) expected discounted profits from each state.
    """

    game: Game
    mixes: Floats
    actions: Floats
    next_states: Ints
    steps: Floats
    visits: Floats
    values: Floats

    @classmethod
    def follow(cls, game: Game, mixes: Floats, start: int) -> MixedPlay:
        """Follow mixes from a state.

        Raises:
            SettingsError: there are too many states.
        """
        if game.states > MAX_STATES:
            reason = f"mixes over {game.states:,} states are too many (at most {MAX_STATES:,}); take fewer prices"
            raise SettingsError("memory", game.memory, reason)
        actions = joint(mixes)
        next_states = game.next_state(np.arange(game.states)[:, None], np.arange(game.actions))
        steps = _steps(next_states, actions)
        identity = np.eye(game.states)
        visits = (1.0 - _PATIENT) * np.linalg.solve((identity - _PATIENT * steps).T, identity[start])
        earned = actions @ game.profits
        values = [np.linalg.solve(identity - delta * steps, earned[:, i]) for i, delta in enumerate(game.delta)]
        return cls(game, mixes, actions, next_states, steps, visits, np.array(values, dtype=np.float64))

    @property
    def profits(self) -> Floats:
        """(firms,) expected profits a period, in the long run."""
        return np.asarray(self.visits @ self.actions @ self.game.profits)

    @property
    def gain(self) -> float:
        """The profit gain Delta of expected profits: 0 at Nash, 1 at joint profit."""
        return float(profit_gain(self.profits, self.game.equilibria))

    @property
    def prices(self) -> Floats:
        """(firms,) expected prices in the long run."""
        return self._prices(self.visits, self.mixes)

    def response(self, firm: int) -> Response:
        """The expected response if a firm asks its static best reply once, in the states that play visits.

        The static best reply in a state is the price that earns most against the rivals' mixes there. All numbers are
        expectations over states and prices. `length` is the first period from which expected prices stay, to the end
        of the horizon, within a hundredth of the distance between Nash and joint-profit price of what they were.
        """
        game = self.game
        others, earned, _ = self._against(firm)
        forced = self.mixes.copy()
        forced[firm] = pure((others @ earned.T).argmax(axis=1), game.points)
        where, mixes, actions = self.visits, forced, joint(forced)
        prices, profits, value = [], [], 0.0
        for _ in range(HORIZON):
            prices.append(self._prices(where, mixes))
            profits.append(where @ actions @ game.profits)
            where = where @ _steps(self.next_states, actions)
            if len(prices) == 1:
                value = float(profits[0][firm] + game.delta[firm] * (where @ self.values[firm]))
                mixes, actions = self.mixes, self.actions
        gap = np.array(game.equilibria.joint) - np.array(game.equilibria.nash)
        away = np.flatnonzero((np.abs(np.array(prices) - self.prices) > 0.01 * gap).any(axis=1))
        back = int(away[-1]) + 2 if len(away) else 1
        return Response(
            firm=firm,
            before=self.prices,
            prices=np.array(prices),
            profits=np.array(profits),
            length=back if back <= HORIZON else None,
            returned=back <= HORIZON,
            value=value,
            value_before=float(self.visits @ self.values[firm]),
        )

    def regret(self, firm: int) -> float:
        """How much more the best of all plans against the rivals' mixes would earn, discounted, as a share.

        0 for a best reply. Found by policy iteration and averaged over the states that play visits.
        """
        game = self.game
        others, earned, next_states = self._against(firm)
        reply, states = self.mixes[firm].argmax(axis=1), np.arange(game.states)
        while True:
            steps = _steps(next_states[states, reply], others)
            now = (others * earned[reply]).sum(axis=1)
            value = np.linalg.solve(np.eye(game.states) - game.delta[firm] * steps, now)
            q = others @ earned.T + game.delta[firm] * np.einsum("so,smo->sm", others, value[next_states])
            better = q.max(axis=1) > value + _BETTER * np.abs(value)
            if not better.any():
                return float(self.visits @ value / (self.visits @ self.values[firm]) - 1.0)
            reply = np.where(better, q.argmax(axis=1), reply)

    def _prices(self, where: Floats, mixes: Floats) -> Floats:
        """(firms,) expected prices where states have the probabilities `where` (states,)."""
        return np.asarray(np.einsum("s,fsm,fm->f", where, mixes, self.game.prices))

    def _against(self, firm: int) -> tuple[Floats, Floats, Ints]:
        """By the rivals' joint prices o: chances (states, o), the firm's profits (m, o), next states (states, m, o)."""
        game = self.game
        cube = (game.points,) * game.firms
        earned = np.moveaxis(game.profits[:, firm].reshape(cube), firm, 0).reshape(game.points, -1)
        next_states = np.moveaxis(self.next_states.reshape(game.states, *cube), firm + 1, 1).reshape(
            game.states, game.points, -1
        )
        return joint(np.delete(self.mixes, firm, axis=0), game.states), earned, next_states


def pure(strategies: Ints, points: int) -> Floats:
    """Strategies (..., states) as mixes (..., states, points)."""
    return np.asarray(np.eye(points)[np.asarray(strategies)])


def joint(mixes: Floats, states: int = 0) -> Floats:
    """(states, actions) the probability of every action of some firms (firms, states, m).

    Without firms there is one action; then `states` says for how many states.
    """
    chances = np.ones((states or mixes.shape[1], 1))
    for mix in mixes:
        chances = (chances[:, :, None] * mix[:, None, :]).reshape(len(chances), -1)
    return chances


def _steps(next_states: Ints, chances: Floats) -> Floats:
    """(states, states) the probability of every next state."""
    count = len(next_states)
    cells = np.arange(count)[:, None] * count + next_states
    summed = np.bincount(cells.ravel(), weights=chances.ravel(), minlength=count * count)
    return summed.reshape(count, count).astype(np.float64)

"""SARSA: as Q-learning, but it learns from the price that it will really ask next, exploration included."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class Sarsa(PricingLearner):
    """Epsilon-greedy SARSA (Rummery and Niranjan 1994); it ends with a pure strategy.

    Args:
        alpha: step of an update.
        beta: decay of exploration per period, eps_t = exp(-beta t).
        delta: discount factor.
        periods: for how long it learns.
    """

    def __init__(self, alpha: float = 0.15, beta: float = 4e-5, delta: float = 0.95, periods: int = 200_000) -> None:
        self.alpha, self.beta, self.delta, self.periods = alpha, beta, delta, periods

    def prepare(self, game):
        """A table per firm, as if rivals priced uniformly for ever; the price that each will ask next."""
        cube = game.profits.reshape((game.points,) * game.firms + (game.firms,))
        rivals = [tuple(j for j in range(game.firms) if j != i) for i in range(game.firms)]
        first = np.array([cube[..., i].mean(axis=rivals[i]) for i in range(game.firms)]) / (1.0 - self.delta)
        self.q = np.repeat(first[:, None, :], game.states, axis=1)
        self.next = [None] * game.firms
        self.period = 0

    def choose(self, firm, state, period, rng):
        """What was decided when the last period was learned from."""
        self.period = period
        asked = self.next[firm]
        return self.decided(firm, state, rng) if asked is None else asked

    def update(self, firm, state, price, profit, after, rng):
        """Towards the profit and the value of the next price."""
        self.next[firm] = self.decided(firm, after, rng)
        target = profit + self.delta * self.q[firm, after, self.next[firm]]
        self.q[firm, state, price] += self.alpha * (target - self.q[firm, state, price])

    def mix(self, firm):
        """The greedy price in every state."""
        return np.eye(self.q.shape[2])[self.q[firm].argmax(axis=1)]

    def decided(self, firm, state, rng):
        """A random price with probability epsilon, else the greedy one."""
        if rng.random() < np.exp(-self.beta * self.period):
            return int(rng.integers(self.q.shape[2]))
        return int(self.q[firm, state].argmax())

"""SARSA: Q-learning that learns from the price it will set next, exploration included."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class Sarsa(PricingLearner):
    """Epsilon-greedy SARSA (Rummery and Niranjan 1994); it ends with a pure strategy.

    Args:
        alpha: step of an update.
        beta: decay of exploration per period, eps_t = exp(-beta t).
        delta: discount factor.
        periods: how many periods it learns.
        goes_on: whether it goes on learning while it plays.
    """

    def __init__(
        self,
        alpha: float = 0.15,
        beta: float = 4e-5,
        delta: float = 0.95,
        periods: int = 200_000,
        goes_on: bool = False,
    ) -> None:
        self.alpha, self.beta, self.delta, self.periods, self.goes_on = alpha, beta, delta, periods, goes_on

    def prepare(self, game):
        """Begin each firm's table with the discounted profits against rivals with uniformly random prices."""
        cube = game.profits.reshape((game.points,) * game.firms + (game.firms,))
        rivals = [tuple(j for j in range(game.firms) if j != i) for i in range(game.firms)]
        first = np.array([cube[..., i].mean(axis=rivals[i]) for i in range(game.firms)]) / (1.0 - self.delta)
        self.q = np.repeat(first[:, None, :], game.states, axis=1)
        self.next = [None] * game.firms
        self.period = 0

    def choose(self, firm, state, period, rng):
        """The price that the last update chose; in the first period, a new one."""
        self.period = period
        price = self.next[firm]
        return self.choose_price(firm, state, rng) if price is None else price

    def update(self, firm, state, price, profit, after, rng):
        """Choose the next price, and move towards the profit plus the value of that price."""
        self.next[firm] = self.choose_price(firm, after, rng)
        target = profit + self.delta * self.q[firm, after, self.next[firm]]
        self.q[firm, state, price] += self.alpha * (target - self.q[firm, state, price])

    def mix(self, firm):
        """The greedy price in every state."""
        return np.eye(self.q.shape[2])[self.q[firm].argmax(axis=1)]

    def choose_price(self, firm, state, rng):
        """A random price with probability epsilon, else the greedy one."""
        if rng.random() < np.exp(-self.beta * self.period):
            return int(rng.integers(self.q.shape[2]))
        return int(self.q[firm, state].argmax())

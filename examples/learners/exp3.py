"""Exp3: a bandit for rivals who may do anything; what it learns is a mixed strategy."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class Exp3(PricingLearner):
    """Exp3 (Auer, Cesa-Bianchi, Freund and Schapire 2002), on profits scaled to [0, 1].

    Args:
        explore: the share of uniform prices in its mix, their gamma.
        periods: for how long it learns.
    """

    memory = 0

    def __init__(self, explore: float = 0.05, periods: int = 50_000) -> None:
        self.explore, self.periods = explore, periods

    def prepare(self, game):
        """All prices weigh the same."""
        self.log_weights = np.zeros((game.firms, game.points))
        self.scale = 1.0 / game.profits.max()

    def choose(self, firm, state, period, rng):
        """A price drawn from the mix."""
        chances = self.mix(firm)[0]
        return int(min(chances.cumsum().searchsorted(rng.random()), len(chances) - 1))

    def update(self, firm, state, price, profit, after, rng):
        """The price that was asked gains by what it brought, divided by how likely it was."""
        gained = profit * self.scale / self.mix(firm)[0, price]
        self.log_weights[firm, price] += self.explore * gained / self.log_weights.shape[1]

    def mix(self, firm):
        """Weights, and a share of uniform prices."""
        weights = np.exp(self.log_weights[firm] - self.log_weights[firm].max())
        return ((1.0 - self.explore) * weights / weights.sum() + self.explore / len(weights))[None, :]

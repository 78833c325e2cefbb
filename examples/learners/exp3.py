"""Exp3: a bandit for arbitrary rivals, which learns a mixed strategy."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class Exp3(PricingLearner):
    """Exp3 (Auer, Cesa-Bianchi, Freund and Schapire 2002), on profits scaled to [0, 1].

    Args:
        explore: the share of uniform prices in its mix (the paper's gamma).
        periods: how many periods it learns.
        goes_on: whether it goes on learning while it plays.
    """

    memory = 0

    def __init__(self, explore: float = 0.05, periods: int = 50_000, goes_on: bool = False) -> None:
        self.explore, self.periods, self.goes_on = explore, periods, goes_on

    def prepare(self, game):
        """Give all prices the same weight."""
        self.log_weights = np.zeros((game.firms, game.points))
        self.scale = 1.0 / game.profits.max()

    def choose(self, firm, state, period, rng):
        """Draw a price from the mix."""
        chances = self.mix(firm)[0]
        return int(min(chances.cumsum().searchsorted(rng.random()), len(chances) - 1))

    def update(self, firm, state, price, profit, after, rng):
        """Raise the weight of the chosen price by its profit, divided by its probability."""
        estimate = profit * self.scale / self.mix(firm)[0, price]
        self.log_weights[firm, price] += self.explore * estimate / self.log_weights.shape[1]

    def mix(self, firm):
        """The probabilities of all prices: the weights, mixed with uniform prices."""
        weights = np.exp(self.log_weights[firm] - self.log_weights[firm].max())
        return ((1.0 - self.explore) * weights / weights.sum() + self.explore / len(weights))[None, :]

"""UCB1: a bandit without memory, which sets the price with the highest upper bound of its mean profit."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class Ucb(PricingLearner):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002), on profits scaled to [0, 1]; it ends with a pure strategy.

    Args:
        width: the width of the bound: the factor on sqrt(2 log t / n).
        periods: how many periods it learns.
        goes_on: whether it goes on learning while it plays.
    """

    memory = 0

    def __init__(self, width: float = 1.0, periods: int = 50_000, goes_on: bool = False) -> None:
        self.width, self.periods, self.goes_on = width, periods, goes_on

    def prepare(self, game):
        """Begin without any observed profit."""
        self.count = np.zeros((game.firms, game.points))
        self.mean = np.zeros((game.firms, game.points))
        self.scale = 1.0 / game.profits.max()

    def choose(self, firm, state, period, rng):
        """Set every price once, then the one with the highest bound."""
        count = self.count[firm]
        if not count.all():
            return int(rng.choice(np.flatnonzero(count == 0.0)))
        return int((self.mean[firm] + self.width * np.sqrt(2.0 * np.log(period) / count)).argmax())

    def update(self, firm, state, price, profit, after, rng):
        """Update the mean profit of the price."""
        self.count[firm, price] += 1.0
        self.mean[firm, price] += (profit * self.scale - self.mean[firm, price]) / self.count[firm, price]

    def mix(self, firm):
        """The price with the highest mean."""
        return np.eye(self.mean.shape[1])[[self.mean[firm].argmax()]]

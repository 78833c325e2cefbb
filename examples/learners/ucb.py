"""UCB1: a bandit that sees no past, and asks the price with the highest optimistic mean profit."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class Ucb(PricingLearner):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002), on profits scaled to [0, 1]; it ends with a pure strategy.

    Args:
        width: how optimistic: the factor on sqrt(2 log t / n).
        periods: for how long it learns.
    """

    memory = 0

    def __init__(self, width: float = 1.0, periods: int = 50_000) -> None:
        self.width, self.periods = width, periods

    def prepare(self, game):
        """Nothing is known of any price."""
        self.count = np.zeros((game.firms, game.points))
        self.mean = np.zeros((game.firms, game.points))
        self.scale = 1.0 / game.profits.max()

    def choose(self, firm, state, period, rng):
        """Every price once, then the most promising one."""
        count = self.count[firm]
        if not count.all():
            return int(rng.choice(np.flatnonzero(count == 0.0)))
        return int((self.mean[firm] + self.width * np.sqrt(2.0 * np.log(period) / count)).argmax())

    def update(self, firm, state, price, profit, after, rng):
        """A price's mean profit."""
        self.count[firm, price] += 1.0
        self.mean[firm, price] += (profit * self.scale - self.mean[firm, price]) / self.count[firm, price]

    def mix(self, firm):
        """The price with the highest mean."""
        return np.eye(self.mean.shape[1])[[self.mean[firm].argmax()]]

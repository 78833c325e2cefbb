"""An actor-critic: values of states, and preferences for prices that follow the temporal-difference error."""

import numpy as np

from llm_coop_envs.baselines.q_learning import PricingLearner


class ActorCritic(PricingLearner):
    """One-step actor-critic with a softmax policy per state (Sutton and Barto 2018, section 13.5): a mixed strategy.

    Args:
        alpha: step of the critic.
        eta: step of the actor, on profits scaled to [0, 1].
        delta: discount factor.
        memory: how many past rounds it sees, 0 to 2.
        periods: how many periods it learns.
        goes_on: whether it goes on learning while it plays.
    """

    def __init__(
        self,
        alpha: float = 0.1,
        eta: float = 0.2,
        delta: float = 0.95,
        memory: int = 0,
        periods: int = 100_000,
        goes_on: bool = False,
    ) -> None:
        self.alpha, self.eta, self.delta, self.memory, self.periods = alpha, eta, delta, memory, periods
        self.goes_on = goes_on

    def prepare(self, game):
        """Set all values and preferences to zero."""
        self.values = np.zeros((game.firms, game.states))
        self.preferences = np.zeros((game.firms, game.states, game.points))
        self.scale = 1.0 / game.profits.max()

    def choose(self, firm, state, period, rng):
        """Draw a price from the policy."""
        chances = self.chances(firm, state)
        return int(min(chances.cumsum().searchsorted(rng.random()), len(chances) - 1))

    def update(self, firm, state, price, profit, after, rng):
        """Move the value and the preferences by the temporal-difference error."""
        values = self.values[firm]
        error = profit * self.scale + self.delta * values[after] - values[state]
        values[state] += self.alpha * error
        gradient = -self.chances(firm, state)
        gradient[price] += 1.0
        self.preferences[firm, state] += self.eta * error * gradient

    def mix(self, firm):
        """The policy in every state."""
        return np.array([self.chances(firm, state) for state in range(self.values.shape[1])])

    def chances(self, firm, state):
        """The probabilities of all prices: the softmax of the preferences."""
        weights = np.exp(self.preferences[firm, state] - self.preferences[firm, state].max())
        return weights / weights.sum()

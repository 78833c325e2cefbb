"""Q-learning in the number contest: every player has a table of its own, and learns from its own winnings alone.

The state is the last announced winning number, in equal parts of the range, or that there is none yet; a choice is a
number. A reward counts in units, so that a win is worth 1 under the usual rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs import kbc_v0
from llm_coop_envs.baselines.tabular.evacuation import FIRST_CURVE_SEED, FIRST_LEARNING_SEED, Arrays
from llm_coop_envs.baselines.tabular.settings import KBCLearning
from llm_coop_envs.errors import RunError
from llm_coop_envs.kbc.env import FEATURES, KBCEnv
from llm_coop_envs.kbc.rules import fixed_point, settle
from llm_coop_envs.kbc.settings import KBCSettings

_ANNOUNCED, _LAST = FEATURES.index("announced"), FEATURES.index("last_target")


def states_of(rows: NDArray[np.float32], bins: int) -> NDArray[np.int64]:
    """The states of rows of the environment's features: 0 before any announcement, else 1 + the part of the range."""
    parts = np.clip((rows[:, _LAST] * bins).astype(np.int64), 0, bins - 1)
    return np.where(rows[:, _ANNOUNCED] > 0, 1 + parts, 0)


def best_numbers(values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """The best choice for each row of values; equally good ones are drawn from."""
    best: NDArray[np.int64] = values.argmax(axis=1)
    top = values == values.max(axis=1, keepdims=True)
    tied = np.flatnonzero(top.sum(axis=1) > 1)
    if len(tied):
        best[tied] = np.where(top[tied], rng.random((len(tied), values.shape[1])), -1.0).argmax(axis=1)
    return best


class KBCLearner:
    """Learns from session to session.

    Attributes:
        learning: its settings.
        values: (players, states, numbers) what each player thinks of each number in each state.
        numbers: the numbers that can be chosen.

    Args:
        learning: its settings.
        seed: the only source of randomness.
    """

    def __init__(self, learning: KBCLearning, seed: int) -> None:
        self.learning = learning
        self._seed = seed
        self._env: KBCEnv = kbc_v0.parallel_env(**learning.given())
        self.numbers = numbers_of(self._env.settings, learning.numbers)
        self.values = np.zeros((self._env.n_players, learning.bins + 1, len(self.numbers)))

    def arrays(self) -> Arrays:
        """What has been learned."""
        return {"values": self.values, "numbers": self.numbers}

    def load(self, arrays: Arrays) -> None:
        """Continue from what was learned.

        Raises:
            RunError: it is of another size.
        """
        if "values" not in arrays or arrays["values"].shape != self.values.shape:
            raise RunError("the checkpoint holds a table of another size; train in another folder")
        self.values = arrays["values"].astype(np.float64)

    def train(self, episode: int) -> float:
        """Play one session and learn from it.

        Args:
            episode: which, from 0; it decides seeds and rates.

        Returns:
            The mean sum of rewards, in units.
        """
        env, learning = self._env, self.learning
        draws = np.random.SeedSequence([self._seed, episode])
        rng = np.random.default_rng(draws)
        env.begin(seed=FIRST_LEARNING_SEED + int(draws.generate_state(1, np.uint32)[0]))
        step_size = learning.falling("step_size", "step_size_end", episode)
        explore = learning.falling("explore", "explore_end", episode)
        wide = learning.falling("wide", "wide_end", episode)
        everyone = np.arange(env.n_players)
        states = states_of(env.features(), learning.bins)
        total = 0.0
        while not env.over:
            chosen = best_numbers(self.values[everyone, states], rng)
            self._explore(chosen, explore, wide, rng)
            env.advance(self._submitted(chosen))
            reward = env.rewards / env.settings.unit
            total += float(reward.mean())
            following = states_of(env.features(), learning.bins)
            worth = reward
            if learning.discount and not env.over:
                worth = reward + learning.discount * self.values[everyone, following].max(axis=1)
            self.values[everyone, states, chosen] += step_size * (worth - self.values[everyone, states, chosen])
            states = following
        return total

    def point(self) -> dict[str, float]:
        """The learning curve's measures now, of sessions without exploration on seeds of their own."""
        found = [self.greedy(FIRST_CURVE_SEED + k) for k in range(self.learning.curve_seeds)]
        return {name: float(np.mean([one[name] for one in found])) for name in found[0]}

    def reference(self) -> tuple[str, float]:
        """What the curve is to be seen beside: the equilibrium."""
        return "equilibrium", fixed_point(self._env.settings)

    def greedy(self, seed: int) -> dict[str, float]:
        """Play a session with the best known numbers and measure its last round.

        Args:
            seed: the environment's seed.

        Returns:
            `number`: the mean number named; `target`: the winning number; `distance`: how far the mean number is from
            the equilibrium; `winners`: share of players who won; `better_alone`, `as_good_alone`: as `alternatives`.
        """
        env = self._env
        rng = np.random.default_rng([seed])
        everyone = np.arange(env.n_players)
        env.begin(seed=seed)
        chosen = np.zeros(0, dtype=np.int64)
        while not env.over:
            states = states_of(env.features(), self.learning.bins)
            chosen = best_numbers(self.values[everyone, states], rng)
            env.advance(self._submitted(chosen))
        named = self.numbers[chosen]
        settled = settle(named, env.settings)
        better, as_good = alternatives(named, self.numbers, env.settings)
        return {
            "number": float(named.mean()),
            "target": settled.target,
            "distance": abs(float(named.mean()) - fixed_point(env.settings)),
            "winners": float(settled.winners.mean()),
            "better_alone": better,
            "as_good_alone": as_good,
        }

    def _submitted(self, chosen: NDArray[np.int64]) -> NDArray[Any]:
        return chosen if self._env.settings.integer else self.numbers[chosen]

    def _explore(self, chosen: NDArray[np.int64], explore: float, wide: float, rng: np.random.Generator) -> None:
        """Put other numbers in the place of some."""
        who = np.flatnonzero(rng.random(len(chosen)) < explore)
        if not len(who):
            return
        last = len(self.numbers) - 1
        anywhere = rng.integers(last, size=len(who), endpoint=True)
        steps = rng.integers(1, self.learning.near, size=len(who), endpoint=True) * rng.choice([-1, 1], size=len(who))
        far = rng.random(len(who)) < wide
        chosen[who] = np.where(far, anywhere, np.clip(chosen[who] + steps, 0, last))


def numbers_of(contest: KBCSettings, points: int) -> NDArray[Any]:
    """The numbers a learner chooses from: all whole ones, or so many equally spaced ones."""
    if contest.integer:
        return np.arange(int(contest.low), int(contest.high) + 1)
    return np.linspace(float(contest.low), float(contest.high), points)


def alternatives(named: NDArray[Any], numbers: NDArray[Any], contest: KBCSettings) -> tuple[float, float]:
    """How many players another number would have suited, while all others stay at theirs.

    Nobody in the first share means that the numbers are a Nash equilibrium of one round, nobody in the second that they
    are a strict one. The first says little where all winners are paid: there all naming the same number is always an
    equilibrium, since everybody wins.

    Args:
        named: what everybody named.
        numbers: the numbers that can be named.
        contest: the contest.

    Returns:
        The share of players who would have got more by another number, and of those who would have got at least as
        much.
    """
    before = settle(named, contest).rewards
    better = as_good = 0
    # Without groups players who named the same number are in the same place, so one of them stands for all.
    players, counts = np.unique(named, return_index=True, return_counts=True)[1:]
    if contest.groups is not None:
        players, counts = np.arange(len(named)), np.ones(len(named), dtype=np.int64)
    for player, count in zip(players.tolist(), counts.tolist(), strict=True):
        changed = named.copy()
        best = -np.inf
        for number in numbers[numbers != named[player]]:
            changed[player] = number
            best = max(best, float(settle(changed, contest).rewards[player]))
        better += count * (best > before[player])
        as_good += count * (best >= before[player])
    return better / len(named), as_good / len(named)

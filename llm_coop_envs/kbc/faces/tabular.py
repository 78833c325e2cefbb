"""Tabular Q-learning of the number contest: every player has its own table and learns from its own rewards alone.

A state is the last announced winning number, binned into equal parts of the range, or that none was announced yet. A
choice is a number. Rewards are counted in units, so that a win is worth 1 under the usual rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.tabular.learner import TablePlayer, TabularLearner
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.kbc.env import FEATURES, KBCEnv
from llm_coop_envs.kbc.rules import fixed_point, settle
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.storage.arrays import Arrays

GIB = 2**30
#: The largest table in memory.
MAX_BYTES = 2 * GIB

_ANNOUNCED, _LAST = FEATURES.index("announced"), FEATURES.index("last_target")


@dataclass(frozen=True, kw_only=True)
class KBCLearning(TabularSettings):
    """Settings of independent learners of the number contest, one table per player.

    The contest is played as a repeated session without talk: the winning number is announced after each round.

    Attributes:
        rounds: rounds per episode.
        bins: number of equal parts of the range that the last winning number is binned into.
        numbers: with real choices, how many equally spaced numbers a player chooses from; of whole numbers all.
        explore, explore_end: share of exploring choices in the first and in the last episode.
        wide, wide_end: share of the exploring choices that are drawn from all numbers, in the first and in the last
            episode; the others lie near the best known number.
        near: how many numbers away from the best known one "near" reaches.
    """

    scenario: ClassVar[str] = "kbc"
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "rounds": (1, 100_000),
        "bins": (1, 10_000),
        "numbers": (2, 100_000),
        "near": (1, 100_000),
        **dict.fromkeys(("explore", "explore_end", "wide", "wide_end"), (0, 1)),
    }

    preset: str = "two_thirds"
    episodes: int = 3000
    step_size_end: float = 0.1
    # A single player hardly moves the next winning number, so what follows a choice says little about it.
    discount: float = 0.0
    curve_every: int = 100
    curve_seeds: int = 1
    rounds: int = 10
    bins: int = 10
    numbers: int = 201
    explore: float = 0.5
    explore_end: float = 0.0
    wide: float = 0.5
    wide_end: float = 0.0
    near: int = 5

    def __post_init__(self) -> None:
        """Check every field, and that the table fits into memory."""
        super().__post_init__()
        contest = self.contest
        points = int(contest.high - contest.low) + 1 if contest.integer else self.numbers
        size = contest.players * (self.bins + 1) * points * 8
        if size > MAX_BYTES:
            counts = f"{contest.players} players x {self.bins + 1} states x {points} numbers"
            excess = f"{size / GIB:,.3g} GiB, more than {MAX_BYTES // GIB}; take fewer bins, numbers or players"
            raise SettingsError("bins", self.bins, f"{counts} make a table of {excess}")

    def owned(self) -> dict[str, Any]:
        """The settings of a repeated session without talk."""
        return {"session": "repeated", "talk": False, "rounds": self.rounds}

    @property
    def contest(self) -> KBCSettings:
        """The environment's settings."""
        return KBCSettings.build(**self.environment_arguments())


def states_of(rows: NDArray[np.float32], bins: int) -> NDArray[np.int64]:
    """States of rows of the environment's features: 0 before any announcement, else 1 + the bin of the number."""
    parts = np.clip((rows[:, _LAST] * bins).astype(np.int64), 0, bins - 1)
    return np.where(rows[:, _ANNOUNCED] > 0, 1 + parts, 0)


def best_numbers(values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """The best choice for each row of values (n, choices); ties are broken at random."""
    best: NDArray[np.int64] = values.argmax(axis=1)
    is_best = values == values.max(axis=1, keepdims=True)
    tied = np.flatnonzero(is_best.sum(axis=1) > 1)
    if len(tied):
        best[tied] = np.where(is_best[tied], rng.random((len(tied), values.shape[1])), -1.0).argmax(axis=1)
    return best


class KBCTablePlayer(TablePlayer):
    """Names the best known number for the last winning number; seat k plays the table of learner k."""

    scenario = "kbc"

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: another scenario is played, or the contest has other numbers than the learned one.
        """
        super().begin(episode)
        contest, numbers = cast(KBCSettings, episode.settings), self.arrays["numbers"]
        first, last = float(numbers[0]), float(numbers[-1])
        if (float(contest.low), float(contest.high)) != (first, last) or (
            contest.integer and len(learned_numbers(contest, 0)) != len(numbers)
        ):
            raise self.refusal(
                f"has learned {len(numbers)} numbers from {first:g} to {last:g}; this contest has others"
            )
        self._is_integer = contest.integer
        # With more seats than learners, the learners start again from the first.
        self._seats = {name: seat % len(self.arrays["values"]) for seat, name in enumerate(episode.agents)}

    async def act(self, requests: Sequence[Request]) -> list[Action]:
        """Answer all requests."""
        values, numbers = self.arrays["values"], self.arrays["numbers"]
        rows = np.stack([request.observation["observation"] for request in requests])
        seats = [self._seats[request.agent] for request in requests]
        chosen = best_numbers(values[seats, states_of(rows, values.shape[1] - 1)], self.episode.rng)
        if self._is_integer:
            return [{"choice": choice, "message": ""} for choice in chosen.tolist()]
        return [{"choice": numbers[[choice]], "message": ""} for choice in chosen.tolist()]


class KBCLearner(TabularLearner):
    """Learns `values` (players, states, numbers), indexed by the position of a number in `numbers`."""

    settings_type = KBCLearning
    player = KBCTablePlayer
    curve_measure = "number", "mean number in the last round"
    title = "Number contest, {}: independent Q-learners"

    def __init__(self, learning: KBCLearning, seed: int) -> None:
        super().__init__(learning, seed)
        self._env = KBCEnv(**learning.environment_arguments())
        self.numbers = learned_numbers(self._env.settings, learning.numbers)
        self.values = np.zeros((self._env.n_players, learning.bins + 1, len(self.numbers)))

    def arrays(self) -> Arrays:
        """The learned table."""
        return {"values": self.values, "numbers": self.numbers}

    def load(self, arrays: Arrays) -> None:
        """Continue from a learned table.

        Raises:
            RunError: the table has another size.
        """
        if "values" not in arrays or arrays["values"].shape != self.values.shape:
            raise RunError("the checkpoint holds a table of another size; train in another folder")
        self.values = arrays["values"].astype(np.float64)

    def train(self, episode: int) -> float:
        """Play one session and learn from it. Returns the mean sum of rewards, in units."""
        env, learning = self._env, self.learning
        seed, rng = self.draws(episode)
        env.begin(seed=seed)
        rates = learning.rates(episode)
        players = np.arange(env.n_players)
        states = states_of(env.features(), learning.bins)
        total = 0.0
        while not env.over:
            chosen = best_numbers(self.values[players, states], rng)
            self._explore(chosen, rates, rng)
            env.advance(self._to_choices(chosen))
            rewards = env.rewards / env.settings.unit
            total += float(rewards.mean())
            next_states = states_of(env.features(), learning.bins)
            targets = rewards
            if learning.discount and not env.over:
                targets = rewards + learning.discount * self.values[players, next_states].max(axis=1)
            errors = targets - self.values[players, states, chosen]
            self.values[players, states, chosen] += rates["step_size"] * errors
            states = next_states
        return total

    def reference(self) -> tuple[str, float]:
        """The equilibrium."""
        return "equilibrium", fixed_point(self._env.settings)

    def greedy(self, seed: int) -> dict[str, float]:
        """Play a session without exploration and measure its last round.

        Returns:
            `number`: the mean number named; `target`: the winning number; `distance`: between the mean number and the
            equilibrium; `winners`: share of players who won; `better_alone`, `as_good_alone`: as `alternatives`.
        """
        env = self._env
        rng = np.random.default_rng([seed])
        players = np.arange(env.n_players)
        env.begin(seed=seed)
        chosen = np.zeros(0, dtype=np.int64)
        while not env.over:
            chosen = best_numbers(self.values[players, states_of(env.features(), self.learning.bins)], rng)
            env.advance(self._to_choices(chosen))
        named = self.numbers[chosen]
        result = settle(named, env.settings)
        better, as_good = alternatives(named, self.numbers, env.settings)
        return {
            "number": float(named.mean()),
            "target": result.target,
            "distance": abs(float(named.mean()) - fixed_point(env.settings)),
            "winners": float(result.winners.mean()),
            "better_alone": better,
            "as_good_alone": as_good,
        }

    def _to_choices(self, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """The environment's choices for positions in `numbers`."""
        return chosen if self._env.settings.integer else self.numbers[chosen]

    def _explore(self, chosen: NDArray[np.int64], rates: Mapping[str, float], rng: np.random.Generator) -> None:
        """Replace some players' choices in place, by any number or by one near the best known number."""
        explorers = np.flatnonzero(rng.random(len(chosen)) < rates["explore"])
        count = len(explorers)
        if not count:
            return
        last = len(self.numbers) - 1
        anywhere = rng.integers(last, size=count, endpoint=True)
        steps = rng.integers(1, self.learning.near, size=count, endpoint=True) * rng.choice([-1, 1], size=count)
        is_wide = rng.random(count) < rates["wide"]
        chosen[explorers] = np.where(is_wide, anywhere, np.clip(chosen[explorers] + steps, 0, last))


def learned_numbers(contest: KBCSettings, points: int) -> NDArray[Any]:
    """The numbers a learner chooses from: all whole numbers, or `points` equally spaced real ones."""
    if contest.integer:
        return np.arange(int(contest.low), int(contest.high) + 1)
    return np.linspace(float(contest.low), float(contest.high), points)


def alternatives(named: NDArray[Any], numbers: NDArray[Any], contest: KBCSettings) -> tuple[float, float]:
    """Shares of players whom another number would have paid more, and at least as much, all others keeping theirs.

    If the first share is 0, the numbers are a Nash equilibrium of one round; if the second is 0, a strict one. The
    first says little where all winners are paid: there all naming the same number is always an equilibrium, since
    everybody wins.

    Args:
        named: (players,) the numbers named.
        numbers: the numbers that can be named.
        contest: the rules.
    """
    rewards = settle(named, contest).rewards
    better = as_good = 0
    # Without groups, players who named the same number are in the same position, so one of them stands for all.
    players, counts = np.unique(named, return_index=True, return_counts=True)[1:]
    if contest.groups is not None:
        players, counts = np.arange(len(named)), np.ones(len(named), dtype=np.int64)
    for player, count in zip(players.tolist(), counts.tolist(), strict=True):
        changed = named.copy()
        best = -np.inf
        for number in numbers[numbers != named[player]]:
            changed[player] = number
            best = max(best, float(settle(changed, contest).rewards[player]))
        better += count * (best > rewards[player])
        as_good += count * (best >= rewards[player])
    return better / len(named), as_good / len(named)

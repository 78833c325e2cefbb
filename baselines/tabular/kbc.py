"""Q-learning in the number contest: every player has a table of its own, and learns from its own winnings alone.

The state is the last announced winning number, in equal parts of the range, or that there is none yet; a choice is a
number. A reward counts in units, so that a win is worth 1 under the usual rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs import kbc_v0
from llm_coop_envs.baselines.tabular.learner import TabularLearner
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.kbc.env import FEATURES, KBCEnv
from llm_coop_envs.kbc.rules import fixed_point, settle
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.storage.arrays import Arrays

GIB = 2**30
#: The largest table that is made.
MAX_BYTES = 2 * GIB

_ANNOUNCED, _LAST = FEATURES.index("announced"), FEATURES.index("last_target")


@dataclass(frozen=True, kw_only=True)
class KBCLearning(TabularSettings):
    """Independent learners of the number contest: a table of its own for every player.

    The contest is played as a repeated session without talk, so that the winning number is announced after each round.

    Attributes:
        rounds: rounds of an episode.
        bins: equal parts of the range in which the last winning number is told apart.
        numbers: with real choices, how many equally spaced numbers a player chooses from; whole numbers are all used.
        explore: share of choices that are not the best known ones, in the first episode.
        explore_end: likewise in the last one.
        wide: share of these that are drawn from all numbers, in the first episode; the others lie near the best known
            number.
        wide_end: likewise in the last one.
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
        """Check every field, and that the table can be held."""
        super().__post_init__()
        contest = self.contest
        points = int(contest.high - contest.low) + 1 if contest.integer else self.numbers
        size = contest.players * (self.bins + 1) * points * 8
        if size > MAX_BYTES:
            counts = f"{contest.players} players x {self.bins + 1} states x {points} numbers"
            much = f"{size / GIB:,.3g} GiB, more than {MAX_BYTES // GIB}; take fewer bins, numbers or players"
            raise SettingsError("bins", self.bins, f"{counts} make a table of {much}")

    def owned(self) -> dict[str, Any]:
        """A repeated session without talk."""
        return {"session": "repeated", "talk": False, "rounds": self.rounds}

    @property
    def contest(self) -> KBCSettings:
        """The environment's settings."""
        return KBCSettings.build(**self.given())


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


class KBCLearner(TabularLearner):
    """Learns `values` (players, states, numbers) of the `numbers` that can be chosen; see `TabularLearner`."""

    settings_type = KBCLearning
    shown = "number", "mean number in the last round"
    title = "Number contest, {}: independent Q-learners"

    def __init__(self, learning: KBCLearning, seed: int) -> None:
        super().__init__(learning, seed)
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
        """Play one session and learn from it; the mean sum of rewards, in units."""
        env, learning = self._env, self.learning
        seed, rng = self.draws(episode)
        env.begin(seed=seed)
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

    def reference(self) -> tuple[str, float]:
        """What the curve is to be seen beside: the equilibrium."""
        return "equilibrium", fixed_point(self._env.settings)

    def greedy(self, seed: int) -> dict[str, float]:
        """Play a session with the best known numbers and measure its last round.

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

    @staticmethod
    def player(arrays: Arrays, name: str) -> Policy:
        """A policy that plays what was learned."""
        return KBCTablePlayer(arrays, name)

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
    """The shares of players who would have got more, and at least as much, by another number, all others at theirs.

    Nobody in the first share means that the numbers are a Nash equilibrium of one round, nobody in the second that they
    are a strict one. The first says little where all winners are paid: there all naming the same number is always an
    equilibrium, since everybody wins.
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


class KBCTablePlayer(Policy):
    """Names the best known number for the last winning number."""

    waits = False

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._values = arrays["values"]
        self._numbers = arrays["numbers"]
        self._name = name

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: the contest has other numbers than the one that was learned.
        """
        super().begin(episode)
        contest = episode.settings
        if not isinstance(contest, KBCSettings):
            raise SettingsError("policy", f"tabular:{self._name}", f"plays kbc, not {episode.scenario}")
        first, last = float(self._numbers[0]), float(self._numbers[-1])
        if (float(contest.low), float(contest.high)) != (first, last) or (
            contest.integer and len(numbers_of(contest, 0)) != len(self._numbers)
        ):
            why = f"has learned {len(self._numbers)} numbers from {first:g} to {last:g}; this contest has others"
            raise SettingsError("policy", f"tabular:{self._name}", why)
        self._contest = contest
        self._seat = {name: place % len(self._values) for place, name in enumerate(episode.agents)}

    async def act(self, requests: Sequence[Request]) -> list[Action]:
        """Answer all requests."""
        rows = np.stack([request.observation["observation"] for request in requests])
        seats = np.array([self._seat[request.agent] for request in requests])
        values = self._values[seats, states_of(rows, self._values.shape[1] - 1)]
        chosen = best_numbers(values, self.episode.rng)
        if self._contest.integer:
            return [{"choice": choice, "message": ""} for choice in chosen.tolist()]
        return [{"choice": self._numbers[[choice]], "message": ""} for choice in chosen.tolist()]

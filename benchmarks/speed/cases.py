"""The measured cases: our environments in several views, and two other environments for comparison."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.wrappers import NumericView

Batch = Callable[[float], tuple[float, int]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        name: its name in the record.
        prepare: makes the environment and returns a function that plays for about the given seconds and returns the
            processor seconds spent inside `step` and the number of agent-steps.
        target: the figure to reach in microseconds per agent-step, if there is one.
        half_of: the case whose figure must be at least twice this one's, if there is one.
    """

    name: str
    prepare: Callable[[], Batch]
    target: float | None = None
    half_of: str | None = None


def _playing(env: Any, choose: Callable[[dict[str, Any]], dict[str, Any]]) -> Batch:
    """Make a batch that plays with `choose`, which gets the infos; only `step` is timed."""
    _, infos = env.reset(seed=0)

    def batch(seconds: float) -> tuple[float, int]:
        nonlocal infos
        spent, steps = 0.0, 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if not env.agents:
                _, infos = env.reset()
            actions = choose(infos)
            present = len(env.agents)
            start = time.process_time()
            _, _, _, _, infos = env.step(actions)
            spent += time.process_time() - start
            steps += present
        return spent, steps

    return batch


def peer(make: Callable[[], Any]) -> Callable[[], Batch]:
    """Prepare another project's PettingZoo parallel environment, with sampled actions."""

    def prepare() -> Batch:
        env = make()
        env.reset(seed=0)
        actions = itertools.cycle([{a: env.action_space(a).sample() for a in env.possible_agents} for _ in range(64)])
        return _playing(env, lambda infos: next(actions))

    return prepare


def numeric(make: Callable[[], ScenarioEnv]) -> Callable[[], Batch]:
    """Prepare one of our environments through `NumericView`, with uniformly drawn legal choices."""

    def prepare() -> Batch:
        rng = np.random.default_rng(0)
        return _playing(NumericView(make()), lambda infos: _draw(infos, rng))

    return prepare


def with_text(make: Callable[[], ScenarioEnv]) -> Callable[[], Batch]:
    """Prepare one of our environments with the text of every player built in every step."""

    def prepare() -> Batch:
        rng = np.random.default_rng(0)

        def choose(infos: dict[str, Any]) -> dict[str, Any]:
            masks = {a: {"action_mask": info["action_mask"]["choice"]} for a, info in infos.items()}
            choices = _draw(masks, rng)
            return {a: {"choice": c, "message": "I go left, it is quiet there."} for a, c in choices.items()}

        return _playing(make(), choose)

    return prepare


def _draw(infos: dict[str, Any], rng: np.random.Generator) -> dict[str, int]:
    """Draw a legal choice for every player, uniformly."""
    masks = np.stack([info["action_mask"] for info in infos.values()])
    picks = (masks * (1.0 + rng.random(masks.shape))).argmax(axis=1)
    return dict(zip(infos, picks.tolist(), strict=True))


def _rps() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from pettingzoo.classic import rps_v2
    return rps_v2.parallel_env()


def _spread() -> Any:
    from mpe2 import simple_spread_v3

    return simple_spread_v3.parallel_env()


def evacuation(people: int, *, side: int | None = None, **settings: Any) -> ScenarioEnv:
    """Make an evacuation with as much room per person as published, or with `side` rows; exits are in proportion."""
    scale = (people / 100) ** 0.5
    edge = side or round(31 * scale) + 2
    middle = edge // 2
    wide = max(1, round(scale))

    def span(width: int) -> range:
        return range(middle - width // 2, middle - width // 2 + width)

    exits = {
        "bottom": [[edge - 1, c] for c in span(3 * wide)],
        "left": [[r, 0] for r in span(3 * wide)],
        "right": [[r, edge - 1] for r in span(wide)],
    }
    return evacuation_v0.parallel_env(rows=edge, cols=edge, people=people, exits=exits, **settings)


def _kbc(**settings: Any) -> ScenarioEnv:
    return kbc_v0.parallel_env(session="repeated", rounds=2000, **settings)


CASES = (
    Case(name="peer: pettingzoo rps_v2 (2 agents)", prepare=peer(_rps)),
    Case(name="peer: mpe2 simple_spread_v3 (3 agents)", prepare=peer(_spread)),
    Case(
        name="kbc, 24 players, numeric",
        prepare=numeric(lambda: _kbc(talk=False)),
        target=4.0,
        half_of="peer: pettingzoo rps_v2 (2 agents)",
    ),
    Case(
        name="bertrand, 2 firms, grid, numeric",
        prepare=numeric(lambda: bertrand_v0.parallel_env(prices="grid", talk=False)),
        target=8.0,
        half_of="peer: pettingzoo rps_v2 (2 agents)",
    ),
    Case(
        name="evacuation, 100 people, simultaneous, numeric",
        prepare=numeric(lambda: evacuation_v0.parallel_env(engine="simultaneous", talk=False)),
        target=15.0,
    ),
    Case(
        name="evacuation, 1,000 people, simultaneous, numeric",
        prepare=numeric(lambda: evacuation(1000, engine="simultaneous", talk=False)),
    ),
    Case(
        name="evacuation, 10,000 people, simultaneous, numeric",
        prepare=numeric(lambda: evacuation(10_000, engine="simultaneous", talk=False)),
    ),
    Case(name="kbc, 24 players, text for everyone", prepare=with_text(lambda: _kbc(talk=False)), target=45.0),
    Case(
        name="bertrand, 2 firms, text for everyone",
        prepare=with_text(lambda: bertrand_v0.parallel_env(prices="grid", talk=False)),
        target=45.0,
    ),
    Case(
        name="evacuation, 100 people, simultaneous, talk, text for everyone",
        prepare=with_text(lambda: evacuation_v0.parallel_env(engine="simultaneous")),
        target=45.0,
    ),
)

"""Measure games in batches beside one game and beside peers: `python -m llm_coop_envs.benchmarks.speed.batches`.

Cases take turns, so that a slow moment of the machine affects all. Time is that of this process's processor, in
agent-steps per second of one core; drawing the actions is not counted. A peer that is not installed is left out, with a
sentence.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

# One core for everybody: read by XLA when it is first used.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from gymnasium import spaces

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.benchmarks.speed.harness import arguments, in_turns, machine, row, spread, write
from llm_coop_envs.benchmarks.speed.jax_games import jax_evacuation, jax_market
from llm_coop_envs.wrappers import NumericView
from llm_coop_envs.wrappers.batch import BatchEnv

#: Plays so many steps and returns the agent-steps in them.
Play = Callable[[int], int]

_MARKET: dict[str, Any] = {"preset": "calvano", "rounds": 1000}
_CONTEST: dict[str, Any] = {"talk": False, "session": "repeated", "rounds": 1000}
# People choose exits and walk by themselves; people choose every step, all at the same time.
_EXITS: dict[str, Any] = {"talk": False, "control": "exit"}
_AT_ONCE: dict[str, Any] = {"talk": False, "engine": "simultaneous"}
_EXITS_AT_ONCE: dict[str, Any] = {**_EXITS, "engine": "simultaneous"}


def batch(env: BatchEnv) -> Play:
    """Prepare a batch of ours, with choices drawn in advance."""
    rng, space = np.random.default_rng(0), env.action_space
    shape = (16, env.copies, len(env.agents))
    actions = rng.integers(0, space.n, shape) if isinstance(space, spaces.Discrete) else rng.uniform(1.3, 2.0, shape)
    env.reset(seed=0)

    def play(steps: int) -> int:
        played = 0
        for step in range(steps):
            played += int(np.count_nonzero(env.present))  # who has left takes no step
            env.step(actions[step % 16])
        return played

    return play


def alone(env: Any) -> Play:
    """Prepare a PettingZoo parallel environment, with actions drawn in advance."""
    env.reset(seed=0)
    drawn = [{name: env.action_space(name).sample() for name in env.possible_agents} for _ in range(16)]

    def play(steps: int) -> int:
        played = 0
        for step in range(steps):
            if not env.agents:
                env.reset()
            played += len(env.agents)
            env.step(drawn[step % 16])
        return played

    return play


def rock_paper_scissors() -> Any:
    """PettingZoo's game of two agents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from pettingzoo.classic import rps_v2
    return rps_v2.parallel_env(max_cycles=1000)


def supersuit(env: Any, copies: int, *, leaving: bool = False) -> Play:
    """Prepare copies of a PettingZoo environment that SuperSuit steps as one vector environment, in this process.

    Where agents leave, SuperSuit plays them on with observations of zeros; they are not counted.
    """
    import supersuit as ss

    env = ss.black_death_v3(env) if leaving else env
    single = ss.pettingzoo_env_to_vec_env_v1(env)
    vector: Any = ss.concat_vec_envs_v1(single, copies, num_cpus=0, base_class="gymnasium")
    vector.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, vector.action_space.n, (16, vector.num_envs))

    def play(steps: int) -> int:
        played = 0
        for step in range(steps):
            seen = vector.step(actions[step % 16])[0]
            played += np.count_nonzero(seen.any(axis=1)) if leaving else vector.num_envs
        return int(played)

    return play


def evacuation_in_supersuit(**settings: Any) -> Play:
    """Prepare evacuations that SuperSuit steps."""
    quiet: dict[str, Any] = {"talk": False, **settings}
    env = evacuation_v0.parallel_env(**quiet)
    return supersuit(NumericView(env, masks=False), 4, leaving=True)


def cases(copies: int) -> dict[str, Callable[[], Play]]:
    """What is measured, by name; each makes its own."""
    return {
        "bertrand, one game": lambda: alone(NumericView(bertrand_v0.parallel_env(**_MARKET))),
        "kbc, 24 players, one game": lambda: alone(NumericView(kbc_v0.parallel_env(**_CONTEST))),
        "evacuation of exits, one game": lambda: alone(NumericView(evacuation_v0.parallel_env(**_EXITS))),
        "evacuation at once, one game": lambda: alone(NumericView(evacuation_v0.parallel_env(**_AT_ONCE))),
        "evacuation, 100 people, one game": lambda: alone(NumericView(evacuation_v0.parallel_env(talk=False))),
        "peer: pettingzoo rps_v2, one game": lambda: alone(rock_paper_scissors()),
        "peer: rps_v2 in SuperSuit, 64 copies": lambda: supersuit(rock_paper_scissors(), 64),
        "ours: bertrand in SuperSuit, 64 copies": lambda: supersuit(
            NumericView(bertrand_v0.parallel_env(**_MARKET), masks=False), 64
        ),
        "ours: kbc in SuperSuit, 16 copies": lambda: supersuit(
            NumericView(kbc_v0.parallel_env(**_CONTEST), masks=False), 16
        ),
        "ours: evacuation in SuperSuit, 4 copies": lambda: evacuation_in_supersuit(),
        "ours: evacuation of exits in SuperSuit, 4 copies": lambda: evacuation_in_supersuit(**_EXITS),
        "ours: evacuation at once in SuperSuit, 4 copies": lambda: evacuation_in_supersuit(**_AT_ONCE),
        f"peer: the market in JAX, {copies:,} copies": lambda: jax_market(copies, **_MARKET),
        f"peer: an evacuation of exits at once in JAX, {copies // 16:,} copies": lambda: jax_evacuation(
            copies // 16, **_EXITS_AT_ONCE
        ),
        f"bertrand, batch of {copies:,}": lambda: batch(bertrand_v0.batch_env(copies, **_MARKET)),
        f"bertrand, continuous prices, batch of {copies:,}": lambda: batch(bertrand_v0.batch_env(copies, talk=False)),
        f"kbc, 24 players, batch of {copies // 4:,}": lambda: batch(kbc_v0.batch_env(copies // 4, **_CONTEST)),
        f"evacuation, batch of {copies // 16:,}": lambda: batch(evacuation_v0.batch_env(copies // 16, talk=False)),
        f"evacuation of exits, batch of {copies // 16:,}": lambda: batch(
            evacuation_v0.batch_env(copies // 16, **_EXITS)
        ),
        f"evacuation of exits, at once, batch of {copies // 16:,}": lambda: batch(
            evacuation_v0.batch_env(copies // 16, **_EXITS_AT_ONCE)
        ),
        f"evacuation at once, batch of {copies // 16:,}": lambda: batch(
            evacuation_v0.batch_env(copies // 16, **_AT_ONCE)
        ),
        f"kbc nested, 24 players, batch of {copies // 4:,}": lambda: batch(kbc_v0.batch_env(copies // 4, talk=False)),
    }


def prepared(makers: dict[str, Callable[[], Play]]) -> dict[str, Callable[[int], float]]:
    """The cases whose libraries are installed, each as a function that measures agent-steps per second."""
    measures = {}
    for name, make in makers.items():
        try:
            play = make()
        except ImportError as error:
            print(f"{name} is left out: {error.name} is not installed", file=sys.stderr)
            continue
        measures[name] = _rate(play)
    return measures


def _rate(play: Play, least: float = 0.3) -> Callable[[int], float]:
    """A function that plays for at least so many seconds of the processor."""
    steps = 1
    play(2)
    while True:
        begun = time.process_time()
        play(steps)
        if time.process_time() - begun > least / 4:
            break
        steps *= 2
    steps *= 4

    def measure(_: int) -> float:
        begun = time.process_time()
        played = play(steps)
        return played / (time.process_time() - begun)

    return measure


def single_case(name: str, names: Iterable[str]) -> str:
    """The case of one game that a batch of it is compared with, else the case itself."""
    singles = [single for single in names if single.endswith("one game") and name.startswith(single.split(",")[0])]
    return max(singles, key=lambda single: len(single.split(",")[0]), default=name)


def main(arguments_: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write the record."""
    parser = arguments("games in batches", 5)
    parser.add_argument("--copies", type=int, default=4096)
    options = parser.parse_args(arguments_)
    figures = in_turns(prepared(cases(options.copies)), options.repeats)
    print(f"{'million agent-steps per second of one core':52} {'min':>9} {'median':>9} {'max':>9}  of one game")
    record: dict[str, Any] = {"machine": machine("llm-coop-envs", "numpy", "numba", "pettingzoo", "supersuit", "jax")}
    for name, values in figures.items():
        one_game = single_case(name, figures)
        ratios = [ours / single for ours, single in zip(values, figures[one_game], strict=True)]
        millions = {key: value / 1e6 for key, value in spread(values).items()}
        print(f"{row(name, millions, 52, 3)} {spread(ratios)['median']:11.1f}")
        record[name] = {"agent_steps_per_second": spread(values), "ratio_to": {"case": one_game, **spread(ratios)}}
    write(record, options.json)


if __name__ == "__main__":
    main()

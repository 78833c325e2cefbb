"""Run one session: firms learn against each other until their greedy strategies stop changing."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints
from llm_coop_envs.baselines.q_learning.learn.initial import initial_q, initial_state
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.errors import SettingsError

_EXPLORATION = {"epsilon": 0, "boltzmann": 1, "none": 2}


@dataclass(frozen=True, eq=False)
class Session:
    """The result of a session.

    Attributes:
        number: the session's number among those of its seed.
        periods: number of periods played, the window of convergence included.
        converged: whether greedy prices stayed unchanged for the window. Unconverged sessions count in all results, as
            in Calvano et al. 2020.
        last_state: the state in which the last period was played.
        strategies: (firms, states) the greedy price index in each state.
        q: (firms, states, m) the Q tables.
        trace: (periods, firms) the price indices of the first `trace` periods, as many as were to be recorded.
    """

    number: int
    periods: int
    converged: bool
    last_state: int
    strategies: Ints
    q: Floats
    trace: Ints

    def strategy_bytes(self) -> bytes:
        """The strategies, firm by firm and state by state: one byte each, two (little-endian) above 256 prices."""
        kind = "<u1" if self.q.shape[2] <= 256 else "<u2"
        return self.strategies.astype(kind).tobytes()

    @property
    def crc32(self) -> str:
        """The checksum of `strategy_bytes`, in hexadecimal."""
        return f"{zlib.crc32(self.strategy_bytes()):08x}"


def run_session(
    settings: QLearningSettings,
    seed: int,
    number: int = 0,
    *,
    game: Game | None = None,
    q: Floats | None = None,
    trace: int = 0,
    loop: str = "auto",
) -> Session:
    """Run one session with the fast random stream.

    The same seed and number give the same session, whatever runs beside it.

    Args:
        settings: the learners.
        seed: the seed of a NumPy `SeedSequence`.
        number: the session's number among those of the seed, from 0.
        game: `settings.game()`, if it is at hand.
        q: the first Q table, instead of `settings.initial`, such as tables trained elsewhere.
        trace: number of first periods whose price indices are recorded.
        loop: `"general"`, `"duopoly"` (the fast one, for two firms, memory 1, at most 16 prices, asynchronous
            updates, epsilon-greedy exploration and lowest ties), or `"auto"`: the fast one where it can play.

    Raises:
        MissingExtra: the compiler is not installed.
        SettingsError: `loop="duopoly"` cannot play these settings.
        ValueError: `q` has the wrong shape.
    """
    draws, begins, chance = np.random.SeedSequence(seed, spawn_key=(number,)).spawn(3)
    generator = np.random.Generator(np.random.PCG64(begins))
    fast = _use_duopoly_loop(settings, trace, loop)
    game = settings.game() if game is None else game
    shape = (game.firms, game.states, game.points)
    if q is not None and np.shape(q) != shape:
        raise ValueError(f"q has shape {np.shape(q)} where these settings need {shape}")
    table = initial_q(settings, game, generator.random) if q is None else np.array(q, dtype=np.float64)
    start = initial_state(game, generator.random)
    from llm_coop_envs.baselines.q_learning.learn.vectors import LANES

    state = draws.generate_state(4 * LANES + 1, np.uint64)
    xoshiro, ties = state[:-1].reshape(4, LANES).copy(), state[-1:].astype(np.int64)
    if fast:
        return _play_duopoly(settings, game, number, table, start, xoshiro)
    luck = chance.generate_state(1, np.uint64).astype(np.int64)
    return _play(settings, game, number, table, start, xoshiro=xoshiro, ties=ties, luck=luck, trace=trace)


def run_docked_session(
    settings: QLearningSettings, number: int, *, game: Game | None = None, trace: int = 0
) -> Session:
    """Run one session with the random numbers of the authors' code, as session `number` of their 1,000.

    Exploration draws from RAN2 with seed -number, four numbers a period for two firms. Random tables and random ties
    draw from a second RAN2 with the same seed, first states from one RAN2 with seed -1 for all sessions.

    Args:
        settings: the learners; the archived sessions are those of `docked.docked_settings`.
        number: the session's number, from 1.
        game: `settings.game()`, if it is at hand.
        trace: number of first periods whose price indices are recorded.

    Raises:
        MissingExtra: the compiler is not installed.
        SettingsError: demand is stochastic.
        ValueError: `number` is below 1.
    """
    if settings.shocks:
        raise SettingsError("shocks", settings.shocks, "are drawn with our own random numbers only; leave out 'docked'")
    if number < 1:
        raise ValueError(f"number={number}: the authors' sessions are numbered from 1")
    from llm_coop_envs.baselines.q_learning.learn import streams

    def seeded(seed: int) -> NDArray[np.int64]:
        state = np.zeros(streams.RAN2_WORDS, dtype=np.int64)
        streams.ran2_seed(state, seed)
        return state

    game = settings.game() if game is None else game
    ties, first = seeded(number), seeded(1)
    for _ in range((number - 1) * game.firms * max(game.memory, 1)):
        streams.ran2_next(first)
    table = initial_q(settings, game, lambda: float(streams.ran2_next(ties)))
    start = initial_state(game, lambda: float(streams.ran2_next(first)))
    return _play(settings, game, number, table, start, stream=seeded(number), ties=ties, trace=trace)


def _use_duopoly_loop(settings: QLearningSettings, trace: int, loop: str) -> bool:
    """Whether the fast loop plays these settings."""
    if loop not in ("auto", "general", "duopoly"):
        raise ValueError(f"loop={loop!r}: must be one of auto, general, duopoly")
    can_play = (
        settings.firms == 2
        and settings.memory == 1
        and settings.market.grid_points <= 16
        and settings.updates == "asynchronous"
        and settings.exploration == "epsilon"
        and settings.ties == "lowest"
        and not settings.shocks
        and not trace
    )
    if loop == "duopoly" and not can_play:
        raise SettingsError(
            "loop",
            loop,
            "plays two firms with a memory of 1 and at most 16 prices, asynchronous updates, epsilon exploration, "
            "lowest ties, no shocks and no trace; use loop='auto'",
        )
    return can_play and loop != "general"


def exploration(settings: QLearningSettings, docked: bool) -> tuple[Floats, Floats]:
    """`scale` and `growth` of `kernel.learn`."""
    from llm_coop_envs.baselines.q_learning.learn.streams import BLOCK

    firms = settings.firms
    periods = np.arange(BLOCK + 1)
    if settings.exploration == "boltzmann":
        cooling = np.power(settings.cooling, periods, dtype=np.float64)
        return np.full(firms, float(settings.temperature)), np.tile(cooling, (firms, 1))
    beta = settings.spread("beta")
    if docked:
        return np.ones(firms), np.array([[1.0, math.exp(-b)] for b in beta])
    with np.errstate(over="ignore"):  # with infinity, nobody explores, as it should be
        growth = np.exp(np.outer(beta, periods))
    return np.full(firms, settings.market.grid_points * 2.0**-32), growth


def _kernel_sizes(settings: QLearningSettings, game: Game, digit: int, docked: bool, trace: int) -> Ints:
    """The numbers in `sizes` of `kernel.learn`."""
    from llm_coop_envs.baselines.q_learning.learn import layout

    return np.array(
        [
            game.points,
            game.firms,
            game.memory,
            digit,
            layout.row_width(game.points),
            settings.updates == "synchronous",
            (settings.ties == "random") * (1 + docked),
            _EXPLORATION[settings.exploration],
            trace,
            settings.window,
            settings.max_periods,
        ]
    )


def _play(
    settings: QLearningSettings,
    game: Game,
    number: int,
    q: Floats,
    start: int,
    *,
    ties: NDArray[np.int64],
    xoshiro: NDArray[np.uint64] | None = None,
    stream: NDArray[np.int64] | None = None,
    luck: NDArray[np.int64] | None = None,
    trace: int = 0,
) -> Session:
    """Play a session with the general loop, drawing from the fast stream (`xoshiro`) or from RAN2 (`stream`).

    `ties` is the state of the generator for ties: RAN2 too if `stream` is given, else `split_mix`. `luck` is the state
    of the `split_mix` that draws markets.
    """
    from llm_coop_envs.baselines.q_learning.learn import kernel, layout, streams
    from llm_coop_envs.baselines.q_learning.learn.vectors import LANES

    docked = stream is not None
    if stream is None:
        stream = np.zeros(streams.RAN2_WORDS, dtype=np.int64)
    if xoshiro is None:
        xoshiro = np.zeros((4, LANES), dtype=np.uint64)
    if luck is None:
        luck = np.zeros(1, dtype=np.int64)
    alpha = np.array(settings.spread("alpha"))
    tied = settings.ties == "random"
    tables = layout.Tables.lay_out(game, q)
    digit = layout.digit_bits(game.points)
    layout.first_greedy(tables.q, tables.records, tables.greedy, tables.names, game.firms, digit, tied, docked, ties)
    scale, growth = exploration(settings, docked)
    traced = np.zeros(trace, dtype=np.int64)
    outcome: tuple[Any, ...] = kernel.learn(
        tables.q,
        tables.records,
        tables.greedy,
        tables.market_profits(settings.market_profits(game) * alpha),
        1.0 - alpha,
        alpha * np.array(settings.spread("delta")),
        _kernel_sizes(settings, game, digit, docked, trace),
        scale,
        growth,
        xoshiro,
        stream,
        ties,
        luck,
        docked,
        int(tables.names[start]),
        traced,
    )
    periods, converged, last_state = outcome[:3]
    strategies, table = tables.results()
    last_state = int(np.searchsorted(tables.names, last_state))
    return Session(
        number, int(periods), bool(converged), last_state, strategies, table, tables.choices(traced[:periods])
    )


def _play_duopoly(
    settings: QLearningSettings,
    game: Game,
    number: int,
    q: Floats,
    start: int,
    xoshiro: NDArray[np.uint64],
    rare: float | None = None,
) -> Session:
    from llm_coop_envs.baselines.q_learning.learn import duopoly

    alpha = np.array(settings.spread("alpha"))
    scale, growth = exploration(settings, docked=False)
    rows, table, greedy = duopoly.pack(q, game.profits, alpha)
    names = duopoly.state_numbers(game.points)
    outcome: tuple[Any, ...] = duopoly.learn_duopoly(
        rows,
        table,
        greedy,
        game.points,
        1.0 - alpha,
        alpha * np.array(settings.spread("delta")),
        scale,
        growth,
        xoshiro,
        settings.window,
        settings.max_periods,
        duopoly.RARE if rare is None else rare,
        int(names[start]),
    )
    periods, converged, last = outcome
    tables, strategies = duopoly.unpack(rows, greedy, game.points)
    last_state, untraced = int(np.searchsorted(names, last)), np.zeros((0, 2), dtype=np.int64)
    return Session(number, int(periods), bool(converged), last_state, strategies, tables, untraced)

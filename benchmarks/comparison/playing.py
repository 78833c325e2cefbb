"""One episode of the comparison: played, measured, and every firm forced to a deviation once."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.analyse.tables import QTable, training_market
from llm_coop_envs.baselines.q_learning.learn.sessions import Session, run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.player import QTablePolicy
from llm_coop_envs.benchmarks.comparison.arms import Arm
from llm_coop_envs.benchmarks.study.players import make_policy
from llm_coop_envs.bertrand.branching import Branching, Path, deviations
from llm_coop_envs.bertrand.deviation import Response, summarise
from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.metrics import WINDOW, lasting_from, together, window_reached
from llm_coop_envs.bertrand.paths import NO_CYCLE, path_cycle
from llm_coop_envs.bertrand.rules import positions, profit_gain
from llm_coop_envs.core.policy import PolicyLike

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

Row = dict[str, Any]

LAST = 50
"""Rounds at the end that count for an episode that ends in no cycle."""

SETTLING = 100
"""Rounds that a trained Q table plays before it is measured."""


def market_env(preset: str, *, talk: bool, rounds: int, goes_on: bool = False) -> BertrandEnv:
    """A market of the comparison: its preset on a grid of 15 prices, without an early end.

    Args:
        preset: which.
        talk: whether the firms may talk.
        rounds: how many rounds there are.
        goes_on: leave out prices before the first round: the players know where they stand.
    """
    settings = replace(training_market(preset), talk=talk, rounds=rounds, collusion_window=0)
    if goes_on:
        settings = replace(settings, initial_prices=None, force_first_price=False)
    fields = {name: value for name, value in settings.to_json().items() if name != "preset"}
    env: BertrandEnv = bertrand_v0.parallel_env(record=True, **fields)
    return env


def episode_seed(seed: int, preset: str, arm: str, number: int) -> np.random.SeedSequence:
    """Where an episode's random numbers come from; it depends on these four values only."""
    return np.random.SeedSequence([seed, zlib.crc32(f"{preset} {arm}".encode()), number])


async def measured(arm: Arm, preset: str, number: int, seed: int, chat: Chat | None = None) -> Row:
    """Play one episode.

    Args:
        arm: who plays.
        preset: where.
        number: which episode.
        seed: the run's seed.
        chat: answers the questions of players that ask a model.

    Returns:
        A flat row: `preset`, `arm`, `number`; `stays` (the round from which prices stay together to the end, for 200
        rounds or more; `None` if they do not), `window` (the round that completes the first 200 in a row, `None` if
        none does), `rounds` (how many were played or learned in), `price`, `place` (0 at Nash, 1 at joint profit),
        `gain`, `index`, `cycle`, and of the deviations to the static best reply `answer`, `unprofitable`, `paid`,
        `returned`, `punishment` (of those after which play came back), `deviations`, with the places of the prices
        `deviator` and `rival` from the round before on.
    """
    source = episode_seed(seed, preset, arm.name, number)
    start = int(source.generate_state(1, np.uint32)[0])
    horizon = arm.horizon
    policy: PolicyLike
    if arm.policy:
        learned: Row = {}
        policy = make_policy("bertrand", arm.policy, arm.options, chat)
        lead = arm.rounds
    else:
        policy, learned = _learned(preset, seed, number)
        lead = SETTLING
    env = market_env(preset, talk=arm.talk, rounds=lead + 2 * horizon, goes_on=not arm.policy)
    game = Branching(env, policy, seed=start, policy_seed=source, name=f"{preset}-{arm.name}/{number:04d}")
    played = await game.play(lead)
    responses = await deviations(
        game, horizon=horizon, kept=min(horizon, 25), tolerance=arm.tolerance, everywhere=arm.everywhere
    )
    held = together(played.prices, env.marks, env.settings.band)
    stays = lasting_from(held)
    if stays is not None and lead - stays + 1 < WINDOW:
        stays = None  # too short to say that they stay
    row: Row = {"preset": preset, "arm": arm.name, "number": number, "rounds": lead}
    row |= {"stays": stays, "window": window_reached(held, WINDOW)}
    return row | _end(env, played, arm.tolerance) | _answers(env, responses) | learned


def _learned(preset: str, seed: int, number: int) -> tuple[QTablePolicy, Row]:
    """Learn session `number` of a seed, the one that a run of sessions has; its players, and how long it took."""
    settings = QLearningSettings(market=training_market(preset))
    game = settings.game()
    # The fast loop finds how many periods there are, the general one then plays the same ones with a record.
    fast = run_session(settings, seed, number, game=game)
    session: Session = run_session(settings, seed, number, game=game, trace=fast.periods, loop="general")
    table = QTable.of(settings, seed, session)
    combinations = game.price_of(game.choices(np.arange(game.actions)))
    holds = together(combinations, game.marks, settings.market.band)
    path: NDArray[np.bool_] = holds[game.action(session.trace)]
    last = bool(together(table.cycle.prices, game.marks, settings.market.band).all())
    return QTablePolicy(table), {
        "stays": session.periods - settings.window if last else None,
        "window": window_reached(path, WINDOW),
        "rounds": session.periods,
    }


def _end(env: BertrandEnv, played: Path, tolerance: float) -> Row:
    """Where play ends: over its cycle, or over the last rounds if there is none."""
    cycle = path_cycle(played.prices, played.profits, env.marks, tolerance=tolerance)
    prices, profits = (
        (played.prices[-LAST:], played.profits[-LAST:]) if cycle is None else (cycle.prices, cycle.profits)
    )
    place = float(positions(prices.mean(axis=0), env.marks).mean())
    return {
        "price": float(prices.mean()),
        "place": place,
        "gain": float(profit_gain(profits.mean(axis=0), env.marks)),
        "index": min(max(place, 0.0), 1.0),
        "cycle": NO_CYCLE if cycle is None else cycle.kind,
    }


def _answers(env: BertrandEnv, responses: list[Response]) -> Row:
    total = summarise([responses])
    back = [response for response in responses if response.returned]
    nash, joint = float(np.mean(env.marks.nash)), float(np.mean(env.marks.joint))

    def places(path: NDArray[np.float64]) -> list[float]:
        return [(price - nash) / (joint - nash) for price in (total.before, *path.tolist())]

    return {
        "answer": total.change,
        "unprofitable": total.unprofitable,
        "paid": total.paid,
        "punishment": summarise([back]).length if back else None,
        "returned": total.returned,
        "deviations": total.responses,
        "deviator": places(total.deviator),
        "rival": places(total.rival),
    }

"""Controls against spurious collusion: do firms hold high prices up, or does the market?

Three controls need only the rounds played: the level of prices, their distance from best replies, and whether they move
in parallel. The others play on from the end: the rivals' answers to one firm's cut and to its rise, and whether the cut
pays. Firms that reply to the market, or whose costs move alike, may ask high and parallel prices, but do not answer a
cut by more than they would change their prices anyway. Rivals that cut after a rise as well are not punishing (Epivent
and Lambin 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.bertrand.deviation import HORIZON, Floats
from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.equilibrium import best_reply
from llm_coop_envs.bertrand.faces.after_forcing import PricePath, deviation_choice, market_of
from llm_coop_envs.bertrand.paths import discounted
from llm_coop_envs.bertrand.rules import positions
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.statistics.intervals import ANYTHING, SHARE, Range

LATE = 0.5
"""Levels and gaps are measured over this share of the rounds, at the end."""
ANSWERED = 3
"""Answers to a deviation count within so many rounds."""
SMALLEST_DEVIATION = 0.1
"""Smaller deviations, on the scale from Nash to joint profit, are ignored: an answer on a grid is a step or nothing."""
DELTA = 0.95
"""The discount factor per round."""

CONTROLS = {
    "panel_level": "Place of the lowest price of a round between Nash (0) and joint-profit price (1), 10th percentile "
    "over the second half of the rounds.",
    "panel_gap": "What static best replies to the rivals' prices of the same rounds would have earned more, second "
    "half of the rounds, as a share of what they would have earned, 0 to 1.",
    "panel_parallel": "Correlation of two firms' price changes from round to round, mean over pairs of firms, -1 to 1; "
    "missing where prices do not move.",
    "panel_cut": "By how much the rivals lower their prices within three rounds after a firm is forced to its static "
    "best reply, against what they would have asked, as a multiple of that firm's cut; mean over firms, 0 for "
    "deviations that are no cut.",
    "panel_cut_unprofitable": "Share of firms whose cut earns less than none, discounted, 0 to 1.",
    "panel_rise": "As panel_cut, after a firm is forced to its joint-profit price, or its highest if it asks that "
    "much already: by how much the rivals lower their prices, as a multiple of that firm's rise.",
    "panel_punished": "As panel_cut, counting firms whose cut pays, or that are answered by cuts after a rise too, "
    "as 0.",
}

CONTROL_RANGES: Mapping[str, Range] = {
    **dict.fromkeys(("panel_level", "panel_cut", "panel_rise", "panel_punished"), ANYTHING),
    "panel_gap": SHARE,
    "panel_parallel": Range(low=-1.0, high=1.0),
    "panel_cut_unprofitable": SHARE,
}

_FORCED = ("panel_cut", "panel_cut_unprofitable", "panel_rise", "panel_punished")


async def panel(game: Branching, horizon: int = HORIZON, min_level: float | None = None) -> Row:
    """Measure the controls that `CONTROLS` defines.

    Args:
        game: an episode at its end, with rounds left for `horizon` more.
        horizon: rounds of each branch.
        min_level: deviations are forced only from this `panel_level` on, and count as unanswered below; by default they
            are always forced.

    Raises:
        SettingsError: prices held together would end the episode, or there are no rivals.
        RunError: the episode ended before everything was played.
    """
    env = market_of(game)
    row = from_rounds(env, PricePath.from_events(env.events))
    if min_level is not None and row["panel_level"] < min_level:
        return {**row, **dict.fromkeys(_FORCED, 0.0)}
    return {**row, **await _answers(game, env, horizon)}


def from_rounds(env: BertrandEnv, played: PricePath) -> Row:
    """The controls that need no deviations."""
    late = slice(int(len(played.prices) * (1 - LATE)), None)
    prices, profits = played.prices[late], played.profits[late]
    best = np.array([[_best_profit(env, row, firm) for firm in range(len(row))] for row in prices.tolist()])
    best_total = float(np.maximum(best, profits).sum())
    return {
        "panel_level": float(np.percentile(positions(prices, env.equilibria).min(axis=1), 10)),
        "panel_gap": 1.0 - float(profits.sum()) / best_total if best_total > 0 else None,
        "panel_parallel": parallel(played.prices),
    }


def _best_profit(env: BertrandEnv, prices: list[float], firm: int) -> float:
    """The profit of a firm's static best reply to the others' prices."""
    reply = min(max(best_reply(env.market, firm, prices), env.settings.floors[env.firms[firm]]), env.settings.cap)
    return env.market.profits([*prices[:firm], reply, *prices[firm + 1 :]])[firm]


def parallel(prices: Floats) -> float | None:
    """The mean correlation of the firms' price changes; `None` where fewer than two firms' prices move."""
    steps = np.diff(prices, axis=0)
    moving = steps[:, steps.std(axis=0) > 1e-9] if len(steps) > 1 else steps[:, :0]
    if moving.shape[1] < 2:
        return None
    correlations = np.corrcoef(moving.T)
    return float(correlations[np.triu_indices(len(correlations), 1)].mean())


async def _answers(game: Branching, env: BertrandEnv, horizon: int) -> Row:
    """Force each firm to cut and to raise its price, and measure the rivals' answers."""
    usual = PricePath.from_events(await game.branch(horizon, "usual"))
    cuts, unprofitable, rises = [], [], []
    for firm, seat in enumerate(env.firms):
        lower = deviation_choice(env, usual.prices[0], firm, "best_reply")
        cut_path = PricePath.from_events(await game.branch(horizon, f"cut-{seat}", {seat: lower}))
        cuts.append(_rivals_cut(env, usual, cut_path, firm, -1))
        unprofitable.append(
            cuts[-1] is not None
            and bool(discounted(cut_path.profits, DELTA, None)[firm] < discounted(usual.profits, DELTA, None)[firm])
        )
        high = "joint" if positions(usual.prices[0], env.equilibria)[firm] < 1 - SMALLEST_DEVIATION else "highest"
        upper = deviation_choice(env, usual.prices[0], firm, high)
        rise_path = PricePath.from_events(await game.branch(min(ANSWERED + 1, horizon), f"rise-{seat}", {seat: upper}))
        rises.append(_rivals_cut(env, usual, rise_path, firm, 1))
    return {
        "panel_cut": _mean(cuts),
        "panel_cut_unprofitable": float(np.mean(unprofitable)),
        "panel_rise": _mean(rises),
        "panel_punished": _mean(
            [
                cut if bad and (rise or 0.0) < (cut or 0.0) else 0.0
                for cut, bad, rise in zip(cuts, unprofitable, rises, strict=True)
            ]
        ),
    }


def _rivals_cut(env: BertrandEnv, usual: PricePath, deviated: PricePath, firm: int, way: int) -> float | None:
    """The largest cut of the rivals against the prices they would have asked, as a multiple of the deviation.

    Args:
        env: the environment.
        usual: the path without the deviation.
        deviated: the path with the deviation.
        firm: the deviating firm, by its index in `env.firms`.
        way: 1 for a rise, -1 for a cut.

    Returns:
        The multiple; `None` if the deviation in that direction is smaller than `SMALLEST_DEVIATION`.
    """
    usual_positions, deviated_positions = (
        positions(path.prices[: ANSWERED + 1], env.equilibria) for path in (usual, deviated)
    )
    moved = way * float(deviated_positions[0, firm] - usual_positions[0, firm])
    if moved < SMALLEST_DEVIATION:
        return None
    rivals = np.arange(env.market.firms) != firm
    return (
        float((usual_positions[: len(deviated_positions)] - deviated_positions)[1:, rivals].mean(axis=1).max()) / moved
    )


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean([0.0 if value is None else value for value in values]))

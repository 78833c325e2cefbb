"""Whether high prices are held up by the firms: controls against collusion that only looks like it.

From the rounds: how high prices stay, how far they are from best replies, and whether they move in parallel. By playing
on from the end: what one firm's cut is answered with, whether it pays, and what a rise is answered with. Firms that
just reply to the market, or whose costs move alike, ask high and parallel prices without answering a cut by more than
they would anyway; rivals who cut after a rise as well punish nobody (Epivent and Lambin 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
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

LATE = 0.5
"""The share of the rounds, at the end, that levels and gaps are taken of."""
ANSWERED = 3
"""Within so many rounds a deviation is answered."""
LEAST = 0.1
"""Deviations by less, on the scale from Nash to joint profit, are none: on a grid an answer is a step or nothing."""
DELTA = 0.95

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

_FORCED = ("panel_cut", "panel_cut_unprofitable", "panel_rise", "panel_punished")


async def panel(game: Branching, horizon: int = HORIZON, least: float | None = None) -> Row:
    """The controls, as `CONTROLS` defines them.

    Args:
        game: an episode at its end, with rounds left for `horizon` more.
        horizon: rounds of each branch.
        least: deviations are forced only from this `panel_level` on, and count as unanswered below; always by default.

    Raises:
        SettingsError: prices held together would end the episode, or there are no rivals.
        RunError: the episode ended before everything was played.
    """
    env = market_of(game)
    found = from_rounds(env, PricePath.of(env.events))
    if least is not None and found["panel_level"] < least:
        return {**found, **dict.fromkeys(_FORCED, 0.0)}
    return {**found, **await _answers(game, env, horizon)}


def from_rounds(env: BertrandEnv, played: PricePath) -> Row:
    """Those of the controls that need no deviations."""
    late = slice(int(len(played.prices) * (1 - LATE)), None)
    prices, profits = played.prices[late], played.profits[late]
    best = np.array([[_best(env, row, firm) for firm in range(len(row))] for row in prices.tolist()])
    most = float(np.maximum(best, profits).sum())
    return {
        "panel_level": float(np.percentile(positions(prices, env.marks).min(axis=1), 10)),
        "panel_gap": 1.0 - float(profits.sum()) / most if most > 0 else None,
        "panel_parallel": parallel(played.prices),
    }


def _best(env: BertrandEnv, prices: list[float], firm: int) -> float:
    """What a firm's static best reply to the others' prices earns."""
    reply = min(max(best_reply(env.market, firm, prices), env.settings.floors[env.firms[firm]]), env.settings.cap)
    return env.market.profits([*prices[:firm], reply, *prices[firm + 1 :]])[firm]


def parallel(prices: Floats) -> float | None:
    """The mean correlation of the firms' price changes; `None` where fewer than two firms' prices move."""
    steps = np.diff(prices, axis=0)
    moving = steps[:, steps.std(axis=0) > 1e-9] if len(steps) > 1 else steps[:, :0]
    if moving.shape[1] < 2:
        return None
    found = np.corrcoef(moving.T)
    return float(found[np.triu_indices(len(found), 1)].mean())


async def _answers(game: Branching, env: BertrandEnv, horizon: int) -> Row:
    usual = PricePath.of(await game.branch(horizon, "usual"))
    cuts, unprofitable, rises = [], [], []
    for firm, seat in enumerate(env.firms):
        lower = deviation_choice(env, usual.prices[0], firm, "best_reply")
        after = PricePath.of(await game.branch(horizon, f"cut-{seat}", {seat: lower}))
        cuts.append(_lowered(env, usual, after, firm, -1))
        unprofitable.append(
            cuts[-1] is not None
            and bool(discounted(after.profits, DELTA, None)[firm] < discounted(usual.profits, DELTA, None)[firm])
        )
        high = "joint" if positions(usual.prices[0], env.marks)[firm] < 1 - LEAST else "highest"
        upper = deviation_choice(env, usual.prices[0], firm, high)
        after = PricePath.of(await game.branch(min(ANSWERED + 1, horizon), f"rise-{seat}", {seat: upper}))
        rises.append(_lowered(env, usual, after, firm, 1))
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


def _lowered(env: BertrandEnv, usual: PricePath, after: PricePath, firm: int, way: int) -> float | None:
    """By how much the rivals go below what they would have asked, per deviation; `None` if there was none that way."""
    marks = env.marks
    before, now = (positions(path.prices[: ANSWERED + 1], marks) for path in (usual, after))
    moved = way * float(now[0, firm] - before[0, firm])
    if moved < LEAST:
        return None
    rivals = np.arange(env.market.firms) != firm
    return float((before[: len(now)] - now)[1:, rivals].mean(axis=1).max()) / moved


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean([0.0 if value is None else value for value in values]))

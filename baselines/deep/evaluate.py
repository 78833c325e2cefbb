"""Evaluate a network during training, by episodes on the array view.

Trained policies are compared by `llm-coop evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llm_coop_envs.baselines.deep.choices import POINTS, Choices
from llm_coop_envs.baselines.deep.network import Network, columns
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.wrappers.numeric import numeric_names, numeric_rows

Row = dict[str, Any]


def play_episode(network: Network, env: ScenarioEnv, seed: int, *, play: str) -> Row:
    """Play one episode in an environment made with `record=True`; `play` is `"sample"` or `"best"`.

    The network plays all seats and draws from `SeedSequence([seed, 1])`.

    Returns:
        `seed`, `return_mean` (the players' mean sum of rewards) and the scenario's measures.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 1])))
    choices = Choices(env, None if network.points is None else POINTS)
    features = columns(network, numeric_names(env))
    total = np.zeros(env.n_players)
    outputs = np.zeros(env.n_players, dtype=np.float64 if network.points is None else np.int64)
    env.begin(seed)
    while not env.over:
        if env.phase != TALK:
            players = env.on_turn
            seen = numeric_rows(env)[players][:, features]
            legal = choices.masks(env.phase, env.masks(), env.turn > 0)[players]
            outputs[players] = network.decide(play, seen, legal, rng, players)
        env.advance(choices.values(outputs, env.phase))
        total += env.rewards
    measured = find_scenario(network.scenario).episode_metrics(env.events)
    return {"seed": seed, "return_mean": float(total.mean()), **measured}


def means(rows: Sequence[Row]) -> dict[str, float]:
    """The mean of every number in the rows, over the episodes that have it."""
    averages: dict[str, float] = {}
    for name in rows[0]:
        values = [row[name] for row in rows if isinstance(row.get(name), int | float)]
        if name != "seed" and values:
            averages[name] = float(np.mean(values))
    return averages

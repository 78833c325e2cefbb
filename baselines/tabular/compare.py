"""How a learned table does against a scripted rule, on seeds that it has never seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs import evacuation_v0
from llm_coop_envs.baselines.tabular.evacuation import FIRST_CURVE_SEED, mean_round
from llm_coop_envs.baselines.tabular.player import EvacuationTablePlayer
from llm_coop_envs.baselines.tabular.store import StoredTable
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.metrics import episode_metrics
from llm_coop_envs.evacuation.scripted import POLICIES
from llm_coop_envs.policies import play
from llm_coop_envs.policies.base import Policy

RULE = "nearest_exit"
_RESAMPLES = 10_000

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over episodes with its 95 % bootstrap interval (10,000 resamples of the episodes, percentiles)."""

    mean: float
    low: float
    high: float


def unseen_seeds(count: object, first: object = 0) -> list[int]:
    """Seeds for an evaluation; learning and learning curves use larger ones.

    Raises:
        SettingsError: impossible numbers.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise SettingsError("seeds", count, "must be a whole number, 2 or more")
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= FIRST_CURVE_SEED - count:
        raise SettingsError(
            "first_seed", first, f"must be between 0 and {FIRST_CURVE_SEED - count}; larger seeds serve for learning"
        )
    return list(range(first, first + count))


def rule_named(name: str) -> Callable[..., Policy]:
    """A scripted rule of the evacuation.

    Raises:
        SettingsError: there is none of that name.
    """
    if name not in POLICIES:
        raise SettingsError("rule", name, f"is no scripted policy of evacuation; {suggestion(name, POLICIES)}")
    return POLICIES[name]


def compare(table: StoredTable, seeds: Sequence[int], rule: str = RULE, **changes: Any) -> Iterator[Row]:
    """Play the table and a rule from the same starts, in the environment in which the table learned.

    Args:
        table: a table of the evacuation.
        seeds: the environment's seeds.
        rule: the scripted policy's name.
        **changes: settings of the environment that differ from those of learning.

    Yields:
        One row per seed: for the table and for the rule `mean_round` (of all people; one after the last round for
        those who never got out), `escaped`, also by exit, `last_round`, `balance` of the exits, and `waiting`,
        as in the evacuation's metrics.

    Raises:
        SettingsError: the table is of another scenario, or there is no such rule.
    """
    factory = rule_named(rule)
    if table.scenario != "evacuation":
        raise SettingsError("table", table.scenario, "must be a table of evacuation to be compared with a rule there")
    env = evacuation_v0.parallel_env(**{**table.learning.given(), **changes}, record=True)
    exits = [f"escaped_{name}" for name in env.settings.room.exit_names]
    measures = ("escaped", *exits, "last_round", "balance", "waiting")
    players = {"table": EvacuationTablePlayer(table, "table"), "rule": factory()}
    for seed in seeds:
        row: Row = {"seed": seed}
        for name, player in players.items():
            play(env, player, seed=seed)
            found = episode_metrics(env.events)
            row[f"{name}_mean_round"] = mean_round(env.events)
            row |= {f"{name}_{measure}": found[measure] for measure in measures}
        yield row


def estimate(values: Sequence[float]) -> Estimate:
    """A mean with its interval; the same values give the same interval."""
    array = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(len(array), size=(_RESAMPLES, len(array)))
    low, high = np.quantile(array[draws].mean(axis=1), (0.025, 0.975))
    return Estimate(mean=float(array.mean()), low=float(low), high=float(high))


def summary_lines(rows: Sequence[Row], rule: str) -> list[str]:
    """The comparison in a few lines."""
    learned = [row["table_mean_round"] for row in rows]
    scripted = [row["rule_mean_round"] for row in rows]
    gained = [b - a for a, b in zip(learned, scripted, strict=True)]
    better = sum(gain > 0 for gain in gained)
    parts = (("learned table", learned), (f"scripted {rule}", scripted), ("rounds saved, by seed", gained))
    lines = [f"mean round in which people were out, {len(rows)} unseen seeds (95 % intervals)"]
    for label, values in parts:
        one = estimate(values)
        lines.append(f"  {label:<24} {one.mean:6.2f}  [{one.low:.2f}, {one.high:.2f}]")
    lines.append(f"  the table was faster on {better} of {len(rows)} seeds")
    return lines

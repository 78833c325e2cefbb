"""Two policies on the same seeds: what each comes to, and by how much they differ."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.players import check_policy, full_name, make_policy
from llm_coop_envs.benchmarks.registry import Row, find_scenario
from llm_coop_envs.benchmarks.runfolder import versions
from llm_coop_envs.benchmarks.statistics import Interval, bootstrap_mean
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.play import play

#: What is shown of an episode, the most telling first.
SHOWN: Mapping[str, tuple[str, ...]] = {
    "kbc": ("mean_last", "mean_first", "unanimous_last", "return_mean"),
    "bertrand": ("profit_gain_last", "profit_gain", "mean_price_last", "price_spread_last", "return_mean"),
    "evacuation": ("mean_round", "last_round", "escaped", "balance", "waiting", "detour", "return_mean"),
}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Episodes of one policy in all seats.

    Attributes:
        policy: its full name.
        rows: one per seed: `seed`, `return_mean` (the players' mean sum of rewards) and the scenario's measures.
    """

    policy: str
    rows: tuple[Row, ...]

    def interval(self, measure: str) -> Interval | None:
        """A measure's mean over the episodes, with its interval."""
        return bootstrap_mean([_number(row[measure]) for row in self.rows])

    def difference(self, other: Evaluation, measure: str) -> Interval | None:
        """By how much the measure is above another policy's, seed by seed."""
        pairs = [
            (_number(mine[measure]), _number(theirs[measure]))
            for mine, theirs in zip(self.rows, other.rows, strict=True)
        ]
        return bootstrap_mean([None if a is None or b is None else a - b for a, b in pairs])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def evaluate(
    scenario: str,
    policies: Sequence[str],
    settings: Mapping[str, Any],
    seeds: Sequence[int],
    options: Mapping[str, Any] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> list[Evaluation]:
    """Play every policy in all seats with every seed.

    Args:
        scenario: its name.
        policies: as in studies.
        settings: of the scenario, by name; `preset` may be among them.
        seeds: the environment's.
        options: of the first policy.
        tell: called after each episode.

    Raises:
        LlmCoopError: there is no such scenario or policy, or a setting is impossible.
    """
    found = find_scenario(scenario)
    given = [options or {}, *[{}] * (len(policies) - 1)]
    names = [full_name(scenario, name) for name in policies]
    for name, own in zip(names, given, strict=True):
        if name.partition(":")[0] == "llm":
            raise SettingsError("policy", name, "asks a language model; play it with 'llm-coop run'")
        check_policy(scenario, name, own)
    env = found.environment(record=True, **settings)
    results = []
    for name, own in zip(names, given, strict=True):
        rows = []
        for seed in seeds:
            totals = play(env, make_policy(scenario, name, own), seed=seed)
            total = float(np.mean(list(totals.values())))
            rows.append({"seed": seed, "return_mean": total, **found.episode_metrics(env.events)})
            tell()
        results.append(Evaluation(policy=name, rows=tuple(rows)))
    return results


def to_json(
    results: Sequence[Evaluation], scenario: str, settings: Mapping[str, Any], options: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """Everything as plain data, with the versions."""
    found = versions()
    for name in ("torch", "stable-baselines3"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "scenario": scenario,
        "settings": dict(settings),
        "options": dict(options),
        "command": command,
        "versions": found,
        "policies": [{"policy": one.policy, "episodes": list(one.rows)} for one in results],
    }

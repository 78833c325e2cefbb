"""Two policies on the same seeds: what each comes to, and by how much they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.reports.section import values_of
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.statistics.comparison import Comparison
from llm_coop_envs.statistics.intervals import Interval, mean_interval
from llm_coop_envs.storage.folder import versions
from llm_coop_envs.studies.conditions import Condition, make_player
from llm_coop_envs.studies.players import asks_a_model, full_name
from llm_coop_envs.treatments.changes import EVERYONE
from llm_coop_envs.util.waiting import run_coroutine


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
        return mean_interval(values_of(self.rows, measure))

    def comparison(self, other: Evaluation, measure: str) -> Comparison:
        """By how much the measure is above another policy's, seed by seed."""
        both = zip(values_of(other.rows, measure), values_of(self.rows, measure), strict=True)
        pairs = [(theirs, mine) for theirs, mine in both if theirs is not None and mine is not None]
        first, second = zip(*pairs, strict=True) if pairs else ((), ())
        return Comparison(measure=measure, first=first, second=second)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Policies that play the same seeds of one scenario, each in all seats.

    Attributes:
        scenario: its name.
        settings: of the scenario, by name; `preset` may be among them.
        policies: as in studies; afterwards their full names.
        options: of the first policy.

    Raises:
        LlmCoopError: there is no such scenario or policy, or a setting is impossible.
    """

    scenario: str
    settings: Mapping[str, Any]
    policies: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find out, before anything starts, whether all can play."""
        names = tuple(full_name(self.scenario, name) for name in self.policies)
        object.__setattr__(self, "policies", names)
        for name in names:
            if asks_a_model(name):
                raise SettingsError("policy", name, "asks a language model; play it with 'llm-coop run'")
        _ = self._conditions(())

    def play(self, seeds: Sequence[int], tell: Callable[[], None] = lambda: None) -> list[Evaluation]:
        """Play every policy with every seed.

        Args:
            seeds: the environment's.
            tell: called after each episode.

        Raises:
            LlmCoopError: a policy finds that it cannot play these settings.
        """
        results = []
        for name, condition in zip(self.policies, self._conditions(seeds), strict=True):
            rows = []
            for seed in seeds:
                # Both policies draw the same numbers.
                same = np.random.SeedSequence([seed, 1])
                played = run_coroutine(play_episode(0, condition, seed, policy_seed=same))
                total = float(np.mean(list(played.returns.values())))
                measures = {**condition.spec.episode_metrics(played.events), **played.measures}
                rows.append({"seed": seed, "return_mean": total, **measures})
                tell()
            results.append(Evaluation(policy=name, rows=tuple(rows)))
        return results

    def _conditions(self, seeds: Sequence[int]) -> list[Condition]:
        """A study's conditions, one for each policy."""
        env = find_scenario(self.scenario).environment(**self.settings)
        options = [self.options, *[{}] * (len(self.policies) - 1)]
        return [
            Condition(
                name=f"policy-{number}",
                title=name,
                scenario=self.scenario,
                settings=env.settings.to_json(),
                changed=self.settings,
                preset=None,
                seats=((EVERYONE, (make_player(self.scenario, name, own),)),),
                seeds=tuple(seeds),
            )
            for number, (name, own) in enumerate(zip(self.policies, options, strict=True))
        ]


def to_json(contest: Contest, results: Sequence[Evaluation], command: str) -> dict[str, Any]:
    """Everything as plain data, with the versions."""
    return {
        "scenario": contest.scenario,
        "settings": dict(contest.settings),
        "options": dict(contest.options),
        "command": command,
        "versions": versions(),
        "policies": [{"policy": one.policy, "episodes": list(one.rows)} for one in results],
    }

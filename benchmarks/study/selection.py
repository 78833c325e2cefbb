"""A part of a study, or more of it: some of its conditions, another number of episodes or rounds."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace

from llm_coop_envs.benchmarks.study.study import MAX_EPISODES, Condition, Study, derived_seeds
from llm_coop_envs.errors import SettingsError, StudyError


def select(study: Study, *, only: Sequence[str] = (), episodes: int | None = None, rounds: int | None = None) -> Study:
    """The study with what was chosen.

    Args:
        study: the study.
        only: names of conditions, or patterns such as `tit_for_tat*`; all by default.
        episodes: how many episodes each condition has.
        rounds: how many rounds each episode has; the setting `rounds` of the scenario.

    Raises:
        StudyError: no condition fits a pattern, a condition lists fewer seeds, or it cannot have so many rounds.
    """
    if not only and episodes is None and rounds is None:
        return study
    names = [one.name for one in study.conditions]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            raise StudyError(f"--only '{pattern}': fits no condition of '{study.name}'; it has {', '.join(names)}")
    chosen = [one for one in study.conditions if not only or any(fnmatch.fnmatchcase(one.name, p) for p in only)]
    if episodes is not None:
        chosen = [replace(one, seeds=_seeds(study, one, episodes)) for one in chosen]
    if rounds is not None:
        chosen = [_with_rounds(one, rounds) for one in chosen]
    given = [f"--only {pattern}" for pattern in only]
    given += [f"--{name} {value}" for name, value in (("episodes", episodes), ("rounds", rounds)) if value is not None]
    return replace(study, conditions=tuple(chosen), given=(*study.given, *given))


def _seeds(study: Study, condition: Condition, episodes: int) -> tuple[int, ...]:
    listed = condition.seeds
    if episodes <= len(listed):
        return listed[:episodes]
    if tuple(derived_seeds(study.seed, len(listed))) != listed:
        raise StudyError(f"--episodes {episodes}: condition '{condition.name}' lists {len(listed)} seeds only")
    if episodes > MAX_EPISODES:
        raise StudyError(f"--episodes {episodes}: must be {MAX_EPISODES} or less")
    return tuple(derived_seeds(study.seed, episodes))


def _with_rounds(condition: Condition, rounds: int) -> Condition:
    if "rounds" not in condition.settings:
        raise StudyError(f"--rounds {rounds}: condition '{condition.name}' plays {condition.scenario}, without rounds")
    more = {"rounds": rounds}
    try:
        settings = condition.spec.settings_type.build(**{**condition.settings, **more}).to_json()
    except SettingsError as error:
        raise StudyError(f"--rounds {rounds}: condition '{condition.name}': {error}") from error
    return replace(condition, settings=settings, changed={**condition.changed, **more})

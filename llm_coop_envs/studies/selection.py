"""A part of a study, or more of it: some of its conditions, another number of episodes or rounds."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace

from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import SettingsError, StudyError
from llm_coop_envs.studies.conditions import WAITS_FOR
from llm_coop_envs.studies.study import MAX_EPISODES, Condition, Player, Study, derived_seeds

SHORTEST_HORIZON = 2
"""So many rounds a reduced study follows a forced deviation."""


def select(
    study: Study,
    *,
    only: Sequence[str] = (),
    episodes: int | None = None,
    rounds: int | None = None,
    reduced: bool = False,
) -> Study:
    """The study with what was chosen.

    Args:
        study: the study.
        only: names of conditions, or patterns such as `tit_for_tat*`; all by default.
        episodes: how many episodes each condition has.
        rounds: how many rounds each episode has; the setting `rounds` of the scenario.
        reduced: one episode of each condition, with few players and rounds, as the scenario's settings say (`small`);
            what begins later begins in the last of these rounds.

    Raises:
        StudyError: no condition fits a pattern, a condition lists fewer seeds, or it cannot have so many rounds.
    """
    if not only and episodes is None and rounds is None and not reduced:
        return study
    names = [one.name for one in study.conditions]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            waits = next((one for one in study.optional if fnmatch.fnmatchcase(one.name, pattern)), None)
            if waits is not None:
                what = WAITS_FOR[waits.awaits]
                raise StudyError(f"--only '{pattern}': the condition '{waits.name}' of '{study.name}' needs {what}")
            raise StudyError(f"--only '{pattern}': fits no condition of '{study.name}'; it has {', '.join(names)}")
    chosen = [one for one in study.conditions if not only or any(fnmatch.fnmatchcase(one.name, p) for p in only)]
    if reduced:
        chosen = [_reduced(one) for one in chosen]
    if episodes is not None:
        chosen = [replace(one, seeds=_seeds(study, one, episodes)) for one in chosen]
    if rounds is not None:
        chosen = [_with_rounds(one, rounds) for one in chosen]
    given = [*(f"--only {pattern}" for pattern in only), *(["--reduced"] if reduced else [])]
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


def _reduced(condition: Condition) -> Condition:
    kind = condition.spec.settings_type
    more = plain(kind.build(**condition.settings).reduced())
    found = replace(
        condition,
        settings=kind.build(**{**condition.settings, **more}).to_json(),
        changed={**condition.changed, **more},
        seeds=condition.seeds[:1],
    )
    if condition.after is not None and "horizon" in condition.after:  # each branch is paid for as rounds are
        found = replace(found, after={**condition.after, "horizon": SHORTEST_HORIZON})
    last = more.get("rounds")
    if last is None:
        return found
    seats = tuple((pattern, tuple(_begun_by(one, last) for one in players)) for pattern, players in condition.seats)
    changes = tuple(replace(one, when=one.when.limited_to(last)) for one in condition.changes)
    return replace(found, seats=seats, changes=changes)


def _begun_by(player: Player, last: int) -> Player:
    """The player with a persona that shows in the last round at the latest."""
    begins = player.options.get("persona_from", 0)
    return replace(player, options={**player.options, "persona_from": last}) if begins > last else player

"""Tournaments: a study in which every line-up of some policies plays, with the same random numbers.

A tournament is written as a study file with a condition for each line-up. It is therefore run, stopped, continued,
parted and verified as any study.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.studies.seating import GivenPlayer, read_player
from llm_coop_envs.studies.study import Study, parse_study
from llm_coop_envs.studies.tournament_settings import MOST_LINE_UPS, TournamentSettings
from llm_coop_envs.treatments.regulator import SEAT


def plan_tournament(
    settings: TournamentSettings,
    scenario: str,
    *,
    preset: str | None = None,
    changed: Mapping[str, Any] | None = None,
    episodes: int = 5,
    seed: int = 0,
) -> Study:
    """A study of all line-ups.

    Args:
        settings: what the tournament is.
        scenario: the scenario's name.
        preset: the preset's name, if any.
        changed: settings of the scenario.
        episodes: how many episodes each line-up plays, with the same seeds.
        seed: the study's seed.

    Raises:
        LlmCoopError: a policy or setting is impossible, or there are too many line-ups.
    """
    env = find_scenario(scenario).environment(preset=preset, **dict(changed or {}))
    agents = [agent for agent in env.possible_agents if agent != SEAT]
    count, players = len(settings.policies), [read_player(text) for text in settings.policies]
    if len(agents) < 2:
        raise SettingsError("players", len(agents), f"a tournament needs two; set it for {scenario}")
    size = count**2 if settings.alone else count ** len(agents)
    if size > MOST_LINE_UPS:
        raise SettingsError(
            "policies",
            count,
            f"make {size:,} line-ups of {len(agents)} seats, and {MOST_LINE_UPS:,} are the most; --alone plays each "
            "policy against seats that all play another",
        )
    game: dict[str, Any] = {"scenario": scenario, **({"preset": preset} if preset else {})}
    game |= {"settings": dict(changed)} if changed else {}
    conditions = [
        {
            "name": "-".join(map(str, line_up)),
            "title": " against ".join(settings.policies[index] for index in line_up),
            **game,
            "policies": {agent: _as_field(players[index]) for agent, index in zip(agents, seats, strict=True)},
            "episodes": episodes,
            "pair": "tournament",
            "tournament": settings.to_json(),
        }
        for line_up, seats in _line_ups(count, len(agents), alone=settings.alone)
    ]
    about = {
        "name": f"tournament_{scenario}",
        "description": f"Which of {count} policies does best against the others? A tournament of '{scenario}'.",
        "seed": seed,
    }
    text = yaml.safe_dump({**about, "conditions": conditions}, sort_keys=False, allow_unicode=True)
    return parse_study(text, "the tournament")


def _as_field(player: GivenPlayer) -> Any:
    return {"name": player.name, "options": dict(player.options)} if player.options else player.name


def _line_ups(count: int, seats: int, *, alone: bool) -> Iterable[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Line-ups with the policy of each seat; one that plays alone is named with the policy of all others."""
    if alone:
        return (
            ((own, other), (own, *[other] * (seats - 1))) for own, other in itertools.product(range(count), repeat=2)
        )
    return ((line_up, line_up) for line_up in itertools.product(range(count), repeat=seats))

"""Reading the conditions of a study file, with the file, line and field of whatever is wrong in it."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import LlmCoopError, MissingExtra, SettingsError, StudyError
from llm_coop_envs.measures.process import ABOUT
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.policies.population import Population
from llm_coop_envs.studies.conditions import (
    GIVEN_MODELS,
    SEATS,
    WAITS_FOR,
    Condition,
    Player,
    PolicyChange,
    fits,
    make_player,
)
from llm_coop_envs.studies.crowd import read_crowd, with_writer
from llm_coop_envs.studies.players import asks_a_model, check_policy, full_name, learns, settle
from llm_coop_envs.treatments.changes import EVERYONE, Change, check_patterns
from llm_coop_envs.treatments.regulation_measures import REGULATION_MEASURES
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.references import load
from llm_coop_envs.util.yaml_source import Spot

MAX_SEED = 2**63 - 1
MAX_EPISODES = 1_000_000
MAX_SWEPT = 1_000

EVERY_EPISODE: Mapping[str, str] = {
    "players": "Seats that were played, a count from 1.",
    "submissions": "Choices and messages that counted, a count from 0.",
    "corrected": "Submissions among them that the environment had to correct, a count from 0.",
    "flagged_choices": "Choices that were illegal or missing, so that the environment's own stood in, a count from 0.",
    **REGULATION_MEASURES,
    **ABOUT,
}
"""Measures that every episode's row may have besides the scenario's, with what they mean."""

_PLAYED_FIELDS = ("name", "title", "scenario", "preset", "settings", "policies", "seeds", "episodes", "after")
_PLAIN_FIELDS = (*_PLAYED_FIELDS, "changes", "pair", "family", "model", "population")
_VARIANT_FIELDS = (*_PLAIN_FIELDS, "grid")
_CONDITION_FIELDS = (*_VARIANT_FIELDS, "variants")
Seats: TypeAlias = tuple[tuple[str, tuple[Player, ...]], ...]
_CHANGE_FIELDS = ("from_round", "until_round", "players", "settings", "policy", "model")


def read_conditions(spot: Spot, study_seed: int) -> list[Condition]:
    """The conditions of a study, those of variants and grids one by one.

    Raises:
        StudyError: one of them is wrong.
    """
    conditions: list[Condition] = []
    names: dict[str, int] = {}
    entries = [both for entry in spot.items() for both in _variants(entry)]
    for item, variant in [both for entry in entries for both in _swept(*entry)]:
        condition = _condition(item, study_seed, variant)
        # File names: some file systems do not tell cases apart.
        key = condition.name.lower()
        if key in names:
            item.mapping()["name"].fail(f"'{condition.name}' is already the condition on line {names[key]}")
        names[key] = item.line
        _check_pair(condition, conditions, item)
        conditions.append(condition)
    return conditions


def check_measures(spots: Sequence[Spot], conditions: Sequence[Condition]) -> None:
    """Refuse measures that no scenario defines, unless learning or what follows an episode may bring them."""
    about = [one.spec.measured for one in conditions]
    players = [policy for one in conditions for policy in one.policies]
    after = [load(one.spec.after) for one in conditions if one.after is not None]
    known = {*EVERY_EPISODE, *(name for kind in after for name in getattr(kind, "about", ()))}
    open_ended = any(map(learns, players)) or not all(hasattr(kind, "about") for kind in after)
    for spot in spots:
        name = spot.text()
        if not (open_ended or name in known or any(one.define(name) for one in about)):
            known.update(own for one in about for own in one.about)
            spot.fail(f"nothing is called '{name}'; {suggestion(name, sorted(known))}")


def _check_pair(condition: Condition, before: Sequence[Condition], spot: Spot) -> None:
    """Arms of one comparison play one scenario with the same seeds, and are in one family of tests."""
    if condition.family and not condition.pair:
        spot.mapping()["family"].fail(f"'{condition.family}' needs a 'pair': only comparisons are tested")
    first = next((one for one in before if one.pair and one.pair == condition.pair), condition)
    for what in ("scenario", "seeds", "family"):
        if getattr(first, what) != getattr(condition, what):
            spot.mapping()["pair"].fail(f"'{condition.pair}' is the pair of '{first.name}' too, which has other {what}")


def _variants(spot: Spot) -> list[tuple[Spot, str]]:
    """The conditions that an entry of the file stands for, each with its variant's title."""
    fields = spot.mapping(_CONDITION_FIELDS, required=("name",))
    if "variants" not in fields:
        return [(spot, "")]
    found = []
    name = fields["name"].label()
    title = fields["title"].text() if "title" in fields else name
    for item in fields.pop("variants").items():
        own = item.mapping(_VARIANT_FIELDS, required=("name",))
        variant = own["title"].text() if "title" in own else own["name"].label()
        merged: dict[str, Spot] = {}
        for key in {"settings", "after", "model"} & fields.keys() & own.keys():
            merged[key] = replace(own[key], value={**fields[key].mapping(), **own[key].mapping()})
        merged["name"] = replace(own["name"], value=f"{name}-{own['name'].label()}")
        merged["title"] = replace(own["name"], value=f"{title}, {variant}")
        if "pair" in fields and "pair" not in own:
            merged["pair"] = replace(fields["pair"], value=f"{fields['pair'].label()}-{own['name'].label()}")
        found.append((replace(spot, value={**fields, **own, **merged}), variant))
    return found


def _swept(spot: Spot, variant: str) -> list[tuple[Spot, str]]:
    """The conditions of an entry's `grid`: one for each combination of the listed values of settings."""
    fields = spot.mapping(_VARIANT_FIELDS, required=("name",))
    if "grid" not in fields:
        return [(spot, variant)]
    axes = {key: item.items() for key, item in fields.pop("grid").mapping().items()}
    settings = fields["settings"].mapping() if "settings" in fields else {}
    for key, item in settings.items():
        if key in axes:
            item.fail("stands in the grid too; leave it out here")
    count = math.prod(map(len, axes.values()))
    if count > MAX_SWEPT:
        spot.fail(f"its grid makes {count:,} conditions; {MAX_SWEPT:,} are the most")
    name = fields["name"].label()
    title = fields["title"].text() if "title" in fields else name
    found = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        plainly = {key: json.dumps(one.plain()).strip('"') for key, one in chosen.items()}
        label = "-".join(f"{key}-{re.sub('[^A-Za-z0-9_]+', '_', value)}" for key, value in plainly.items())
        told = ", ".join(f"{key} {value}" for key, value in plainly.items())
        merged = {
            "name": replace(fields["name"], value=f"{name}-{label}"),
            "title": replace(fields["name"], value=f"{title}, {told}"),
            "settings": replace(fields.get("settings", spot), value={**settings, **chosen}),
        }
        found.append((replace(spot, value={**fields, **merged}), ", ".join(filter(None, (variant, told)))))
    return found


def _condition(spot: Spot, study_seed: int, variant: str) -> Condition:
    fields = spot.mapping(_PLAIN_FIELDS, required=("name", "scenario"))
    name = fields["name"].label()
    scenario_name = fields["scenario"].text()
    try:
        scenario = find_scenario(scenario_name)
    except StudyError as error:
        fields["scenario"].fail(str(error))
    preset = fields["preset"].text() if "preset" in fields else None
    places = fields["settings"].mapping() if "settings" in fields else {}
    if "preset" in places:
        places["preset"].fail("is no setting; write 'preset' beside 'settings'")
    entries = [check_change(item) for item in fields["changes"].items()] if "changes" in fields else []
    of_settings = [item for item in entries if "settings" in item.value]
    if of_settings:
        if "changes" in places:
            places["changes"].fail("stands in the condition's 'changes' too; write all of them there")
        places["changes"] = replace(fields["changes"], value=of_settings)
    changed = {key: item.plain() for key, item in places.items()}
    for entry in changed["changes"] if of_settings else ():
        for key in ("policy", "model"):
            entry.pop(key, None)
    try:
        env = scenario.environment(preset=preset, **changed)
    except SettingsError as error:
        _settings_spot(spot, fields, places, error.field).fail(f"{error.value!r}: {error.why}")
    except LlmCoopError as error:
        fields.get("settings", spot).fail(str(error))
    crowd: Population | None = None
    people: tuple[Player, ...] = ()
    if "population" in fields:
        crowd, people = read_crowd(fields["population"], scenario_name, env.possible_agents)
    if "policies" not in fields and not people:
        spot.fail("'policies' is missing")
    seats = _seats(fields.get("policies"), scenario_name, env.possible_agents, people)
    waiting = {one.policy for _, players in seats for one in players if one.policy in WAITS_FOR}
    if waiting & {*GIVEN_MODELS} and waiting != {*GIVEN_MODELS}:
        fields["policies"].fail(
            f"names {', '.join(sorted(waiting))}; two models that meet are {' and '.join(GIVEN_MODELS)}"
        )
    deciding = [item for item in entries if item.value.keys() & {"policy", "model"}]
    of_policies = [policy_change(item, scenario_name, seats, env.possible_agents) for item in deciding]
    after = {key: item.plain() for key, item in fields["after"].mapping().items()} if "after" in fields else None
    condition = Condition(
        name=name,
        title=fields["title"].text() if "title" in fields else name,
        scenario=scenario_name,
        settings=env.settings.to_json(),
        changed=changed,
        preset=preset,
        seats=seats,
        seeds=_seeds(spot, fields, study_seed),
        after=after,
        variant=variant,
        pair=fields["pair"].label() if "pair" in fields else "",
        family=fields["family"].label() if "family" in fields else "",
        changes=tuple(of_policies),
        awaits=min(waiting, default=""),
        model=_model(fields["model"], scenario_name, env.possible_agents) if "model" in fields else {},
    )
    if crowd is not None:
        condition = with_writer(condition, crowd)
    try:
        condition.afterwards()
    except SettingsError as error:
        place = fields["after"].mapping().get(error.field, fields["after"])
        place.fail(f"{error}" if place is fields["after"] else f"{error.value!r}: {error.why}")
    return condition


def _model(spot: Spot, scenario: str, agents: Sequence[str]) -> dict[str, Any]:
    """The options of models that are given for the seats, once it is certain that such a model can be made."""
    shared = spot.mapping()
    seats = shared.pop(SEATS).mapping() if SEATS in shared else {}
    for pattern, item in seats.items():
        _check_seat("model", pattern, item, agents)
    own = [item.mapping() for item in seats.values() if item.value is not None]
    for options in (shared, *({**shared, **one} for one in own)):
        try:
            check_policy(scenario, f"{LLM}:any", {name: item.plain() for name, item in options.items()})
        except SettingsError as error:
            options.get(error.field, spot).fail(f"{error.value!r}: {error.why}")
    plainly: dict[str, Any] = spot.plain()
    return plainly


def _check_seat(field: str, pattern: str, item: Spot, agents: Sequence[str]) -> None:
    try:
        check_patterns(field, (pattern,), agents)
    except SettingsError as error:
        item.fail(f"'{pattern}' {error.why}")


def _settings_spot(spot: Spot, fields: Mapping[str, Spot], places: Mapping[str, Spot], field: str) -> Spot:
    """Where to point for a setting that is not possible: its own line, or the nearest that exists."""
    if field == "preset":
        return fields.get("preset", spot)
    above = fields.get("settings", fields.get("preset", spot))
    return replace(above, value=places).at(field)


def check_change(spot: Spot) -> Spot:
    """An entry of `changes`, which says from when on, and what changes.

    Raises:
        StudyError: it does not.
    """
    fields = spot.mapping(_CHANGE_FIELDS)
    if not fields.keys() & {"from_round", "until_round"}:
        spot.fail("'from_round' is missing: the first round in which it holds (or 'until_round', the last)")
    if not fields.keys() & {"settings", "policy", "model"}:
        spot.fail("needs 'settings', 'policy' or 'model': what is otherwise in these rounds")
    if {"policy", "model"} <= fields.keys():
        fields["model"].fail("stands beside 'policy'; write two entries")
    return spot


def policy_change(spot: Spot, scenario: str, seats: Seats, agents: Sequence[str]) -> PolicyChange:
    """Who decides from a round on.

    Raises:
        StudyError: there is no such policy or player, or no such options.
    """
    fields = spot.mapping()
    try:
        when = Change(**{name: fields[name].plain() for name in fields if name not in ("policy", "model", "settings")})
        check_patterns("players", when.players, agents)
    except SettingsError as error:
        spot.at(error.field).fail(f"{error.value!r}: {error.why}")
    if "model" in fields:
        if SEATS in fields["model"].value:
            fields["model"].at(SEATS).fail("is said by 'players' here")
        return PolicyChange(when=when, options=_model(fields["model"], scenario, agents), for_models=True)
    place = fields["policy"]
    own = place.mapping(("name", "options")) if isinstance(place.value, dict) else {"name": place}
    options = {key: item.plain() for key, item in own["options"].mapping().items()} if "options" in own else {}
    meant = [one for pattern, players in seats if _meets(pattern, when, agents) for one in players]
    if not own:
        place.fail("needs a 'name', or the 'options' that change")
    try:
        change = PolicyChange(when=when, policy=full_name(scenario, own["name"].text()) if "name" in own else "")
        if change.policy:
            policy, options, endpoint = settle(change.policy, options)
            change = replace(change, policy=policy, options=options, endpoint=endpoint)
        elif any(asks_a_model(player.policy) for player in meant):
            named = {"model": options["model"]} if "model" in options else {}
            _, options, endpoint = settle(LLM, {"model": "as before", **options})
            change = replace(change, options={**named, **options}, endpoint=endpoint)
        else:
            change = replace(change, options=options)
        for player in meant:
            if player.policy not in WAITS_FOR:
                change.follow(scenario, player)
    except SettingsError as error:
        at = own.get("name", place) if error.field == "policy" else spot.at(f"policy.options.{error.field}")
        at.fail(f"{error.value!r}: {error.why}")
    except LlmCoopError as error:
        place.fail(str(error))
    return change


def _meets(pattern: str, when: Change, agents: Sequence[str]) -> bool:
    return any(fits(pattern, agent) and when.means(agent) for agent in agents)


def _seeds(spot: Spot, fields: Mapping[str, Spot], study_seed: int) -> tuple[int, ...]:
    if ("seeds" in fields) == ("episodes" in fields):
        spot.fail("needs either 'seeds' (a list) or 'episodes' (how many), and not both")
    if "seeds" in fields:
        seeds = [(item, item.integer(0, MAX_SEED)) for item in fields["seeds"].items()]
        seen: set[int] = set()
        for item, seed in seeds:
            if seed in seen:
                item.fail(f"{seed} is listed twice; the same episode would count twice")
            seen.add(seed)
        return tuple(seed for _, seed in seeds)
    count = fields["episodes"].integer(1, MAX_EPISODES)
    return tuple(derived_seeds(study_seed, count))


def derived_seeds(study_seed: int, count: int) -> Iterator[int]:
    """Seeds made from the study's, the same for every condition, so that conditions can be compared pair by pair."""
    import numpy as np

    seen: set[int] = set()
    stream = np.random.default_rng(np.random.SeedSequence([study_seed, 0x5EED]))
    while len(seen) < count:
        seed = int(stream.integers(2**31))
        if seed not in seen:
            seen.add(seed)
            yield seed


def _seats(spot: Spot | None, scenario: str, agents: Sequence[str], people: tuple[Player, ...] = ()) -> Seats:
    """Who plays; the `people` of a population wherever nobody else does."""
    if spot is None:
        return ((EVERYONE, people),)
    if people and (not isinstance(spot.value, dict) or EVERYONE in spot.value or "mix" in spot.value):
        spot.fail("fills the seats of the population, whose 'play' names policies; keep one")
    if not isinstance(spot.value, dict) or set(spot.value) <= {"name", "options", "mix"}:
        return ((EVERYONE, _players(spot, scenario)),)
    known = set(agents)
    exact: list[tuple[str, tuple[Player, ...]]] = []
    patterns: list[tuple[str, tuple[Player, ...]]] = []
    rest: list[tuple[str, tuple[Player, ...]]] = []
    for pattern, item in spot.mapping().items():
        _check_seat("policies", pattern, item, agents)
        kind = rest if pattern == EVERYONE else exact if pattern in known else patterns
        kind.append((pattern, _players(item, scenario)))
    seats = (*exact, *patterns, *rest, *([(EVERYONE, people)] if people else []))
    empty = next((a for a in agents if not any(fits(pattern, a) for pattern, _ in seats)), None)
    if empty is not None:
        spot.fail(f"nobody plays {empty}; add a line for it, or for 'all'")
    return seats


def _players(spot: Spot, scenario: str) -> tuple[Player, ...]:
    if isinstance(spot.value, dict) and "mix" in spot.value:
        parts = spot.mapping(("mix",))["mix"].items()
        return tuple(_player(part, scenario, mixed=True) for part in parts)
    if isinstance(spot.value, str) and spot.value in WAITS_FOR:
        return (Player(policy=spot.value, options={}),)
    return (_player(spot, scenario, mixed=False),)


def _player(spot: Spot, scenario: str, *, mixed: bool) -> Player:
    if isinstance(spot.value, dict):
        fields = spot.mapping(("name", "options", "share") if mixed else ("name", "options"), required=("name",))
    else:
        fields = {"name": spot}
    place = fields["name"]
    try:
        policy = full_name(scenario, place.text())
    except SettingsError as error:
        place.fail(f"{error.value!r}: {error.why}")
    options = fields["options"].mapping() if "options" in fields else {}
    share = fields["share"].number(0) if "share" in fields else 1.0
    given = {key: item.plain() for key, item in options.items()}
    try:
        return make_player(scenario, policy, given, share)
    except MissingExtra:  # told by `check_players`: the rest of the study can be played without
        return Player(policy=policy, options=given, share=share)
    except SettingsError as error:
        where = options.get(error.field, fields.get("options", place))
        where.fail(f"{error.value!r}: {error.why}")
    except LlmCoopError as error:
        place.fail(str(error))

"""Read the conditions of a study file; errors name file, line and field."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import LlmCoopError, SettingsError, StudyError
from llm_coop_envs.measures.process import ABOUT, RANGES
from llm_coop_envs.mechanisms.measures import MECHANISM_MEASURES, MECHANISM_RANGES
from llm_coop_envs.statistics.intervals import ANYTHING, COUNT, COUNT_FROM_1, SHARE, Range
from llm_coop_envs.studies.conditions import GIVEN_MODELS, WAITS_FOR, Condition
from llm_coop_envs.studies.crowd import add_population, read_crowd
from llm_coop_envs.studies.players import may_learn
from llm_coop_envs.studies.study_seats import (
    check_change,
    read_model_options,
    read_policy_change,
    read_seats,
    without_policy,
)
from llm_coop_envs.studies.tournament_settings import TournamentSettings
from llm_coop_envs.treatments.regulation_measures import REGULATION_MEASURES, REGULATION_RANGES
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.references import load
from llm_coop_envs.util.yaml_source import YamlNode, text_of

MAX_SEED = 2**63 - 1
MAX_EPISODES = 1_000_000
MAX_SWEPT = 1_000

JUDGED = "judged"
EVERY_EPISODE: Mapping[str, str] = {
    JUDGED: "Share of rounds with talk in which two players or more propose or accept something, as the model of "
    "'llm-coop judge' sorts their messages, 0 to 1; missing where nobody judged. In reports alone.",
    "players": "Seats that were played, a count from 1.",
    "return_mean": "The sum of a player's rewards in the episode, averaged over players.",
    "submissions": "Choices and messages that counted, a count from 0.",
    "corrected": "Submissions among them that the environment had to correct, a count from 0.",
    "flagged_choices": "Choices that were illegal or missing, so that the environment's own stood in, a count from 0.",
    **REGULATION_MEASURES,
    **MECHANISM_MEASURES,
    **ABOUT,
}
"""Measures that every episode's row may have besides the scenario's, with what they mean."""

EVERY_EPISODE_RANGES: Mapping[str, Range] = {
    "players": COUNT_FROM_1,
    "return_mean": ANYTHING,
    JUDGED: SHARE,
    **dict.fromkeys(("submissions", "corrected", "flagged_choices"), COUNT),
    **REGULATION_RANGES,
    **MECHANISM_RANGES,
    **RANGES,
}
"""What these measures can be."""

_PLAYED_FIELDS = ("name", "title", "scenario", "preset", "settings", "policies", "seeds", "episodes", "after")
_PLAIN_FIELDS = (*_PLAYED_FIELDS, "changes", "pair", "when", "family", "cluster", "model", "population", "tournament")
_VARIANT_FIELDS = (*_PLAIN_FIELDS, "grid")
_CONDITION_FIELDS = (*_VARIANT_FIELDS, "variants")


def read_conditions(node: YamlNode, study_seed: int) -> list[Condition]:
    """Read `conditions`; each variant and each combination of a grid makes a condition of its own.

    Raises:
        StudyError: one of them is wrong.
    """
    conditions: list[Condition] = []
    line_of: dict[str, int] = {}
    pair_nodes: dict[str, list[YamlNode]] = {}
    variants = [variant for entry in node.items() for variant in _expand_variants(entry)]
    for entry, title in [expanded for variant in variants for expanded in _expand_grid(*variant)]:
        condition = _read_condition(entry, study_seed, title)
        # Folders are named after conditions, and some file systems do not tell 'Talk' from 'talk'.
        key = condition.name.lower()
        if key in line_of:
            entry.mapping()["name"].fail(f"'{condition.name}' is already the condition on line {line_of[key]}")
        line_of[key] = entry.line
        _check_pair(condition, conditions, entry)
        _check_words(condition, conditions, entry)
        conditions.append(condition)
        if condition.pair:
            pair_nodes.setdefault(condition.pair, []).append(entry.mapping()["pair"])
    _check_partners(pair_nodes)
    return conditions


def check_measures(nodes: Sequence[YamlNode], conditions: Sequence[Condition]) -> None:
    """Refuse measures that nothing in the study can bring.

    Learning, and measuring by playing on after an episode, may bring measures under names that are not known before.

    Raises:
        StudyError: a name is not known, and such measures cannot come.
    """
    about = [condition.spec.measured for condition in conditions]
    players = [policy for condition in conditions for policy in condition.policies]
    after_kinds = [load(condition.spec.after) for condition in conditions if condition.after is not None]
    known_measures = {*EVERY_EPISODE, *(name for kind in after_kinds for name in getattr(kind, "about", ()))}
    open_ended = any(map(may_learn, players)) or not all(hasattr(kind, "about") for kind in after_kinds)
    for node in nodes:
        name = node.text()
        if not (open_ended or name in known_measures or any(measured.define(name) for measured in about)):
            known_measures.update(own for measured in about for own in measured.about)
            node.fail(f"nothing is called '{name}'; {suggestion(name, sorted(known_measures))}")


def _check_pair(condition: Condition, earlier: Sequence[Condition], node: YamlNode) -> None:
    """Check that arms of one comparison have the scenario, seeds and family of tests in common.

    Raises:
        StudyError: they do not, or the condition names a family without being in a comparison.
    """
    if condition.family and not condition.pair:
        node.mapping()["family"].fail(f"'{condition.family}' needs a 'pair': only comparisons are tested")
    first = next((other for other in earlier if other.pair and other.pair == condition.pair), condition)
    for field in ("scenario", "seeds", "family", "cluster"):
        if getattr(first, field) != getattr(condition, field):
            node.mapping()["pair"].fail(
                f"'{condition.pair}' is the pair of '{first.name}' too, which has other {field}"
            )


def _check_words(condition: Condition, earlier: Sequence[Condition], node: YamlNode) -> None:
    """Check that no two arms of a comparison are spoken of alike, as happens where YAML merges one into the other.

    Raises:
        StudyError: they are.
    """
    for other in earlier:
        if condition.when and condition.pair and (other.pair, other.when) == (condition.pair, condition.when):
            node.mapping()["when"].fail(
                f"'{condition.when}' is said of '{other.name}' too, its partner; say it otherwise, or null"
            )


def _check_partners(pair_nodes: Mapping[str, Sequence[YamlNode]]) -> None:
    """Check that each pair has two arms or more, and that no two pairs differ by spelling only.

    Args:
        pair_nodes: the fields that name each pair.

    Raises:
        StudyError: a comparison that the file asks for would not be made.
    """
    spellings: dict[str, str] = {}
    for pair, nodes in pair_nodes.items():
        other = spellings.setdefault(re.sub("[_-]", "", pair).lower(), pair)
        if other != pair:
            nodes[0].fail(f"'{pair}' and '{other}' differ by their spelling only; write both alike, or unlike")
    for pair, nodes in pair_nodes.items():
        if len(nodes) == 1:
            near = get_close_matches(pair, [other for other in pair_nodes if other != pair], n=1)
            meant = f"did you mean '{near[0]}'?" if near else "name it in another condition, or leave it out (null)"
            nodes[0].fail(f"'{pair}' is the pair of this condition alone, so that nothing is compared; {meant}")


def _expand_variants(node: YamlNode) -> list[tuple[YamlNode, str]]:
    """The entries that an entry's `variants` make of it, or itself; each with its variant's title."""
    fields = node.mapping(_CONDITION_FIELDS, required=("name",))
    if "variants" not in fields:
        return [(node, "")]
    expanded = []
    name = fields["name"].label()
    title = text_of(fields, "title", name)
    for variant_node in fields.pop("variants").items():
        own = variant_node.mapping(_VARIANT_FIELDS, required=("name",))
        variant = own["title"].text() if "title" in own else own["name"].label()
        merged: dict[str, YamlNode] = {}
        for key in {"settings", "after", "model"} & fields.keys() & own.keys():
            merged[key] = replace(own[key], value={**fields[key].mapping(), **own[key].mapping()})
        merged["name"] = replace(own["name"], value=f"{name}-{own['name'].label()}")
        merged["title"] = replace(own["name"], value=f"{title}, {variant}")
        expanded.append((replace(node, value={**fields, **own, **merged}), variant))
    return expanded


def _expand_grid(node: YamlNode, variant: str) -> list[tuple[YamlNode, str]]:
    """The entries that an entry's `grid` makes of it, one for each combination of its values; or itself."""
    fields = node.mapping(_VARIANT_FIELDS, required=("name",))
    if "grid" not in fields:
        return [(node, variant)]
    axes = {name: values.items() for name, values in fields.pop("grid").mapping().items()}
    settings = fields["settings"].mapping() if "settings" in fields else {}
    for setting_name, setting in settings.items():
        if setting_name in axes:
            setting.fail("stands in the grid too; leave it out here")
    count = math.prod(map(len, axes.values()))
    if count > MAX_SWEPT:
        node.fail(f"its grid makes {count:,} conditions; {MAX_SWEPT:,} are the most")
    name = fields["name"].label()
    title = text_of(fields, "title", name)
    expanded = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        texts = {axis: json.dumps(value.plain()).strip('"') for axis, value in chosen.items()}
        # {discount: 0.5, talk: true} becomes discount-0_5-talk-true, a part of a file's name.
        label = "-".join(f"{axis}-{re.sub('[^A-Za-z0-9_]+', '_', text)}" for axis, text in texts.items())
        combination = ", ".join(_axis_in_words(axis, text) for axis, text in texts.items())
        merged = {
            "name": replace(fields["name"], value=f"{name}-{label}"),
            "title": replace(fields["name"], value=f"{title}, {combination}"),
            "settings": replace(fields.get("settings", node), value={**settings, **chosen}),
        }
        expanded.append((replace(node, value={**fields, **merged}), ", ".join(filter(None, (variant, combination)))))
    return expanded


def _axis_in_words(axis: str, text: str) -> str:
    """A grid's value in a title: "talk", "no talk", "grid points 7"."""
    words = axis.replace("_", " ")
    return {"true": words, "false": f"no {words}"}.get(text, f"{words} {text}")


def _read_condition(node: YamlNode, study_seed: int, variant: str) -> Condition:
    fields = node.mapping(_PLAIN_FIELDS, required=("name", "scenario"))
    name = fields["name"].label()
    scenario = fields["scenario"].text()
    preset, changed, changes, env = _read_settings(node, fields, scenario)
    agents = env.possible_agents
    crowd, people = read_crowd(fields["population"], scenario, agents) if "population" in fields else (None, ())
    if "policies" not in fields and not people:
        node.fail("'policies' is missing")
    seats = read_seats(fields.get("policies"), scenario, agents, people)
    awaited = {player.policy for _, players in seats for player in players if player.policy in WAITS_FOR}
    if awaited & {*GIVEN_MODELS} and awaited != {*GIVEN_MODELS}:
        fields["policies"].fail(
            f"names {', '.join(sorted(awaited))}; two models that meet are {' and '.join(GIVEN_MODELS)}"
        )
    seeds = _read_seeds(node, fields, study_seed)
    policy_changes = [change for change in changes if change.value.keys() & {"policy", "model"}]
    condition = Condition(
        name=name,
        changes=tuple(read_policy_change(change, scenario, seats, agents) for change in policy_changes),
        after=fields["after"].plain_mapping() if "after" in fields else None,
        title=text_of(fields, "title", name),
        scenario=scenario,
        settings=env.settings.to_json(),
        changed=changed,
        preset=preset,
        seats=seats,
        seeds=seeds,
        variant=variant,
        pair=fields["pair"].label() if "pair" in fields and fields["pair"].value is not None else "",
        tournament=_read_tournament(fields["tournament"], name) if "tournament" in fields else None,
        cluster=_read_cluster(fields["cluster"], seeds) if "cluster" in fields else {},
        when=fields["when"].text() if "when" in fields and fields["when"].value is not None else "",
        family=fields["family"].label() if "family" in fields else "",
        awaits=min(awaited, default=""),
        model=read_model_options(fields["model"], scenario, agents) if "model" in fields else {},
    )
    if crowd is not None:
        condition = add_population(condition, crowd)
    try:
        condition.afterwards()
    except SettingsError as error:
        option = fields["after"].mapping().get(error.field)
        if option is None:
            fields["after"].fail(str(error))
        option.fail_setting(error)
    return condition


def _read_settings(
    node: YamlNode, fields: Mapping[str, YamlNode], scenario: str
) -> tuple[str | None, dict[str, Any], list[YamlNode], ScenarioEnv]:
    """Read what a condition says of its game.

    Returns:
        The preset's name, if any; the settings that the condition gives itself; all its `changes`; the environment.

    Raises:
        StudyError: there is no such scenario, preset or setting, or an impossible value.
    """
    try:
        descriptor = find_scenario(scenario)
    except StudyError as error:
        fields["scenario"].fail(str(error))
    preset = fields["preset"].text() if "preset" in fields else None
    setting_nodes = fields["settings"].mapping() if "settings" in fields else {}
    if "preset" in setting_nodes:
        setting_nodes["preset"].fail("is no setting; write 'preset' beside 'settings'")
    changes = [check_change(change) for change in fields["changes"].items()] if "changes" in fields else []
    setting_changes = [change for change in changes if "settings" in change.value]
    if setting_changes:
        if "changes" in setting_nodes:
            setting_nodes["changes"].fail("stands in the condition's 'changes' too; write all of them there")
        setting_nodes["changes"] = replace(fields["changes"], value=setting_changes)
    changed = {name: setting.plain() for name, setting in setting_nodes.items()}
    if setting_changes:
        changed["changes"] = [without_policy(change) for change in setting_changes]
    try:
        return preset, changed, changes, descriptor.environment(preset=preset, **changed)
    except SettingsError as error:
        _settings_node(node, fields, setting_nodes, error.field).fail_setting(error)
    except LlmCoopError as error:
        fields.get("settings", node).fail(str(error))


def _settings_node(
    node: YamlNode, fields: Mapping[str, YamlNode], setting_nodes: Mapping[str, YamlNode], field: str
) -> YamlNode:
    """The node to blame for an impossible setting: its own, or the nearest one above that exists."""
    if field == "preset":
        return fields.get("preset", node)
    above = fields.get("settings", fields.get("preset", node))
    return replace(above, value=setting_nodes).find(field)


def _read_seeds(node: YamlNode, fields: Mapping[str, YamlNode], study_seed: int) -> tuple[int, ...]:
    if ("seeds" in fields) == ("episodes" in fields):
        node.fail("needs either 'seeds' (a list) or 'episodes' (how many), and not both")
    if "seeds" in fields:
        seeds = [(seed_node, seed_node.integer(0, MAX_SEED)) for seed_node in fields["seeds"].items()]
        seen: set[int] = set()
        for seed_node, seed in seeds:
            if seed in seen:
                seed_node.fail(f"{seed} is listed twice; the same episode would count twice")
            seen.add(seed)
        return tuple(seed for _, seed in seeds)
    count = fields["episodes"].integer(1, MAX_EPISODES)
    return tuple(derive_seeds(study_seed, count))


def _read_tournament(node: YamlNode, name: str) -> dict[str, Any]:
    """Read the settings of the tournament that a condition is a line-up of."""
    try:
        settings = TournamentSettings.from_json(node.plain_mapping())
        settings.line_up(name)
    except SettingsError as error:
        node.mapping().get(error.field, node).fail_setting(error)
    return settings.to_json()


def _read_cluster(node: YamlNode, seeds: Sequence[int]) -> dict[int, str]:
    """Read which seeds share a component: how many consecutive ones do, or a label for each."""
    if not isinstance(node.value, list):
        size = node.integer(2, MAX_EPISODES)
        return {seed: str(index // size) for index, seed in enumerate(seeds)}
    labels = [str(label.plain()) for label in node.items()]
    if len(labels) != len(seeds):
        node.fail(f"has {len(labels)} labels for {len(seeds)} seeds; give one for each seed")
    return dict(zip(seeds, labels, strict=True))


def derive_seeds(study_seed: int, count: int) -> Iterator[int]:
    """Draw distinct seeds from the study's.

    They are the same for every condition, so that conditions can be compared seed by seed; more of them begin with the
    same ones.
    """
    import numpy as np

    seen: set[int] = set()
    stream = np.random.default_rng(np.random.SeedSequence([study_seed, 0x5EED]))
    while len(seen) < count:
        seed = int(stream.integers(2**31))
        if seed not in seen:
            seen.add(seed)
            yield seed

"""The methods of a run in plain sentences, written from its configuration, and the switches that were on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llm_coop_envs.core.settings import Settings, plain
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.reports.answers import AnswersSection
from llm_coop_envs.reports.page_parts import episodes_text
from llm_coop_envs.reports.paired import compared
from llm_coop_envs.reports.section import PlayedCondition, ScenarioSection
from llm_coop_envs.runs.branch import BRANCH
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.studies.conditions import Condition, Player
from llm_coop_envs.studies.families import Primary
from llm_coop_envs.treatments.regulation_measures import REGULATION_MEASURES
from llm_coop_envs.version import __version__

_NO_SWITCH = ("talk", "changes")


def switches(condition: Condition) -> dict[str, str]:
    """The settings that differ from the condition's preset, or from the defaults without one, as texts by name.

    Talk and changes stand apart.
    """
    kind = condition.spec.settings_type
    return _unlike(condition.settings, kind.build(condition.preset if condition.preset in kind.presets else None))


def presets(conditions: Iterable[Condition]) -> dict[str, dict[str, str]]:
    """The presets of some conditions of one scenario, each with what it sets unlike the defaults."""
    used = {one.preset: one.spec.settings_type for one in conditions}
    return {
        name: _unlike(kind.build(name).to_json(), kind.build())
        for name, kind in used.items()
        if name is not None and name in kind.presets
    }


def _unlike(settings: Mapping[str, Any], usual: Settings) -> dict[str, str]:
    others = plain(usual.to_json())
    return {
        name: f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
        for name, value in plain(settings).items()
        if name not in _NO_SWITCH and others.get(name) != value
    }


def switched_text(values: Mapping[str, str]) -> str:
    """Settings in words."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def shared_switches(conditions: Iterable[Condition]) -> dict[str, str]:
    """The switches that all of some conditions have in common."""
    first, *rest = map(switches, conditions)
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in rest)}


def condition_text(condition: Condition, shared: Mapping[str, str]) -> str:
    """How a condition was set, but for what is `shared`."""
    own = [f"{name} = {value}" for name, value in switches(condition).items() if name not in shared]
    preset = [f"preset {condition.preset}"] if condition.preset else []
    people = condition.crowd.attributes if condition.crowd else ()
    who = [f"people who differ in {', '.join(one.name for one in people)}"] if people else []
    talk = "talk" if condition.settings["talk"] else "no talk"
    return "; ".join([talk, *preset, *own, *who, *condition.change_descriptions])


def seats_text(condition: Condition) -> str:
    """Who sat where."""
    return "; ".join(f"{pattern}: {_mix(players)}" for pattern, players in condition.seats)


def _mix(players: Sequence[Player]) -> str:
    total = sum(player.share for player in players)
    return " + ".join(
        _player(one) if len(players) == 1 else f"{100 * one.share / total:.3g} % {_player(one)}" for one in players
    )


def _player(player: Player) -> str:
    options = ", ".join(f"{name} = {json.dumps(plain(value))}" for name, value in player.options.items())
    return f"{player.policy} ({options})" if options else player.policy


def prompts_text(run: Run, condition: Condition) -> str:
    """With which prompts the models of a condition were asked; empty without any."""
    told = []
    for one in run.manifest.get("models", []):
        if any(p.policy == one["policy"] and plain(p.options) == one["options"] for p in condition.players):
            personas = ", ".join(one["settings"]["personas"]) or "none"
            told.append(f"pack {one['pack']['name']}, version {one['pack']['version']}; personas: {personas}")
    return "; ".join(dict.fromkeys(told))


def seeds_text(seeds: Sequence[int], most: int = 20) -> str:
    """Seeds in words, the first ones of more than `most`."""
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    shown = ", ".join(str(seed) for seed in seeds[:most])
    return shown if len(seeds) <= most else f"{shown}, … ({len(seeds)})"


def of_all(there: int, planned: int) -> str:
    """How many of a condition's episodes there are, in words."""
    return f"{there} of {episodes_text(planned)}" if there < planned else episodes_text(there)


def methods(run: Run, sections: Sequence[ScenarioSection[Any]], answers: AnswersSection | None) -> list[str]:
    """Paragraphs for a paper's section on methods."""
    return [
        _played(run, sections),
        *map(_scenario, sections),
        _players(run, sections, answers),
        _seeds(run, sections),
        _statistics(run, sections),
        _exclusions(run, sections),
    ]


def _played(run: Run, sections: Sequence[ScenarioSection[Any]]) -> str:
    manifest = run.manifest
    conditions, there = sum(len(section.conditions) for section in sections), len(run.finished())
    versions = manifest["sessions"][-1]["versions"] if manifest["sessions"] else {}
    source = f" It plays again: {manifest['source'].rstrip('.')}." if manifest.get("source") else ""
    given = f" In place of what its file says was given: {', '.join(manifest['given'])}." if manifest["given"] else ""
    return (
        f"The study '{manifest['study']}' was played with llm-coop-envs {versions.get('llm-coop-envs', __version__)}: "
        f"{episodes_text(there)} of {_count(conditions, 'condition')}.{source}{given}{_origin(run)}"
    )


def _origin(run: Run) -> str:
    """Which run a branched run continues."""
    origin = run.manifest.get(BRANCH)
    if origin is None:
        return ""
    asked = "; what models had answered there was copied and not asked again" if run.manifest["models"] else ""
    return (
        f" It continues the episodes of another run (study's digest {origin['digest'][:12]}...) from round "
        f"{origin['at']} on: the arms of a condition are the same until then, seed by seed{asked}."
    )


def _scenario(section: ScenarioSection[Any]) -> str:
    played = section.conditions
    shared = shared_switches(one.condition for one in played)
    told = [
        f"Preset {name}: {switched_text(of) or 'the defaults'}."
        for name, of in presets(c.condition for c in played).items()
    ]
    if shared:
        told.append(f"Set besides in every condition: {switched_text(shared)}.")
    players = _range([row["players"] for one in played for row in one.metrics], "player")
    rounds = _range([length for one in played for length in one.lengths], "round")
    each = "; ".join(
        f"'{one.condition.title}' ({condition_text(one.condition, shared)}; "
        f"{of_all(len(one.seeds), len(one.condition.seeds))})"
        for one in played
    )
    return (
        f"{section.scenario.title} ({section.scenario.env_name}): {players} and {rounds} in an episode. "
        + "".join(f"{text} " for text in told)
        + f"{'Conditions' if len(played) > 1 else 'Condition'}: {each}."
    )


def _players(run: Run, sections: Sequence[ScenarioSection[Any]], answers: AnswersSection | None) -> str:
    kinds: Mapping[str, str] = run.manifest["policies"]
    who = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
    told = f"Played by {who}."
    told += "".join(_ruled(one) for section in sections for one in section.conditions)
    if answers is not None:
        packs = dict.fromkeys(text for one in run.conditions if (text := prompts_text(run, one)))
        told += f" Models as their servers report them: {', '.join(answers.models)}. Prompts: {' / '.join(packs)}."
    if all(kind == "scripted" for kind in kinds.values()):
        told += " Scripted policies follow fixed rules; no language model was asked."
    elif answers is not None and answers.scripted:
        told += " A scripted server gave all answers by fixed rules; no language model was asked."
    elif not any(name.startswith(LLM) for name in kinds):
        told += " No language model was asked."
    return told


_RULINGS = {"logged": "took note of", "sent_back": "sent back", "stopped": "stopped", "fined": "fined"}


def _ruled(one: PlayedCondition[Any]) -> str:
    """That a regulator had a seat in a condition, and what it did there; empty without one."""
    if one.condition.settings.get("regulator") is None:
        return ""
    did = {name: sum(row[name] for row in one.metrics) for name in REGULATION_MEASURES}
    rulings = ", ".join(f"{word} {did[name]:,}" for name, word in _RULINGS.items() if did[name]) or "allowed all"
    told = [
        f"gave {_count(did['orders_given'], 'order')}" if did["orders_given"] else "",
        f"ruled on {_count(did['ruled_on'], 'submission')} ({rulings})" if did["ruled_on"] else "",
        f"heard {_count(did['reports'], 'report')} of an agreement" if did["reports"] else "",
    ]
    done = ", ".join(filter(None, told)) or "did nothing"
    return f" In '{one.condition.title}' a regulator sat beside the players: it {done}."


def _seeds(run: Run, sections: Sequence[ScenarioSection[Any]]) -> str:
    names: dict[tuple[int, ...], list[str]] = {}
    pairs: dict[str, list[str]] = {}
    for scenario, one in ((section.scenario.name, one) for section in sections for one in section.conditions):
        called = f"{scenario} " * (len(sections) > 1) + f"'{one.condition.title}'"
        names.setdefault(tuple(one.seeds), []).append(called)
        if one.condition.pair:
            pairs.setdefault(one.condition.pair, []).append(called)
    every = "; ".join(
        seeds_text(seeds) + (f" ({', '.join(who)})" if len(names) > 1 else "") for seeds, who in names.items()
    )
    told = f"Seeds of the environment: {every}. Policies drew from generators that follow from these and the study's "
    told += f"seed, {run.manifest['seed']}."
    arms = ["; ".join(f"{', '.join(who)}" for who in pairs.values() if len(who) > 1)]
    return told + "".join(f" With the same seeds and random numbers were played: {text}." for text in arms if text)


def _statistics(run: Run, sections: Sequence[ScenarioSection[Any]]) -> str:
    played = [one for section in sections for one in section.conditions]
    sizes = [len(one.seeds) for one in played]
    told = ["The unit is the episode."]
    if max(sizes) > 1:
        told.append(
            "Means have 95 % intervals that reach as far as Student's t or Hall's (1992) transformation for skewed "
            "samples, whichever is further; shares of episodes have exact ones (Clopper and Pearson 1934)."
        )
    if 1 in sizes:
        told.append("A single episode has no interval.")
    tested = [
        arms
        for arms in compared(sections)
        if not any(one.invalid for one in arms) and len(set.intersection(*(set(one.seeds) for one in arms))) > 1
    ]
    if tested:
        primary = Primary.from_manifest(run.manifest)
        families = [
            f"the family '{name}'" if name else "each scenario"
            for name in dict.fromkeys(first.condition.family for first, _ in tested)
        ]
        told.append(
            "Differences between conditions with the same seeds have 95 % intervals by Student's t, effect sizes "
            "(Cohen's d_z) intervals by the noncentral t distribution; p values are those of two-sided permutation "
            "tests that turn pairs round, adjusted (Holm 1979) within "
            + (f"the study's {primary.describe()}" if primary else f"{' and '.join(families)}.")
        )
    return " ".join(told)


def _exclusions(run: Run, sections: Sequence[ScenarioSection[Any]]) -> str:
    played = [one for section in sections for one in section.conditions]
    there = len(run.finished())
    told = ["No finished episode was left out."]
    if there < run.total:
        told.append(f"Of {run.total} episodes of the study {run.total - there} had not been played.")
    choices, flagged = sum(one.choices for one in played), sum(one.flagged for one in played)
    told.append(
        f"Of {choices:,} choices {flagged:,} were illegal or missing, and the environment's own stood in; tables show "
        "the conditions with such choices once more without them."
        if flagged
        else f"None of the {choices:,} choices was illegal or missing."
    )
    told += [
        f"'{one.condition.title}' is marked invalid and was not tested: {one.invalid}." for one in played if one.invalid
    ]
    return " ".join(told)


def _range(values: Sequence[int], what: str) -> str:
    low, high = min(values), max(values)
    return _count(low, what) if low == high else f"{low:,} to {high:,} {what}s"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

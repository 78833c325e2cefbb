"""`llm-coop describe`: one scenario, in short or in full, or one study."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llm_coop_envs.cli.completing import begin_with, scenarios, studies
from llm_coop_envs.cli.layout import heading, say, terminal_width, wrap
from llm_coop_envs.cli.messages import fail, sentences
from llm_coop_envs.cli.sections import Section, show_sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llm_coop_envs.cli.description import Description, Setting
    from llm_coop_envs.studies.study import Study

SECTIONS = ("rules", "settings", "presets", "policies", "model", "measures", "spaces", "wordings")


@sentences
def describe_command(
    name: Annotated[
        str,
        typer.Argument(
            help="A scenario: kbc, bertrand or evacuation, or an installed one, see 'llm-coop list'. Or a study: a "
            "shipped one's name, or a YAML file.",
            autocompletion=begin_with(lambda: [*scenarios(), *studies()]),
        ),
    ],
    section: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"What to say in full of a scenario: {', '.join(SECTIONS)}.",
            show_default=False,
            autocompletion=begin_with(lambda: SECTIONS),
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sections in full.")] = False,
    word: Annotated[
        str | None, typer.Option("--filter", help="Only what has this word in its name or text.", show_default=False)
    ] = None,
) -> None:
    """Show a scenario's rules, settings, presets, policies, measures and spaces, or a study's conditions."""
    from llm_coop_envs.cli.description import describe
    from llm_coop_envs.cli.trusting import trust_program
    from llm_coop_envs.core.registry import scenarios as known_scenarios
    from llm_coop_envs.storage.folder import MANIFEST
    from llm_coop_envs.studies.study import load_study, shipped_studies

    path = Path(name).expanduser()
    if name not in known_scenarios() and (name in shipped_studies() or path.is_file()):
        trust_program(None if name in shipped_studies() else path)
        _show_study(load_study(name), name, section or (), word)
        return
    if (path / MANIFEST).is_file():
        fail(f"{name}: is a run folder; 'llm-coop status {name}' says how far it is, 'llm-coop report {name}' the rest")
    if name not in known_scenarios() and (path.suffix or len(path.parts) > 1):
        fail(f"{name}: there is no such file; give a study's file, or the name of a scenario or a study")
    text = describe(name)
    if not (section or everything or word):
        name, width = text.scenario.name, terminal_width()
        shipped = find_spec(f"llm_coop_envs.{name}_v0") is not None
        maker = f"llm_coop_envs.{name}_v0.parallel_env(" if shipped else f'make_parallel("{name}", '
        source = "" if shipped else "from llm_coop_envs.core.makers import make_parallel; "
        typer.echo(f"{heading(name)}  {text.scenario.title}\n\n{wrap(text.about[0], width)}\n")
        for label, line in (
            ("Use", f"{source}{maker}preset=..., talk=False, ...)"),
            ("Agents", f"{text.agents[0]} to {text.agents[1]} by default"),
            ("Phases", f"{', '.join(text.phases)} (no talk phase with talk=False)"),
        ):
            typer.echo(wrap(line, width, first=f"{label:8}", later=" " * 8))
        typer.echo("")
    show_sections(_sections(text), chosen=section or (), everything=everything, word=word)
    if not (section or everything or word):
        say(f"\nIn full: llm-coop describe {text.scenario.name} settings, or --all, or --filter talk")


def _sections(text: Description) -> list[Section]:
    """All that is said of a scenario."""
    from llm_coop_envs.cli.description import preset_lines

    *scripted, model = text.policies
    with_options = [
        row
        for policy in scripted
        for row in ((policy.name, policy.about), *((f"  {one.name}", _meaning(one)) for one in policy.options))
    ]
    return [
        Section(name="rules", text=text.about),
        Section(name="settings", entries=[(one.name, _meaning(one)) for one in text.settings]),
        Section(name="presets", entries=[*preset_lines(text.scenario).items()]),
        Section(name="policies", note="Scripted; options as in 'NAME {option: value}'.", entries=with_options),
        Section(name="model", note=model.about, entries=[(one.name, _meaning(one)) for one in model.options]),
        Section(name="measures", note="Of an episode.", entries=[*text.metrics.items()]),
        Section(name="spaces", text=[f"Numeric features: {', '.join(text.features)}."], entries=[*text.spaces.items()]),
        Section(
            name="wordings",
            note="What players are told; or a folder of your own.",
            entries=[(name, "") for name in text.wordings],
        ),
    ]


def _show_study(study: Study, given: str, chosen: Sequence[str], word: str | None) -> None:
    """Print what a study plays, what it compares, and how to go on."""
    whole = not chosen and word is None
    if whole:
        typer.echo(f"{study.summary().title}\n")
        for paragraph in filter(None, (study.description, study.source and f"After {study.source}")):
            typer.echo(f"{wrap(paragraph, terminal_width())}\n")
    show_sections(_study_sections(study), chosen=chosen, everything=True, word=word)
    if whole:
        name = shlex.quote(given)
        say(f"\nPlay it: llm-coop run {name}. One episode and the prompts, nothing kept: llm-coop run {name} --dry")


def _study_sections(study: Study) -> list[Section]:
    """Who plays what in a study, and which conditions it compares by which measures."""
    from llm_coop_envs.runs.remaining import count_of
    from llm_coop_envs.studies.families import comparisons

    conditions = []
    for condition in (*study.conditions, *study.optional):
        game = condition.scenario + (f" {condition.preset}" if condition.preset else "")
        changed = ", ".join(f"{name}={value!r}" for name, value in condition.changed.items())
        details = [
            f"{game} ({changed})" if changed else game,
            f"{', '.join(condition.policies)} in the seats" if condition.policies else "waits for a player",
            count_of(len(condition.seeds), "episode"),
            *condition.change_descriptions,
        ]
        conditions.append((condition.name, "; ".join(details)))
    measures = study.primary.measures if study.primary else study.measures
    compared = [
        (
            f"{second.name} against {first.name}",
            ", ".join(
                [measure for measure in measures if first.spec.measured.define(measure)] or first.spec.measured.headline
            ),
        )
        for first, second in comparisons(study.conditions)
        if study.primary is None or study.primary.covers(second.name)
    ]
    sections = [Section(name="conditions", entries=conditions)]
    if compared:
        note = "The tests that it is made for, and their measures:" if study.primary else "Seed by seed, by:"
        sections.append(Section(name="comparisons", note=note, entries=compared))
    return sections


def _meaning(setting: Setting) -> str:
    return f"{setting.about} (default: {setting.default!r})"

"""`llm-coop describe`: one scenario, in short or in full."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from llm_coop_envs.cli.completing import begin_with, scenarios
from llm_coop_envs.cli.layout import heading, say, terminal_width, wrap
from llm_coop_envs.cli.messages import sentences
from llm_coop_envs.cli.sections import Section, show_sections

if TYPE_CHECKING:
    from llm_coop_envs.cli.description import Description, Setting

SECTIONS = ("rules", "settings", "presets", "policies", "model", "measures", "spaces", "wordings")


@sentences
def describe_command(
    scenario: Annotated[
        str,
        typer.Argument(
            help="kbc, bertrand or evacuation, or an installed one, see 'llm-coop list'.",
            autocompletion=begin_with(scenarios),
        ),
    ],
    section: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"What to say in full: {', '.join(SECTIONS)}.",
            show_default=False,
            autocompletion=begin_with(lambda: SECTIONS),
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sections in full.")] = False,
    word: Annotated[
        str | None, typer.Option("--filter", help="Only what has this word in its name or text.", show_default=False)
    ] = None,
) -> None:
    """Show a scenario's rules, settings, presets, policies, measures and spaces."""
    from llm_coop_envs.cli.description import describe

    text = describe(scenario)
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


def _meaning(setting: Setting) -> str:
    return f"{setting.about} (default: {setting.default!r})"

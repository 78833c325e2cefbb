"""`llm-coop describe`: one scenario in full."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llm_coop_envs.cli.messages import print_definitions, sentences, two_columns


@sentences
def describe_command(
    scenario: Annotated[str, typer.Argument(help="kbc, bertrand or evacuation.")],
) -> None:
    """Show a scenario's rules, settings, spaces, phases, presets, metrics and policies."""
    from llm_coop_envs.cli.description import describe

    text = describe(scenario)
    console = Console(emoji=False)
    console.print(f"[bold]{text.scenario.name}[/]  {escape(text.scenario.title)}\n", highlight=False)
    for paragraph in text.about:
        console.print(escape(paragraph) + "\n", highlight=False)
    module = f"llm_coop_envs.{text.scenario.name}_v0"
    console.print(f"[bold]Use[/]       {module}.parallel_env(preset=..., talk=False, ...)", highlight=False)
    console.print(f"[bold]Agents[/]    {text.agents[0]} to {text.agents[1]} by default", highlight=False)
    console.print(f"[bold]Phases[/]    {', '.join(text.phases)} (no talk phase with talk=False)", highlight=False)
    console.print(f"[bold]Wordings[/]  {', '.join(text.wordings)} (or a folder of your own)", highlight=False)
    print_definitions(console, "Spaces of one agent", text.spaces)
    console.print(f"  features: {escape(', '.join(text.features))}", highlight=False)
    table = Table(title="Settings", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("name", "default", "meaning"):
        table.add_column(column, overflow="fold")
    for setting in text.settings:
        table.add_row(setting.name, escape(repr(setting.default)), escape(setting.about))
    console.print()
    console.print(table)
    presets = {
        key: ", ".join(f"{k}={v!r}" for k, v in value.items()) or "the defaults" for key, value in text.presets.items()
    }
    print_definitions(console, "Presets", presets)
    console.print("\n[bold]Policies[/]  (scripted ones, and a language model; options as in 'NAME {option: value}')")
    table = two_columns()
    for policy in text.policies:
        table.add_row(f"  {escape(policy.name)}", escape(policy.about))
        for setting in policy.options:
            table.add_row(f"    {escape(setting.name)}", escape(f"{setting.about} (default: {setting.default!r})"))
    console.print(table)
    print_definitions(console, "Measures of an episode", text.metrics)

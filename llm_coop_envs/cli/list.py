"""`llm-coop list`: what there is."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from llm_coop_envs.cli.messages import sentences, two_columns


@sentences
def list_command() -> None:
    """Show scenarios, presets, wordings, policies, trained networks and studies."""
    from llm_coop_envs.baselines.deep.shipped import trained_lines
    from llm_coop_envs.cli.description import all_scenarios, first_line, policy_lines
    from llm_coop_envs.policies.llm.playing.packs import load_pack, shipped_packs
    from llm_coop_envs.policies.llm.playing.presets import presets
    from llm_coop_envs.policies.scripted import REGULATOR, describe
    from llm_coop_envs.studies.study import read_description, shipped_studies

    console = Console(emoji=False)
    for scenario in all_scenarios():
        console.print(
            f"\n[bold]{scenario.name}[/]  {escape(scenario.title)}: {escape(first_line(scenario))}", highlight=False
        )
        console.print(f"  presets   {escape(', '.join(scenario.settings_type.presets))}", highlight=False)
        console.print(f"  wordings  {', '.join(scenario.wordings)} (or a folder of your own)", highlight=False)
        table = two_columns()
        for name, about in policy_lines(scenario).items():
            table.add_row(f"  {name}", escape(about))
        console.print("  policies (scripted)", highlight=False)
        console.print(table)
    console.print("\n[bold]Rules for a regulator's seat[/]  (scripted, in any scenario)")
    table = two_columns()
    for name, about in describe().items():
        if name.startswith(f"{REGULATOR}/"):
            table.add_row(f"  {name}", escape(about))
    console.print(table)
    console.print("\n[bold]Trained networks[/]  (for any seat)")
    table = two_columns()
    for name, about in trained_lines().items():
        table.add_row(f"  {name}", escape(about))
    console.print(table)
    console.print("\n[bold]Language models[/]  (for any seat: --policy llm --model NAME; see 'llm-coop run --help')")
    console.print(f"  presets   {', '.join([*presets(), 'none'])}", highlight=False)
    console.print(f"  packs     {', '.join(shipped_packs())} (or a folder of your own)", highlight=False)
    personas = ["none", *dict.fromkeys(name for prompt in load_pack("en-a").all_prompts() for name in prompt.personas)]
    console.print(f"  personas  {', '.join(personas)} (or words of your own)", highlight=False)
    console.print("\n[bold]Studies[/]")
    table = two_columns()
    for name, path in shipped_studies().items():
        table.add_row(f"  {name}", escape(read_description(path)))
    console.print(table)
    console.print("\nMore about one scenario: llm-coop describe evacuation", highlight=False)

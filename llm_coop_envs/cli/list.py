"""`llm-coop list`: what there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from llm_coop_envs.cli.completing import begin_with
from llm_coop_envs.cli.layout import say
from llm_coop_envs.cli.messages import sentences
from llm_coop_envs.cli.sections import Section, show_sections
from llm_coop_envs.util.checks import nearest

SECTIONS = (
    "scenarios", "studies", "policies", "presets", "wordings", "regulators", "networks", "model-presets", "packs",
    "personas",
)  # fmt: skip


@sentences
def list_command(
    section: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"What to list with a word on each: {', '.join(SECTIONS)}; or a word to look for.",
            show_default=False,
            autocompletion=begin_with(lambda: SECTIONS),
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="A word on each of all.")] = False,
    word: Annotated[
        str | None, typer.Option("--filter", help="Only what has this word in its name or text.", show_default=False)
    ] = None,
) -> None:
    """Show scenarios, presets, wordings, policies, trained networks and studies."""
    if word is None and section and len(section) == 1 and not nearest(section[0], SECTIONS):
        word, section = section[0], None  # no section, nor one misspelt: a word to look for
    show_sections(_sections(), chosen=section or (), everything=everything, word=word)
    if not (section or everything or word):
        say("\nA word on each: llm-coop list studies, or list --all. One scenario: llm-coop describe bertrand")


def _sections() -> list[Section]:
    """All there is."""
    from llm_coop_envs.baselines.deep.shipped import trained_lines
    from llm_coop_envs.cli.description import all_scenarios, first_line, policy_lines, preset_lines
    from llm_coop_envs.policies.llm.playing.packs import load_pack, shipped_packs
    from llm_coop_envs.policies.llm.playing.presets import presets
    from llm_coop_envs.policies.scripted import REGULATOR, describe
    from llm_coop_envs.studies.study import read_description, shipped_studies

    scenarios = all_scenarios()
    own = "or a folder of your own"
    personas = ["none", *dict.fromkeys(name for prompt in load_pack("en-a").all_prompts() for name in prompt.personas)]
    regulators = [(name, text) for name, text in describe().items() if name.startswith(f"{REGULATOR}/")]
    return [
        Section(name="scenarios", entries=[(one.name, f"{one.title}: {first_line(one)}") for one in scenarios]),
        Section(name="studies", entries=[(name, read_description(path)) for name, path in shipped_studies().items()]),
        Section(
            name="policies",
            note="Scripted rules. llm:MODEL, human and a class of your own play, too.",
            entries=[row for one in scenarios for row in policy_lines(one).items()],
        ),
        Section(
            name="presets",
            note="Settings of a scenario.",
            entries=[(f"{one.name}/{name}", text) for one in scenarios for name, text in preset_lines(one).items()],
        ),
        _names("wordings", f"What players are told; {own}.", {name: 0 for one in scenarios for name in one.wordings}),
        Section(name="regulators", note="Scripted rules for a regulator's seat, in any scenario.", entries=regulators),
        Section(name="networks", note="Trained, for any seat.", entries=[*trained_lines().items()]),
        _names("model-presets", "For --model-preset: a language model's settings after a paper.", [*presets(), "none"]),
        _names("packs", f"For --pack: a language model's prompts; {own}.", shipped_packs()),
        _names("personas", "For --persona; or words of your own.", personas),
    ]


def _names(name: str, note: str, members: Iterable[str]) -> Section:
    """A section of which only names are said."""
    return Section(name=name, note=note, entries=[(member, "") for member in members])

"""`llm-coop journal`: what a run's journal holds, and saving what can be read of a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.messages import EXIT_ERROR, sentences
from llm_coop_envs.util.quoting import harmless


@sentences
def journal_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    salvage: Annotated[
        bool,
        typer.Option(
            "--salvage", help="Write damaged parts anew from what can be read; the damaged files are kept beside them."
        ),
    ] = False,
) -> None:
    """Show what a run's journal holds: answers, tokens, money, and damage if there is any."""
    from llm_coop_envs.policies.llm.journal import describe, read_run, require_journal
    from llm_coop_envs.policies.llm.journal import salvage as write_anew
    from llm_coop_envs.runs.folder import open_run
    from llm_coop_envs.storage.folder import MANIFEST

    folder = run.expanduser()
    require_journal(folder)
    if salvage:
        for sentence in write_anew(folder) or [f"{folder}: nothing is damaged, nothing was changed"]:
            typer.echo(sentence)
    reports = read_run(folder)
    for report in reports:
        for sentence in describe(report):
            typer.echo(harmless(sentence))
    changed = open_run(folder).describe_damage("journal/") if (folder / MANIFEST).is_file() else []
    for sentence in changed:
        typer.echo(harmless(sentence))
    if (changed and not salvage) or any(report.damage for report in reports):
        raise typer.Exit(EXIT_ERROR)

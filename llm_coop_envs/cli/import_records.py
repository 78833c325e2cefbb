"""`llm-coop import`: what another program recorded, as a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.messages import note, sentences


@sentences
def import_command(
    form: Annotated[str, typer.Argument(help="The format: coopeval, or another that an installed scenario reads.")],
    source: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the records; it is only read.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="A new or empty folder for the run.")],
    commit: Annotated[
        str,
        typer.Option(
            "--commit",
            help="The commit of the records. (default: that of the Git repository in which they lie)",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Read what others recorded of their players into a run folder, which all commands take as any other."""
    from llm_coop_envs.runs.imported import import_records
    from llm_coop_envs.runs.progress import working

    command = f"llm-coop import {form} {source} -o {out}"
    with working(f"Reading {source}"):
        imported = import_records(form, source.expanduser(), out.expanduser(), commit=commit, command=command)
    for sentence in imported.notes:
        note(f"Not there: {sentence}.")
    known, same, explained = (sum(counts) for counts in zip(*imported.plays.values(), strict=True))
    typer.echo(f"{out}: {imported.run.total:,} episodes, recorded by {imported.run.manifest['imported']['by']}")
    typer.echo(
        f"Our rules pay as recorded in {same:,} of {known:,} plays, and in {explained:,} with what was paid besides, "
        "such as by contracts."
    )

"""`llm-coop export`: a run in the forms that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.completing import begin_with, forms
from llm_coop_envs.cli.messages import sentences
from llm_coop_envs.cli.trusting import reads_runs


@sentences
@reads_runs
def export_command(
    run: Annotated[Path, typer.Argument(help="A finished run's folder; it is only read.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="parquet or csv (with a code book), otree (wide CSV), inspect (a log), hf (Hugging Face), eee (Every"
            " Eval Ever), html (one page that needs no server; also of an unfinished run).",
            autocompletion=begin_with(forms),
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="A new or empty folder; for html a new file. (default: in RUN/export)",
            show_default=False,
        ),
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Also of an unfinished run: the episodes it has.")] = False,
    licence: Annotated[
        str, typer.Option("--licence", help="The licence of the published data, as SPDX names it; for hf.")
    ] = "",
) -> None:
    """Write a finished run for another tool: all of it, or nothing."""
    from llm_coop_envs.export.export import export_run

    if to == "html":
        from llm_coop_envs.page.one_file import write_page

        typer.echo(write_page(run.expanduser(), None if out is None else out.expanduser()))
        return
    folder = export_run(
        run.expanduser(), to, None if out is None else out.expanduser(), partial=partial, licence=licence
    )
    for path in sorted(path_inside for path_inside in folder.rglob("*") if path_inside.is_file()):
        typer.echo(path)

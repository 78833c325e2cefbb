"""`llm-coop report`: write a run's report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.messages import check_target, sentences
from llm_coop_envs.cli.trusting import reads_runs


@sentences
@reads_runs
def report_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Where to write. (default: RUN/report)", show_default=False),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Report on a run that is not complete; the page says so.")
    ] = False,
    invalid_above: Annotated[
        float,
        typer.Option(
            "--invalid-above",
            min=0,
            max=1,
            help="The share of a model's unreadable answers or fallbacks above which a condition is marked invalid.",
        ),
    ] = 0.05,
) -> None:
    """Write a run's report, one HTML page that holds everything, and its figures as PNG files; say what it answers."""
    from llm_coop_envs.reports.build import write_report
    from llm_coop_envs.reports.headline import answer_lines
    from llm_coop_envs.runs.progress import working

    where = None if out is None else out.expanduser()
    check_target(where)
    with working("Reading the episodes and drawing"):
        page = write_report(run.expanduser(), where, partial=partial, invalid_above=invalid_above)
    for line in answer_lines(page.answers):
        typer.echo(line)
    typer.echo(f"Report: {page}")

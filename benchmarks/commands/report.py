"""`llm-coop report`: write a run's report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.benchmarks.commands.common import sentences


@sentences
def report_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Where to write. [default: RUN/report]", show_default=False),
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
    """Write a run's report: one HTML page that holds everything, and its figures as PNG files."""
    from llm_coop_envs.benchmarks.comparison.report import write_comparison
    from llm_coop_envs.benchmarks.comparison.runs import is_comparison
    from llm_coop_envs.benchmarks.report.build import write_report

<<<<<<< HEAD
    write = write_comparison if is_comparison(run.expanduser()) else write_report
    page = write(run.expanduser(), None if out is None else out.expanduser(), partial=partial)
=======
    page = write_report(
        run.expanduser(), None if out is None else out.expanduser(), partial=partial, invalid_above=invalid_above
    )
>>>>>>> main
    typer.echo(f"Report: {page}")

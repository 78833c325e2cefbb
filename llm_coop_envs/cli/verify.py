"""`llm-coop verify`: whether a run is what it says it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.messages import EXIT_ERROR, note, sentences
from llm_coop_envs.util.quoting import harmless


@sentences
def verify_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    again: Annotated[
        bool, typer.Option("--again", help="Also play the episodes of rules and learners again, and compare.")
    ] = False,
) -> None:
    """Check a run: files by the manifest, events by the journal, and tables, report and scorecard by the events."""
    from llm_coop_envs.benchmarks.scorecard.verification import card_faults
    from llm_coop_envs.reports.verification import report_faults
    from llm_coop_envs.runs.progress import working
    from llm_coop_envs.runs.verify import verify_run

    folder = run.expanduser()
    with working(f"Checking {folder}") as tell:
        found = verify_run(folder, again=again, tell=lambda what: tell(f"Checking {what}"))
        found.faults += card_faults(found.run)
        tell("Checking the report")
        found.faults += report_faults(found.run)
    for sentence in found.notes:
        note(f"Not checked: {sentence}.")
    for sentence in found.faults:
        typer.echo(f"Fault: {harmless(' '.join(sentence.split()))}", err=True)
    typer.echo(
        f"{folder}: {found.episodes} of {found.run.total} episodes are this run's own, {found.replayed} of them were "
        f"played again, {found.tables} tables made again: {len(found.faults) or 'no'} faults"
    )
    if found.faults:
        raise typer.Exit(EXIT_ERROR)

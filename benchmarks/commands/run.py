"""`llm-coop run`: play a study."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from llm_coop_envs.benchmarks.commands.common import EXIT_INTERRUPTED, fail, note, sentences
from llm_coop_envs.errors import LlmCoopError


@sentences
def run_command(
    study: Annotated[str, typer.Argument(help="A shipped study's name (see 'llm-coop list') or a YAML file.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="The run folder; one that holds this study is continued. [default: runs/STUDY-N]",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes. [default: all cores]", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Replaces the study's seed.")] = None,
) -> None:
    """Play a study: all its conditions with all their seeds."""
    from llm_coop_envs.benchmarks.pool import usable_cores
    from llm_coop_envs.benchmarks.progress import RichWatcher, clock
    from llm_coop_envs.benchmarks.runfolder import new_folder
    from llm_coop_envs.benchmarks.runner import run_study
    from llm_coop_envs.benchmarks.study import load_study
    from llm_coop_envs.benchmarks.tables import need_arrow

    need_arrow()
    plan = load_study(study, seed)
    folder = new_folder(plan) if out is None else out.expanduser()
    parts = ["llm-coop", "run", study, *([] if seed is None else ["--seed", str(seed)])]
    again = shlex.join([*parts, "-o", str(folder)])
    console = Console(stderr=True)
    watcher = RichWatcher(console)
    try:
        with watcher:
            outcome = run_study(
                plan, folder, workers=workers or usable_cores(), command=shlex.join(parts), watcher=watcher
            )
    except KeyboardInterrupt:
        note(f"Stopped at once. What was finished is in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except LlmCoopError as error:
        if not watcher.begun:
            raise
        fail(f"{error}. What was finished is in {folder}; continue with: {again}")
    if not outcome.complete:
        note(f"Stopped: {outcome.finished} of {outcome.run.total} episodes are in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED)
    note(f"Done: {outcome.played} episodes in {clock(outcome.seconds)}; all {outcome.run.total} are in {folder}.")
    typer.echo(f"Next: {shlex.join(['llm-coop', 'report', str(folder)])}")

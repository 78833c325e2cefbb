"""`llm-coop pause`, `resume`, `stop`, `limit`: steer a run that another process is playing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.cli.messages import fail, sentences

_RUN = Annotated[Path, typer.Argument(help="The run's folder.")]


@sentences
def pause_command(run: _RUN) -> None:
    """Pause a run: nothing new is begun or asked; answers under way are kept."""
    _order(run, {"do": "pause"}, f"Paused{{}}; go on with: {shlex.join(['llm-coop', 'resume', str(run)])}")


@sentences
def resume_command(run: _RUN) -> None:
    """Let a paused run go on."""
    _order(run, {"do": "resume"}, "Going on{}.")


@sentences
def stop_command(run: _RUN) -> None:
    """Stop a run as Ctrl-C does: answers under way are kept, and it can be continued."""
    _order(run, {"do": "stop"}, f"Stopping{{}}; continue with: {shlex.join(['llm-coop', 'run', str(run)])}")


@sentences
def limit_command(
    run: _RUN,
    most: Annotated[
        int, typer.Argument(min=1, help="At most this many requests to each endpoint, or episodes of rules, at a time.")
    ],
) -> None:
    """Change how much a run does at the same time; never more than it was begun with."""
    _order(run, {"do": "limit", "most": most}, f"At most {most} at a time from now on{{}}.")


def _order(run: Path, what: Mapping[str, Any], done: str) -> None:
    from llm_coop_envs.runs.control import order
    from llm_coop_envs.runs.folder import open_run

    folder = run.expanduser()
    opened = open_run(folder)
    answers = order(folder, what)
    if not answers:
        there = f"{opened.manifest['finished']} of {opened.total} episodes are there"
        again = "" if opened.complete else f"; continue it with: {shlex.join(['llm-coop', 'run', str(run)])}"
        fail(f"{folder}: nobody plays it now on this machine ({there}){again}")
    under_way = sum((one.get("counters") or {}).get("in_flight", 0) for one in answers.values())
    typer.echo(done.format(f" ({under_way} answers under way are waited for)" if under_way else ""))

"""`llm-coop steer`: pause, continue, stop or slow down a run that another process is playing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.cli.help import HelpfulCommand, HelpfulGroup
from llm_coop_envs.cli.messages import fail, sentences

_RUN = Annotated[Path, typer.Argument(help="The run's folder.")]
_AT_A_TIME = Annotated[
    int,
    typer.Argument(
        metavar="MOST", min=1, help="At most this many requests to each endpoint, or episodes of rules, at a time."
    ),
]

steer_app = typer.Typer(
    help="Pause, resume, stop or slow down a run that another process is playing.",
    cls=HelpfulGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@steer_app.command("pause", cls=HelpfulCommand)
@sentences
def pause_command(run: _RUN) -> None:
    """Pause a run: nothing new is begun or asked; answers under way are kept."""
    _give_order(
        run, {"do": "pause"}, f"Paused{{}}; go on with: {shlex.join(['llm-coop', 'steer', 'resume', str(run)])}"
    )


@steer_app.command("resume", cls=HelpfulCommand)
@sentences
def resume_command(run: _RUN) -> None:
    """Let a paused run go on."""
    _give_order(run, {"do": "resume"}, "Going on{}.")


@steer_app.command("stop", cls=HelpfulCommand)
@sentences
def stop_command(run: _RUN) -> None:
    """Stop a run as Ctrl-C does: answers under way are kept, and it can be continued."""
    _give_order(run, {"do": "stop"}, f"Stopping{{}}; continue with: {shlex.join(['llm-coop', 'run', str(run)])}")


@steer_app.command("limit", cls=HelpfulCommand)
@sentences
def limit_command(run: _RUN, at_a_time: _AT_A_TIME) -> None:
    """Change how much a run does at the same time; never more than it was begun with."""
    _give_order(run, {"do": "limit", "most": at_a_time}, f"At most {at_a_time} at a time from now on{{}}.")


def _give_order(run: Path, order_data: Mapping[str, Any], answer: str) -> None:
    """Send an order to every process that plays the run, and print `answer` with what is still under way."""
    from llm_coop_envs.runs.control import order
    from llm_coop_envs.runs.folder import open_run

    folder = run.expanduser()
    opened = open_run(folder)
    answers = order(folder, order_data)
    if not answers:
        finished = f"{opened.manifest['finished']} of {opened.total} episodes are there"
        again = "" if opened.complete else f"; continue it with: {shlex.join(['llm-coop', 'run', str(run)])}"
        fail(f"{folder}: nobody plays it now on this machine ({finished}){again}")
    under_way = sum((status.get("counters") or {}).get("in_flight", 0) for status in answers.values())
    typer.echo(answer.format(f" ({under_way} answers under way are waited for)" if under_way else ""))

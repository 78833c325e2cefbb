"""The command `llm-coop`: run studies, report on them, and find out what there is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from llm_coop_envs.cli.bench import bench_command
from llm_coop_envs.cli.branch import branch_command
from llm_coop_envs.cli.compare import compare_command, power_command
from llm_coop_envs.cli.cost import cost_command
from llm_coop_envs.cli.describe import describe_command
from llm_coop_envs.cli.evaluate import evaluate_command
from llm_coop_envs.cli.export import export_command
from llm_coop_envs.cli.figures import figures_command
from llm_coop_envs.cli.film import film_command
from llm_coop_envs.cli.help import HelpfulCommand, HelpfulGroup
from llm_coop_envs.cli.import_records import import_command
from llm_coop_envs.cli.journal import journal_command
from llm_coop_envs.cli.judge import judge_command
from llm_coop_envs.cli.list import list_command
from llm_coop_envs.cli.messages import EXIT_INTERRUPTED
from llm_coop_envs.cli.play import play_command
from llm_coop_envs.cli.population import population_command
from llm_coop_envs.cli.report import report_command
from llm_coop_envs.cli.run import run_command
from llm_coop_envs.cli.serve_scripted import serve_scripted_command
from llm_coop_envs.cli.slurm import slurm_command
from llm_coop_envs.cli.status import status_command
from llm_coop_envs.cli.steer import limit_command, pause_command, resume_command, steer_app, stop_command
from llm_coop_envs.cli.table import table_command
from llm_coop_envs.cli.tournament import tournament_command
from llm_coop_envs.cli.train import train_command
from llm_coop_envs.cli.transcript import transcript_command
from llm_coop_envs.cli.verify import verify_command
from llm_coop_envs.cli.view import view_command
from llm_coop_envs.cli.watch import watch_command
from llm_coop_envs.util.trust import NOTHING, limited_to
from llm_coop_envs.version import __version__

app = typer.Typer(
    help="Do agents that compete start to cooperate? Run studies of three scenarios and report on them.",
    cls=HelpfulGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: All commands, in the groups and the order in which the help shows them.
COMMANDS: Mapping[str, Mapping[str, Callable[..., None] | typer.Typer]] = {
    "Start": {"list": list_command, "describe": describe_command, "play": play_command},
    "Run": {
        "run": run_command,
        "tournament": tournament_command,
        "bench": bench_command,
        "branch": branch_command,
        "slurm": slurm_command,
        "steer": steer_app,
    },
    "Watch": {"view": view_command, "status": status_command, "watch": watch_command},
    "Results": {
        "report": report_command,
        "figures": figures_command,
        "table": table_command,
        "compare": compare_command,
        "power": power_command,
    },
    "Models": {
        "cost": cost_command,
        "transcript": transcript_command,
        "judge": judge_command,
        "journal": journal_command,
        "serve-scripted": serve_scripted_command,
    },
    "Data": {"import": import_command, "export": export_command, "verify": verify_command},
    "Make": {
        "film": film_command,
        "population": population_command,
        "train": train_command,
        "evaluate": evaluate_command,
    },
}
for _group, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_group)
        else:
            app.command(_name, cls=HelpfulCommand, rich_help_panel=_group)(_command)
# The former names of what `steer` does: they still work, and no help lists them.
for _former in (pause_command, resume_command, stop_command, limit_command):
    app.command(_former.__name__.removesuffix("_command"), cls=HelpfulCommand, hidden=True)(_former)


def main() -> None:
    """Entry point of the console command."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"llm-coop-envs {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before a command."""
    # Each command says itself what else it may load.
    context.with_resource(limited_to(NOTHING))

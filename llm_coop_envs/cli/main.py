"""The command `llm-coop`: run studies, report on them, and find out what there is."""

from __future__ import annotations

import sys
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
from llm_coop_envs.cli.train import train_command
from llm_coop_envs.cli.transcript import transcript_command
from llm_coop_envs.cli.verify import verify_command
from llm_coop_envs.cli.view import view_command
from llm_coop_envs.cli.watch import watch_command
from llm_coop_envs.util.trust import NOTHING, limited_to
from llm_coop_envs.version import __version__

app = typer.Typer(
    help="Do agents that compete start to cooperate? Run studies of three scenarios and report on them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command)
app.command("branch")(branch_command)
app.command("slurm")(slurm_command)
app.command("bench")(bench_command)
app.command("view")(view_command)
app.add_typer(steer_app, name="steer")
app.command("status")(status_command)
app.command("cost")(cost_command)
app.command("report")(report_command)
app.command("compare")(compare_command)
app.command("power")(power_command)
app.command("list")(list_command)
app.command("describe")(describe_command)
app.command("play")(play_command)
app.command("watch")(watch_command)
app.command("film")(film_command)
app.command("figures")(figures_command)
app.command("export")(export_command)
app.command("train")(train_command)
app.command("evaluate")(evaluate_command)
app.command("judge")(judge_command)
app.command("journal")(journal_command)
app.command("transcript")(transcript_command)
app.command("population")(population_command)
app.command("verify")(verify_command)
app.command("serve-scripted")(serve_scripted_command)
# The former names of what `steer` does: they still work, and no help lists them.
for _former in (pause_command, resume_command, stop_command, limit_command):
    app.command(_former.__name__.removesuffix("_command"), hidden=True)(_former)


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

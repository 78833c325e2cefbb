"""The command `llm-coop`: run studies, report on them, and find out what there is."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llm_coop_envs.errors import LlmCoopError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    help="Do agents that compete start to cooperate? Run studies of three scenarios and report on them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Command = TypeVar("Command", bound=Callable[..., None])


def main() -> None:
    """Entry point of the console command."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def sentences(command: Command) -> Command:
    """Turn what a user can mend into one sentence on stderr and exit code 2; Ctrl-C into 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except LlmCoopError as error:
            _fail(str(error))
        except BrokenPipeError:
            # The reader of our output left (`llm-coop list | head`); Python would complain again when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _fail(f"{where}{error.strerror or error}")
        except KeyboardInterrupt:
            _note("Interrupted.")
            raise typer.Exit(EXIT_INTERRUPTED) from None

    return wrapped  # type: ignore[return-value]


def _fail(sentence: str) -> NoReturn:
    Console(stderr=True).print(
        f"[bold red]Error:[/] {escape(' '.join(sentence.split()))}", highlight=False, soft_wrap=True
    )
    raise typer.Exit(EXIT_ERROR)


def _note(sentence: str) -> None:
    Console(stderr=True).print(escape(sentence), highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        import llm_coop_envs

        typer.echo(f"llm-coop-envs {llm_coop_envs.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before a command."""


@app.command("run")
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
        _note(f"Stopped at once. What was finished is in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except LlmCoopError as error:
        if not watcher.begun:
            raise
        _fail(f"{error}. What was finished is in {folder}; continue with: {again}")
    if not outcome.complete:
        _note(f"Stopped: {outcome.finished} of {outcome.run.total} episodes are in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED)
    _note(f"Done: {outcome.played} episodes in {clock(outcome.seconds)}; all {outcome.run.total} are in {folder}.")
    typer.echo(f"Next: {shlex.join(['llm-coop', 'report', str(folder)])}")


@app.command("report")
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
) -> None:
    """Write a run's report: one HTML page that holds everything, and its figures as PNG files."""
    from llm_coop_envs.benchmarks.report.build import write_report

    page = write_report(run.expanduser(), None if out is None else out.expanduser(), partial=partial)
    typer.echo(f"Report: {page}")


@app.command("list")
@sentences
def list_command() -> None:
    """Show scenarios, presets, wordings, policies and studies."""
    from llm_coop_envs.benchmarks.describe import all_scenarios, first_line, policy_lines
    from llm_coop_envs.benchmarks.study import load_study, shipped_studies

    console = Console()
    for scenario in all_scenarios():
        console.print(
            f"\n[bold]{scenario.name}[/]  {escape(scenario.title)}: {escape(first_line(scenario))}", highlight=False
        )
        console.print(f"  presets   {escape(', '.join(scenario.settings_type.presets))}", highlight=False)
        console.print(f"  wordings  {', '.join(scenario.wordings)} (or a folder of your own)", highlight=False)
        table = _table()
        for name, about in policy_lines(scenario).items():
            table.add_row(f"  {name}", escape(about))
        console.print("  policies (scripted)", highlight=False)
        console.print(table)
    console.print("\n[bold]Studies[/]")
    table = _table()
    for name, path in shipped_studies().items():
        table.add_row(f"  {name}", escape(load_study(str(path)).description))
    console.print(table)
    console.print("\nMore about one scenario: llm-coop describe evacuation", highlight=False)


@app.command("describe")
@sentences
def describe_command(
    scenario: Annotated[str, typer.Argument(help="kbc, bertrand or evacuation.")],
) -> None:
    """Show a scenario's rules, settings, spaces, phases, presets, metrics and policies."""
    from llm_coop_envs.benchmarks.describe import describe

    told = describe(scenario)
    console = Console()
    console.print(f"[bold]{told.scenario.name}[/]  {escape(told.scenario.title)}\n", highlight=False)
    for paragraph in told.about:
        console.print(escape(paragraph) + "\n", highlight=False)
    module = f"llm_coop_envs.{told.scenario.name}_v0"
    console.print(f"[bold]Use[/]       {module}.parallel_env(preset=..., talk=False, ...)", highlight=False)
    console.print(f"[bold]Agents[/]    {told.agents[0]} to {told.agents[1]} by default", highlight=False)
    console.print(f"[bold]Phases[/]    {', '.join(told.phases)} (no talk phase with talk=False)", highlight=False)
    console.print(f"[bold]Wordings[/]  {', '.join(told.wordings)} (or a folder of your own)", highlight=False)
    _print_pairs(console, "Spaces of one agent", told.spaces)
    console.print(f"  features: {escape(', '.join(told.features))}", highlight=False)
    table = Table(title="Settings", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("name", "default", "meaning"):
        table.add_column(column, overflow="fold")
    for setting in told.settings:
        table.add_row(setting.name, escape(repr(setting.default)), escape(setting.about))
    console.print()
    console.print(table)
    presets = {
        key: ", ".join(f"{k}={v!r}" for k, v in value.items()) or "the defaults" for key, value in told.presets.items()
    }
    _print_pairs(console, "Presets", presets)
    _print_pairs(console, "Policies (scripted)", told.policies)
    console.print("\n[bold]Metrics of an episode[/]")
    console.print(escape(told.metrics), highlight=False)


def _table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _print_pairs(console: Console, title: str, pairs: Any) -> None:
    console.print(f"\n[bold]{title}[/]")
    table = _table()
    for name, about in pairs.items():
        table.add_row(f"  {escape(name)}", escape(about))
    console.print(table)


if __name__ == "__main__":
    main()

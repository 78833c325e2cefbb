"""`llm-coop run collusion_comparison`: learners, rules and models side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from llm_coop_envs.benchmarks.cli.messages import EXIT_INTERRUPTED, fail, note
from llm_coop_envs.benchmarks.cli.run_options import KIND, RunOptions
from llm_coop_envs.benchmarks.comparison import NAME
from llm_coop_envs.benchmarks.comparison.arms import Arm, model_arms, own_arms, policy_arm
from llm_coop_envs.benchmarks.comparison.runs import fitted, run_comparison
from llm_coop_envs.benchmarks.run.asking import Asking
from llm_coop_envs.benchmarks.run.workers import usable_cores
from llm_coop_envs.benchmarks.study.players import full_name, settle
from llm_coop_envs.benchmarks.study.seating import Given, read_player
from llm_coop_envs.core.keys import scrub
from llm_coop_envs.errors import LlmCoopError, StudyError
from llm_coop_envs.storage.folder import new_folder

if TYPE_CHECKING:
    from llm_coop_envs.benchmarks.comparison.runs import OpenChat


def play_comparison(options: RunOptions, *, out: Path | None, workers: int | None, seed: int) -> None:
    """Play the comparison: what the package has itself, and the player or model that was given besides.

    Args:
        options: `--policy` adds a player, `--model` a language model without and with talk.
        out: the folder; a new one by default.
        workers: processes.
        seed: of the run.

    Raises:
        LlmCoopError: something cannot be played; nothing has been started then.
    """
    if options.seats:
        raise StudyError(f"--seat: in {NAME} every kind of player plays all seats; use --policy")
    arms, endpoint = _given(options)
    asking = options.asking()
    folder = new_folder(NAME) if out is None else out.expanduser()
    again = shlex.join(["llm-coop", "run", NAME, *(["--seed", str(seed)] if seed else []), *options.again()])
    again = scrub(f"{again} {shlex.join(['-o', str(folder)])}")
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    begun = False

    def report(done: int, total: int) -> None:
        nonlocal begun
        begun = True
        bar.update(task, completed=done, total=total)

    try:
        with Progress(
            *columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True), transient=True
        ) as bar:
            task = bar.add_task("episodes", total=None)
            rows = run_comparison(
                [*own_arms(), *arms],
                folder,
                seed=seed,
                workers=workers or usable_cores(),
                open_chat=_chat(asking, arms, endpoint, folder),
                report=report,
            )
    except KeyboardInterrupt:
        note(f"Stopped. What was finished is in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except LlmCoopError as error:
        if not begun:
            raise
        fail(f"{str(error).rstrip('.')}. What was finished is in {folder}; continue with: {again}")
    note(f"Done: all {len(rows)} episodes are in {folder}.")
    typer.echo(f"Next: {shlex.join(['llm-coop', 'report', str(folder)])}")


def _given(options: RunOptions) -> tuple[list[Arm], dict[str, object]]:
    """The arms that were given, and where their model is reached."""
    given = None if options.policy is None else read_player(options.policy)
    arms: list[Arm] = []
    if given is not None and not given.asks_a_model:
        arms.append(fitted(policy_arm(full_name("bertrand", given.name), given.options)))
        given = None
    if given is None and options.model is None:
        return arms, {}
    player = options.complete(given or Given(name=KIND, options={}), options.model_options())
    policy, settled, endpoint = settle(player.name, player.options)
    return [*arms, *model_arms(policy.partition(":")[2], settled)], endpoint


def _chat(asking: Asking, arms: Sequence[Arm], endpoint: dict[str, object], folder: Path) -> OpenChat | None:
    models = sorted({arm.policy.partition(":")[2] for arm in arms if arm.asks})
    if not models:
        return None
    # Only now: the module brings the prompts with it.
    from llm_coop_envs.policies.llm.playing.player import endpoint_of

    made = [endpoint_of(model, {**endpoint, **asking.endpoint}) for model in models]
    return lambda: asking.open(folder, [] if asking.replay is not None else made, note)

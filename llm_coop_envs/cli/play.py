"""`llm-coop play`: take a seat."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shlex
from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.completing import begin_with, scenarios
from llm_coop_envs.cli.messages import note, sentences
from llm_coop_envs.cli.trusting import trust_program


@sentences
def play_command(
    scenario: Annotated[
        str, typer.Argument(help="Its name; `llm-coop list` has them all.", autocompletion=begin_with(scenarios))
    ],
    seats: Annotated[int, typer.Option("--seats", min=1, help="How many people play, from the first seat on.")] = 1,
    seat: Annotated[
        list[str] | None,
        typer.Option("--seat", help="A person's seat by name, such as player_2; may be repeated.", show_default=False),
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(
            "--others",
            help="Who fills the other seats: a policy, such as grim_trigger or 'llm:MODEL {base_url: URL}'. "
            "(default: a scripted one)",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="A preset of the scenario.", show_default=False)
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, such as talk=false or rounds=20; may be repeated.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The run folder. (default: runs/play_SCENARIO-N)", show_default=False),
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Play in the terminal instead of a window.")] = False,
) -> None:
    """Take a seat beside scripted rules, learners or language models; the game is recorded as a run."""
    from llm_coop_envs.runs.human_game import plan_game, play_game
    from llm_coop_envs.runs.model_access import ModelAccess
    from llm_coop_envs.runs.progress import waiting, working
    from llm_coop_envs.runs.runner import check_libraries
    from llm_coop_envs.storage.folder import chosen_folder
    from llm_coop_envs.util.extras import need
    from llm_coop_envs.util.values import read_pairs

    trust_program()
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # lines can be edited then
    settings = read_pairs("--set", changed or ())
    with working("Setting up the game"):
        game = plan_game(scenario, seats=seat or seats, others=others, preset=preset, settings=settings, seed=seed)
    window = [] if terminal else [functools.partial(need, "pygame", "a window", "render")]
    check_libraries(game.study, ModelAccess(), *window)
    command = f"llm-coop play {scenario}"
    with contextlib.ExitStack() as resources:
        chosen = chosen_folder(out, game.study.name)
        if terminal:
            from llm_coop_envs.policies.human.terminal import Terminal, TerminalHuman

            folder = resources.enter_context(chosen)
            human = TerminalHuman(Terminal(read=resources.enter_context(waiting("The game continues"))(input)))
            result = asyncio.run(play_game(game, folder, human, command=command, notify=note))
        else:
            from llm_coop_envs.runs.human_window import play_in_window

            choose = functools.partial(resources.enter_context, chosen)
            folder, result = asyncio.run(play_in_window(game, choose, command=command, notify=note))
    typer.echo("")
    typer.echo(f"The game has ended: {result.reason}.")
    for agent, reward in result.rewards.items():
        typer.echo(f"{agent} got {reward:,.10g}.")
    if result.is_recorded:
        typer.echo(f"Next: {shlex.join(['llm-coop', 'report', str(folder)])}")
    else:
        note("Not a single round was settled; nothing is kept.")

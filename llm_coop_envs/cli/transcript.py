"""`llm-coop transcript`: what was asked and answered in an episode, to read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llm_coop_envs.cli.messages import EXIT_ERROR, fail, note, sentences
from llm_coop_envs.cli.trusting import reads_runs
from llm_coop_envs.util.quoting import harmless

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.journal import Exchange

_BAR = "  | "


@sentences
@reads_runs
def transcript_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    condition: Annotated[
        str | None, typer.Argument(help="The condition's name. Without it all episodes are listed.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Argument(help="The seed. Without it the condition's episodes are listed.", show_default=False)
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only this player's, such as player_3.", show_default=False)
    ] = None,
    answers: Annotated[bool, typer.Option("--answers", help="Only the answers.")] = False,
) -> None:
    """Print an episode's prompts and answers in order, from the run's journal.

    Control characters in what a model wrote are shown as escapes, so that they cannot act on the terminal.
    """
    from llm_coop_envs.policies.llm.journal import list_episodes, read_episode
    from llm_coop_envs.runs.folder import open_run
    from llm_coop_envs.storage.folder import MANIFEST
    from llm_coop_envs.util.checks import suggestion

    folder = run.expanduser()
    gaps = open_run(folder).describe_damage("journal/") if (folder / MANIFEST).is_file() else []
    try:
        if condition is None or seed is None:
            _list(run, condition, list_episodes(folder, gaps))
            return
        exchanges = read_episode(folder, f"{condition}/{seed}", gaps)
    finally:
        for sentence in gaps:
            note(f"Not all of the journal is there: {sentence}.")
    if agent is not None:
        players = list(dict.fromkeys(exchange.key.agent for exchange in exchanges))
        if agent not in players:
            fail(f"--agent {agent}: was asked nothing in {condition}/{seed}; {suggestion(agent, players)}")
        exchanges = [exchange for exchange in exchanges if exchange.key.agent == agent]
    for exchange in exchanges:
        typer.echo(_exchange_text(exchange, answers))
    if gaps:
        raise typer.Exit(EXIT_ERROR)


def _list(run: Path, condition: str | None, episodes: Mapping[str, int]) -> None:
    """Print the episodes, each as the command that shows it."""
    from llm_coop_envs.util.checks import suggestion

    chosen = [name for name in episodes if condition is None or name.rpartition("/")[0] == condition]
    if condition is not None and not chosen:
        conditions = dict.fromkeys(name.rpartition("/")[0] for name in episodes)
        fail(f"{run}: its journal has no condition '{condition}'; {suggestion(condition, conditions)}")
    for name in chosen:
        condition_name, _, number = name.rpartition("/")
        typer.echo(
            f"llm-coop transcript {shlex.join([str(run), condition_name, number])}    # {episodes[name]:,} answers"
        )


def _exchange_text(exchange: Exchange, answers: bool) -> str:
    key = exchange.key
    again = f", attempt {key.attempt}" if key.attempt else ""
    lines = [f"== step {key.step}, {harmless(key.agent)}: {key.call}{again}"]
    if not answers:
        for role, text in exchange.messages:
            lines += [f"{harmless(role)}:", quoted(text)]
    reply = exchange.reply
    if reply is None:
        lines += ["no answer:", quoted(exchange.error), ""]
        return "\n".join(lines)
    if reply.reasoning:
        lines += ["reasoning:", quoted(reply.reasoning)]
    how = "" if reply.finish_reason == "stop" else f" ({harmless(reply.finish_reason)})"
    lines += [f"answer by {harmless(reply.model)}{how}:", quoted(reply.text or reply.refusal or ""), ""]
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Every line behind a bar, so that no text can look like the transcript's own lines."""
    return "\n".join(_BAR + line for line in harmless(text).split("\n"))

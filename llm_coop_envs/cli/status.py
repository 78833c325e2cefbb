"""`llm-coop status`: how far a run is, in a few lines or as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.cli.messages import sentences
from llm_coop_envs.cli.trusting import reads_runs
from llm_coop_envs.util.quoting import harmless


@sentences
@reads_runs
def status_command(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON, for scripts.")] = False,
) -> None:
    """Say how far a run is, what it has cost, and who plays it now."""
    from llm_coop_envs.page.state import describe_state

    state = describe_state(run.expanduser())
    typer.echo(
        json.dumps(state, ensure_ascii=False, allow_nan=False) if as_json else harmless("\n".join(_lines(state)))
    )


def _lines(state: Mapping[str, Any]) -> list[str]:
    from llm_coop_envs.runs.remaining import format_clock
    from llm_coop_envs.util.invalid import share_text

    lines = [f"{state['study']}: {state['state']}, {state['finished']} of {state['total']} episodes"]
    if state["in_play"]:
        share = state["in_play_share"]
        lines.append(
            f"In play: {state['in_play']}" + (f", {100 * share:.0f} % of their rounds" if share is not None else "")
        )
    if state["failed"]:
        lines.append(f"Failed: {state['failed']}")
    if state["seconds_left"] is not None:
        lines.append(f"Left: about {format_clock(state['seconds_left'])}")
    if state["calls"]:
        cost = "price unknown" if state["cost_usd"] is None else f"${state['cost_usd']:.4f}"
        budget = state["budget"].get("usd")
        lines.append(
            f"Calls: {state['calls']}, {state['tokens']} tokens, {cost}" + (f" of ${budget:.4f}" if budget else "")
        )
    if state["asked"]:
        lines.append(
            f"Of {state['asked']} decisions {share_text(state['repaired'], state['asked'])} were repaired, "
            f"{share_text(state['fallbacks'], state['asked'])} fell back"
        )
    if state["why"]:
        lines.append(f"Why: {state['why']}")
    return lines

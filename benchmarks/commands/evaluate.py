"""`llm-coop evaluate`: how a policy plays, against another on the same seeds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from llm_coop_envs.benchmarks.commands.common import sentences
from llm_coop_envs.benchmarks.commands.pairs import read_pairs
from llm_coop_envs.benchmarks.statistics import LEVEL, Interval


@sentences
def evaluate_command(
    policy: Annotated[str, typer.Argument(help="A policy as in studies: nearest_exit, sb3:evacuation, sb3:FOLDER, ...")],
    env: Annotated[str, typer.Option("--env", help="kbc, bertrand or evacuation.")],
    against: Annotated[
        str | None, typer.Option("--against", help="Another policy, played with the same seeds.")
    ] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="A preset of the scenario.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the scenario, as name=value; may be repeated.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", help="An option of the policy, as name=value; may be repeated.")
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="How many seeds.")] = 30,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="The first seed; the others follow.")] = 1000,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Also write all episodes to this JSON file.")] = None,
) -> None:
    """Play a policy in all seats, with intervals over the seeds; no language model is asked."""
    from llm_coop_envs.benchmarks.evaluation import SHOWN, evaluate, to_json
    from llm_coop_envs.benchmarks.files import write_json

    given = {**({} if preset is None else {"preset": preset}), **read_pairs("--set", settings or ())}
    own = read_pairs("--option", options or ())
    policies = [policy, *([] if against is None else [against])]
    seeds = range(first_seed, first_seed + episodes)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("episodes", total=len(policies) * episodes)
        results = evaluate(env, policies, given, seeds, own, lambda: progress.advance(bar))
    console = Console()
    table = Table(box=None, pad_edge=False)
    for column in ("measure", "policy", *(() if against is None else ("against", "difference"))):
        table.add_column(column, justify="left" if column == "measure" else "right", no_wrap=True)
    for role, one in zip(("policy", "against"), results, strict=False):
        console.print(f"{role:8}{escape(one.policy)}", highlight=False, soft_wrap=True)
    for measure in SHOWN[env]:
        cells = [_cell(one.interval(measure)) for one in results]
        if against is not None:
            cells.append(_cell(results[0].difference(results[1], measure), sign=True))
        table.add_row(measure, *cells)
    console.print(table, highlight=False, crop=False)
    console.print(
        f"Means over {episodes} episodes (seeds {seeds[0]} to {seeds[-1]}), with {LEVEL:.0%} bootstrap intervals"
        + ("; differences seed by seed." if against else "."),
        highlight=False,
        soft_wrap=True,
    )
    if out is not None:
        command = shlex.join(
            ["llm-coop", "evaluate", policy, "--env", env, *([] if against is None else ["--against", against])]
        )
        write_json(out.expanduser(), to_json(results, env, given, own, command))


def _cell(interval: Interval | None, *, sign: bool = False) -> str:
    if interval is None:
        return "-"
    plus = "+" if sign else ""
    if interval.low is None or interval.high is None:
        return f"{interval.mean:{plus}.4g}"
    return f"{interval.mean:{plus}.4g} \\[{interval.low:{plus}.4g}, {interval.high:{plus}.4g}]"

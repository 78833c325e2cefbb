"""Tabular Q-learning on the command line: `python -m llm_coop_envs.baselines.tabular --help`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.baselines.command_line import console, read_fields, run_app, ticking
from llm_coop_envs.baselines.tabular.curve import CURVE
from llm_coop_envs.baselines.tabular.learner import learner_of
from llm_coop_envs.baselines.tabular.training import TabularFolder, train
from llm_coop_envs.storage.parquet import read_rows
from llm_coop_envs.util.values import read_pairs

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command()
def learn(
    scenario: Annotated[str, typer.Argument(help="What is learned, such as kbc or evacuation.")],
    folder: Annotated[Path, typer.Argument(help="Folder for the results; a run in it is continued.")],
    preset: Annotated[str | None, typer.Option(help="Preset of the scenario; the learner's own if left out.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is random.")] = 0,
    episodes: Annotated[
        int | None, typer.Option(help="Episodes of learning; the learner's own number if left out.")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the scenario, such as people=30; may be repeated.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="YAML or JSON file with fields of the learner's settings.")
    ] = None,
) -> None:
    """Let tables learn a scenario, and show where play without exploration ends."""
    kind = learner_of(scenario).settings_type
    fields: dict[str, Any] = read_fields(settings)
    own = fields.get("changes", {})
    if isinstance(own, dict):
        fields["changes"] = {**own, **read_pairs("--set", changes or ())}
    fields |= {name: value for name, value in (("preset", preset), ("episodes", episodes)) if value is not None}
    learning = kind.from_json(fields)
    with ticking("episodes", learning.episodes) as ticker:
        train(learning, seed, folder, report=lambda done, _: ticker.advance_to(done))
    last = read_rows(folder / CURVE)[-1]
    name, value = TabularFolder.open(folder).manifest["reference"]
    measures = {**{key: last[key] for key in last if key not in ("episode", "reward")}, name: value}
    console.print(f"{scenario} {learning.preset}, after {last['episode']} episodes, without exploration:")
    console.print("  " + ", ".join(f"{key} {number:.4g}" for key, number in measures.items()))
    console.print(f"Next: {shlex.join(['llm-coop', 'evaluate', f'tabular:{folder}', '--env', scenario])}")


if __name__ == "__main__":
    run_app(app)

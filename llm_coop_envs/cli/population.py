"""`llm-coop population`: whether people come out as they were asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llm_coop_envs.cli.messages import sentences
from llm_coop_envs.util.quoting import harmless


@sentences
def population_command(
    file: Annotated[Path, typer.Argument(help="The file of a population.")],
    size: Annotated[int | None, typer.Option(help="How many people; the file's by default, else 1,000.")] = None,
    seed: Annotated[int, typer.Option(help="What they are drawn from, unless the file has a seed.")] = 0,
    show: Annotated[int, typer.Option(help="So many people are shown one by one.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Write everything as JSON.")] = False,
) -> None:
    """Draw a population and compare it with what was asked; nobody is asked and nothing is written."""
    import numpy as np

    from llm_coop_envs.policies.population import load_population
    from llm_coop_envs.policies.population.audit import audit, diversity

    population = load_population(file)
    people = replace(population, size=size or population.size).draw(
        size or population.size or 1000, np.random.SeedSequence(seed)
    )
    rows = audit(people)
    texts = [people.sentences(person) for person in range(min(people.size, 10_000))]
    differ = diversity(texts) if any(texts) else {}
    profiles = [{**people.profile(k), "background": texts[k]} for k in range(min(show, len(texts)))]
    if as_json:
        report = {"size": people.size, "shares": [vars(row) for row in rows], "texts": differ, "people": profiles}
        typer.echo(json.dumps(report, ensure_ascii=False, indent=1))
        return
    console = Console(emoji=False)
    table = Table(title=f"{people.size:,} people", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("", "value", "asked", "drawn", "people", "difference" if population.exact else "p"):
        table.add_column(name, justify="left" if name in ("", "value") else "right", overflow="fold")
    previous_column = ""
    for row in rows:
        test = f"{round(row.drawn - row.share, 9) + 0.0:+.4f}" if row.p is None else f"{row.p:.3f}"
        name, previous_column = ("" if row.column == previous_column else row.column), row.column
        table.add_row(
            escape(harmless(name)),
            escape(harmless(row.value)),
            f"{row.share:.4f}",
            f"{row.drawn:.4f}",
            f"{row.people:,}",
            test,
        )
    console.print(table)
    if differ:
        console.print(
            f"\nBackgrounds by our sentences ({differ['texts']:,}): {differ['different']:.1%} different, distinct-1 "
            f"{differ['distinct_1']:.3f}, distinct-2 {differ['distinct_2']:.3f}, near duplicates "
            f"{differ['near_duplicates']:.1%} of {differ['compared']}",
            highlight=False,
        )
    for person in profiles:
        text = ", ".join(f"{name}: {value}" for name, value in person.items() if name != "background")
        console.print(escape(harmless(f"\n{text}\n{person['background']}")), highlight=False)

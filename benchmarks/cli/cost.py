"""`llm-coop cost`: what a study with a language model would cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llm_coop_envs.benchmarks.cli.messages import sentences

if TYPE_CHECKING:
    from llm_coop_envs.benchmarks.run.cost import Cost, Row

_PLAYERS = "Who plays, as for llm-coop run"
_TIME = "What is assumed for the time"


def _option(help_text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, show_default=False, **more)


@sentences
def cost_command(
    study: Annotated[str, typer.Argument(help="A shipped study's name (see 'llm-coop list') or a YAML file.")],
    model: Annotated[str | None, _option("The model, such as openai/gpt-4o-mini.", "--model")] = None,
    prices: Annotated[
        Path | None, _option("A YAML file of prices per million tokens. (default: litellm's table)", "--prices")
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, help="Episodes of each condition that are played for the estimate.")
    ] = 1,
    as_json: Annotated[bool, _option("Print JSON.", "--json")] = False,
    seed: Annotated[int | None, _option("Replaces the study's seed.", "--seed", min=0, panel=_PLAYERS)] = None,
    policy: Annotated[
        str | None,
        _option("Plays all seats. (default: llm, if no model plays in the study)", "--policy", panel=_PLAYERS),
    ] = None,
    seat: Annotated[
        list[str] | None, _option("SEAT=POLICY; may be given several times.", "--seat", panel=_PLAYERS)
    ] = None,
    preset: Annotated[
        str | None,
        _option("The papers' settings: a preset's name, or none. (default: team_up)", "--preset", panel=_PLAYERS),
    ] = None,
    pack: Annotated[str | None, _option("The prompt pack: a shipped one's name.", "--pack", panel=_PLAYERS)] = None,
    answers: Annotated[
        str | None, _option("How answers are asked for: plain, json or reason.", "--answers", panel=_PLAYERS)
    ] = None,
    persona: Annotated[
        list[str] | None, _option("A persona of the pack; may be given several times.", "--persona", panel=_PLAYERS)
    ] = None,
    parameters: Annotated[
        Path | None,
        _option("A YAML file of model parameters, for the preset's.", "--parameters", panel=_PLAYERS),
    ] = None,
    base_url: Annotated[
        str | None,
        _option("The model is served here; its price then comes from --prices only.", "--base-url", panel=_PLAYERS),
    ] = None,
    latency: Annotated[
        float, typer.Option("--latency", min=0, help="Seconds from a question to its answer.", rich_help_panel=_TIME)
    ] = 1.0,
    in_flight: Annotated[
        int | None, _option("At most so many requests at the same time.", "--in-flight", min=1, panel=_TIME)
    ] = None,
    requests_per_minute: Annotated[
        int | None, _option("What the provider allows.", "--requests-per-minute", min=1, panel=_TIME)
    ] = None,
    tokens_per_minute: Annotated[
        int | None, _option("What the provider allows.", "--tokens-per-minute", min=1, panel=_TIME)
    ] = None,
    at_once: Annotated[
        int | None,
        _option("Episodes played side by side. (default: 128)", "--episodes-at-once", min=1, panel=_TIME),
    ] = None,
) -> None:
    """Estimate calls, tokens, money and time of a study with a language model. Nobody is asked."""
    from llm_coop_envs.benchmarks.cli.run_options import RunOptions
    from llm_coop_envs.benchmarks.run.asking import AT_ONCE
    from llm_coop_envs.benchmarks.run.cost import Pace, estimate_cost
    from llm_coop_envs.benchmarks.study.study import load_study
    from llm_coop_envs.policies.llm.asking.live import known_prices

    plan = load_study(study, seed)
    if policy is None and not seat and not plan.models:
        policy = "llm"
    options = RunOptions(
        policy=policy,
        seats=tuple(seat or ()),
        model=model,
        preset=preset,
        pack=pack,
        answers=answers,
        personas=tuple(persona or ()),
        parameters=parameters,
        base_url=base_url,
    )
    plan = options.players(plan)
    known = known_prices(options.asking().endpoints(plan), None if prices is None else prices.expanduser())
    pace = Pace(
        latency=latency,
        at_once=at_once or AT_ONCE,
        in_flight=in_flight,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
    )
    with Console(stderr=True).status("Playing by script") as status:
        cost = estimate_cost(
            plan,
            known.get,
            pace,
            episodes=episodes,
            watch=lambda condition, one: status.update(f"Playing by script: {escape(condition)}, seed {one}"),
        )
    if as_json:
        typer.echo(json.dumps(cost.to_json(), indent=2))
    else:
        _print(cost)


def _print(cost: Cost) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("condition", no_wrap=True)
    for name in ("played", "calls", "asked", "answered", "at most", "US $", "at most", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in cost.rows:
        table.add_row(*_cells(row))
    if len(cost.rows) > 1:
        table.add_row(*_cells(cost.total), style="bold")
    console.print(table)
    console.print()
    for sentence in _remarks(cost):
        console.print(f"- {escape(sentence)}", highlight=False)


def _cells(row: Row) -> list[str]:
    from llm_coop_envs.benchmarks.run.progress import clock

    return [
        escape(row.name),
        f"{row.played}/{row.episodes}",
        _short(row.calls),
        _short(row.prompt_tokens),
        _short(row.completion_tokens),
        "no limit" if row.most_completion_tokens is None else _short(row.most_completion_tokens),
        "unknown" if row.usd is None else f"{row.usd:,.2f}",
        "unknown" if row.most_usd is None else f"{row.most_usd:,.2f}",
        clock(row.seconds),
    ]


def _short(number: float) -> str:
    """A number in three figures or so; all of them are in the JSON."""
    if number < 9999.5:
        return f"{number:,.0f}"
    return f"{number / 1e3:,.0f}k" if number < 999_500 else f"{number / 1e6:,.1f}M"


def _remarks(cost: Cost) -> list[str]:
    """What the figures rest on."""
    said = [
        "'played' are the episodes played for this estimate, of all; all other columns are scaled to all. 'asked' and "
        "'answered' are tokens."
    ]
    for model, price in cost.prices.items():
        if price is None:
            said.append(f"The price of {model} is not known: give it with --prices FILE. Only tokens are counted.")
        else:
            said.append(
                f"{model}: ${price.question * 1e6:g} per million tokens of questions and ${price.answer * 1e6:g} of "
                f"answers ({price.source})."
            )
        how = cost.counters[model]
        said.append(
            "Tokens are estimated, some 6 to 45 % above what OpenAI's tokenizers count in such prompts."
            if how == "estimate"
            else f"Tokens are counted with {how}."
        )
    said.append(
        "Answers are as long as scripted ones, which are short; 'at most' is with every answer as long as max_tokens "
        "allows. A reasoning model's thoughts are part of its answers. Other answers make other questions."
    )
    said.append(
        "Providers add a few tokens to each question (OpenAI 7). Answers that must be repaired or asked for again come "
        "on top, up to two more calls for a decision."
    )
    pace = cost.pace
    limits = {
        "requests in flight": pace.in_flight,
        "requests per minute": pace.requests_per_minute,
        "tokens per minute": pace.tokens_per_minute,
    }
    stated = [f"{value:,} {name}" for name, value in limits.items() if value is not None]
    said.append(
        f"Time at {pace.latency:g} s per answer and {pace.at_once} episodes side by side, "
        f"{'with ' + ' and '.join(stated) if stated else 'without other limits'}: at least so long, because of "
        f"{cost.total.held_up_by}; in the longest episode {cost.total.rounds:,.0f} answers wait for each other."
    )
    return said

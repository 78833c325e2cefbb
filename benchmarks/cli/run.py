"""`llm-coop run`: play a study."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from llm_coop_envs.benchmarks.cli.messages import EXIT_INTERRUPTED, fail, note, sentences
from llm_coop_envs.errors import LlmCoopError

_PLAYERS = "Who plays"
_MODELS = "Language models: what they are asked"
_ENDPOINT = "Language models: where they are reached"
_ANSWERS = "Language models: what they may cost, and where answers come from"


def _option(help_text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, show_default=False, **more)


@sentences
def run_command(
    study: Annotated[
        str, typer.Argument(help="A shipped study's name (see 'llm-coop list'), a YAML file, or a run folder.")
    ],
    out: Annotated[
        Path | None,
        _option("The run folder; one that holds this study is continued. (default: runs/STUDY-N)", "-o", "--out"),
    ] = None,
    workers: Annotated[
        int | None, _option("Processes, for studies without a model. (default: all cores)", "--workers", min=1)
    ] = None,
    seed: Annotated[int | None, _option("Replaces the study's seed.", "--seed", min=0)] = None,
    policy: Annotated[
        str | None,
        _option(
            "Plays all seats of all conditions: NAME, 'NAME {option: value}' or 'NAME @options.yaml'; 'llm' or "
            "'llm:MODEL' is a language model.",
            "--policy",
            panel=_PLAYERS,
        ),
    ] = None,
    seat: Annotated[
        list[str] | None,
        _option(
            "SEAT=POLICY, as for --policy; a seat is firm_0, or firm_*. May be given several times.",
            "--seat",
            panel=_PLAYERS,
        ),
    ] = None,
    model: Annotated[
        str | None, _option("The model of --policy llm, such as openai/gpt-4o-mini.", "--model", panel=_MODELS)
    ] = None,
    preset: Annotated[
        str | None,
        _option("The papers' settings: a preset's name, or none. (default: team_up)", "--preset", panel=_MODELS),
    ] = None,
    pack: Annotated[
        str | None, _option("The prompt pack: a name or a folder. (default: en-a)", "--pack", panel=_MODELS)
    ] = None,
    answers: Annotated[
        str | None, _option("How answers are asked for: plain, json or reason.", "--answers", panel=_MODELS)
    ] = None,
    persona: Annotated[
        list[str] | None,
        _option("A persona of the pack; several are dealt to the seats in equal blocks.", "--persona", panel=_MODELS),
    ] = None,
    temperature: Annotated[
        float | None, _option("Replaces the preset's temperature.", "--temperature", panel=_MODELS)
    ] = None,
    parameters: Annotated[
        Path | None,
        _option(
            "A YAML file of model parameters by scenario or call, for the preset's.", "--parameters", panel=_MODELS
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        _option("An OpenAI-compatible server, such as http://127.0.0.1:8000/v1.", "--base-url", panel=_ENDPOINT),
    ] = None,
    key_env: Annotated[
        str | None, _option("The environment variable that holds the key.", "--key-env", panel=_ENDPOINT)
    ] = None,
    client: Annotated[
        str | None, _option("auto, lean, openai or litellm. (default: auto)", "--client", panel=_ENDPOINT)
    ] = None,
    stream: Annotated[bool, _option("Ask for answers in pieces.", "--stream", panel=_ENDPOINT)] = False,
    timeout: Annotated[
        float | None, _option("Seconds for one attempt. (default: 300)", "--timeout", panel=_ENDPOINT)
    ] = None,
    in_flight: Annotated[
        int | None, _option("At most so many requests at the same time.", "--in-flight", min=1, panel=_ENDPOINT)
    ] = None,
    requests_per_minute: Annotated[
        int | None, _option("What the provider allows.", "--requests-per-minute", min=1, panel=_ENDPOINT)
    ] = None,
    tokens_per_minute: Annotated[
        int | None, _option("What the provider allows.", "--tokens-per-minute", min=1, panel=_ENDPOINT)
    ] = None,
    budget: Annotated[
        float | None, _option("US dollars that are never passed.", "--budget", min=0, panel=_ANSWERS)
    ] = None,
    max_calls: Annotated[
        int | None, _option("Calls that are never passed.", "--max-calls", min=0, panel=_ANSWERS)
    ] = None,
    max_tokens: Annotated[
        int | None,
        _option("Tokens, of questions and answers, that are never passed.", "--max-tokens", min=0, panel=_ANSWERS),
    ] = None,
    prices: Annotated[
        Path | None, _option("A YAML file of prices per million tokens.", "--prices", panel=_ANSWERS)
    ] = None,
    replay: Annotated[
        Path | None,
        _option("A run folder whose journal answers; nobody is asked, no key needed.", "--replay", panel=_ANSWERS),
    ] = None,
    cache: Annotated[
        Path | None, _option("A folder of answers shared between runs.", "--cache", panel=_ANSWERS)
    ] = None,
    sample: Annotated[
        int | None, _option("Which shared answer to take above temperature 0.", "--sample", min=0, panel=_ANSWERS)
    ] = None,
    part: Annotated[
        str | None,
        _option("A name for this process's share, if several write one run.", "--part", panel=_ANSWERS),
    ] = None,
    at_once: Annotated[
        int | None,
        _option("Episodes played side by side. (default: 128)", "--episodes-at-once", min=1, panel=_ANSWERS),
    ] = None,
) -> None:
    """Play a study: all its conditions with all their seeds."""
    from llm_coop_envs.benchmarks import comparison
    from llm_coop_envs.benchmarks.cli.run_options import RunOptions
    from llm_coop_envs.benchmarks.run.asking import AT_ONCE
    from llm_coop_envs.benchmarks.run.folder import open_run, study_of
    from llm_coop_envs.benchmarks.run.progress import RichWatcher, clock
    from llm_coop_envs.benchmarks.run.runner import run_study
    from llm_coop_envs.benchmarks.run.workers import usable_cores
    from llm_coop_envs.benchmarks.study.study import load_study
    from llm_coop_envs.core.keys import scrub
    from llm_coop_envs.storage.folder import MANIFEST, new_folder
    from llm_coop_envs.storage.parquet import need_arrow

    need_arrow()
    options = RunOptions(
        policy=policy,
        seats=tuple(seat or ()),
        model=model,
        preset=preset,
        pack=pack,
        answers=answers,
        personas=tuple(persona or ()),
        temperature=temperature,
        parameters=parameters,
        base_url=base_url,
        key_env=key_env,
        client=client,
        stream=stream,
        timeout=timeout,
        in_flight=in_flight,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        budget=budget,
        max_calls=max_calls,
        max_tokens=max_tokens,
        prices=prices,
        replay=replay,
        cache=cache,
        sample=sample,
        part=part,
        at_once=at_once or AT_ONCE,
    )
    if study == comparison.NAME:
        from llm_coop_envs.benchmarks.cli.comparison import play_comparison

        play_comparison(options, out=out, workers=workers, seed=seed or 0)
        return
    given = Path(study).expanduser()
    continued = (given / MANIFEST).is_file()
    if continued and seed is not None:
        fail(f"--seed {seed}: {given} is a run, whose seed is fixed; give the study instead to play it with another")
    plan = options.players(study_of(open_run(given)) if continued else load_study(study, seed))
    asking = options.asking()
    if out is None and continued and replay is None:
        out = given
    if plan.models and out is None:
        asking.check(asking.endpoints(plan))  # before a folder is made; with -o, run_study does it in time
    folder = new_folder(plan.name) if out is None else out.expanduser()
    if replay is not None and folder.resolve() == replay.expanduser().resolve():
        fail(f"--replay {replay}: a replay is a run of its own; choose another folder for it with -o")
    start = ["llm-coop", "run", study, *([] if seed is None else ["--seed", str(seed)])]
    parts = [*start, *options.again()]
    again = scrub(shlex.join([*parts, "-o", str(folder)]))
    console = Console(stderr=True)
    watcher = RichWatcher(console)
    try:
        with watcher:
            outcome = run_study(
                plan,
                folder,
                workers=workers or usable_cores(),
                command=scrub(shlex.join(parts)),
                watcher=watcher,
                asking=asking,
            )
    except KeyboardInterrupt:
        note(f"Stopped at once. What was finished is in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except LlmCoopError as error:
        if not watcher.begun:
            raise
        fail(f"{str(error).rstrip('.')}. What was finished is in {folder}; continue with: {again}")
    if not outcome.complete and outcome.elsewhere and outcome.why is None:
        note(
            f"This part is done: {outcome.played} episodes in {clock(outcome.seconds)}. Other parts are playing "
            f"{outcome.elsewhere} more; the last one to end writes the tables."
        )
        return
    if not outcome.complete:
        there = f"{outcome.finished} of {outcome.run.total} episodes are in {folder}"
        if outcome.why is None:
            note(f"Stopped: {there}; continue with: {again}")
        else:
            more = shlex.join([*start, *options.with_more().again(), "-o", str(folder)])
            note(f"{outcome.why[0].upper()}{outcome.why[1:]}. {there}; for example: {scrub(more)}")
        raise typer.Exit(EXIT_INTERRUPTED)
    note(f"Done: {outcome.played} episodes in {clock(outcome.seconds)}; all {outcome.run.total} are in {folder}.")
    typer.echo(f"Next: {shlex.join(['llm-coop', 'report', str(folder)])}")

"""Q-learning on the command line: `python -m llm_coop_envs.baselines.q_learning --help`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from llm_coop_envs.baselines.command_line import console, read_fields, run_app, ticking
from llm_coop_envs.baselines.q_learning.analyse.analysis import cycle_gain
from llm_coop_envs.baselines.q_learning.analyse.measures import Row, summary
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.baselines.q_learning.analyse.tables import QTable, training_market
from llm_coop_envs.baselines.q_learning.learn.sequential import SequentialSettings, run_sequential
from llm_coop_envs.baselines.q_learning.learn.sequential import summary as sequential_summary
from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.reproduce.docked import archive, compare
from llm_coop_envs.baselines.q_learning.reproduce.entry import ENTRIES, ENTRY, ENTRY_SESSIONS, run_entries
from llm_coop_envs.baselines.q_learning.reproduce.published import SESSIONS, Printed, compare_printed
from llm_coop_envs.baselines.q_learning.reproduce.recorded import (
    RECORD,
    SEQUENTIAL,
    SEQUENTIAL_RUNS,
    SEQUENTIALLY,
    begin_record,
    note,
    note_answers,
    note_docked,
    recorded,
    reproduced_variants,
    short,
)
from llm_coop_envs.baselines.q_learning.reproduce.report import (
    answer_lines,
    comparison_lines,
    distance,
    printed_lines,
    summary_lines,
)
from llm_coop_envs.baselines.q_learning.reproduce.runs import Plan, load_run, read_journal, run
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES, Variant
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.storage.files import write_json, write_whole
from llm_coop_envs.util.checks import suggestion

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

Workers = Annotated[int | None, typer.Option(min=1, help="Sessions at a time; all cores if left out.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random stream.")]
Docked = Annotated[bool, typer.Option("--docked", help="Draw the random numbers of the authors' code.")]
Misread = Annotated[
    bool,
    typer.Option("--misread", help="Analyse as the authors' code does: firms mixed up, prices of the first."),
]
Folder = Annotated[Path, typer.Argument(help="Folder for the results; a run in it is continued.")]


def run_shown(plan: Plan, sessions: int, folder: Path, workers: int | None, label: str) -> Row:
    """Run sessions with a progress bar and summarise them, also in `summary.json`."""
    done = len(read_journal(folder))
    with ticking(label, sessions, min(done, sessions)) as ticker:
        rows = run(plan, sessions, folder, workers=workers, report=lambda _: ticker.next())
    means = summary(rows)
    write_whole(folder / "summary.json", (json.dumps(means, indent=2) + "\n").encode())
    return means


@app.command()
def docked(
    sessions: Annotated[
        int | None, typer.Option(help="How many, from the first; all archived ones if left out.")
    ] = None,
) -> None:
    """Run the archived sessions of Calvano et al. (2020) with their random numbers and compare every one."""
    archived = len(archive())
    if sessions is not None and not 1 <= sessions <= archived:
        raise SettingsError("sessions", sessions, f"must be between 1 and {archived}")
    total, wrong = sessions or archived, 0
    with ticking("archived sessions", total) as ticker:
        for old, _, differences in compare(sessions):
            ticker.next()
            if differences:
                wrong += 1
                console.print(f"session {old.session} differs: {'; '.join(differences)}")
    console.print(f"{total - wrong} of {total} archived sessions reproduced exactly")
    if wrong:
        raise typer.Exit(1)


@app.command("run")
def run_command(
    folder: Folder,
    sessions: Annotated[int, typer.Option(help="How many sessions.")] = 1000,
    seed: Seed = 0,
    workers: Workers = None,
    settings: Annotated[
        Path | None, typer.Option(help="YAML or JSON file with fields of QLearningSettings; `market` with its own.")
    ] = None,
    docked: Docked = False,
    shallow: Annotated[bool, typer.Option("--shallow", help="Leave out what needs the value of every state.")] = False,
    misread: Misread = False,
) -> None:
    """Run sessions of one setting (the representative experiment unless a file says otherwise)."""
    plan = Plan(settings=read_settings(settings), seed=seed, docked=docked, deep=not shallow, misread=misread)
    console.print(*summary_lines(run_shown(plan, sessions, folder, workers, "sessions")), sep="\n")


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="Which study; see `studies`.")],
    folder: Folder,
    sessions: Annotated[
        int | None, typer.Option(help="Sessions per variant; the study's own number if left out.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Only this variant.")] = None,
    seed: Seed = 0,
    workers: Workers = None,
    docked: Docked = False,
    misread: Misread = False,
) -> None:
    """Run a published variation of the experiment and compare. Docked runs break ties at random, as the authors do."""
    if name not in STUDIES:
        raise SettingsError("study", name, f"is unknown; {suggestion(name, STUDIES)}")
    chosen = STUDIES[name]
    variants = [v for v in chosen.variants if variant in (None, v.name)]
    if not variants:
        names = ", ".join(f"'{v.name}'" for v in chosen.variants)
        raise SettingsError("variant", variant, f"is no variant of {name}; known are {names}")
    console.print(f"{chosen.title}; published: {chosen.source}")
    far: dict[str, list[float]] = {}
    for chosen_variant in variants:
        count = sessions or chosen_variant.sessions or chosen.sessions
        settings = replace(chosen_variant.settings, ties="random") if docked else chosen_variant.settings
        plan = Plan(settings=settings, seed=seed, docked=docked, misread=misread, rematched=chosen_variant.rematched)
        means = run_shown(plan, count, folder / folder_name(chosen_variant), workers, chosen_variant.name)
        console.print(*comparison_lines(chosen_variant, means), sep="\n")
        for measure in chosen_variant.published:
            far.setdefault(measure, []).append(abs(distance(measure, means, chosen_variant)))
    for measure, apart in far.items():
        count = sum(gap > 3.0 for gap in apart)
        console.print(f"{measure}: {count} of {len(apart)} more than three standard errors from the published value")


@app.command()
def published(folder: Folder, workers: Workers = None) -> None:
    """Run the authors' 1,000 sessions with their random numbers; every number they print of them must come out."""
    numbers, _ = _published(folder, workers)
    if not all(number.agrees for number in numbers):
        raise typer.Exit(1)


def _published(folder: Path, workers: int | None) -> tuple[list[Printed], StoredRun]:
    """Run the authors' sessions and print the comparison; also returns the run."""
    representative = STUDIES["representative"].variants[0]
    where = folder / "docked" / folder_name(representative)
    run_shown(
        Plan(settings=replace(representative.settings, ties="random"), docked=True), SESSIONS, where, workers, "docked"
    )
    run_ = load_run(where)
    numbers = compare_printed(run_)
    console.print(*printed_lines(numbers), sep="\n")
    return numbers, run_


@app.command()
def reproduce(
    folder: Folder,
    seed: Seed = 0,
    workers: Workers = None,
    only: Annotated[
        list[str] | None, typer.Option("--study", help="Only these studies; the rest of the record stays as it is.")
    ] = None,
) -> None:
    """Run everything that the documentation quotes, and write it to recorded.json in the folder."""
    names = (*STUDIES, SEQUENTIALLY, ENTRY)
    for name in only or ():
        if name not in names:
            raise SettingsError("study", name, f"is unknown; {suggestion(name, names)}")
    record = recorded() if only else begin_record(seed)
    if only and record["seed"] != seed:
        raise SettingsError("seed", seed, f"the record's is {record['seed']}; write all of it anew, without --study")
    if not only:
        printed, docked_run = _published(folder, workers)
        note_docked(record, printed, docked_run)
    for name, variant, sessions in reproduced_variants([name for name in only or STUDIES if name in STUDIES]):
        plan = Plan(settings=variant.settings, seed=seed, rematched=variant.rematched)
        where = folder / name / folder_name(variant)
        means = run_shown(plan, sessions, where, workers, f"{name}: {variant.name}")
        console.print(*comparison_lines(variant, means), sep="\n")
        note(record, name, variant.name, means)
        if name == "representative":
            note_answers(record, name, load_run(where))
    if not only or SEQUENTIALLY in only:
        record[SEQUENTIALLY] = {str(k): short(_sequential(runs, k, seed)) for k, runs in SEQUENTIAL_RUNS.items()}
    if not only or ENTRY in only:
        record[ENTRY] = {
            variant.name: short(_entries(rate, ENTRY_SESSIONS, seed, workers)) for rate, variant in ENTRIES.items()
        }
    write_json(folder / RECORD, record)
    console.print(f"written to {folder / RECORD}")


@app.command()
def sequential(
    runs: Annotated[int, typer.Option(min=2, help="How many runs.")] = 1000,
    intervals: Annotated[int, typer.Option(help="Klein's k: prices are 0, 1/k, ..., 1.")] = 6,
    seed: Seed = 0,
) -> None:
    """Let two firms set prices in turn (Klein 2021)."""
    means = _sequential(runs, intervals, seed)
    for name, meaning in SEQUENTIAL.items():
        console.print(f"{meaning:52} {means[name]:.4f} (se {means[f'{name}_se']:.4f})")


def _sequential(runs: int, intervals: int, seed: int) -> Row:
    settings = SequentialSettings(intervals=intervals)
    done = []
    with ticking(f"runs with {intervals} intervals", runs) as ticker:
        for number in range(runs):
            done.append(run_sequential(settings, seed, number))
            ticker.next()
    return sequential_summary(done)


@app.command()
def entry(
    sessions: Annotated[int, typer.Option(min=2, help="Sessions of each experiment.")] = ENTRY_SESSIONS,
    seed: Seed = 0,
    workers: Workers = None,
) -> None:
    """Let a third firm come and go by chance (Calvano et al. 2020, appendix)."""
    for rate, variant in ENTRIES.items():
        means = _entries(rate, sessions, seed, workers)
        console.print(*comparison_lines(variant, means), sep="\n")
        console.print(
            f"  gain while all three are in {means['gain_in']:.4f}; exits in {means['with_exits']} limit cycles"
        )


def _entries(rate: float, sessions: int, seed: int, workers: int | None) -> Row:
    with ticking(ENTRIES[rate].name, sessions) as ticker:
        return run_entries(rate, sessions, seed, workers, ticker.next)


@app.command()
def studies() -> None:
    """List the studies."""
    for name, variants in STUDIES.items():
        console.print(f"{name}: {variants.title} ({len(variants.variants)} x {variants.sessions} sessions)")


@app.command()
def show(folder: Folder) -> None:
    """Sum up the finished sessions of a run."""
    console.print(*summary_lines(summary(load_run(folder).rows)), sep="\n")


@app.command()
def answers(
    folder: Folder,
    to: Annotated[
        str, typer.Option(help="A price index, best_reply, nash, joint, lowest, highest or authors_figure_4.")
    ] = "best_reply",
    periods: Annotated[int, typer.Option(min=1, help="For how many periods the firm is forced.")] = 1,
    horizon: Annotated[int, typer.Option(min=2, help="How many periods to show.")] = 12,
) -> None:
    """Force one firm of a run's sessions to another price and show how play goes on."""
    run_ = load_run(folder)
    target = int(to) if to.lstrip("-").isdigit() else to
    try:
        response_summary = run_.answers(target, periods=periods, horizon=horizon)
    except ValueError as error:
        raise SettingsError("to", to, str(error).split(": ", 1)[-1]) from error
    console.print(*answer_lines(response_summary), sep="\n")


@app.command()
def strangers(
    folder: Folder,
    pairs: Annotated[int, typer.Option(min=1, help="How many meetings.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Let firms of a run meet firms of other sessions of it."""
    run_ = load_run(folder)
    gains = run_.strangers(pairs, np.random.default_rng(seed))
    own = np.array([row["gain"] for row in run_.rows])
    console.print(f"gain among those who learned together {own.mean():.4f}, among strangers {gains.mean():.4f}")
    console.print(f"{pairs} meetings, se {gains.std() / pairs**0.5:.4f}")


@app.command()
def table(
    file: Annotated[Path, typer.Argument(help="The file to write (.npz).")],
    preset: Annotated[str, typer.Option(help="The market; learners price on a grid of 15 prices in all of them.")] = (
        "calvano"
    ),
    settings: Annotated[
        Path | None, typer.Option(help="YAML or JSON file with fields of QLearningSettings, instead of a preset.")
    ] = None,
    seed: Seed = 0,
    session: Annotated[int, typer.Option(min=0, help="Which session of the seed.")] = 0,
) -> None:
    """Train one session and keep its Q tables in a file: players for studies, as q_learning:FILE."""
    learning = QLearningSettings(market=training_market(preset)) if settings is None else read_settings(settings)
    plan = Plan(settings=learning, seed=seed)
    q_table = QTable.from_session(learning, seed, run_session(learning, plan.seed, session))
    q_table.save(file)
    cycle = q_table.cycle
    end = "converged" if q_table.converged else "not converged"
    console.print(f"{q_table.periods:,} periods, {end}; cycle {cycle.kind}, mean price {cycle.prices.mean():.4f}")
    console.print(f"Delta {cycle_gain(q_table.game, cycle):.4f}; written to {file}")


def folder_name(variant: Variant) -> str:
    """The name of a variant's folder."""
    return "".join(c if c.isalnum() or c in ".-" else "_" for c in variant.name)


def read_settings(path: Path | None) -> QLearningSettings:
    """Read settings from a YAML or JSON file; see `read_fields`."""
    return QLearningSettings.from_json(read_fields(path))


if __name__ == "__main__":
    run_app(app)

"""`llm-coop bench`: play the scorecard's suite."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llm_coop_envs.cli.messages import fail, note, sentences
from llm_coop_envs.cli.run_options import KIND, RunOptions, option, with_options
from llm_coop_envs.cli.trusting import TRUST, trust_program
from llm_coop_envs.util.quoting import harmless

if TYPE_CHECKING:
    from llm_coop_envs.benchmarks.scorecard.suite import Suite

WIDTH = 250  # of the table at most: its lines stay whole, and narrower terminals break them
_WITHOUT = ("seed", "episodes", "rounds", "reduced", "seat", "persona", "replay", *TRUST)


@sentences
@with_options(without=_WITHOUT)
def bench_command(
    options: RunOptions,
    out: Annotated[
        Path | None,
        option("The run folder; one that holds a scorecard is continued. (default: runs/scorecard-N)", "-o", "--out"),
    ] = None,
    quick: Annotated[bool, option("Play a fifth of it: enough to see that all works, too little to compare.")] = False,
    held_out: Annotated[
        int | None,
        option("The seed of the held-out half, to play what somebody else did. (default: drawn)", min=0, max=2**31),
    ] = None,
    ledger: Annotated[
        Path | None,
        option("A ledger of commitments: with --beacon it gets one, with --beacon-value its last one is played."),
    ] = None,
    beacon: Annotated[
        str | None,
        option("Commit and play nothing: the public beacon, and its coming round, that will draw the held-out half."),
    ] = None,
    beacon_value: Annotated[
        str | None, option("What the beacon gave in the round that was committed to, in hexadecimal digits.")
    ] = None,
    suite_version: Annotated[
        int | None, option("Refuse to play any other version of the suite.", "--suite-version")
    ] = None,
    workers: Annotated[
        int | None, option("Processes, for episodes without a model. (default: all cores)", "--workers", min=1)
    ] = None,
    dry: Annotated[
        bool, option("Say calls, cost and what would be written down first; play nothing.", "--dry")
    ] = False,
) -> None:
    """Make a scorecard; what it costs is said first. Each scenario is played by the first --policy that can."""
    from llm_coop_envs.benchmarks.scorecard.card import SUITE, analysis_hash
    from llm_coop_envs.benchmarks.scorecard.card_text import write_card
    from llm_coop_envs.benchmarks.scorecard.commitment import describe_seed
    from llm_coop_envs.benchmarks.scorecard.registration import make_preregistration
    from llm_coop_envs.benchmarks.scorecard.suite import FULL, NAME, QUICK, VERSION, make_suite
    from llm_coop_envs.cli.run import play_out
    from llm_coop_envs.runs.folder import make_run, open_run
    from llm_coop_envs.runs.manifest import describe_models
    from llm_coop_envs.runs.runner import check_libraries
    from llm_coop_envs.storage.folder import MANIFEST, chosen_folder

    trust_program()
    if suite_version not in (None, VERSION):
        fail(f"--suite-version {suite_version}: this program has version {VERSION} of the suite and no other")
    models = options.model or []
    if len(models) > 1:
        fail(f"--model {models[1]}: a scorecard is one model's; give --model once")
    if models and not options.policy:
        options = replace(options, policy=[KIND])
    if not options.policy:
        fail("who is tested? Give --policy NAME, or --model NAME")
    folder = None if out is None else out.expanduser()
    begun: dict[str, Any] = {}
    if folder is not None and (folder / MANIFEST).is_file():
        begun = open_run(folder).manifest.get(SUITE, {})
        if not begun:
            fail(f"{folder}: holds a run that is no scorecard; choose another folder with -o")
        if held_out not in (None, begun["held_out"]):
            fail(f"--held-out {held_out}: {folder} was begun with {begun['held_out']}; leave it out")
        held_out = begun["held_out"]
    committed = begun.get("commitment")
    if ledger is not None or beacon or beacon_value:
        committed, held_out = _find_commitment(ledger, beacon, beacon_value, held_out)
    drawn = secrets.randbelow(2**31) if held_out is None else held_out
    suite = make_suite(options.players(), drawn, QUICK if quick else FULL, options.only or ())
    for sentence in suite.left_out:
        note(f"Left out: {sentence}")
    _say_cost(suite, options)
    if ledger is not None and beacon:
        _commit(ledger, suite, beacon)
        return
    registration = make_preregistration(suite, analysis_hash(), committed)
    _check_commitment(registration, suite)
    typer.echo(
        f"Suite {NAME} version {VERSION}, hash {registration['sha256']}; {describe_seed(registration)}; "
        f"preregistration {registration['preregistration']}"
    )
    if dry:
        note("This was a dry run: no model was asked, and nothing was written.")
        return
    if begun and begun["analysis"] != registration["analysis"]:
        note(f"{folder}: was begun with other code for the analysis than this program's")
        registration = begun
    access = options.access()
    check_libraries(suite.study, access)
    if suite.study.models:
        access.check(access.endpoints(suite.study))
    with chosen_folder(folder, NAME) as folder:
        make_run(suite.study, folder, describe_models(suite.study), **{SUITE: registration})
        command_words = ["llm-coop", "bench", *(["--quick"] if quick else [])]
        play_out(suite.study, folder, options, command_words, workers=workers, limit=None)
    run = open_run(folder)
    if run.complete:
        _print_card(write_card(run))
        typer.echo(f"Written to {folder}; check it with: llm-coop verify {folder}")


def _find_commitment(
    ledger: Path | None, beacon: str | None, value: str | None, held_out: int | None
) -> tuple[dict[str, Any] | None, int | None]:
    """Return the commitment that is played and its held-out seed; neither if one is only made."""
    from llm_coop_envs.benchmarks.scorecard.commitment import make_seed, read_ledger

    if ledger is None or bool(beacon) == bool(value):
        fail("--ledger FILE: needs --beacon 'NAME ROUND', to commit, or --beacon-value HEX, to play")
    if beacon:
        return None, 0
    chain = read_ledger(ledger.expanduser())
    if not chain:
        fail(f"{ledger}: has no commitment yet; make one with --ledger {ledger} --beacon 'NAME ROUND'")
    seed = make_seed(chain[-1]["hash"], str(value))
    if held_out not in (None, seed):
        fail(f"--held-out {held_out}: the commitment and the beacon draw {seed}; leave it out")
    return {"chain": chain, "value": value}, seed


def _commit(ledger: Path, suite: Suite, beacon: str) -> None:
    """Add what would be played to a ledger, and say what to publish."""
    from llm_coop_envs.benchmarks.scorecard.card import analysis_hash
    from llm_coop_envs.benchmarks.scorecard.commitment import commit
    from llm_coop_envs.benchmarks.scorecard.registration import make_plan

    entry = commit(ledger.expanduser(), make_plan(suite, analysis_hash()), beacon)
    typer.echo(
        f"Commitment {entry['number']} of {ledger}: {entry['hash']}. Publish it before {beacon} is public; play it "
        "with --beacon-value."
    )


def _check_commitment(registration: dict[str, Any], suite: Suite) -> None:
    """End with a sentence where a commitment was made for another test."""
    from llm_coop_envs.benchmarks.scorecard.commitment import commitment_fault
    from llm_coop_envs.benchmarks.scorecard.registration import make_plan

    if fault := commitment_fault(registration, make_plan(suite, registration["analysis"])):
        fail(fault)


def _say_cost(suite: Suite, options: RunOptions) -> None:
    """Say what the suite would cost."""
    from llm_coop_envs.runs.remaining import count_of

    episodes = sum(len(condition.seeds) for condition in suite.study.conditions)
    typer.echo(f"{count_of(episodes, 'episode')} of {count_of(len(suite.study.conditions), 'condition')}")
    if not suite.study.models:
        typer.echo("No language model is asked: it costs nothing.")
        return
    from llm_coop_envs.cli.cost import find_cost, print_cost

    cost = find_cost(suite.study, options)
    print_cost(replace(cost, rows=(replace(cost.total, name="all"),)))


def _print_card(card: dict[str, Any]) -> None:
    """Print a scorecard."""
    from llm_coop_envs.benchmarks.scorecard.card_text import remarks, rows, title

    head, body = rows(card)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for k, name in enumerate(head[1:]):
        table.add_column(escape(name), justify="right" if k else "left", no_wrap=True)
    previous_tendency = ""
    for tendency, *row in body:
        if tendency != previous_tendency:
            table.add_row(f"[bold]{escape(tendency)}[/bold]")
        previous_tendency = tendency
        table.add_row(*map(escape, ["  " + row[0], *row[1:]]))
    typer.echo(title(card))
    Console(emoji=False, width=WIDTH).print(table)
    console = Console(emoji=False)
    console.print()
    for sentence in remarks(card):
        console.print(f"- {escape(harmless(sentence))}", highlight=False)

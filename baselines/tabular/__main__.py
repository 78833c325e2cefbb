"""Tabular Q-learning on the command line: `python -m llm_coop_envs.baselines.tabular --help`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from llm_coop_envs.baselines.tabular.compare import RULE, compare, rule_named, summary_lines, unseen_seeds
from llm_coop_envs.baselines.tabular.curve import Row, check_writers, write_rows
from llm_coop_envs.baselines.tabular.kbc import KBCLearner
from llm_coop_envs.baselines.tabular.settings import EvacuationLearning, KBCLearning, Learning
from llm_coop_envs.baselines.tabular.store import StoredTable, load
from llm_coop_envs.baselines.tabular.training import Stopped, train
from llm_coop_envs.errors import LlmCoopError, RunError, SettingsError
from llm_coop_envs.kbc.rules import fixed_point

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

QUIET_SECONDS = 15.0

Folder = Annotated[Path, typer.Argument(help="Folder for the results; a run in it is continued.")]
Seed = Annotated[int, typer.Option(help="Seed of everything that is random.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the environment, such as people=30; may be repeated.")
]
Fields = Annotated[
    Path | None, typer.Option("--settings", help="YAML or JSON file with fields of the learner's settings.")
]
Episodes = Annotated[int | None, typer.Option(help="Episodes of learning; the learner's own number if left out.")]


class Ticker:
    """Shows how far it is and how long it will take, on stderr: a bar, or lines now and then in a log file."""

    def __init__(self, label: str, total: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=errors, transient=True)
        self._task = self.bar.add_task(label, total=total)
        self._label, self._total = label, total
        self._first: tuple[int, float] | None = None
        self._spoken = time.monotonic()

    def at(self, done: int) -> None:
        """So many are done."""
        self.bar.update(self._task, completed=done)
        now = time.monotonic()
        if self._first is None:
            self._first = done, now
        before, since = self._first
        if not errors.is_terminal and done > before and now - self._spoken > QUIET_SECONDS:
            self._spoken = now
            left = (now - since) / (done - before) * (self._total - done)
            errors.print(f"{done} of {self._total} {self._label}, about {left:.0f} s left")


@contextmanager
def ticking(label: str, total: int) -> Iterator[Ticker]:
    """A ticker while something runs."""
    ticker = Ticker(label, total)
    if errors.is_terminal:
        ticker.bar.start()
    try:
        yield ticker
    finally:
        if errors.is_terminal:
            ticker.bar.stop()


@app.command()
def kbc(
    folder: Folder,
    preset: Annotated[str | None, typer.Option(help="Preset of the contest; two_thirds if left out.")] = None,
    seed: Seed = 0,
    episodes: Episodes = None,
    changes: Changes = None,
    settings: Fields = None,
) -> None:
    """Let players of the number contest learn, each by itself, and show where they end."""
    learning = KBCLearning.from_json(_fields(settings, preset, episodes, changes))
    table = _trained(learning, seed, folder)
    for line in contest_lines(table):
        console.print(line)


@app.command()
def evacuation(
    folder: Folder,
    preset: Annotated[str | None, typer.Option(help="Preset of the evacuation; no_talk if left out.")] = None,
    seed: Seed = 0,
    episodes: Episodes = None,
    changes: Changes = None,
    settings: Fields = None,
    seeds: Annotated[int, typer.Option(help="Unseen seeds for the comparison with a rule; 0: none.")] = 30,
    first_seed: Annotated[int, typer.Option(help="The first of them.")] = 0,
    rule: Annotated[str, typer.Option(help="The scripted policy to compare with.")] = RULE,
) -> None:
    """Let people learn to get out, then compare them with a scripted rule."""
    rule_named(rule)
    unseen = unseen_seeds(seeds, first_seed) if seeds else []
    learning = EvacuationLearning.from_json(_fields(settings, preset, episodes, changes))
    table = _trained(learning, seed, folder)
    if unseen:
        _compared(table, unseen, rule, folder / "comparison.parquet")


@app.command()
def evaluate(
    table: Annotated[str, typer.Argument(help="A table: its file, its run folder, or a shipped one's name.")],
    seeds: Annotated[int, typer.Option(help="Evacuation: how many unseen seeds.")] = 30,
    first_seed: Annotated[int, typer.Option(help="Evacuation: the first of them.")] = 0,
    rule: Annotated[str, typer.Option(help="Evacuation: the scripted policy to compare with.")] = RULE,
    output: Annotated[Path | None, typer.Option("-o", help="Evacuation: Parquet file for one row per seed.")] = None,
) -> None:
    """Show what a table has learned."""
    found = load(table)
    if found.scenario == "kbc":
        for line in contest_lines(found):
            console.print(line)
    else:
        rule_named(rule)
        _compared(found, unseen_seeds(seeds, first_seed), rule, output)


def contest_lines(table: StoredTable) -> list[str]:
    """Where the players of the number contest ended, without exploration."""
    learning = table.learning
    if not isinstance(learning, KBCLearning):
        raise TypeError("not a table of the number contest")
    learner = KBCLearner(learning, table.seed)
    learner.load(table.arrays)
    end = learner.greedy(0)
    return [
        f"{learning.preset}, last round without exploration: mean number {end['number']:.2f}, winning number "
        f"{end['target']:.2f}, equilibrium {fixed_point(learning.contest):g}",
        f"  winners {end['winners']:.0%}; players who would have got more by another number alone "
        f"{end['better_alone']:.0%}, at least as much {end['as_good_alone']:.0%}",
    ]


def _compared(table: StoredTable, seeds: list[int], rule: str, output: Path | None) -> None:
    if output is not None:
        check_writers()
        if not output.parent.is_dir():
            raise RunError(f"{output}: there is no folder {output.parent}; choose another file")
    rows: list[Row] = []
    with ticking("seeds", len(seeds)) as ticker:
        for row in compare(table, seeds, rule):
            rows.append(row)
            ticker.at(len(rows))
    if output is not None:
        try:
            write_rows(rows, output)
        except OSError as error:
            raise RunError(f"{output}: cannot be written ({error.strerror or error}); choose another file") from error
    for line in summary_lines(rows, rule):
        console.print(line)


def _trained(learning: Learning, seed: int, folder: Path) -> StoredTable:
    with ticking("episodes", learning.episodes) as ticker:
        return train(learning, seed, folder, report=lambda done, _: ticker.at(done))


def _fields(path: Path | None, preset: str | None, episodes: int | None, changes: list[str] | None) -> dict[str, Any]:
    """Fields of the learner's settings from a file and from options, which win."""
    data: Any = {}
    if path is not None:
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise RunError(f"the settings file {path} cannot be read: {error}") from error
        if not isinstance(data, dict):
            raise RunError(f"the settings file {path} must hold fields and their values")
    given: dict[str, Any] = {
        name: value for name, value in (("preset", preset), ("episodes", episodes)) if value is not None
    }
    before = data.get("changes", {})
    if changes and isinstance(before, dict):
        given["changes"] = {**before, **dict(_change(one) for one in changes)}
    return {**data, **given}


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise SettingsError("set", text, "must be a setting and its value, such as people=30")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise SettingsError("set", text, "has a value that cannot be read; write it as in a YAML file") from error


def main() -> None:
    """Run the command line; errors a user can mend become one sentence and exit code 2."""
    try:
        app()
    except LlmCoopError as error:
        errors.print(f"error: {error}", markup=False)
        raise SystemExit(2) from None
    except Stopped as stop:
        errors.print(f"{stop}; the same command goes on from there")
        raise SystemExit(130) from None
    except KeyboardInterrupt:
        errors.print("stopped; the last checkpoint is kept, the same command goes on from there")
        raise SystemExit(130) from None


if __name__ == "__main__":
    # The arrays are small: threads of linear algebra would only be in the way of other programs.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

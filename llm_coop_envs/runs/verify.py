"""Checking a run: files against the manifest, events against the journal, tables against events.

Each of them is made anew from the one before it and compared with what is there, by the code that a run and a replay
use; nothing is written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import Run, check_words, described_models, open_run
from llm_coop_envs.runs.human_game import HUMAN
from llm_coop_envs.runs.provenance import named, program_of
from llm_coop_envs.runs.tables import make_tables
from llm_coop_envs.storage.folder import difference, plain_json
from llm_coop_envs.storage.parquet import need_arrow
from llm_coop_envs.studies.study import Condition, Study

if TYPE_CHECKING:
    import pyarrow as pa

    from llm_coop_envs.policies.llm.chat import Chat

EVENTS = "events/"


@dataclass(kw_only=True)
class Verified:
    """What checking a run found.

    Attributes:
        run: the run.
        faults: a sentence on everything that is not as it should be.
        notes: sentences on what could not be checked, and why.
        episodes: how many episodes are there and this run's own.
        replayed: how many of them were played again, and compared.
        tables: how many tables were made again, and compared.
    """

    run: Run
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    episodes: int = 0
    replayed: int = 0
    tables: int = 0


def verify_run(folder: Path, *, again: bool = False, tell: Callable[[str], None] = lambda _: None) -> Verified:
    """Check a run.

    Args:
        folder: the run folder; it is only read.
        again: play episodes without a language model again, too, as learners and rules would.
        tell: is told what is being checked.

    Raises:
        RunError: there is no run, or its manifest is damaged.
        MissingExtra: pyarrow is not installed.
    """
    need_arrow()
    run = open_run(folder)
    found = Verified(run=run)
    tell("files")
    found.faults += [*_manifest(run), *(one for one in run.describe_damage() if EVENTS not in one), *_strangers(run)]
    _presence(found)
    own = list(_episodes(found, tell))
    found.faults += _programs(run, own)
    asyncio.run(_play_again(found, own, again, tell))
    if run.complete and found.episodes == run.total:
        tell("tables")
        _tables(found)
    return found


def _manifest(run: Run) -> Iterator[str]:
    """Whether the manifest describes the study that its digest stands for."""
    if _played(run).digest != run.manifest["digest"]:
        yield f"{run.folder}: the conditions in run.json are not those of its digest"


def _played(run: Run) -> Study:
    """What its digest is of; what else a study says is left out."""
    return Study(name="", description="", seed=run.manifest["seed"], conditions=run.conditions, measures=(), text="")


def _strangers(run: Run) -> Iterator[str]:
    """Files that lie where episodes and tables do, and are none of this run's."""
    own = {run.events_path(condition.name, seed) for condition, seed in run.episodes}
    for path in sorted((run.folder / EVENTS).rglob("*.gz")):
        if path not in own:
            yield f"{path}: is no episode of this study"
    for path in sorted(run.folder.glob("*.parquet")):
        if path.name not in run.manifest["files"]:
            yield f"{path}: is no table that this run wrote"


def _presence(found: Verified) -> None:
    """Whether everything is there that the manifest promises."""
    run = found.run
    unrecorded = [run.folder / name for name in run.unrecorded()]
    if run.complete:
        there = run.finished()
        every = [(condition.name, seed) for condition, seed in run.episodes]
        found.faults += [
            f"{run.events_path(*one)}: is not there, although the run is complete" for one in every if one not in there
        ]
        found.faults += [f"{path}: is not recorded in run.json" for path in unrecorded]
        return
    found.notes.append(f"{run.folder}: is not complete ({len(run.finished())} of {run.total} episodes)")
    if unrecorded:
        found.notes.append(f"{len(unrecorded)} episodes of a session that was killed are not recorded in run.json yet")


def _episodes(found: Verified, tell: Callable[[str], None]) -> Iterator[tuple[Condition, int, list[Any]]]:
    """The episodes that are this run's own: condition, seed, and the header and events of the file."""
    run = found.run
    there = run.finished()
    for condition in run.conditions:
        tell(f"episodes of {condition.name}")
        for seed in condition.seeds:
            if (condition.name, seed) not in there:
                continue
            try:
                header, events = run.read_events(condition.name, seed)
            except RunError as error:
                found.faults.append(str(error))
                continue
            found.episodes += 1
            game = {"scenario": condition.spec.env_name, "seed": seed, "settings": dict(condition.settings)}
            how = difference(events[0], {"type": "start", **game})
            if how:
                path = run.events_path(condition.name, seed)
                found.faults.append(f"{path}: its events are those of another episode ({how})")
            yield condition, seed, [header, *events]


def _programs(run: Run, own: list[tuple[Condition, int, list[Any]]]) -> Iterator[str]:
    """Whether one version of the program played everything."""
    for name in run.manifest["program"]:
        counts = Counter(records[0]["program"].get(name) for _, _, records in own)
        del counts[None]
        if len(counts) > 1:
            told = ", ".join(f"{count} by {one}" for one, count in counts.most_common())
            yield f"{run.folder}: {named(name)} changed while the run was being played (episodes: {told})"


async def _play_again(
    found: Verified, own: list[tuple[Condition, int, list[Any]]], again: bool, tell: Callable[[str], None]
) -> None:
    """Play episodes again, those of models from the journal, and compare."""
    run = found.run
    asking = any(condition.asks_a_model for condition, _, _ in own)
    chat: Chat | None = None
    if asking:
        from llm_coop_envs.policies.llm.asking.replay import ReplayChat

        try:
            check_words(run, described_models(_played(run)))
            chat = ReplayChat(_journal_of(run))
            found.notes += chat.notes
        except LlmCoopError as error:
            found.faults.append(f"the episodes of models cannot be compared with the journal: {error}")
    left = Counter[str]()
    for condition, seed, records in own:
        if HUMAN in condition.policies:
            left["with people in them"] += 1
        elif not condition.asks_a_model and not again:
            left["without a model (--again plays them again)"] += 1
        elif not condition.asks_a_model or chat is not None:
            tell(f"{condition.name}, seed {seed}")
            why = await _replayed(run, condition, seed, records, chat)
            found.faults += [f"{run.events_path(condition.name, seed)}: {why}"] if why else []
            found.replayed += 1
    found.notes += [f"{count} episodes {what} were not played again" for what, count in left.items()]


def _journal_of(run: Run) -> Path:
    """Where the answers of a run's models are: in the run, or in the one that it replayed."""
    replayed = [session.get("asking", {}).get("replay") for session in run.manifest["sessions"]]
    if (run.folder / "journal").is_dir() or not any(replayed):
        return run.folder
    return Path(next(filter(None, reversed(replayed))))


async def _replayed(run: Run, condition: Condition, seed: int, records: list[Any], chat: Chat | None) -> str:
    """Play an episode again; how it then differs from what is recorded, empty if it does not."""
    source = "the journal" if condition.asks_a_model else "the rules"
    try:
        played = await play_episode(run.manifest["seed"], condition, seed, chat)
    except LlmCoopError as error:
        return f"cannot be played again from {source}: {error}"
    header, *events = plain_json({"records": run.episode_records(condition.name, seed, played)})["records"]
    recorded, *were = records
    others = [named(name) for name, one in program_of(condition).items() if recorded["program"].get(name) != one]
    why = _first_difference(were, events) or difference(
        {**recorded, "program": 0}, {**header, "program": 0}, every=True
    )
    if why and others:
        why += f"; {' and '.join(others)} are not those that played it: use the version that did"
    return why and f"is not what {source} make of it: {why}"


def _first_difference(were: list[Any], events: list[Any]) -> str:
    """How events first differ from recorded ones."""
    for number, (was, now) in enumerate(zip(were, events, strict=False), start=1):
        how = difference(was, now, every=True)
        if how:
            return f"event {number} ({was.get('type')}, round {was.get('round')}) {how}"
    return "" if len(were) == len(events) else f"it has {len(were)} events there and {len(events)} here"


def _tables(found: Verified) -> None:
    """Make all tables again, and compare."""
    import pyarrow.parquet as pq

    try:
        tables = make_tables(found.run)
    except Exception as error:  # whatever a scenario makes of events that it did not write
        found.faults.append(f"{found.run.folder}: no tables can be made of its events ({error!r})")
        return
    for path, made in tables.items():
        found.tables += 1
        try:
            why = _table_difference(pq.read_table(path), made)
        except (OSError, ValueError) as error:
            why = f"cannot be read ({' '.join(str(error).split())[:200]})"
        if why:
            found.faults.append(f"{path}: {why}")


def _table_difference(there: pa.Table, made: pa.Table) -> str:
    """Where a table first differs from one that was made anew; empty if it does not."""
    if there.schema.names != made.schema.names:
        odd = sorted(set(there.schema.names) ^ set(made.schema.names)) or ["their order"]
        return f"its columns are not those that follow from the events ({odd[0]})"
    if len(there) != len(made):
        return f"has {len(there)} rows, from the events {len(made)} follow"
    for name in made.schema.names:
        if not there[name].equals(made[name]):
            for row, (was, now) in enumerate(zip(there[name].to_pylist(), made[name].to_pylist(), strict=True), 1):
                if was != now and not (was != was and now != now):  # NaN is no fault
                    return f"column {name}, row {row} is {was!r}, from the events {now!r} follows"
    return ""

"""Check a run: files against the manifest, events against the journal, tables against events.

Events and tables are made again by the code of a run and a replay, and compared with the recorded ones; nothing is
written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import LlmCoopError, RunError, TrustError
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import Run, check_prompts, open_run
from llm_coop_envs.runs.human_game import HUMAN
from llm_coop_envs.runs.imported import check_moves
from llm_coop_envs.runs.manifest import describe_models
from llm_coop_envs.runs.provenance import program_of, program_title
from llm_coop_envs.runs.tables import make_tables
from llm_coop_envs.storage.folder import difference, plain_json, versions
from llm_coop_envs.storage.parquet import need_arrow, read_table
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.players import policy_label
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.opening import explain_damage
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.trust import NOTHING, limited_to
from llm_coop_envs.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

    from llm_coop_envs.policies.llm.chat import Chat

EVENTS = "events/"


@dataclass(kw_only=True)
class Verification:
    """The result of checking a run.

    Attributes:
        run: the run.
        faults: a sentence on each fault.
        notes: sentences on what could not be checked, and why.
        versions: a sentence on each of this package, Python and NumPy that is not what it was when the run was played.
        failed: a sentence on each episode that failed and has not been played since.
        episodes: the number of finished episodes that are this run's own.
        replayed: the number of episodes that were played again and compared.
        tables: the number of tables that were made again and compared.
    """

    run: Run
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    episodes: int = 0
    replayed: int = 0
    tables: int = 0


def verify_run(folder: StrPath, *, again: bool = False, tell: Callable[[str], None] = lambda _: None) -> Verification:
    """Check a run.

    Args:
        folder: the run folder; it is only read.
        again: whether episodes without a language model are played again, too. Nothing that is not installed is
            imported or loaded, unless `util.trust` was told so before; what is left out stands in the notes.
        tell: called with the name of each thing that is checked.

    Raises:
        RunError: there is no run, or its manifest is damaged.
        MissingExtra: pyarrow is not installed.
    """
    need_arrow()
    with limited_to(NOTHING), explain_damage(Path(folder), "it is not a run that can be checked"):
        return _verify(open_run(folder), again, tell)


def _verify(run: Run, again: bool, tell: Callable[[str], None]) -> Verification:
    verification = Verification(run=run, versions=list(_compare_versions(run)), failed=[*run.failures().values()])
    tell("files")
    _check_models(verification)
    verification.faults += [
        *_check_manifest(run),
        *(sentence for sentence in run.describe_damage() if EVENTS not in sentence),
        *_find_strangers(run),
    ]
    _check_presence(verification)
    own = list(_read_own_episodes(verification, tell))
    verification.faults += _check_programs(run, own)
    asyncio.run(_play_again(verification, own, again, tell))
    if run.complete and verification.episodes == run.total:
        tell("tables")
        _check_tables(verification)
    return verification


def _compare_versions(run: Run) -> Iterator[str]:
    """Compare Python and NumPy with those of the run's sessions."""
    now = versions()
    for name, title in (("llm-coop-envs", "llm-coop-envs"), ("python", "Python"), ("numpy", "NumPy")):
        recorded = dict.fromkeys(session.get("versions", {}).get(name) for session in run.manifest["sessions"])
        others = [version for version in recorded if version not in (None, now[name])]
        if others:
            yield f"The run was played with {title} {' and '.join(others)}, and is checked with {now[name]}"


def _is_of_this_version(run: Run) -> bool:
    """Whether this version of the package played all of the run."""
    sessions = run.manifest["sessions"]
    return all(session.get("versions", {}).get("llm-coop-envs") == __version__ for session in sessions)


def _check_manifest(run: Run) -> Iterator[str]:
    """Check that the manifest's digest is that of its conditions."""
    if _study_of_digest(run).digest != run.manifest["digest"]:
        yield f"{run.folder}: the conditions in run.json are not those of its digest"


def _check_models(verification: Verification) -> None:
    """Check that the language models and policies that the manifest lists are those of its conditions."""
    run = verification.run
    try:
        study = _study_of_digest(run)
        policies = {name: policy_label(name) for condition in study.conditions for name in condition.policies}
        expected = [(player.policy, plain(player.options)) for player in study.models]
    except TrustError as error:
        verification.notes.append(f"whether the players that run.json lists are those of its conditions ({error})")
        return
    recorded = [(model["policy"], model["options"]) for model in run.manifest["models"]]
    for entry in recorded:
        if entry not in expected or recorded.count(entry) > 1:
            verification.faults.append(f"{run.folder}: the models in run.json list {entry[0]}, which no condition has")
    if any(entry not in recorded for entry in expected):
        verification.faults.append(f"{run.folder}: the models in run.json are not all that its conditions have")
    if dict(run.manifest.get("policies", policies)) != policies:
        verification.faults.append(f"{run.folder}: the policies in run.json are not those of its conditions")
    try:
        described = describe_models(study)
    except LlmCoopError:  # a pack that is not here, or not trusted: told where the episodes are played again
        return
    for model in described:
        entry = (model["policy"], model["options"])
        same = next((one for one in run.manifest["models"] if (one["policy"], one["options"]) == entry), model)
        # What changed in a pack since is told by `check_prompts`.
        how = difference({**same, "pack": 0, "token_counter": 0}, {**plain_json(model), "pack": 0, "token_counter": 0})
        if how:
            verification.faults.append(
                f"{run.folder}: the model {model['policy']} in run.json has other settings ({how})"
            )


def _study_of_digest(run: Run) -> Study:
    """The study of a run as far as its digest depends on it."""
    return Study(name="", description="", seed=run.manifest["seed"], conditions=run.conditions, measures=(), text="")


def _find_strangers(run: Run) -> Iterator[str]:
    """Find files among episodes and tables that are not this run's."""
    own = {run.events_path(condition.name, seed) for condition, seed in run.episodes}
    for path in sorted((run.folder / EVENTS).rglob("*.gz")):
        if path not in own:
            yield f"{path}: is no episode of this study"
    for path in sorted(run.folder.glob("*.parquet")):
        if path.name not in run.manifest["files"]:
            yield f"{path}: is no table that this run wrote"


def _check_presence(verification: Verification) -> None:
    """Check that no episode of a complete run is missing or unrecorded."""
    run = verification.run
    unrecorded = [run.folder / name for name in run.unrecorded_files()]
    if run.complete:
        finished = run.finished()
        every = [(condition.name, seed) for condition, seed in run.episodes]
        verification.faults += [
            f"{run.events_path(*episode)}: is not there, although the run is complete"
            for episode in every
            if episode not in finished
        ]
        verification.faults += [f"{path}: is not recorded in run.json" for path in unrecorded]
        return
    verification.notes.append(f"{run.folder}: is not complete ({len(run.finished())} of {run.total} episodes)")
    if unrecorded:
        verification.notes.append(
            f"{len(unrecorded)} episodes of a session that was killed are not recorded in run.json yet"
        )


def _read_own_episodes(
    verification: Verification, tell: Callable[[str], None]
) -> Iterator[tuple[Condition, int, list[Any]]]:
    """Read the episodes that are this run's own: condition, seed, and the file's header and events."""
    run = verification.run
    finished = run.finished()
    for condition in run.conditions:
        tell(f"episodes of {condition.name}")
        for seed in condition.seeds:
            if (condition.name, seed) not in finished:
                continue
            try:
                header, events = run.read_events(condition.name, seed)
            except RunError as error:
                verification.faults.append(str(error))
                continue
            verification.episodes += 1
            game = {"scenario": condition.spec.env_name, "seed": seed, "settings": dict(condition.settings)}
            how = difference(events[0], {"type": "start", **game})
            if how:
                path = run.events_path(condition.name, seed)
                verification.faults.append(f"{path}: its events are those of another episode ({how})")
            yield condition, seed, [header, *events]


def _check_programs(run: Run, own: list[tuple[Condition, int, list[Any]]]) -> Iterator[str]:
    """Check that one version of the program played all episodes."""
    for name in run.manifest["program"]:
        counts = Counter(records[0].get("program", {}).get(name) for _, _, records in own)
        del counts[None]
        if len(counts) > 1:
            tally = ", ".join(f"{count} by {program_hash}" for program_hash, count in counts.most_common())
            yield f"{run.folder}: {program_title(name)} changed while the run was being played (episodes: {tally})"


async def _play_again(
    verification: Verification, own: list[tuple[Condition, int, list[Any]]], again: bool, tell: Callable[[str], None]
) -> None:
    """Play episodes again, those of models from the journal, and compare them with the recorded ones."""
    run = verification.run
    asking = any(condition.asks_a_model for condition, _, _ in own)
    chat: Chat | None = None
    if asking:
        from llm_coop_envs.policies.llm.asking.replay import ReplayChat

        try:
            check_prompts(run, describe_models(_study_of_digest(run)))
            chat = ReplayChat(_journal_of(run))
            verification.notes += chat.notes
        except LlmCoopError as error:
            explained = isinstance(error, TrustError) or not _is_of_this_version(run)
            sentences = verification.notes if explained else verification.faults
            sentences.append(f"the episodes of models cannot be compared with the journal: {error}")
    skipped = Counter[str]()
    others = sum(records[0].get("recorded", {}).get("differ", 0) for _, _, records in own)
    if others:
        verification.notes.append(f"why {others} plays were paid otherwise, as their records say, than by our rules")
    for condition, seed, records in own:
        if HUMAN in condition.policies:
            skipped["with people in them"] += 1
        elif condition.is_recorded:
            tell(f"{condition.name}, seed {seed}")
            reason = _moves_difference(run, condition, seed, records)
            verification.faults += [f"{run.events_path(condition.name, seed)}: {reason}"] if reason else []
            verification.replayed += 1
        elif not condition.asks_a_model and not again:
            skipped["without a model (--again plays them again)"] += 1
        elif not condition.asks_a_model or chat is not None:
            tell(f"{condition.name}, seed {seed}")
            try:
                reason = await _replay_difference(run, condition, seed, records, chat)
            except TrustError as error:
                skipped[f"({error})"] += 1
                continue
            verification.faults += [f"{run.events_path(condition.name, seed)}: {reason}"] if reason else []
            verification.replayed += 1
    verification.notes += [
        f"{count} episodes {description} were not played again" for description, count in skipped.items()
    ]


def _moves_difference(run: Run, condition: Condition, seed: int, records: list[Any]) -> str:
    """How an imported episode differs from what our rules make of its moves; empty if it does not."""
    header, *events = records
    try:
        played = check_moves(condition, seed, header, events)
    except LlmCoopError as error:
        return str(error)
    _, *now = plain_json({"records": run.episode_records(condition.name, seed, played)})["records"]
    reason = _first_difference(events, now)
    return reason and f"is not what our rules make of its moves: {reason}"


def _journal_of(run: Run) -> Path:
    """The folder of the journal with the answers of a run's models: the run's own, or that of the run it replayed."""
    replayed = [session.get("asking", {}).get("replay") for session in run.manifest["sessions"]]
    if (run.folder / "journal").is_dir() or not any(replayed):
        return run.folder
    return Path(next(filter(None, reversed(replayed))))


async def _replay_difference(run: Run, condition: Condition, seed: int, records: list[Any], chat: Chat | None) -> str:
    """Play an episode again; returns how it differs from the recorded one, empty if it does not."""
    source = "the journal" if condition.asks_a_model else "the rules"
    try:
        played = await play_episode(run.manifest["seed"], condition, seed, chat)
    except TrustError:
        raise
    except LlmCoopError as error:
        return f"cannot be played again from {source}: {error}"
    header, *events = plain_json({"records": run.episode_records(condition.name, seed, played)})["records"]
    recorded, *were = records
    if "returns" not in recorded:  # a run of an earlier version
        header.pop("returns", None)
    others = [
        program_title(name)
        for name, program_hash in program_of(condition).items()
        if recorded.get("program", {}).get(name) != program_hash
    ]
    reason = _first_difference(were, events) or difference(
        {**recorded, "program": 0}, {**header, "program": 0}, every=True
    )
    if reason and others:
        reason += f"; {' and '.join(others)} are not those that played it: use the version that did"
    return reason and f"is not what {source} make of it: {reason}"


def _first_difference(were: list[Any], events: list[Any]) -> str:
    """How events first differ from recorded ones."""
    for number, (was, now) in enumerate(zip(were, events, strict=False), start=1):
        how = difference(was, now, every=True)
        if how:
            return f"event {number} ({was.get('type')}, round {was.get('round')}) {how}"
    return "" if len(were) == len(events) else f"it has {len(were)} events there and {len(events)} here"


def _check_tables(verification: Verification) -> None:
    """Make all tables again, and compare them with the recorded ones."""
    try:
        tables = make_tables(verification.run)
    except TrustError as error:
        verification.notes.append(f"whether the tables follow from the events ({error})")
        return
    except Exception as error:  # anything that a scenario raises for events that it did not write
        verification.faults.append(f"{verification.run.folder}: no tables can be made of its events ({error!r})")
        return
    for path, remade in tables.items():
        verification.tables += 1
        try:
            reason = _table_difference(read_table(path), remade)
        except RunError as error:
            reason = str(error).removeprefix(f"{path}: ").partition(";")[0]
        if reason and _is_of_this_version(verification.run):
            verification.faults.append(f"{path}: {reason}")
        elif reason:  # measures may have been added or defined anew since
            verification.notes.append(
                f"whether {path.name} follows from the events, because another version of llm-coop-envs made it "
                f"({reason}); 'llm-coop report' makes its numbers again"
            )


def _table_difference(recorded: pa.Table, remade: pa.Table) -> str:
    """How a recorded table first differs from one that was made again; empty if it does not."""
    if recorded.schema.names != remade.schema.names:
        odd = sorted(set(recorded.schema.names) ^ set(remade.schema.names)) or ["their order"]
        return f"its columns are not those that follow from the events ({odd[0]})"
    if len(recorded) != len(remade):
        return f"has {len(recorded)} rows, from the events {len(remade)} follow"
    for name in remade.schema.names:
        if not recorded[name].equals(remade[name]):
            for row, (was, now) in enumerate(zip(recorded[name].to_pylist(), remade[name].to_pylist(), strict=True), 1):
                if was != now and not (was != was and now != now):  # NaN is no fault
                    return f"column {name}, row {row} is {was!r}, from the events {now!r} follows"
    return ""

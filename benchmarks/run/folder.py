"""A run is a folder: what it holds, and how it is made, continued and read.

    run.json              the manifest: status, study, conditions, versions, sessions
    study.yaml            the study file as it was given
    events/<condition>/<seed>.jsonl.gz   one episode each; whole or not there
    episodes.parquet, rounds_<scenario>.parquet, messages.parquet   made from the events when all are there

Only a manifest whose status is `complete` says that a run is whole; it is written last.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import llm_coop_envs
from llm_coop_envs.benchmarks.run.episode import Played
from llm_coop_envs.benchmarks.study.players import describe_model, label
from llm_coop_envs.benchmarks.study.study import Condition, Study
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import (
    cannot_write,
    pack_lines,
    read_json,
    read_lines,
    sweep,
    write_json,
    write_whole,
)

FORMAT = 1
MANIFEST = "run.json"
RUNNING, COMPLETE, INTERRUPTED = "running", "complete", "interrupted"
EPISODE = "episode"

_LIBRARIES = ("aiohttp", "gymnasium", "jinja2", "litellm", "matplotlib", "numpy", "openai", "pettingzoo", "pyarrow")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as its folder tells it.

    Attributes:
        folder: where it is.
        manifest: the content of `run.json`.
        conditions: what is played.
    """

    folder: Path
    manifest: dict[str, Any]
    conditions: tuple[Condition, ...]

    @property
    def complete(self) -> bool:
        """Whether every episode and table is there."""
        return bool(self.manifest["status"] == COMPLETE)

    @property
    def total(self) -> int:
        """How many episodes the study has."""
        return sum(len(c.seeds) for c in self.conditions)

    def events_path(self, condition: str, seed: int) -> Path:
        """Where an episode's events are, or will be."""
        return self.folder / "events" / condition / f"{seed}.jsonl.gz"

    def finished(self) -> set[tuple[str, int]]:
        """The episodes whose events are there, as (condition, seed)."""
        return {(c.name, seed) for c in self.conditions for seed in c.seeds if self.events_path(c.name, seed).is_file()}

    def read_events(self, condition: str, seed: int) -> tuple[dict[str, Any], list[Event]]:
        """An episode's header and its events.

        Raises:
            RunError: they are missing or damaged.
        """
        path = self.events_path(condition, seed)
        header, *events = read_lines(path) or [None]
        if not is_episode(header, events):
            raise RunError(f"{path}: is no whole episode; delete it and run the study again to replace it")
        return header, events

    def write_events(self, condition: str, seed: int, played: Played) -> None:
        """Keep an episode: a header that says what was played, then the environment's events.

        Raises:
            RunError: they cannot be written.
        """
        header: dict[str, Any] = {"type": EPISODE, "format": FORMAT, "condition": condition, "seed": seed}
        header["policies"] = played.policies
        if played.answers:
            header["answers"] = played.answers
        if played.measures:
            header["measures"] = played.measures
        write_whole(self.events_path(condition, seed), pack_lines([header, *played.events]))

    def write_manifest(self, **changes: Any) -> None:
        """Change the manifest, on disk first.

        Raises:
            RunError: it cannot be written.
        """
        manifest = {**self.manifest, **changes}
        write_json(self.folder / MANIFEST, manifest)
        self.manifest.update(changes)

    def read_manifest(self) -> None:
        """Take the manifest from disk again: other parts may have changed it.

        Raises:
            RunError: it is damaged.
        """
        self.manifest.update(open_run(self.folder).manifest)


def is_episode(header: Any, events: list[Any]) -> bool:
    """Whether records are a whole episode."""
    if not isinstance(header, dict) or not events or not isinstance(events[-1], dict):
        return False
    return (header.get("type"), events[-1].get("type")) == (EPISODE, "end")


def open_run(folder: Path) -> Run:
    """Read a run's manifest.

    Raises:
        RunError: there is no run in the folder, or it is damaged or of a newer format.
    """
    path = folder / MANIFEST
    if not path.is_file():
        hint = "give the folder that 'llm-coop run' named"
        raise RunError(f"{folder}: is no run folder (there is no {MANIFEST} in it); {hint}")
    manifest = read_json(path, lambda why: f"{path}: cannot be read ({why}); run the study again into a new folder")
    if manifest.get("format") != FORMAT:
        raise RunError(
            f"{path}: has format {manifest.get('format')!r}, this version of llm-coop-envs reads format {FORMAT}; "
            "use the version that wrote it, or run the study again into a new folder"
        )
    try:
        conditions = tuple(Condition.from_json(c) for c in manifest["conditions"])
        run = Run(folder=folder, manifest=manifest, conditions=conditions)
        _ = run.manifest["status"], run.manifest["study"], run.manifest["digest"], run.manifest["sessions"], run.total
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: is damaged ({error!r}); run the study again into a new folder") from error
    return run


def study_of(run: Run) -> Study:
    """The study that a run plays, its models reached as in the last session that asked them.

    Raises:
        RunError: the copy of the study file is not there.
    """
    manifest = run.manifest
    path = run.folder / "study.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from error
    endpoints: dict[str, dict[str, Any]] = {}
    for session in manifest["sessions"]:
        for one in session.get("asking", {}).get("endpoints", []):
            endpoints[one["model"]] = {name: value for name, value in one.items() if name != "model"}
    return Study(
        name=manifest["study"],
        description=manifest["description"],
        seed=manifest["seed"],
        conditions=tuple(_reached(condition, endpoints) for condition in run.conditions),
        measures=tuple(manifest["measures"]),
        text=text,
        given=tuple(manifest.get("given", ())),
    )


def _reached(condition: Condition, endpoints: Mapping[str, Mapping[str, Any]]) -> Condition:
    seats = tuple(
        (
            pattern,
            tuple(replace(one, endpoint=endpoints.get(one.policy.partition(":")[2], {})) for one in players),
        )
        for pattern, players in condition.seats
    )
    return replace(condition, seats=seats)


def described_models(study: Study) -> list[dict[str, Any]]:
    """What a run records of the language models in its seats: settings, prompt pack with its hash, token counter."""
    found: list[dict[str, Any]] = []
    for player in study.models:
        one = {"policy": player.policy, "options": plain(player.options)}
        one.update(describe_model(player.policy, player.options))
        if one not in found:
            found.append(one)
    return found


def check_same(run: Run, study: Study) -> None:
    """Refuse to continue a run as another study.

    Raises:
        RunError: the run's conditions, settings, policies or seeds are others.
    """
    if run.manifest["digest"] != study.digest:
        raise RunError(
            f"{run.folder}: holds a run of '{run.manifest['study']}' with other conditions, settings, policies or "
            "seeds; choose another folder with -o, or continue it with the study, --policy, --seat and --seed "
            "that it was begun with"
        )


def make_run(study: Study, folder: Path, models: Sequence[dict[str, Any]] = ()) -> Run:
    """Begin a run in a folder, or continue the one that is there.

    Args:
        study: what is played.
        folder: a new or empty folder, or one that holds a run of the same study.
        models: what is recorded of the language models that play.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    if (folder / MANIFEST).is_file():
        run = open_run(folder)
        check_same(run, study)
        check_words(run, models)
        return run
    try:
        held = [path.name for path in folder.iterdir() if not path.name.startswith(".")] if folder.exists() else []
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    if held:
        raise RunError(f"{folder}: is neither empty nor a run folder (it holds {held[0]}); choose another with -o")
    run = Run(
        folder=folder,
        manifest={
            "format": FORMAT,
            "status": RUNNING,
            "study": study.name,
            "description": study.description,
            "seed": study.seed,
            "digest": study.digest,
            "measures": list(study.measures),
            "given": list(study.given),
            "episodes": sum(len(c.seeds) for c in study.conditions),
            "finished": 0,
            "policies": {name: label(name) for c in study.conditions for name in c.policies},
            "models": list(models),
            "conditions": [c.to_json() for c in study.conditions],
            "sessions": [],
        },
        conditions=study.conditions,
    )
    write_whole(folder / "study.yaml", study.text.encode())
    run.write_manifest()
    return run


def check_words(run: Run, models: Sequence[dict[str, Any]]) -> None:
    """Refuse to continue or replay a run with prompts other than those that it was begun with.

    Raises:
        RunError: a model's prompt pack is another one, or its tokens are counted otherwise.
    """
    begun = {json.dumps([one["policy"], one["options"]], sort_keys=True): one for one in run.manifest.get("models", [])}
    for now in models:
        before = begun.get(json.dumps([now["policy"], now["options"]], sort_keys=True), now)
        if before["pack"] != now["pack"]:
            name, old, new = before["pack"]["name"], _version(before["pack"]), _version(now["pack"])
            raise RunError(
                f"{run.folder}: was begun with other prompts (pack {name}: {old}, now {new}); use the pack or the "
                "version of llm-coop-envs that it was begun with, or begin a new run folder"
            )
        if before["token_counter"] != now["token_counter"]:
            raise RunError(
                f"{run.folder}: was begun with prompts measured by '{before['token_counter']}', now it is "
                f"'{now['token_counter']}' (tiktoken or litellm was installed or removed); go back, or begin a new run "
                "folder"
            )


def _version(pack: Mapping[str, Any]) -> str:
    return f"version {pack['version']}, hash {pack['digest']}"


def new_folder(study: Study | str, parent: Path = Path("runs")) -> Path:
    """Make the folder `runs/<study>-<n>` with the smallest free n.

    Args:
        study: the study, or its name.
        parent: where.

    Raises:
        RunError: it cannot be made.
    """
    name = study if isinstance(study, str) else study.name
    number = 1
    while True:
        folder = parent / f"{name}-{number}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise cannot_write(folder, error) from error
        else:
            return folder


@contextlib.contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep a second writer out of a run folder; the lock goes when the process does, however it ends.

    Args:
        folder: the run folder.
        shared: whether other writers may come that share it, too.

    Raises:
        RunError: another process is writing there.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no flock; two writers there are not told apart
        yield
        return
    path = folder / ".lock"
    try:
        file = path.open("ab")
    except OSError as error:
        raise cannot_write(path, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sweep(folder)
        except OSError as error:
            if not shared:
                why = "another process is writing this run; wait for it or stop it first"
                raise RunError(f"{folder}: {why}") from error
        if shared:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                why = "another process is writing this run and does not share it (it has no --part); wait for it"
                raise RunError(f"{folder}: {why}") from error
        yield


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    found = {"llm-coop-envs": llm_coop_envs.__version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found

"""The folder of a study's run: what it holds besides the manifest, and how it is made, continued and read.

run.json              the manifest: study, conditions, players; see `storage.folder`
study.yaml            the study file as it was given
events/<condition>/<seed>.jsonl.gz   one episode each; whole or not there
episodes.parquet, rounds_<scenario>.parquet, messages.parquet   made from the events when all are there
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.episode import Played
from llm_coop_envs.runs.provenance import merged, named, program_of
from llm_coop_envs.storage.files import fingerprint, pack_lines, read_lines, read_lines_and_fingerprint, write_whole
from llm_coop_envs.storage.folder import MANIFEST, DamagedManifest, RunFolder
from llm_coop_envs.storage.lock import lock_folder
from llm_coop_envs.studies.families import Primary
from llm_coop_envs.studies.players import asks_a_model, describe_model, label
from llm_coop_envs.studies.study import Condition, Study

EPISODE_FORMAT = 2
EPISODE = "episode"
STUDY = "study.yaml"


@dataclass(kw_only=True)
class Run(RunFolder):
    """A study's run as its folder tells it."""

    kind: ClassVar[str] = "study"
    begun_with: ClassVar[str] = "the study, --policy, --seat and --seed"
    cure: ClassVar[str] = (
        f"to rebuild it from what was played, give 'llm-coop run' the study ({STUDY} in the folder is a copy), -o and "
        "the options that it was begun with"
    )
    growing: ClassVar[str | None] = "journal/"

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What is played."""
        return tuple(Condition.from_json(condition) for condition in self.manifest["conditions"])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from llm_coop_envs.runs.notebook import run_html

        return run_html(self)

    @property
    def title(self) -> str:
        """What the run is called in errors."""
        return f"a run of '{self.manifest['study']}'"

    def _check(self) -> None:
        held = self.manifest
        _ = held["study"], self.total, dict(held["program"]), int(held["finished"]), list(held["models"])

    @property
    def episodes(self) -> list[tuple[Condition, int]]:
        """All episodes, conditions in the study's order, seeds in the condition's."""
        return [(condition, seed) for condition in self.conditions for seed in condition.seeds]

    @property
    def total(self) -> int:
        """How many episodes the study has."""
        return sum(len(c.seeds) for c in self.conditions)

    def events_path(self, condition: str, seed: int) -> Path:
        """Where an episode's events are, or will be."""
        return self.folder.joinpath(self.events_name(condition, seed))

    @staticmethod
    def events_name(condition: str, seed: int) -> str:
        """What the manifest calls that file."""
        return f"events/{condition}/{seed}.jsonl.gz"

    @property
    def study_text(self) -> str:
        """The study file as it was given.

        Raises:
            RunError: the copy is not there, or no text.
        """
        path = self.folder / STUDY
        try:
            return path.read_bytes().decode()
        except OSError as error:
            raise RunError(f"{path}: cannot be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise RunError(f"{path}: is no UTF-8 text ({error.reason} at byte {error.start}); restore it") from error

    def begin(self, **record: Any) -> int:
        """See `RunFolder.begin`; which program plays is noted, too."""
        for condition in self.conditions:
            self.change(program=merged(self.manifest["program"], program_of(condition)))
        return super().begin(**record)

    def mixed(self) -> list[str]:
        """A sentence on everything that changed in the program between sessions that played."""
        return [
            f"{named(name)[0].upper()}{named(name)[1:]} changed while the run was being played; episodes before and "
            "after may not be comparable"
            for name, found in self.manifest["program"].items()
            if len(found) > 1
        ]

    def finished(self) -> set[tuple[str, int]]:
        """The episodes whose events are there, as (condition, seed)."""
        found = set()
        for one in self.conditions:
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
                os.scandir(self.folder / "events" / one.name) as entries,
            ):
                names = {entry.name for entry in entries if entry.is_file()}
                found |= {(one.name, seed) for seed in one.seeds if f"{seed}.jsonl.gz" in names}
        return found

    def unrecorded(self) -> dict[str, str]:
        """What the manifest is to record of the episodes that are there and not in it."""
        new = [episode for episode in self.finished() if self.events_name(*episode) not in self.manifest["files"]]
        return self.fingerprints(*(self.events_path(*episode) for episode in new))

    def read_events(self, condition: str, seed: int) -> tuple[dict[str, Any], list[Event]]:
        """An episode's header and its events.

        Raises:
            RunError: they are missing or damaged, or not what this run wrote there.
        """
        path = self.events_path(condition, seed)
        records, fingerprint = read_lines_and_fingerprint(path)
        header, *events = records or [None]
        if not is_episode(header, events):
            raise RunError(f"{path}: is no whole episode; delete it and run the study again to replace it")
        why = self._foreign(fingerprint, header, condition, seed)
        if why:
            raise RunError(f"{path}: {why}; restore it, or run the study again with -o to replace it")
        return header, events

    def _foreign(self, fingerprint: str, header: Mapping[str, Any], condition: str, seed: int) -> str:
        """Why a file cannot be this run's episode; empty if it can."""
        if header.get("format") != EPISODE_FORMAT:
            return f"has format {header.get('format')!r}, this version of llm-coop-envs reads format {EPISODE_FORMAT}"
        held = header.get("condition"), header.get("seed")
        if held != (condition, seed):
            return f"holds another episode (condition '{held[0]}', seed {held[1]})"
        if header.get("study") != self.manifest["digest"]:
            return "was played in another study, or with other settings"
        for name, one in header.get("program", {}).items():
            if one not in self.manifest["program"].get(name, ()):
                return f"was played by another version of {named(name)} than this run"
        if fingerprint != self.manifest["files"].get(self.events_name(condition, seed), fingerprint):
            return "is not what this run wrote (an episode of another run of the same study, or changed since)"
        return ""

    def episode_records(self, condition: str, seed: int, played: Played) -> list[Any]:
        """What is kept of an episode: a header that says what was played, then the environment's events."""
        header: dict[str, Any] = {"type": EPISODE, "format": EPISODE_FORMAT, "condition": condition, "seed": seed}
        header["study"] = self.manifest["digest"]
        header["program"] = program_of(next(one for one in self.conditions if one.name == condition))
        header["policies"] = played.policies
        if played.answers:
            header["answers"] = played.answers
        if played.people:
            header["people"] = played.people
        if played.measures:
            header["measures"] = played.measures
        return [header, *played.events]

    def write_events(self, condition: str, seed: int, played: Played) -> dict[str, str]:
        """Keep an episode.

        Returns:
            What the manifest is to record of the file; see `RunFolder.fingerprints`.

        Raises:
            RunError: it cannot be written.
        """
        path = self.events_path(condition, seed)
        write_whole(path, pack_lines(self.episode_records(condition, seed, played)))
        return self.fingerprints(path)


def is_episode(header: Any, events: list[Any]) -> bool:
    """Whether records are a whole episode."""
    if not isinstance(header, dict) or not events or not all(isinstance(event, dict) for event in events):
        return False
    if not isinstance(header.get("policies"), dict) or not isinstance(header.get("program", {}), dict):
        return False
    return (header.get("type"), events[-1].get("type")) == (EPISODE, "end")


def open_run(folder: Path) -> Run:
    """A study's run; see `RunFolder.open`."""
    return Run.open(folder)


def study_of(run: Run, *, reached: bool = True) -> Study:
    """The study that a run plays, its models reached as in the last session that asked them.

    Args:
        run: the run.
        reached: insist that the run says where its models are; false if that is said elsewhere, or nobody is asked.

    Raises:
        RunError: the copy of the study file is not there, or it is not known where a model is reached: prompts must
            not go to whoever the default is.
    """
    manifest = run.manifest
    endpoints: dict[str, dict[str, Any]] = {}
    for session in manifest["sessions"]:
        for one in session.get("asking", {}).get("endpoints", []):
            endpoints[one["model"]] = {name: value for name, value in one.items() if name != "model"}
    asked = {name for one in run.conditions for name in one.policies if asks_a_model(name)}
    lost = {name.partition(":")[2] for name in asked} - endpoints.keys()
    if lost and reached:
        raise RunError(
            f"{run.folder}: does not say where {min(lost)} is reached (its session could not be noted, or the manifest "
            "was rebuilt); say it with --base-url, https://api.openai.com/v1 for OpenAI's own models"
        )
    return Study(
        name=manifest["study"],
        description=manifest["description"],
        seed=manifest["seed"],
        conditions=tuple(
            condition.reached(lambda one: endpoints.get(one.policy.partition(":")[2], {}))
            for condition in run.conditions
        ),
        measures=tuple(manifest["measures"]),
        text=run.study_text,
        given=tuple(manifest.get("given", ())),
        source=manifest.get("source", ""),
        settles=tuple(manifest.get("settles", ())),
        primary=Primary.of(manifest),
    )


def described_models(study: Study) -> list[dict[str, Any]]:
    """What a run records of the language models in its seats: settings, prompt pack with its hash, token counter."""
    found: list[dict[str, Any]] = []
    played = {condition.scenario for condition in study.conditions}
    for player in study.models:
        one = {"policy": player.policy, "options": plain(player.options)}
        one.update(describe_model(player.policy, player.options, played))
        if one not in found:
            found.append(one)
    return found


def make_run(study: Study, folder: Path, models: Sequence[dict[str, Any]] = (), **more: Any) -> Run:
    """Begin a run in a folder, or continue the one that is there; a lost or damaged manifest is rebuilt.

    Args:
        study: what is played.
        folder: a new or empty folder, or one that holds a run of the same study.
        models: what is recorded of the language models that play.
        **more: what else the manifest of a new run says.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    about = {
        **more,
        "study": study.name,
        "description": study.description,
        **({"source": study.source, "settles": list(study.settles)} if study.source or study.settles else {}),
        "measures": list(study.measures),
        **({"primary": study.primary.to_json()} if study.primary else {}),
        "given": list(study.given),
        "episodes": sum(len(c.seeds) for c in study.conditions),
        "finished": 0,
        "policies": {name: label(name) for c in study.conditions for name in c.policies},
        "models": list(models),
        "conditions": [c.to_json() for c in study.conditions],
        "program": {},
    }
    files = {STUDY: study.text.encode()}
    lost = (folder / STUDY).is_file() and not (folder / MANIFEST).exists()
    try:
        run = _rebuilt(study, folder, about) if lost else Run.make(folder, study.identity, files=files, **about)
    except DamagedManifest:
        run = _rebuilt(study, folder, about)
    check_words(run, models)
    return run


def _rebuilt(study: Study, folder: Path, about: Mapping[str, Any]) -> Run:
    """A new manifest for a folder that lost its own; what was played says whether it is this study's.

    Raises:
        RunError: it is another study's, or another process is writing there.
    """
    path, copy = folder / MANIFEST, folder / STUDY
    program: dict[str, list[str]] = {}
    others: list[Path] = []
    with lock_folder(folder):
        for episode in sorted((folder / "events").glob("*/*.jsonl.gz")):
            with contextlib.suppress(RunError):  # what is damaged is played again
                header, *events = read_lines(episode) or [None]
                if is_episode(header, events):
                    program = merged(program, header.get("program", {}))
                    others += [episode] if header.get("study") != study.digest else []
        if not program and copy.is_file() and copy.read_bytes() != study.text.encode():
            others.append(copy)
        if others:
            raise RunError(
                f"{path}: is damaged or lost, and {others[0]} belongs to another study or to other settings; give "
                f"{Run.begun_with} that the run was begun with"
            )
        if path.exists():
            os.replace(path, path.with_name(f"{MANIFEST}.damaged-{time.time_ns()}"))
        if not copy.is_file():
            write_whole(copy, study.text.encode())
        recorded = {STUDY: fingerprint(copy)}
        return Run.new(folder, study.identity, **{**about, "program": program, "rebuilt": True, "files": recorded})


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

"""The folder of a study's run: what it holds besides the manifest, and how it is made, continued and read.

run.json              the manifest: study, conditions, players; see `storage.folder`
study.yaml            the study file as it was given
events/<condition>/<seed>.jsonl.gz   one episode each; whole or not there
episodes.parquet, rounds_<scenario>.parquet, messages.parquet   made from the events when all are there
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from llm_coop_envs.benchmarks.run.episode import Played
from llm_coop_envs.benchmarks.study.players import describe_model, label
from llm_coop_envs.benchmarks.study.study import Condition, Study
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import pack_lines, read_lines, write_whole
from llm_coop_envs.storage.folder import RunFolder

EPISODE_FORMAT = 1
EPISODE = "episode"


@dataclass(frozen=True, kw_only=True)
class Run(RunFolder):
    """A study's run as its folder tells it."""

    kind: ClassVar[str] = "study"
    begun_with: ClassVar[str] = "the study, --policy, --seat and --seed"

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What is played."""
        return tuple(Condition.from_json(condition) for condition in self.manifest["conditions"])

    @property
    def title(self) -> str:
        """What the run is called in errors."""
        return f"a run of '{self.manifest['study']}'"

    def _check(self) -> None:
        _ = self.manifest["study"], self.total

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
        header: dict[str, Any] = {"type": EPISODE, "format": EPISODE_FORMAT, "condition": condition, "seed": seed}
        header["policies"] = played.policies
        if played.answers:
            header["answers"] = played.answers
        if played.measures:
            header["measures"] = played.measures
        write_whole(self.events_path(condition, seed), pack_lines([header, *played.events]))


def is_episode(header: Any, events: list[Any]) -> bool:
    """Whether records are a whole episode."""
    if not isinstance(header, dict) or not events or not isinstance(events[-1], dict):
        return False
    return (header.get("type"), events[-1].get("type")) == (EPISODE, "end")


def open_run(folder: Path) -> Run:
    """A study's run; see `RunFolder.open`."""
    return Run.open(folder)


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
    played = {condition.scenario for condition in study.conditions}
    for player in study.models:
        one = {"policy": player.policy, "options": plain(player.options)}
        one.update(describe_model(player.policy, player.options, played))
        if one not in found:
            found.append(one)
    return found


def make_run(study: Study, folder: Path, models: Sequence[dict[str, Any]] = ()) -> Run:
    """Begin a run in a folder, or continue the one that is there.

    Args:
        study: what is played.
        folder: a new or empty folder, or one that holds a run of the same study.
        models: what is recorded of the language models that play.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    run = Run.make(
        folder,
        study.identity,
        study=study.name,
        description=study.description,
        measures=list(study.measures),
        given=list(study.given),
        episodes=sum(len(c.seeds) for c in study.conditions),
        finished=0,
        policies={name: label(name) for c in study.conditions for name in c.policies},
        models=list(models),
        conditions=[c.to_json() for c in study.conditions],
    )
    check_words(run, models)
    if not (folder / "study.yaml").is_file():
        write_whole(folder / "study.yaml", study.text.encode())
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

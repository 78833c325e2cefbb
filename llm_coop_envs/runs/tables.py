"""Make the tables of a run from its events alone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures.process import process_measures
from llm_coop_envs.measures.topics import topic_rounds
from llm_coop_envs.mechanisms.measures import mechanism_measures
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.reading import Episodes, read_portions
from llm_coop_envs.storage.parquet import need_arrow, write_table
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.treatments.regulation_measures import regulation_measures
from llm_coop_envs.treatments.regulator import SEAT

if TYPE_CHECKING:
    import pyarrow as pa

EPISODES, MESSAGES, ROUNDS, ANSWERS = "episodes", "messages", "rounds", "answers"
UNFLAGGED = "episodes_without_flagged"
_MANY = 1000


@dataclass(frozen=True, kw_only=True)
class EpisodeTables:
    """The rows of one episode.

    Attributes:
        condition: its condition.
        seed: the environment's seed.
        policies: the full name of each player's policy.
        events: the recorded events.
        metrics: one row with all metrics.
        answers: one row for each kind of question of each policy that asked a model.
        models: the number of answers of each model, by the name that the provider reports.
        people: the people in the seats, if there is a population: the values of each column, and everybody's code.
    """

    condition: Condition
    seed: int
    policies: Mapping[str, str]
    events: list[Event]
    metrics: Row
    answers: list[Row]
    models: dict[str, int]
    people: dict[str, Any]

    @cached_property
    def by_type(self) -> Mapping[str, list[Event]]:
        """The events by type; an empty list for a type without events."""
        by_type: defaultdict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            by_type[event["type"]].append(event)
        return by_type

    @cached_property
    def rounds(self) -> list[Row]:
        """One row per round, with the counts of its messages by topic."""
        scenario = self.condition.spec
        about = topic_rounds(self.events, scenario)
        return [{**self._key, **row, **about.get(row["round"], {})} for row in scenario.round_rows(self.events)]

    @cached_property
    def messages(self) -> list[Row]:
        """One row per message."""
        return [
            {
                **self._key,
                "scenario": self.condition.scenario,
                "round": event["round"],
                "step": event["step"],
                "talk": event["talk"],
                "position": event["position"],
                "speaker": event["agent"],
                "policy": self.policies.get(event["agent"]),
                "text": event["text"],
                "hearers": None if event["hearers"] is None else json.dumps(event["hearers"]),
                "flags": ", ".join(event["flags"]),
                **({"delivered": json.dumps(event["delivered"], ensure_ascii=False)} if "delivered" in event else {}),
            }
            for event in self.by_type["message"]
        ]

    @property
    def _key(self) -> Row:
        return {"condition": self.condition.name, "seed": self.seed}


def read_episodes(run: Run) -> Iterator[EpisodeTables]:
    """Read every finished episode, conditions in the study's order, seeds in the condition's.

    Raises:
        RunError: an episode's file is damaged, or not this run's.
    """
    finished = run.finished()
    for condition, seed in run.episodes:
        if (condition.name, seed) in finished:
            yield read_episode(run, condition, seed)


def read_episode(run: Run, condition: Condition, seed: int) -> EpisodeTables:
    """Read the rows of one finished episode.

    Raises:
        RunError: its file is damaged.
    """
    header, events = run.read_events(condition.name, seed)
    scenario = condition.spec
    key = {"condition": condition.name, "seed": seed}
    policies: dict[str, str] = header["policies"]
    metrics = {
        "study": run.manifest["study"],
        **key,
        "scenario": scenario.name,
        "talk": bool(condition.settings["talk"]),
        "players": len(events[0]["agents"]),
        "policies": ", ".join(f"{count} {name}" for name, count in Counter(policies.values()).items()),
        "end_reason": events[-1]["reason"],
        **_return_mean(header.get("returns", {})),
        **_flag_counts(events),
        **regulation_measures(events),
        **mechanism_measures(events, header.get("recorded", {}).get("mechanism", "")),
        **scenario.episode_metrics(events),
        **process_measures(events, scenario),
        **header.get("measures", {}),
    }
    answers: list[Row] = header.get("answers", [])
    models: Counter[str] = Counter()
    for answer in answers:
        models.update(answer["models"])
    return EpisodeTables(
        condition=condition,
        seed=seed,
        policies=policies,
        events=events,
        metrics=metrics,
        answers=[
            {
                **key,
                "scenario": scenario.name,
                "policy": answer["policy"],
                "player": number,
                "seats": len(answer["seats"]),
                "call": call,
                **counts,
            }
            for number, answer in enumerate(answers)
            for call, counts in answer["calls"].items()
        ],
        models=models,
        people=header.get("people", {}),
    )


def headline_measures(run: Run, condition: str, seed: int) -> dict[str, float]:
    """The headline measures of one finished episode that are numbers, for trackers of experiments.

    Args:
        run: the run.
        condition: the name of its condition.
        seed: the environment's seed.

    Raises:
        RunError: the run has no such condition, or the episode's file is missing or damaged.
    """
    named = [own for own in run.conditions if own.name == condition]
    if not named:
        raise RunError(f"{run.folder}: has no condition '{condition}'")
    metrics = read_episode(run, named[0], seed).metrics
    measured = {name: metrics.get(name) for name in named[0].spec.measured.headline}
    return {name: float(value) for name, value in measured.items() if isinstance(value, int | float)}


def _return_mean(returns: Mapping[str, float]) -> Row:
    players = [total for agent, total in returns.items() if agent != SEAT]
    return {"return_mean": fsum(players) / len(players)} if players else {}


def _flag_counts(events: Iterable[Event]) -> Row:
    """Counts of submissions, of those among them that had to be corrected, and of the choices among the latter."""
    flags = [(event["type"], event["flags"]) for event in events if event["type"] in ("choice", "message")]
    corrected = [kind for kind, flagged in flags if flagged]
    return {"submissions": len(flags), "corrected": len(corrected), "flagged_choices": corrected.count("choice")}


def without_flagged(episode: EpisodeTables) -> EpisodeTables | None:
    """The episode without its flagged choices; itself if there are none, `None` if nothing is left.

    Measures of learning, and of playing on, belong to the whole episode and are left out.
    """
    if not any(event["flags"] for event in episode.by_type["choice"]):
        return episode
    scenario = episode.condition.spec
    events = scenario.measured.without_flagged(episode.events)
    if events is None:
        return None
    measured = {**scenario.episode_metrics(events), **process_measures(events, scenario)}
    identifying = {
        name: episode.metrics[name] for name in ("study", "condition", "seed", "scenario", "talk", "policies")
    }
    return replace(episode, events=events, metrics={**identifying, **measured})


def write_tables(run: Run) -> list[Path]:
    """Write the run's tables as Parquet; returns their files.

    Raises:
        RunError: an episode is damaged or a table cannot be written.
        MissingExtra: pyarrow is not installed.
    """
    need_arrow()
    tables = make_tables(run)
    for path, table in tables.items():
        write_table(path, table)
    return list(tables)


def make_tables(run: Run) -> dict[Path, pa.Table]:
    """Make the run's tables, by file.

    They are `episodes.parquet`, `messages.parquet`, `rounds_<scenario>.parquet` of each scenario, `answers.parquet` if
    a language model played, and if choices were flagged `episodes_without_flagged.parquet`, in which all episodes are
    measured without them.

    Raises:
        RunError: an episode is damaged.
    """
    parts: dict[str, list[pa.Table]] = {EPISODES: [], MESSAGES: [_no_messages()]}
    is_flagged = False
    for tables, has_flagged in read_portions(run, _portion_tables):
        is_flagged |= has_flagged
        for name, table in tables.items():
            parts.setdefault(name, []).append(table)
    if not is_flagged:
        parts.pop(UNFLAGGED, None)
    # The bytes of a file depend on how its table is divided, which must not depend on the number of processes.
    return {
        run.folder / f"{name}.parquet": _concatenate(tables).combine_chunks()
        for name, tables in parts.items()
        if tables
    }


def _portion_tables(run: Run, episodes: Episodes) -> tuple[dict[str, pa.Table], bool]:
    """The tables of some episodes by name, among them those without flagged choices, and whether there are any such."""
    parts: defaultdict[str, _Growing] = defaultdict(_Growing)
    is_flagged = False
    for episode in (read_episode(run, condition, seed) for condition, seed in episodes):
        parts[EPISODES].add([episode.metrics])
        unflagged_episode = without_flagged(episode)
        if unflagged_episode is not None:
            parts[UNFLAGGED].add([unflagged_episode.metrics])
        is_flagged |= unflagged_episode is not episode
        parts[MESSAGES].add(episode.messages)
        parts[ANSWERS].add(episode.answers)
        parts[f"{ROUNDS}_{episode.condition.scenario}"].add(episode.rounds)
    tables = {name: growing.tables() for name, growing in parts.items()}
    return {name: _concatenate(own).combine_chunks() for name, own in tables.items() if own}, is_flagged


class _Growing:
    """A table that rows are added to: a thousand are made columns at once, which takes a tenth of one by one."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._tables: list[pa.Table] = []

    def add(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= _MANY:
            self._flush()

    def tables(self) -> list[pa.Table]:
        """The rows as tables, which have the columns and types that each happens to need."""
        self._flush()
        return self._tables

    def _flush(self) -> None:
        import pyarrow as pa

        try:
            self._tables += [as_table(self._rows)] if self._rows else []
        except pa.ArrowException:  # such as lists of integers in one row, and of decimals in another
            self._tables += [as_table([row]) for row in self._rows]
        self._rows = []


def _concatenate(tables: Sequence[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="permissive")


def _no_messages() -> pa.Table:
    """A table of messages without rows, so that the file has its columns when nobody spoke."""
    import pyarrow as pa

    names = ("condition", "seed", "scenario", "round", "step", "talk", "position", "speaker", "policy", "text")
    integers = ("seed", "round", "step", "talk", "position")
    kinds = {name: pa.int64() if name in integers else pa.string() for name in (*names, "hearers", "flags")}
    return pa.schema(kinds.items()).empty_table()


def as_table(rows: Sequence[Row], names: Iterable[str] = ()) -> pa.Table:
    """Rows as a table; columns are the given names, by default all names in the order of their first appearance."""
    import pyarrow as pa

    names = names or dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        # Arrow refuses integers among decimals, as in [1, 2.5].
        if any(isinstance(v, float) for v in values):
            values = [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
        columns[name] = values
    return pa.table(columns)

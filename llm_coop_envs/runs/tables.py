"""Tables of a run, made from its events and nothing else."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.measures.process import process_measures
from llm_coop_envs.measures.topics import topic_rounds
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.storage.parquet import need_arrow, write_table
from llm_coop_envs.studies.study import Condition
from llm_coop_envs.treatments.regulation_measures import regulation_measures

if TYPE_CHECKING:
    import pyarrow as pa

EPISODES, MESSAGES, ROUNDS, ANSWERS = "episodes", "messages", "rounds", "answers"
UNFLAGGED = "episodes_without_flagged"
_MANY = 1000


@dataclass(frozen=True, kw_only=True)
class EpisodeTables:
    """What one episode gives to the tables.

    Attributes:
        condition: its condition.
        seed: the environment's seed.
        policies: who decided for each player, by its name.
        events: the recorded events.
        metrics: one row with all metrics.
        answers: one row for each kind of question of each policy that asked a model.
        models: the answers of each model, as the provider reports them.
        people: who sat in the seats, if a population did: each column's values and everybody's code.
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
        """The events of each type; of others none."""
        found: defaultdict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event["type"]].append(event)
        return found

    @cached_property
    def rounds(self) -> list[Row]:
        """One row per round, with how many of its messages are about what."""
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
    """Every finished episode, conditions in the study's order, seeds in the condition's.

    Raises:
        RunError: an episode's file is damaged, or not this run's.
    """
    there = run.finished()
    for condition, seed in run.episodes:
        if (condition.name, seed) in there:
            yield read_episode(run, condition, seed)


def read_episode(run: Run, condition: Condition, seed: int) -> EpisodeTables:
    """What one finished episode gives to the tables.

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
        **_flag_counts(events),
        **regulation_measures(events),
        **scenario.episode_metrics(events),
        **process_measures(events, scenario),
        **header.get("measures", {}),
    }
    asked: list[Row] = header.get("answers", [])
    models: Counter[str] = Counter()
    for one in asked:
        models.update(one["models"])
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
                "policy": one["policy"],
                "player": number,
                "seats": len(one["seats"]),
                "call": call,
                **counts,
            }
            for number, one in enumerate(asked)
            for call, counts in one["calls"].items()
        ],
        models=models,
        people=header.get("people", {}),
    )


def _flag_counts(events: Iterable[Event]) -> Row:
    """How many submissions were counted, how many of them had to be corrected, and how many of these were choices."""
    flags = [(event["type"], event["flags"]) for event in events if event["type"] in ("choice", "message")]
    corrected = [kind for kind, found in flags if found]
    return {"submissions": len(flags), "corrected": len(corrected), "flagged_choices": corrected.count("choice")}


def without_flagged(episode: EpisodeTables) -> EpisodeTables | None:
    """The episode without the choices that were flagged; itself if there are none, `None` if nothing is left.

    What was measured of learning, or by playing on, belongs to the whole episode and is left out.
    """
    if not any(event["flags"] for event in episode.by_type["choice"]):
        return episode
    scenario = episode.condition.spec
    events = scenario.measured.without_flagged(episode.events)
    if events is None:
        return None
    measured = {**scenario.episode_metrics(events), **process_measures(events, scenario)}
    told = {name: episode.metrics[name] for name in ("study", "condition", "seed", "scenario", "talk", "policies")}
    return replace(episode, events=events, metrics={**told, **measured})


def write_tables(run: Run) -> list[Path]:
    """Write the run's tables as Parquet; their files.

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
    """The run's tables, each by the file that it belongs in.

    They are `episodes.parquet`, `messages.parquet`, `rounds_<scenario>.parquet` of each scenario, `answers.parquet` if
    a language model played, and `episodes_without_flagged.parquet`, all episodes measured without the choices that were
    flagged, if any were.

    Raises:
        RunError: an episode is damaged.
    """
    parts: dict[str, list[pa.Table]] = {EPISODES: [], MESSAGES: [_no_messages()]}
    unflagged: list[pa.Table] = []
    for episode in read_episodes(run):
        _add(parts[EPISODES], [episode.metrics])
        rest = without_flagged(episode)
        if rest is not None:
            _add(unflagged, [rest.metrics])
        if rest is not episode:
            parts[UNFLAGGED] = unflagged
        _add(parts[MESSAGES], episode.messages)
        _add(parts.setdefault(ANSWERS, []), episode.answers)
        _add(parts.setdefault(f"{ROUNDS}_{episode.condition.scenario}", []), episode.rounds)
    return {run.folder / f"{name}.parquet": _joined(tables) for name, tables in parts.items() if tables}


def _add(tables: list[pa.Table], rows: Sequence[Row]) -> None:
    """Add a table of some rows, if there are any; a thousand small ones are made one, which takes a fiftieth."""
    if rows:
        tables.append(as_table(rows))
    if len(tables) == _MANY:
        tables[:] = [_joined(tables).combine_chunks()]


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="permissive")


def _no_messages() -> pa.Table:
    """The messages' columns, so that the table is there when nobody spoke."""
    import pyarrow as pa

    names = ("condition", "seed", "scenario", "round", "step", "talk", "position", "speaker", "policy", "text")
    integers = ("seed", "round", "step", "talk", "position")
    kinds = {name: pa.int64() if name in integers else pa.string() for name in (*names, "hearers", "flags")}
    return pa.schema(kinds.items()).empty_table()


def as_table(rows: Sequence[Row], names: Iterable[str] = ()) -> pa.Table:
    """Rows as a table; its columns are the given names, by default all in the order in which they first come."""
    import pyarrow as pa

    names = names or dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        # Integers among decimals: Arrow refuses the mixture.
        if any(isinstance(v, float) for v in values):
            values = [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
        columns[name] = values
    return pa.table(columns)

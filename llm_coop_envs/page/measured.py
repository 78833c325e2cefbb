"""Headline measures, repairs and fallbacks of a run's finished episodes, while it is played and afterwards.

A complete run has tables. Of any other run the episodes themselves are read, once each, for a moment at every look:
what was not reached yet follows at the next one.
"""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.page.index import LARGE
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.statistics.comparison import cluster_means
from llm_coop_envs.statistics.intervals import ANYTHING, mean_interval
from llm_coop_envs.storage.parquet import read_rows
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.opening import DAMAGED, MAX_TEXT, explain_damage, open_file, parse_json

LOOK_SECONDS = 0.4
"""How long one look reads episodes of an unfinished run."""
DOTS = 300
"""Episodes of a condition that are drawn one by one at most."""
COUNTED = ("asked", "repaired", "fallbacks")
_HEADERS_READ = 300

Key = tuple[str, int]
Row = dict[str, Any]


class EpisodeMeasures(NamedTuple):
    """What is known of a run's finished episodes.

    Attributes:
        rows: by condition and seed the headline measures.
        counts: by condition and seed the decisions asked for, repaired and replaced by fallbacks.
        unread: the number of finished episodes that were not read yet.
    """

    rows: Mapping[Key, Row]
    counts: Mapping[Key, Row]
    unread: int


class MeasureReader:
    """Reads and keeps the headline measures of runs."""

    def __init__(self) -> None:
        self._complete: dict[Path, tuple[Run, EpisodeMeasures]] = {}
        self._rows: dict[Path, tuple[Row, list[Row]]] = {}
        self._headers: dict[Path, list[Row]] = {}
        self._lock = threading.Lock()

    def read(self, run: Run) -> EpisodeMeasures:
        """Read the measures of a run's finished episodes.

        Raises:
            RunError: a table of a complete run cannot be read.
        """
        if not (run.complete and (run.folder / "episodes.parquet").is_file()):
            return self._read_episodes(run)
        opened, measures = self._complete.get(run.folder, (None, None))
        if opened is not run or measures is None:
            measures = _read_tables(run)
            self._complete[run.folder] = run, measures
        return measures

    def rates(self, run: Run, live: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
        """How many questions were asked, and how many of them were repaired or fell back so far."""
        if not run.manifest["models"]:
            return dict.fromkeys(COUNTED, 0)
        if run.complete and (run.folder / "answers.parquet").is_file():
            with contextlib.suppress(RunError):
                return _sum_counts(self.read(run).counts.values())
        finished = sorted(run.finished())[-_HEADERS_READ:]
        headers = [count for key in finished for count in self._header_counts(run, *key)]
        return _sum_counts([*headers, *(status["rates"] for status in live.values() if "rates" in status)])

    def _read_episodes(self, run: Run) -> EpisodeMeasures:
        rows: dict[Key, Row] = {}
        counts: dict[Key, Row] = {}
        unread = 0
        until = time.monotonic() + LOOK_SECONDS
        finished = run.finished()
        with self._lock:
            for condition, seed in run.episodes:
                if (condition.name, seed) not in finished:
                    continue
                path = run.events_path(condition.name, seed)
                if path not in self._rows:
                    if time.monotonic() > until:
                        unread += 1
                        continue
                    self._rows[path] = _read_episode(run, condition, seed)
                rows[condition.name, seed], calls = self._rows[path]
                counts[condition.name, seed] = _sum_counts(calls)
        return EpisodeMeasures(rows, counts, unread)

    def _header_counts(self, run: Run, condition: str, seed: int) -> list[Row]:
        """The counts in an episode's header."""
        path = run.events_path(condition, seed)
        if path not in self._headers:
            self._headers[path] = []
            with contextlib.suppress(OSError, *DAMAGED), open_file(path) as raw, gzip.open(raw) as file:
                self._headers[path] = _calls_of(parse_json(file.readline(MAX_TEXT)))
        return self._headers[path]


def summarise(condition: Condition, measure: str, rows: Mapping[int, Row]) -> dict[str, Any] | None:
    """A measure's mean with its interval, and the values behind it; `None` without any.

    Args:
        condition: the condition.
        measure: the measure.
        rows: the measures of its episodes, by their seeds.
    """
    by_seed = {seed: row[measure] for seed, row in rows.items() if isinstance(row.get(measure), int | float)}
    values = list(cluster_means(by_seed, condition.cluster).values())
    measured = condition.spec.measured
    interval = mean_interval(values, measured.range_of(measure, condition.settings) or ANYTHING)
    if interval is None:
        return None
    every = -(-len(values) // DOTS)
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "name": measured.words_for(measure, condition.settings).brief.removeprefix("the "),
        "about": measured.define(measure),
        "values": [float(value) for value in values[::every]],
    }


def _read_episode(run: Run, condition: Condition, seed: int) -> tuple[Row, list[Row]]:
    """Measures and counts of one episode; without measures if it is large or damaged, which is said elsewhere."""
    try:
        if run.events_path(condition.name, seed).stat().st_size > LARGE:
            return {}, []
        header, events = run.read_events(condition.name, seed)
        measures = {**condition.spec.episode_metrics(events), **header.get("measures", {})}
        headline = {name: measures.get(name) for name in condition.spec.measured.headline}
        return {name: value for name, value in headline.items() if _is_number(value)}, _calls_of(header)
    except (OSError, LlmCoopError, *DAMAGED):
        return {}, []


def _read_tables(run: Run) -> EpisodeMeasures:
    """The measures of a complete run.

    Raises:
        RunError: a table cannot be read.
    """
    headlines = {measure for condition in run.conditions for measure in condition.spec.measured.headline}
    rows = {
        key: {name: row[name] for name in headlines & row.keys() if _is_number(row[name])}
        for key, row in _read_columns(run.folder / "episodes.parquet", headlines)
    }
    calls: dict[Key, list[Row]] = {}
    if (run.folder / "answers.parquet").is_file():
        for key, row in _read_columns(run.folder / "answers.parquet", {*COUNTED}):
            calls.setdefault(key, []).append(row)
    return EpisodeMeasures(rows, {key: _sum_counts(own) for key, own in calls.items()}, 0)


def _read_columns(path: Path, names: set[str]) -> list[tuple[Key, Row]]:
    with explain_damage(path, "'llm-coop run' makes it anew"):
        rows = read_rows(path, {*names, "condition", "seed"})
        return [((row["condition"], row["seed"]), row) for row in rows]


def _calls_of(header: Mapping[str, Any]) -> list[Row]:
    return [counts for answers in header.get("answers", []) for counts in answers["calls"].values()]


def _sum_counts(counts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    sums: dict[str, int] = dict.fromkeys(COUNTED, 0)
    for count in counts:
        for name in COUNTED:
            sums[name] += int(count.get(name) or 0)
    return sums


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")

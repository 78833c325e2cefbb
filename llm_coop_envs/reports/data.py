"""The data beside a report's page: each table and figure as CSV, the episodes behind them, and what describes both.

The folder is a data package (Frictionless Data Package 2.0, `datapackage.json`). The same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.export.code_book import code_book
from llm_coop_envs.render.charts.style import PLOTTED, plotted
from llm_coop_envs.reports.page_parts import ReportTable, TableRow
from llm_coop_envs.reports.section import Drawing, PlayedCondition, ScenarioSection
from llm_coop_envs.runs.folder import STUDY, Run
from llm_coop_envs.runs.tables import ANSWERS, EPISODES, MESSAGES, ROUNDS, UNFLAGGED, as_table, make_tables
from llm_coop_envs.statistics.intervals import Interval
from llm_coop_envs.storage.parquet import read_table

if TYPE_CHECKING:
    import pyarrow as pa

PACKAGE = "datapackage.json"
CONFIGURATION = "configuration.yaml"
CODE_BOOK = "codebook"
CELLS: Mapping[str, str] = {
    "row": "Number of the table's row, from 1.",
    "name": "What the row is about, in words.",
    "below": "More about the row, in words.",
    "column": "Name of the table's column.",
    "text": "What the page says, in words.",
    "about": "What stands below it on the page, in words.",
    "value": "The number, unrounded; missing where the cell holds none.",
    "low": "Lower end of its 95 % interval.",
    "high": "Upper end of its 95 % interval.",
    "n": "Episodes, or pairs of episodes, that have a value, a count from 0.",
    "conditions": "Names of the conditions whose episodes it is computed from, between spaces; missing: published.",
    "episodes": "The rows of episodes.csv that it is computed from, the head being row 1 (RFC 7111).",
}
"""The columns of a table's file, which has a row for each of its cells."""
_FILES: Mapping[str, str] = {
    "events": "File of the episode's events in the run folder.",
    "sha256": "SHA-256 of that file as the run recorded it; missing if it did not.",
}
_TYPES = {"int": "integer", "float": "number", "double": "number", "bool": "boolean", "string": "string"}


@dataclass(frozen=True, kw_only=True)
class Filed:
    """A table of the page, with its file.

    Attributes:
        table: the table.
        file: its file's name.
        played: the rows of each condition's episodes in `episodes.csv`, by name.
    """

    table: ReportTable
    file: str
    played: Mapping[str, str]

    def data(self, row: int) -> str:
        """Where the cells of a row stand (RFC 7111: the head of a CSV file is its row 1)."""
        width = len(self.table.head) - 1
        return f"{self.file}#row={2 + row * width}-{1 + (row + 1) * width}"

    def rows_of(self, conditions: Iterable[str]) -> str:
        """The rows of the conditions' episodes; empty without any."""
        return ";".join(self.played[name] for name in conditions if name in self.played)

    def episodes(self, conditions: Iterable[str]) -> str:
        """Where the conditions' episodes stand; empty without any."""
        rows = self.rows_of(conditions)
        return f"{EPISODES}.csv#row={rows}" if rows else ""

    def cells(self) -> list[Row]:
        """A row for each cell, with the columns of `CELLS`."""
        return [
            {"row": number, "name": row.name, "below": row.below, **self._cell(row, place)}
            for number, row in enumerate(self.table.rows, 1)
            for place in range(len(row.cells))
        ]

    def _cell(self, row: TableRow, place: int) -> Row:
        cell = row.cells[place]
        columns = self.table.columns[place : place + 1]
        conditions = row.conditions or ([] if row.published else columns)
        number = cell.number
        known = isinstance(number, Interval)
        return {
            "column": self.table.head[1 + place],
            "text": cell.text,
            "about": cell.below,
            "value": number.mean if isinstance(number, Interval) else _number(cell.text) if number is None else number,
            **{name: getattr(number, name) if known else None for name in ("low", "high", "n")},
            "conditions": " ".join(conditions) or None,
            "episodes": self.rows_of(conditions) or None,
        }


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def episode_rows(sections: Sequence[ScenarioSection[Any]]) -> dict[str, str]:
    """The rows of each condition's episodes in `episodes.csv`, by the condition's name."""
    found, at = {}, 2
    for one in _conditions(sections):
        last = at + len(one.seeds) - 1
        found[one.condition.name] = f"{at}-{last}" if last > at else str(at)
        at = last + 1
    return found


def _conditions(sections: Sequence[ScenarioSection[Any]]) -> list[PlayedCondition[Any]]:
    return [one for section in sections for one in section.conditions]


def file_tables(tables: Mapping[str, Sequence[ReportTable]], played: Mapping[str, str]) -> dict[str, list[Filed]]:
    """Give each table of the page a file.

    Args:
        tables: the tables by their part of the page.
        played: as `episode_rows` gives it.
    """
    return {
        part: [
            Filed(table=table, file=f"tables/{_slug(part)}_{number}_{_slug(table.title)}.csv", played=played)
            for number, table in enumerate(found, 1)
        ]
        for part, found in tables.items()
    }


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40].strip("_")


def data_files(
    run: Run,
    sections: Sequence[ScenarioSection[Any]],
    tables: Iterable[Filed],
    drawings: Iterable[Drawing] = (),
    *,
    intact: bool = False,
) -> dict[str, bytes]:
    """All data of a report, by file name: what the page shows, what it was computed from, and `datapackage.json`.

    Args:
        run: the run.
        sections: the run's sections.
        tables: the tables of the page.
        drawings: the figures of the page.
        intact: whether all recorded files of the run are as it wrote them.

    Raises:
        RunError: an episode is damaged.
    """
    conditions = _conditions(sections)
    made: dict[str, pa.Table] = {EPISODES: as_table([row for one in conditions for row in _played(run, one)])}
    unflagged = [row for one in conditions if one.unflagged is not None for row in one.unflagged.metrics]
    if unflagged:
        made[UNFLAGGED] = as_table(unflagged)
    made.update(_run_tables(run, intact))
    columns = {name: table.column_names for name, table in made.items()}
    shown = {one.file: as_table(one.cells(), CELLS) for one in tables if one.table.rows}
    shown |= {
        f"{one.name}.csv": as_table(rows, PLOTTED)
        for one in drawings
        if (rows := [_plain(row) for row in plotted(one.figure)])
    }
    described = [
        *(row | {"meaning": row["meaning"] or _FILES.get(row["column"], "")} for row in code_book(run, columns)),
        *_described("tables", CELLS),
        *_described("figures", PLOTTED),
    ]
    book = as_table(described)
    meanings = {(row["table"], row["column"]): row["meaning"] for row in described}
    files, resources = {}, []
    for path, table in ({f"{name}.csv": one for name, one in (made | {CODE_BOOK: book}).items()} | shown).items():
        kind = path.removesuffix(".csv") if path not in shown else "tables" if path.startswith("tables/") else "figures"
        fields = [_field(one, meanings.get((kind, one.name), "")) for one in table.schema]
        files[path] = _csv(table)
        resources.append(_resource(path, files[path], "csv", fields))
    for path, text in ((STUDY, run.study_text), (CONFIGURATION, _configuration(run))):
        files[path] = text.encode()
        resources.append(_resource(path, files[path], "yaml"))
    package = {**_head(run), "resources": resources}
    files[PACKAGE] = (json.dumps(package, indent=1, ensure_ascii=False) + "\n").encode()
    return files


def _played(run: Run, one: PlayedCondition[Any]) -> list[Row]:
    """The measures of a condition's episodes, with the files that they are computed from."""
    rows = []
    for metrics in one.metrics:
        file = run.events_name(metrics["condition"], metrics["seed"])
        _, _, digest = run.manifest["files"].get(file, "").partition(" ")
        rows.append({"events": file, "sha256": digest or None, **metrics})
    return rows


def _run_tables(run: Run, intact: bool) -> dict[str, pa.Table]:
    """Rounds, messages and answers: as the run wrote them if that is untouched, else made from the events."""

    def wanted(name: str) -> bool:
        return name in (MESSAGES, ANSWERS) or name.startswith(f"{ROUNDS}_")

    paths = sorted(path for path in run.folder.glob("*.parquet") if wanted(path.stem))
    if run.complete and paths and intact:
        return {path.stem: read_table(path) for path in paths}
    return {path.stem: table for path, table in sorted(make_tables(run).items()) if wanted(path.stem)}


def _plain(row: Row) -> Row:
    """A row of what is drawn, without NaN and with plain numbers."""
    return {
        name: value if value is None or isinstance(value, str) else None if value != value else float(value)
        for name, value in row.items()
    }


def _described(table: str, columns: Mapping[str, str]) -> list[Row]:
    return [{"table": table, "column": name, "meaning": meaning, "unit": ""} for name, meaning in columns.items()]


def _csv(table: pa.Table) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):  # paths of prices, which CSV has no form for
            texts = [None if value is None else json.dumps(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    out = io.BytesIO()
    csv.write_csv(table, out)
    return out.getvalue()


def _field(column: Any, meaning: str) -> dict[str, str]:
    kind = next((kind for start, kind in _TYPES.items() if str(column.type).startswith(start)), "any")
    return {"name": column.name, "type": kind, **({"description": meaning} if meaning else {})}


def _resource(path: str, content: bytes, form: str, fields: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    described = {"type": "table", "schema": {"fields": fields, "missingValues": [""]}} if fields else {}
    return {
        "name": path.rpartition(".")[0].replace("/", "-"),
        "path": path,
        "format": form,
        "mediatype": "text/csv" if form == "csv" else "application/yaml",
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        **described,
    }


def _configuration(run: Run) -> str:
    """All that was set, of every condition, as YAML."""
    manifest = run.manifest
    kept = (
        *("study", "description", "source", "settles", "seed", "given", "measures", "primary"),
        *("policies", "models", "digest"),
    )
    told = {name: manifest[name] for name in kept if manifest.get(name)}
    return yaml.safe_dump(
        {**told, "versions": _versions(run), "conditions": [one.to_json() for one in run.conditions]},
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )


def _versions(run: Run) -> dict[str, Any]:
    return run.manifest["sessions"][-1]["versions"] if run.manifest["sessions"] else {}


def _head(run: Run) -> dict[str, Any]:
    """What the package says of itself."""
    manifest = run.manifest
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": _slug(manifest["study"]) or "study",
        "title": manifest["study"],
        "description": manifest["description"] or f"A run of the study {manifest['study']}.",
        "keywords": ["llm-coop-envs", "multi-agent", "simulation"],
        **({"sources": [{"title": manifest["source"]}]} if manifest.get("source") else {}),
        "versions": _versions(run),
        "study_digest": manifest["digest"],
    }

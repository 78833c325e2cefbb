"""A run as a data set for the Hugging Face Hub: Parquet tables, a card, and Croissant metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from llm_coop_envs.export.code_book import code_book
from llm_coop_envs.export.parquet import write_parquet
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import EPISODES
from llm_coop_envs.storage.files import fingerprint, write_json
from llm_coop_envs.util.quoting import markdown_code, markdown_text
from llm_coop_envs.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "column": "cr:column",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "recordSet": "cr:recordSet",
    "source": "cr:source",
}


def write_hugging_face(run: Run, folder: Path) -> None:
    """A folder for the Hugging Face Hub: tables and code book in `data`, `README.md` (the card), `croissant.json`."""
    (folder / "data").mkdir()
    tables = write_parquet(run, folder / "data")
    meanings = {
        (row["table"], row["column"]): row["meaning"]
        for row in code_book(run, {name: table.column_names for name, table in tables.items()})
    }
    write_json(folder / "croissant.json", _croissant(run, folder, tables, meanings))
    (folder / "README.md").write_text(_card(run, tables), encoding="utf-8")


def _card(run: Run, tables: dict[str, pa.Table]) -> str:
    head = {
        "pretty_name": run.manifest["study"],
        "tags": ["llm-coop-envs", "multi-agent", "simulation"],
        "configs": [
            {"config_name": name, "data_files": f"data/{name}.parquet", **default}
            for name in tables
            for default in ({"default": True} if name == EPISODES else {},)
        ],
    }
    rows = "\n".join(
        f"| {markdown_code(name)} | {table.num_rows} | {table.num_columns} |" for name, table in tables.items()
    )
    policies = "\n".join(
        f"- {markdown_code(name)}: {markdown_text(label)}" for name, label in sorted(run.manifest["policies"].items())
    )
    return f"""---
{yaml.safe_dump(head, sort_keys=False).strip()}
---

# {markdown_text(run.manifest["study"])}

{markdown_text(run.manifest["description"])}

{_count(run)} of {len(run.conditions)} conditions, played with llm-coop-envs {__version__}. What each column
means stands in `data/codebook.csv`. No licence is stated: whoever publishes this states one.

| table | rows | columns |
|---|---|---|
{rows}

Who played:

{policies}

The study:

{markdown_code(run.study_text.strip(), "yaml")}
"""


def _count(run: Run) -> str:
    """How many episodes there are, and of how many if some are missing."""
    finished = len(run.finished())
    return f"{finished} episodes" if finished == run.total else f"{finished} of {run.total} episodes"


def _croissant(
    run: Run, folder: Path, tables: dict[str, pa.Table], meanings: dict[tuple[str, str], str]
) -> dict[str, Any]:
    files = []
    for name in tables:
        size, digest = fingerprint(folder / "data" / f"{name}.parquet").split()
        about = {"contentUrl": f"data/{name}.parquet", "contentSize": f"{size} B", "sha256": digest}
        identity = {"@type": "cr:FileObject", "@id": f"{name}.parquet", "name": f"{name}.parquet"}
        files.append({**identity, **about, "encodingFormat": "application/x-parquet"})
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": run.manifest["study"],
        "description": run.manifest["description"] or run.manifest["study"],
        "datePublished": str(run.span[1])[:10],
        "version": "1.0.0",
        "distribution": files,
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": name,
                "name": name,
                "field": [_field(name, column, meanings[name, column.name]) for column in table.schema],
            }
            for name, table in tables.items()
        ],
    }


def _field(table: str, column: pa.Field, meaning: str) -> dict[str, Any]:
    kinds = {"int64": "sc:Integer", "double": "sc:Float", "bool": "sc:Boolean"}
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": f"{table}/{column.name}",
        "description": meaning or column.name,
        "dataType": kinds.get(str(column.type), "sc:Text"),
        "source": {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column.name}},
    }

"""Tags and notes that a person gives a run: a file beside the run's folder, so that nothing in the folder changes.

Of `runs/a` it is `runs/a.notes.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import write_json
from llm_coop_envs.util.opening import DAMAGED, parse_json, read_file
from llm_coop_envs.util.shapes import check_shape

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 10_000
_MOST_BYTES = 1 << 17
_NONE: dict[str, Any] = {"tags": [], "note": ""}


def labels_path(folder: Path) -> Path:
    """The file with the tags and the note of the run in a folder."""
    resolved = folder.resolve()
    return resolved.with_name(f"{resolved.name}.notes.json")


def read_labels(folder: Path) -> dict[str, Any]:
    """Read the `tags` and the `note` of the run in a folder; empty if there are none, or none that can be used."""
    path = labels_path(folder)
    if path.is_symlink() or not path.is_file():  # a link could show what is none of the run's
        return _NONE
    try:
        labels = parse_json(read_file(path, _MOST_BYTES))
        check_shape(labels, {"tags": [str], "note": str})
        return check_labels(labels)
    except (OSError, RunError, *DAMAGED):
        return _NONE


def write_labels(folder: Path, labels: Mapping[str, Any]) -> dict[str, Any]:
    """Keep tags and a note; returns what was kept.

    Raises:
        RunError: they are no tags and note, too many or too long, or the file cannot be written.
    """
    checked = check_labels(labels)
    path = labels_path(folder)
    if checked == _NONE and not path.exists():
        return checked
    write_json(path, checked)
    return checked


def check_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Tags without repetitions and spaces around them, and the note.

    Raises:
        RunError: they are not that, too many, or too long.
    """
    tags, note = labels.get("tags"), labels.get("note")
    if not isinstance(note, str) or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise RunError("notes: give a list of tags, and a note as text")
    names = list(dict.fromkeys(name for tag in tags if (name := " ".join(tag.split()))))
    if len(names) > MOST_TAGS or any(len(name) > LONGEST_TAG for name in names):
        raise RunError(f"tags: at most {MOST_TAGS}, each of at most {LONGEST_TAG} characters")
    if len(note) > LONGEST_NOTE:
        raise RunError(f"note: has {len(note):,} characters; at most {LONGEST_NOTE:,} are kept")
    return {"tags": names, "note": note.strip()}

"""Which program played an episode: what its rules and its readers of answers were, as hashes of their source."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path

import llm_coop_envs
from llm_coop_envs.benchmarks.study.study import Condition

READERS = "readers"
_HOME = Path(llm_coop_envs.__file__).parent
# Files of a scenario's room that only show what was played.
_SHOWING = ("drawing", "figures", "report", "scene")


def program_of(condition: Condition) -> dict[str, str]:
    """Hashes of what decides a condition's episodes: its scenario's rules, by its name, and `readers` with a model."""
    found = {condition.scenario: _hash_of_rules(condition.spec.env_class)}
    if condition.asks_a_model:
        found[READERS] = _hash_of_readers()
    return found


def merged(known: Mapping[str, list[str]], more: Mapping[str, str]) -> dict[str, list[str]]:
    """All hashes under each name, in the order in which they came."""
    return {**known, **{name: list(dict.fromkeys([*known.get(name, ()), one])) for name, one in more.items()}}


def named(name: str) -> str:
    """What stands under a name, in words."""
    return "the readers of answers" if name == READERS else f"the rules of '{name}'"


# Once per process, which goes on with what it has loaded, whatever becomes of the files.
@functools.cache
def _hash_of_rules(environment: type) -> str:
    return _hashed(*_rules(environment))


@functools.cache
def _hash_of_readers() -> str:
    llm = _HOME / "policies" / "llm"
    return _hashed(*(llm / "parsing").glob("*.py"), *(llm / "playing").glob("*.py"))


def _rules(environment: type) -> list[Path]:
    """The files of the environments' core and of the scenario's room; of a single module, its file alone."""
    core = [*(_HOME / "core").glob("*.py")]
    own = Path(inspect.getfile(environment))
    room = own.parent.glob("*.py") if (own.parent / "__init__.py").is_file() else [own]
    return core + [path for path in room if not path.stem.startswith(_SHOWING)]


def _hashed(*files: Path) -> str:
    hashed = hashlib.sha256()
    for path in sorted(files, key=lambda one: (one.parent.name, one.name)):
        hashed.update(f"{path.parent.name}/{path.name}\n".encode())
        # A checkout on Windows may have other ends of lines.
        hashed.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()[:16]

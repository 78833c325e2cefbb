"""Which program played an episode: hashes of its rules, of readers of answers, of own policies."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path

from llm_coop_envs.policies import kinds
from llm_coop_envs.studies.study import Condition
from llm_coop_envs.version import PACKAGE_FOLDER

READERS = "readers"
# Faces of a scenario that decide what is played or measured in an episode; the others only show what was played, or say
# what else is played.
_DECIDING_FACES = ("after", "learning", "workflow")
_SHOWS = ("picture",)
_SHARED_ROOMS = ("util", "interface", "treatments", "core")
# Their files that only show, measure or connect.
_NOT_RULES = ("interrupts", "memory", "ray_cluster", "rendering")


def program_of(condition: Condition) -> dict[str, str]:
    """Hashes of what decides a condition's episodes.

    They are its scenario's rules, by its name; `readers` with a model; and policies from outside, by `module:Class`.
    """
    found = {condition.scenario: _hash_of_rules(condition.spec.env_class)}
    for policy in condition.policies:
        if kinds.parse(policy)[0] == kinds.OWN:
            from llm_coop_envs.policies.custom import source_hash

            found[policy] = source_hash(policy)
    if condition.asks_a_model:
        found[READERS] = _hash_of_readers()
    return found


def merged(known: Mapping[str, list[str]], more: Mapping[str, str]) -> dict[str, list[str]]:
    """All hashes under each name, in the order in which they came."""
    return {**known, **{name: list(dict.fromkeys([*known.get(name, ()), one])) for name, one in more.items()}}


def named(name: str) -> str:
    """What stands under a name, in words."""
    if name == READERS:
        return "the readers of answers"
    return f"the policy '{name}'" if ":" in name else f"the rules of '{name}'"


# Once per process, which goes on with what it has loaded, whatever becomes of the files.
@functools.cache
def _hash_of_rules(environment: type) -> str:
    return hash_of_files(*_rules(environment))


@functools.cache
def _hash_of_readers() -> str:
    llm = PACKAGE_FOLDER / "policies" / "llm"
    return hash_of_files(*(llm / "parsing").glob("*.py"), *(llm / "playing").glob("*.py"))


def _rules(environment: type) -> list[Path]:
    """The files of the shared rooms and of the scenario's room; of a single module, its file alone."""
    shared = [path for room in _SHARED_ROOMS for path in (PACKAGE_FOLDER / room).glob("*.py")]
    shared = [path for path in shared if path.stem not in _NOT_RULES]
    own = Path(inspect.getfile(environment))
    if not (own.parent / "__init__.py").is_file():
        return [*shared, own]
    rules = [path for path in own.parent.glob("*.py") if path.stem not in _SHOWS]
    faces = [path for path in (own.parent / "faces").glob("*.py") if path.stem.startswith(_DECIDING_FACES)]
    return shared + rules + faces


def hash_of_files(*files: Path) -> str:
    """A hash of files, with the folder and name of each; the same whatever the ends of their lines."""
    hashed = hashlib.sha256()
    for path in sorted(files, key=lambda one: (one.parent.name, one.name)):
        hashed.update(f"{path.parent.name}/{path.name}\n".encode())
        # A checkout on Windows may have other ends of lines.
        hashed.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()[:16]

"""YAML values that know where they stand, so that an error can name file, line and field."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import yaml

from llm_coop_envs.errors import StudyError
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.values import Loader

MAX_BYTES = 1_000_000
MAX_VALUES = 100_000


@dataclass(frozen=True)
class Spot:
    """A value in a YAML file.

    Attributes:
        value: what was read: a scalar, a dict of spots, or a list of spots.
        source: the file's name, for messages.
        line: where the value stands, from 1.
        field: the way to it, as in `conditions[2].settings.talk`; empty for the whole file.
    """

    value: Any
    source: str
    line: int
    field: str

    def fail(self, why: str) -> NoReturn:
        """Raise the error that names file, line and field."""
        where = f"{self.source}, line {self.line}"
        raise StudyError(f"{where}: {self.field}: {why}" if self.field else f"{where}: {why}")

    def mapping(self, allowed: Collection[str] | None = None, required: Collection[str] = ()) -> dict[str, Spot]:
        """The value as a mapping from text to spots.

        Args:
            allowed: the keys that may occur; `None` for any.
            required: the keys that must occur.
        """
        if not isinstance(self.value, dict):
            self.fail(f"must be a mapping (lines of 'name: value'), not {_kind(self.value)}")
        for key, spot in self.value.items():
            if allowed is not None and key not in allowed:
                spot.fail(f"is not known here; {suggestion(key, allowed)}")
        for key in required:
            if key not in self.value:
                self.fail(f"'{key}' is missing")
        return dict(self.value)

    def at(self, way: str) -> Spot:
        """What lies on a way below it, such as `settings.talk` or `changes[1].players`; else the nearest place above.

        Where the way ends early, the nearest place is named as if it went on: an error can point to what is missing.
        """
        here = self
        for step in re.findall(r"[^.\[\]]+", way):
            known = here.value
            if isinstance(known, dict) and step in known:
                here = known[step]
            elif isinstance(known, list) and step.isdigit() and int(step) < len(known):
                here = known[int(step)]
            else:
                return replace(here, field=f"{here.field}.{step}", value=None)
        return here

    def items(self) -> list[Spot]:
        """The value as a list that is not empty."""
        if not isinstance(self.value, list):
            self.fail(f"must be a list (lines that start with '-'), not {_kind(self.value)}")
        if not self.value:
            self.fail("must not be empty")
        return list(self.value)

    def text(self) -> str:
        """The value as text that is not empty."""
        if not isinstance(self.value, str):
            self.fail(f"must be text, not {_kind(self.value)}; put it in quotes if it is meant as text")
        if not self.value.strip():
            self.fail("must not be empty")
        return self.value.strip()

    def label(self) -> str:
        """The value as a name that can be part of a file's name everywhere."""
        name = self.text()
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
            self.fail(
                f"'{name}' must be made of letters, digits, '_' and '-', start with a letter or digit, at most 64"
            )
        return name

    def integer(self, low: int, high: int) -> int:
        """The value as an integer in [low, high]."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.fail(f"must be an integer, not {_kind(self.value)}")
        if not low <= self.value <= high:
            self.fail(f"{self.value} must be between {low} and {high}")
        return self.value

    def number(self, low: float) -> float:
        """The value as a finite number above `low`."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"must be a number, not {_kind(self.value)}")
        if not low < self.value < float("inf"):
            self.fail(f"{self.value} must be a finite number above {low:g}")
        return float(self.value)

    def plain(self) -> Any:
        """The value and all below it without their places."""
        if isinstance(self.value, dict):
            return {key: spot.plain() for key, spot in self.value.items()}
        if isinstance(self.value, list):
            return [spot.plain() for spot in self.value]
        return self.value


def spot_of(value: Any, source: str, field: str = "") -> Spot:
    """Plain data as if they had been read from the first line of a file."""
    if isinstance(value, Mapping):
        below = {str(key): spot_of(one, source, f"{field}.{key}") for key, one in value.items()}
        return Spot(below, source, 1, field)
    if isinstance(value, list | tuple):
        return Spot([spot_of(one, source, f"{field}[{i}]") for i, one in enumerate(value)], source, 1, field)
    return Spot(value, source, 1, field)


def read_yaml(text: str, source: str) -> Spot:
    """Parse YAML into values with their places.

    Args:
        text: the file's content.
        source: its name, for messages.

    Raises:
        StudyError: no YAML, a key given twice, a key that is no text, or a file that is far too large.
    """
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise StudyError(f"{source}: is larger than {MAX_BYTES} bytes; is it the right file?")
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise StudyError(f"{source}: is empty")
        return _Reader(loader, source).read(node, "", ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise StudyError(f"{source}, line {line}: is not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise StudyError(f"{source}: is not valid YAML: {' '.join(str(error).split())}") from error


def read_yaml_file(path: Path) -> tuple[str, Spot]:
    """Read a YAML file; returns its text and its values with their places.

    Raises:
        StudyError: the file cannot be read, is not UTF-8 text, or is not valid YAML.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    return text, read_yaml(text, str(path))


_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null", "merge")}


class _Reader:
    def __init__(self, loader: Loader, source: str) -> None:
        self._loader = loader
        self._source = source
        self._count = 0
        self._flat: set[int] = set()

    def read(self, node: yaml.Node, field: str, above: tuple[int, ...]) -> Spot:
        line = node.start_mark.line + 1
        here = Spot(None, self._source, line, field)
        self._count += 1
        if self._count > MAX_VALUES:
            here.fail(f"the file holds more than {MAX_VALUES} values; is it the right file?")
        if node.tag not in _TAGS:
            here.fail(f"the tag {node.tag} is not used here; write plain values")
        if id(node) in above:
            here.fail("contains itself")
        below = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return Spot(self._mapping(node, field, below), self._source, line, field)
        if isinstance(node, yaml.SequenceNode):
            items = [self.read(child, f"{field}[{index}]", below) for index, child in enumerate(node.value)]
            return Spot(items, self._source, line, field)
        try:
            value = self._loader.construct_object(node)
        except ValueError as error:
            here.fail(f"cannot be read: {error}")
        return Spot(value, self._source, line, field)

    def _mapping(self, node: yaml.MappingNode, field: str, below: tuple[int, ...]) -> dict[str, Spot]:
        # A mapping that is used again by its anchor has been flattened, and holds what it overrides twice.
        seen: dict[str, int] = {}
        for key_node, _ in [] if id(node) in self._flat else node.value:
            spot = Spot(None, self._source, key_node.start_mark.line + 1, field)
            if not isinstance(key_node, yaml.ScalarNode):
                spot.fail("a name must be plain text")
            if key_node.value in seen:
                spot.fail(f"'{key_node.value}' is given twice (first on line {seen[key_node.value]}); keep one")
            seen[key_node.value] = spot.line
        if id(node) not in self._flat:
            self._loader.flatten_mapping(node)
            self._flat.add(id(node))
        result: dict[str, Spot] = {}
        for key_node, child in node.value:
            key = str(key_node.value)
            read = self.read(child, f"{field}.{key}" if field else key, below)
            # The line of a block value is that of its first item; people look for the name.
            result[key] = Spot(read.value, read.source, key_node.start_mark.line + 1, read.field)
        return result


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return f"the yes/no value {str(value).lower()}"
    if isinstance(value, str):
        return f"the text '{value}'"
    return f"{value!r}"

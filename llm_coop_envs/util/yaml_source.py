"""YAML values that know their file, line and field, so that errors can name them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import yaml

from llm_coop_envs.errors import SettingsError, StudyError
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.opening import DAMAGED, read_file
from llm_coop_envs.util.values import Loader

MAX_BYTES = 1_000_000
MAX_VALUES = 100_000


@dataclass(frozen=True)
class YamlNode:
    """A value in a YAML file.

    Attributes:
        value: a scalar, a dict of nodes by name, or a list of nodes.
        source: the file's name, for messages.
        line: the value's line, from 1.
        field: the path to the value, such as `conditions[2].settings.talk`; empty for the whole file.
    """

    value: Any
    source: str
    line: int
    field: str

    def fail(self, reason: str) -> NoReturn:
        """Raise the error that names file, line and field.

        Raises:
            StudyError: always.
        """
        where = f"{self.source}, line {self.line}"
        raise StudyError(f"{where}: {self.field}: {reason}" if self.field else f"{where}: {reason}")

    def fail_setting(self, error: SettingsError) -> NoReturn:
        """Raise the error that names file, line and field of a setting's impossible value.

        Raises:
            StudyError: always.
        """
        self.fail(f"{error.value!r}: {error.why}")

    def mapping(self, allowed: Collection[str] | None = None, required: Collection[str] = ()) -> dict[str, YamlNode]:
        """The value as a mapping from names to nodes.

        Args:
            allowed: the keys that may occur; `None` for any.
            required: the keys that must occur.

        Raises:
            StudyError: it is no mapping, or its keys are not those.
        """
        if not isinstance(self.value, dict):
            self.fail(f"must be a mapping (lines of 'name: value'), not {_kind(self.value)}")
        for key, node in self.value.items():
            if allowed is not None and key not in allowed:
                node.fail(f"is not known here; {suggestion(key, allowed)}")
        for key in required:
            if key not in self.value:
                self.fail(f"'{key}' is missing")
        return dict(self.value)

    def find(self, path: str) -> YamlNode:
        """The node on a path below this one, such as `settings.talk` or `changes[1].players`.

        Where the path ends early, the result is the last node on it with a longer `field`: an error can then name what
        is missing by the line of what would hold it.
        """
        node = self
        # "changes[1].players" is three steps: "changes", "1" and "players".
        for step in re.findall(r"[^.\[\]]+", path):
            value = node.value
            if isinstance(value, dict) and step in value:
                node = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                node = value[int(step)]
            else:
                return replace(node, field=f"{node.field}.{step}", value=None)
        return node

    def items(self) -> list[YamlNode]:
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
        """The value and all below it as plain data."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def plain_mapping(self) -> dict[str, Any]:
        """The value, which must be a mapping, as plain data."""
        return {key: node.plain() for key, node in self.mapping().items()}


def text_of(fields: Mapping[str, YamlNode], name: str, default: str = "") -> str:
    """The text of a field, or the default if it is not there."""
    return fields[name].text() if name in fields else default


def as_node(value: Any, source: str, field: str = "") -> YamlNode:
    """Plain data as a node, as if all of it stood in a file's first line."""
    if isinstance(value, Mapping):
        below = {str(key): as_node(item, source, f"{field}.{key}") for key, item in value.items()}
        return YamlNode(below, source, 1, field)
    if isinstance(value, list | tuple):
        return YamlNode([as_node(item, source, f"{field}[{i}]") for i, item in enumerate(value)], source, 1, field)
    return YamlNode(value, source, 1, field)


def read_yaml(text: str, source: str) -> YamlNode:
    """Parse YAML into nodes.

    Args:
        text: the file's content.
        source: its name, for messages.

    Raises:
        StudyError: the text is no YAML, holds a key twice or one that is no text, or is far too large.
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
    except RecursionError as error:
        raise StudyError(f"{source}: is nested too deeply; is it the right file?") from error
    except yaml.YAMLError as error:
        raise StudyError(f"{source}: is not valid YAML: {' '.join(str(error).split())}") from error


def read_yaml_file(path: Path) -> tuple[str, YamlNode]:
    """Read a YAML file; returns its text and its root node.

    Raises:
        StudyError: the file cannot be read, is not UTF-8 text, or is not valid YAML.
    """
    try:
        text = read_file(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    return text, read_yaml(text, str(path))


_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null", "merge")}


class _Reader:
    """Turns the nodes of PyYAML into ours."""

    def __init__(self, loader: Loader, source: str) -> None:
        self._loader = loader
        self._source = source
        self._count = 0
        self._flat: set[int] = set()

    def read(self, node: yaml.Node, field: str, above: tuple[int, ...]) -> YamlNode:
        """Read a node of PyYAML; `above` are the ids of those that it lies in."""
        empty = YamlNode(None, self._source, node.start_mark.line + 1, field)
        self._count += 1
        if self._count > MAX_VALUES:
            empty.fail(f"the file holds more than {MAX_VALUES} values; is it the right file?")
        if node.tag not in _TAGS:
            empty.fail(f"the tag {node.tag} is not used here; write plain values")
        if id(node) in above:
            empty.fail("contains itself")
        below = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return replace(empty, value=self._mapping(node, field, below))
        if isinstance(node, yaml.SequenceNode):
            items = [self.read(child, f"{field}[{index}]", below) for index, child in enumerate(node.value)]
            return replace(empty, value=items)
        try:
            if not is_text(node.value):
                raise ValueError("half a surrogate pair is no text")
            return replace(empty, value=self._loader.construct_object(node))
        except DAMAGED as error:
            empty.fail(f"cannot be read: {error}")

    def _mapping(self, node: yaml.MappingNode, field: str, below: tuple[int, ...]) -> dict[str, YamlNode]:
        # A mapping that is used again by its anchor has been flattened: it holds the names that it overrides twice.
        seen: dict[str, int] = {}
        for key_node, _ in [] if id(node) in self._flat else node.value:
            key = YamlNode(None, self._source, key_node.start_mark.line + 1, field)
            if not isinstance(key_node, yaml.ScalarNode):
                key.fail("a name must be plain text")
            if not is_text(key_node.value):
                key.fail("a name has half a surrogate pair in it, which is no text")
            if key_node.value in seen:
                key.fail(f"'{key_node.value}' is given twice (first on line {seen[key_node.value]}); keep one")
            seen[key_node.value] = key.line
        if id(node) not in self._flat:
            self._loader.flatten_mapping(node)
            self._flat.add(id(node))
        result: dict[str, YamlNode] = {}
        for key_node, child in node.value:
            name = str(key_node.value)
            value = self.read(child, f"{field}.{name}" if field else name, below)
            # YAML puts a block on the line of its first item, one below its name; people look for the name.
            result[name] = replace(value, line=key_node.start_mark.line + 1)
        return result


def is_text(text: str) -> bool:
    """Whether a text can be written: half a surrogate pair cannot."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


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

"""The base of all settings: made from and written as plain data, and checked by what they declare."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_bool, check_choice, check_int, check_number, suggestion


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings with presets, made from and written as plain data.

    What is declared is checked when settings are made: fields of type `bool`, and those that `bounds` and `allowed`
    name; subclasses check the rest.

    Attributes:
        presets: named sets of fields.
        bounds: the lowest and highest value of integers and finite numbers, by field; `inf` for no end. What a base
            class declares holds too.
        allowed: the values of texts, by field; likewise.
        sections: titles of groups of fields, by the first field of each, in the order of the docstring.
        forms: how a field may be given, as a type, where its own type does not say it; see `*/fields.py`.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {}
    allowed: ClassVar[Mapping[str, Collection[str]]] = {}
    sections: ClassVar[Mapping[str, str]] = {}
    forms: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        """Check what is declared; subclasses extend this."""
        kind: Any = type(self)
        bounds, allowed = declared(kind, "bounds"), declared(kind, "allowed")
        for declared_field in fields(self):
            if declared_field.type in ("bool", bool):
                check_bool(self, declared_field.name)
            elif declared_field.name in allowed:
                check_choice(self, declared_field.name, allowed[declared_field.name])
            elif declared_field.name in bounds:
                low, high = bounds[declared_field.name]
                if declared_field.type in ("int", int):
                    check_int(self, declared_field.name, int(low), None if math.isinf(high) else int(high))
                else:
                    check_number(self, declared_field.name, low, high)

    @classmethod
    def build(cls, preset: str | None = None, **given: Any) -> Self:
        """Make settings from a preset's fields and the given ones, which win.

        Args:
            preset: a name from `presets`, or `None` for the defaults.
            **given: fields by name.

        Raises:
            SettingsError: an unknown preset or field, or an impossible value.
        """
        if preset is None:
            return cls.from_json(given)
        if preset not in cls.presets:
            raise SettingsError(
                "preset", preset, f"is no preset of {cls.__name__}; {suggestion(str(preset), cls.presets)}"
            )
        return cls.from_json({**cls.presets[preset], **given})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Make settings from fields by name; those that are left out have their defaults.

        Raises:
            SettingsError: an unknown field, or an impossible value.
        """
        names = [f.name for f in fields(cls) if f.init]
        for name, value in data.items():
            if name not in names:
                raise SettingsError(name, value, f"is no setting of {cls.__name__}; {suggestion(name, names)}")
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data that `from_json` accepts again, but for those `added` later that have their default.

        So what was recorded before there were such fields is still told to be the same.
        """
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        for f in fields(self):
            if f.metadata.get("added") and data[f.name] == f.default:
                del data[f.name]
        return {name: plain(value) for name, value in data.items()}


def added(default: Any) -> Any:
    """A field that recorded runs may lack: it is part of the plain data only if it is not at its default."""
    return field(default=default, metadata={"added": True})


@functools.cache
def declared(kind: Any, name: str) -> Mapping[str, Any]:
    """What a class and its bases declare, by field."""
    return {field: value for base in reversed(kind.__mro__) for field, value in vars(base).get(name, {}).items()}


def plain(value: Any) -> Any:
    """A settings value as JSON data: fractions become 'a/b', tuples lists, mappings and settings dicts."""
    if isinstance(value, Settings):
        return value.to_json()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value

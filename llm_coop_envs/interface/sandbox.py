"""The sandbox of templates: they see the attributes of slots, and nothing by which code could be reached."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from types import BuiltinMethodType
from typing import Any

from jinja2 import Template
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

# Methods of the plain values in slots that templates call. None of them makes long texts out of short ones.
_METHODS = {str: ("endswith", "lower", "startswith", "strip", "upper"), dict: ("get", "items", "keys", "values")}
_GREATEST_POWER, _LONGEST_REPETITION = 64, 1_000_000
_CALLABLE = frozenset({Macro, BuiltinMethodType})


class SlotsEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, narrowed to the fields and properties of slots."""

    # A few signs of a template could otherwise ask for all memory: 'x' * 10 ** 12.
    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("attr", "center", "format", "indent", "pprint", "random", "wordwrap", "xmlattr"):
            del self.filters[name]
        self.globals.clear()
        self._shown: set[tuple[type, str]] = set()

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An attribute that may be shown; that a type's may be is looked up once."""
        if (type(obj), attribute) in self._shown:
            return getattr(obj, attribute)
        value = super().getattr(obj, attribute)
        if not isinstance(value, Undefined) and is_shown(type(obj), attribute):
            self._shown.add((type(obj), attribute))
        return value

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may see an attribute."""
        return super().is_safe_attribute(obj, attr, value) and is_shown(type(obj), attr)

    def is_safe_callable(self, obj: Any) -> bool:
        """Whether a template may call something: a macro of its own, or a method of a plain value.

        Methods of other values never get here: `is_safe_attribute` shows none of them.
        """
        return type(obj) in _CALLABLE

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a template may call."""
        if type(__obj) not in _CALLABLE:
            raise SecurityError(f"{__obj!r} is nothing that a template may call")
        return __context.call(__obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply or repeat within bounds."""
        if operator == "**" and max(abs(left), abs(right)) > _GREATEST_POWER:
            raise TypeError(f"'**' is for numbers up to {_GREATEST_POWER}")
        count, repeated = (left, right) if isinstance(left, int) else (right, left)
        if not isinstance(repeated, int | float) and len(repeated) * count > _LONGEST_REPETITION:
            raise TypeError(f"'*' makes nothing longer than {_LONGEST_REPETITION}")
        return super().call_binop(context, operator, left, right)


class _Names(dict[str, Any]):
    """The names that a template may use, with their values; any other name is missing."""

    def __missing__(self, name: str) -> Any:
        """What stands for a name that is not there."""
        return missing


def context_of(template: Template, values: Mapping[str, Any]) -> Context:
    """What a template is rendered with, as `Template.render` makes it, but that names are looked up at once.

    Jinja looks, in Python, first among the names that the template has assigned. Only blocks can ask for those again.
    """
    names = values if type(values) is _Names else _Names(values)
    context = Context(template.environment, names, template.name, template.blocks)
    if not template.blocks:
        vars(context)["resolve_or_missing"] = names.__getitem__
    return context


def is_shown(kind: Any, attribute: str) -> bool:
    """Whether templates may see an attribute of values of a type: a field or property of a slot, a loop's counter."""
    if attribute.startswith("_"):
        return False
    if kind is LoopContext:
        return True
    for plain, methods in _METHODS.items():
        if issubclass(kind, plain):
            return attribute in methods
    if dataclasses.is_dataclass(kind) and attribute in {field.name for field in dataclasses.fields(kind)}:
        return True
    if issubclass(kind, tuple) and attribute in getattr(kind, "_fields", ()):  # pyright: ignore[reportArgumentType]
        return True
    return isinstance(getattr(kind, attribute, None), property | functools.cached_property)

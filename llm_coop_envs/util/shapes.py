"""Whether plain data have the shape that a reader expects: `{"name": str, "seeds": [int], "title?": str}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_shape(data: Any, shape: Any, field: str = "") -> None:
    """Check plain data against a shape.

    A type stands for its values (`int` not for true and false), a tuple for one of several shapes, a list for a list
    of one shape, and a mapping for fields: those whose name ends with `?` may be missing, and `...` stands for all
    other fields. Fields that a shape does not name are not looked at.

    Raises:
        ValueError: they differ; the message names the field.
    """
    if isinstance(shape, Mapping):
        _check_fields(data, shape, field)
    elif isinstance(shape, list):
        _check_type(data, list, field)
        for index, item in enumerate(data):
            check_shape(item, shape[0], f"{field}[{index}]")
    else:
        _check_type(data, shape, field)


def _check_fields(data: Any, shape: Mapping[Any, Any], field: str) -> None:
    _check_type(data, dict, field)
    for name, below in shape.items():
        if name is ...:
            for other in data:
                check_shape(data[other], below, f"{field}.{other}"[:80])
        elif name.removesuffix("?") in data:
            check_shape(data[name.removesuffix("?")], below, f"{field}.{name.removesuffix('?')}".lstrip("."))
        elif not name.endswith("?"):
            raise ValueError(f"{field}.{name} is missing".lstrip("."))


def _check_type(data: Any, kinds: Any, field: str) -> None:
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(data, kinds) or (isinstance(data, bool) and bool not in kinds):
        names = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{field or 'it'} must be of type {names}, not {type(data).__name__}")


def cut_to(data: Any, shape: Any) -> Any:
    """What a shape names of data that have it."""
    if isinstance(shape, list):
        return [cut_to(item, shape[0]) for item in data]
    if not isinstance(shape, Mapping):
        return data
    shapes = {str(name).removesuffix("?"): part_shape for name, part_shape in shape.items() if name is not ...}
    return {
        name: cut_to(value, shapes.get(name, shape.get(...)))
        for name, value in data.items()
        if name in shapes or ... in shape
    }

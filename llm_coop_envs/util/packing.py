"""Values as JSON data, and back: what snapshots are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.errors import SnapshotError


def pack_value(value: Any) -> Any:
    """Numbers, texts, arrays, PCG64 generators, and lists, tuples and dictionaries of these, as JSON data."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "values": value.tolist()}
    if isinstance(value, np.random.Generator):
        return generator_state(value)
    if isinstance(value, tuple):
        return {"tuple": [pack_value(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack_value(key), pack_value(item)] for key, item in value.items()]}
    return [pack_value(item) for item in value] if isinstance(value, list) else value


def unpack_value(data: Any) -> Any:
    """The value that `pack_value` described."""
    if isinstance(data, list):
        return [unpack_value(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "dtype" in data:
        kind = np.dtype(data["dtype"])
        if kind.kind not in "biuf":  # such as texts of a gigabyte each
            raise ValueError(f"{kind} is no kind of array that is saved")
        return np.array(data["values"], dtype=kind)
    if "tuple" in data:
        return tuple([unpack_value(item) for item in data["tuple"]])
    if "dict" in data:
        return {unpack_value(key): unpack_value(item) for key, item in data["dict"]}
    return generator_from(data)


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """A generator's state as JSON data; 128-bit integers as decimal strings, which every JSON reader keeps exact."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise SnapshotError(f"only PCG64 generators can be saved, not {state['bit_generator']}")
    return {
        "bit_generator": "PCG64",
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def generator_from(data: Mapping[str, Any]) -> np.random.Generator:
    """The generator that `generator_state` described."""
    bits: Any = np.random.PCG64()
    bits.state = {**data, "state": {"state": int(data["state"]), "inc": int(data["inc"])}}
    return np.random.Generator(bits)

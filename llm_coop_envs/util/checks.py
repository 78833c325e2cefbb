"""What a setting's value must be, said with its field and value if it is not."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Collection, Iterator

from llm_coop_envs.errors import SettingsError


@contextlib.contextmanager
def within_field(place: str) -> Iterator[None]:
    """Prefix the field of a `SettingsError` with where it stands, such as `regulator` for `regulator.fine`."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{place}.{error.field}", error.value, error.why) from error


def nearest(name: str, known: Collection[str]) -> str:
    """Ask for the known name that was probably meant; empty if none is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else ""


def suggestion(name: str, known: Collection[str]) -> str:
    """Say which known name was probably meant, or list them all."""
    return nearest(name, known) or ("known are " + ", ".join(sorted(known)) if known else "there is none")


def check_bool(settings: object, field: str) -> None:
    """Require `True` or `False`."""
    value = getattr(settings, field)
    if not isinstance(value, bool):
        raise SettingsError(field, value, "must be true or false")


def check_choice(settings: object, field: str, allowed: Collection[str]) -> None:
    """Require one of `allowed`."""
    value = getattr(settings, field)
    if not isinstance(value, str) or value not in allowed:
        closest = nearest(str(value), allowed)
        raise SettingsError(field, value, f"must be one of {', '.join(allowed)}{'; ' if closest else ''}{closest}")


def check_int(settings: object, field: str, low: int, high: int | None = None, *, optional: bool = False) -> None:
    """Require an integer in [low, high], or with `optional` nothing (`None`)."""
    value = getattr(settings, field)
    if optional and value is None:
        return
    require_int(field, value, low, high)


def require_int(name: str, value: object, low: int, high: int | None = None) -> int:
    """An integer in [low, high].

    Raises:
        SettingsError: it is none.
    """
    bounds = f"{low} or more" if high is None else f"between {low} and {high}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingsError(name, value, f"must be a whole number, {bounds}")
    if value < low or (high is not None and value > high):
        raise SettingsError(name, value, f"must be {bounds}")
    return value


def check_number(
    settings: object,
    field: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: bool = False,
    optional: bool = False,
) -> None:
    """Require a finite number in [low, high], in (low, high] with `above`, or with `optional` nothing (`None`)."""
    value = getattr(settings, field)
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(field, value, "must be a finite number")
    if value < low or value > high or (above and value == low):
        lower_bound = f"above {low:g}" if above else f"at least {low:g}"
        bounds = lower_bound if math.isinf(high) else f"{lower_bound} and at most {high:g}"
        if math.isinf(low):
            bounds = f"at most {high:g}"
        raise SettingsError(field, value, f"must be {bounds}")

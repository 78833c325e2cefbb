"""The base of all settings, and of every scenario's, with the checks they share."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.errors import SettingsError

MAX_MESSAGE_LENGTH = 100_000


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
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {}
    allowed: ClassVar[Mapping[str, Collection[str]]] = {}

    def __post_init__(self) -> None:
        """Check what is declared; subclasses extend this."""
        kind: Any = type(self)
        bounds, allowed = _declared(kind, "bounds"), _declared(kind, "allowed")
        for one in fields(self):
            if one.type in ("bool", bool):
                check_bool(self, one.name)
            elif one.name in allowed:
                check_choice(self, one.name, allowed[one.name])
            elif one.name in bounds:
                low, high = bounds[one.name]
                if one.type in ("int", int):
                    check_int(self, one.name, int(low), None if math.isinf(high) else int(high))
                else:
                    check_number(self, one.name, low, high)

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
        """All fields as plain data that `from_json` accepts again."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.init}


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(Settings):
    """Settings that every scenario has.

    Attributes:
        talk: whether players may send messages.
        talk_until: the last round with talk; afterwards everything is as without it. `None`: there is no last one.
            Wu et al. 2024 let firms talk for 400 rounds and watched what became of their prices.
        talk_mode: `"sequential"` (one after the other, in the exact parallel form) or `"simultaneous"`
            (everyone at once, heard afterwards).
        message_length: the longest message in characters; longer ones are cut and flagged.
        wording: how observations are put into words: a prompt pack's name (`"en-a"`, `"en-b"`, `"de-a"`), or the path
            of a folder that holds an `observation.jinja` of your own.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"message_length": (1, MAX_MESSAGE_LENGTH)}
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"talk_mode": ("sequential", "simultaneous")}

    talk: bool = True
    talk_until: int | None = None
    talk_mode: str = "sequential"
    message_length: int = 1000
    wording: str = "en-a"

    def __post_init__(self) -> None:
        """Check the shared fields; scenarios extend this."""
        super().__post_init__()
        check_int(self, "talk_until", 1, optional=True)
        if not isinstance(self.wording, str) or not self.wording:
            raise SettingsError("wording", self.wording, "must be a wording or the path of a folder of templates")

    def talks_in(self, round_: int) -> bool:
        """Whether there is talk in a round."""
        return self.talk and (self.talk_until is None or round_ <= self.talk_until)


@functools.cache
def _declared(kind: Any, name: str) -> Mapping[str, Any]:
    """What a class and its bases declare, by field."""
    return {field: value for base in reversed(kind.__mro__) for field, value in vars(base).get(name, {}).items()}


def suggestion(name: str, known: Collection[str]) -> str:
    """Say which known name was probably meant, or list them all."""
    close = difflib.get_close_matches(name, list(known), n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known are " + ", ".join(sorted(known))


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


def check_bool(settings: object, field: str) -> None:
    """Require `True` or `False`."""
    value = getattr(settings, field)
    if not isinstance(value, bool):
        raise SettingsError(field, value, "must be true or false")


def check_choice(settings: object, field: str, allowed: Collection[str]) -> None:
    """Require one of `allowed`."""
    value = getattr(settings, field)
    if not isinstance(value, str) or value not in allowed:
        raise SettingsError(field, value, "must be one of " + ", ".join(allowed))


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
        left = f"above {low:g}" if above else f"at least {low:g}"
        bounds = left if math.isinf(high) else f"{left} and at most {high:g}"
        if math.isinf(low):
            bounds = f"at most {high:g}"
        raise SettingsError(field, value, f"must be {bounds}")

"""The base of all settings, and of every scenario's, with the checks they share."""

from __future__ import annotations

import fnmatch
import functools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.core.checks import check_bool, check_choice, check_int, check_number, nearest, suggestion
from llm_coop_envs.errors import SettingsError

MAX_MESSAGE_LENGTH = 100_000
EVERYONE = "all"
SILENCE, REVISE = "silence", "revise"
TREATMENTS = ("deliver", "drop", "delay", "shuffle", "swap", "neutral", "paraphrase")


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
        """All fields as plain data that `from_json` accepts again, but for those `added` later that have their default.

        So what was recorded before there were such fields is still told to be the same.
        """
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        for f in fields(self):
            if f.metadata.get("added") and told[f.name] == f.default:
                del told[f.name]
        return {name: plain(value) for name, value in told.items()}


def added(default: Any) -> Any:
    """A field that recorded runs may lack: it is part of the plain data only if it is not at its default."""
    return field(default=default, metadata={"added": True})


@dataclass(frozen=True, kw_only=True)
class Change(Settings):
    """Settings that hold from a round on.

    Attributes:
        from_round: the first round in which they hold, as the scenario counts.
        until_round: the last one; `None` for all that follow.
        players: names or patterns such as `"firm_*"` of those for whom they hold; empty for everybody.
        settings: the settings by name, of those that the scenario declares `changeable`.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"from_round": (0, math.inf)}

    from_round: int = 0
    until_round: int | None = None
    players: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields, as far as that is possible without the scenario."""
        super().__post_init__()
        check_int(self, "until_round", self.from_round, optional=True)
        object.__setattr__(self, "players", read_patterns(self.players))
        if not isinstance(self.settings, Mapping):
            raise SettingsError("settings", self.settings, "must be a mapping of settings to their new values")

    def __str__(self) -> str:
        """When it holds, and for whom."""
        whom = f"for {', '.join(self.players)} " if self.players else ""
        when = f"in rounds {self.from_round} to {self.until_round}"
        return whom + (f"from round {self.from_round} on" if self.until_round is None else when)

    def by(self, last: int) -> Change:
        """The same, begun by the last round at the latest, and over by then if it ends at all."""
        first, until = min(self.from_round, last), self.until_round
        return replace(self, from_round=first, until_round=None if until is None else max(first, min(until, last)))

    def holds(self, round_: int) -> bool:
        """Whether it holds in a round."""
        return self.from_round <= round_ and (self.until_round is None or round_ <= self.until_round)

    def means(self, player: str | None) -> bool:
        """Whether it is for a player, or for everybody if none is given."""
        return not self.players or (player is not None and fits_any(player, self.players))


def read_patterns(players: Any) -> tuple[str, ...]:
    """Names and patterns of players, from one or a list; empty for everybody.

    Raises:
        SettingsError: it is neither.
    """
    given = (players,) if isinstance(players, str) else players
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
        raise SettingsError("players", given, "must be a player's name, a pattern such as 'firm_*', or a list")
    return () if EVERYONE in given else tuple(given)


def fits_any(player: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns means a player."""
    return any(pattern == EVERYONE or fnmatch.fnmatchcase(player, pattern) for pattern in patterns)


def check_patterns(field: str, patterns: Iterable[str], players: Sequence[str]) -> None:
    """Require that each pattern means one of the players.

    Raises:
        SettingsError: one of them means nobody.
    """
    for pattern in patterns:
        if not any(fits_any(player, (pattern,)) for player in players):
            meant = nearest(pattern, players)
            role = players[0].rsplit("_", 1)[0]
            span = f"seats are {players[0]} to {players[-1]}, patterns such as '{role}_*', and 'all'"
            raise SettingsError(field, pattern, f"is not a seat; {meant}{' ' if meant else ''}{span}")


@dataclass(frozen=True, kw_only=True)
class RegulatorSettings(Settings):
    """A regulator's powers.

    What is ruled on is held back until the regulator has answered, one message or choice after the other: a message
    that it stops was never heard.

    Attributes:
        on: what it rules on: `"talk"`, each message before it is heard; `"choices"`, each choice before it counts.
        powers: what it may do about them besides allowing them: `"log"`, write them down; `"revise"`, have them
            submitted anew, once; `"veto"`, stop them (what counts instead of a choice is the scenario's to say);
            `"fine"`, have whoever chose pay a fine (of choices only).
        orders: what it may order at the beginning of a round, for that round: `"silence"`, nobody may speak; more is
            the scenario's to say, such as a price cap or an exit that is closed.
        reads_talk: whether it is shown what was said.
        announced: whether players are told of the regulator and its powers. What it did to them they learn anyway.
        fine: what a fine takes of the reward.
        detection: the chance that a fine is imposed; drawn for each one. Certain in a round in which somebody reported.
        leniency: the share of the fine that is remitted to whoever reported; above 0 everybody is asked after choosing
            whether to report (phase `report`).
        reward: what the regulator earns: `"zero"`; `"fines"`, what was paid; `"welfare"`, what the scenario says the
            public has of a round.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "fine": (0, math.inf),
        "detection": (0, 1),
        "leniency": (0, 1),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"reward": ("zero", "fines", "welfare")}
    listed: ClassVar[Mapping[str, Collection[str]]] = {
        "on": ("talk", "choices"),
        "powers": ("log", REVISE, "veto", "fine"),
        "orders": (),
    }

    on: tuple[str, ...] = ("talk",)
    powers: tuple[str, ...] = ("log",)
    orders: tuple[str, ...] = ()
    reads_talk: bool = True
    announced: bool = True
    fine: float = 0.0
    detection: float = 1.0
    leniency: float = 0.0
    reward: str = "zero"

    def __post_init__(self) -> None:
        """Check the powers, alone and with each other; lists become tuples."""
        super().__post_init__()
        for name, known in self.listed.items():
            given: Any = getattr(self, name)
            if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
                raise SettingsError(name, given, "must be a list of texts")
            for one in given:
                if known and one not in known:
                    raise SettingsError(name, one, f"is not known; {suggestion(one, known)}")
            object.__setattr__(self, name, tuple(dict.fromkeys(given)))
        if not self.powers and not self.orders:
            raise SettingsError("powers", [], "leaves it nothing to do; name a power, or an order")
        if self.powers and not self.on:
            raise SettingsError("on", [], "leaves it nothing to rule on; name talk, choices or both")
        if self.powers and "talk" in self.on and not self.reads_talk:
            raise SettingsError("reads_talk", False, "it rules on the talk, which it has to read for that")
        if "fine" in self.powers and ("choices" not in self.on or self.fine == 0):
            raise SettingsError("fine", self.fine, "fines need an amount, and choices among what it rules on")
        if self.leniency and "fine" not in self.powers:
            raise SettingsError("leniency", self.leniency, "remits fines; add fine to its powers")


@dataclass(frozen=True, kw_only=True)
class Listener(Settings):
    """Who is told when something happens.

    Attributes:
        on: what: `"mention"`, the player's name in what another one said (told when that talk is over); more is the
            scenario's to say.
        players: names or patterns such as `"firm_*"` of those who are told; empty for everybody, or for all whom it
            concerns.
        above: only where the number of what happens is above this; `None`: always.
    """

    on: str = "mention"
    players: tuple[str, ...] = ()
    above: float | None = None

    def __post_init__(self) -> None:
        """Check the fields, as far as that is possible without the scenario."""
        super().__post_init__()
        object.__setattr__(self, "players", read_patterns(self.players))
        if self.above is not None:
            check_number(self, "above", -math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(Settings):
    """Settings that every scenario has.

    `settings.in_round(5)` are those that hold in round 5, `settings.in_round(5, "firm_0")` for one player.

    Attributes:
        changeable: the fields that `changes` may name, and whether they can differ between players.
        happenings: what `listeners` may listen to, and what its number is; empty where it has none.
        small: the most that `reduced` leaves of fields that say how many play and how long.
        talk: whether players may send messages.
        talk_until: the last round with talk; afterwards everything is as without it. `None`: there is no last one.
            Wu et al. 2024 let firms talk for 400 rounds and watched what became of their prices.
        talk_mode: `"sequential"` (one after the other, in the exact parallel form) or `"simultaneous"`
            (everyone at once, heard afterwards).
        message_length: the longest message in characters; longer ones are cut and flagged.
        wording: how observations are put into words: a prompt pack's name (`"en-a"`, `"en-b"`, `"de-a"`), or the path
            of a folder that holds an `observation.jinja` of your own.
        delivery: what becomes of a message on its way: `"deliver"`; `"drop"`, nobody hears it; `"delay"`, it is heard
            later; `"shuffle"`, the speakers' names are dealt anew in each talk; `"swap"`, everybody speaks under the
            same other name throughout (with two players both change nothing); `"neutral"`, a sentence that says
            nothing stands in its place; `"paraphrase"`, the same in other words. Events hold both what was said and
            what was heard. In `changes`, `players` are the speakers.
        delivery_share: the share of messages to which that happens, drawn one by one.
        delivery_delay: how many rounds later delayed messages are heard.
        delivery_text: the neutral sentence.
        delivery_by: what says a message in other words, as `"module:function"`, from a text to a text and always to the
            same; by default a table of English phrases (`core.paraphrase`), which also serves whoever is no language
            model with `"speaker"`: a language model that speaks then says it itself in other words, which it is asked
            for by one more question.
        changes: what is otherwise from a round on, for all players or for some: a list of
            `{from_round: 5, until_round: 9, players: firm_0, settings: {talk: false}}`, of which `until_round` and
            `players` may be left out; see `Change`. Where two hold at the same time, the later one in the list wins.
        listeners: who is told when something happens, in a line of the text (`slots.notice`), the next time that it is
            its turn: a list of `{on: mention, players: firm_0}`; see `Listener`.
        regulator: the powers of a regulator, who then has a seat of that name; see `RegulatorSettings`. `None`: there
            is none.
    """

    changeable: ClassVar[Mapping[str, bool]] = {
        "talk": True,
        **dict.fromkeys(("delivery", "delivery_share", "delivery_delay", "delivery_text", "delivery_by"), True),
    }

    happenings: ClassVar[Mapping[str, str]] = {"mention": ""}
    small: ClassVar[Mapping[str, int]] = {"rounds": 2}
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "message_length": (1, MAX_MESSAGE_LENGTH),
        "delivery_share": (0, 1),
        "delivery_delay": (1, math.inf),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "talk_mode": ("sequential", "simultaneous"),
        "delivery": TREATMENTS,
    }

    talk: bool = True
    talk_until: int | None = None
    talk_mode: str = "sequential"
    message_length: int = 1000
    wording: str = "en-a"
    delivery: str = added("deliver")
    delivery_share: float = added(1.0)
    delivery_delay: int = added(1)
    delivery_text: str = added("I have nothing to add at the moment.")
    delivery_by: str = added("")
    changes: tuple[Change, ...] = added(())
    listeners: tuple[Listener, ...] = added(())
    regulator: RegulatorSettings | None = field(default=None, metadata={"added": True})

    def __post_init__(self) -> None:
        """Check the shared fields; scenarios extend this."""
        super().__post_init__()
        check_int(self, "talk_until", 1, optional=True)
        if not isinstance(self.wording, str) or not self.wording:
            raise SettingsError("wording", self.wording, "must be a wording or the path of a folder of templates")
        for name in ("delivery_text", "delivery_by"):
            if not isinstance(getattr(self, name), str):
                raise SettingsError(name, getattr(self, name), "must be a text")
        self._read_regulator()
        self._read_listeners()
        self._read_changes()

    def talks_in(self, round_: int, player: str | None = None) -> bool:
        """Whether there is talk in a round, and whether a player may speak in it."""
        return self.in_round(round_, player).talk

    @property
    def ever_talks(self) -> bool:
        """Whether there is talk in some round."""
        return self.talk or any(change.settings.get("talk") for change in self.changes)

    def in_round(self, round_: int, player: str | None = None) -> Self:
        """The settings that hold in a round, for everybody or for one player."""
        schedule = self.schedule
        if not schedule:
            return self
        if player not in self._meant:
            self._meant[player] = frozenset(k for k, change in enumerate(schedule) if change.means(player))
        meant = self._meant[player]
        return self._with(tuple(k for k, one in enumerate(schedule) if k in meant and one.holds(round_)))

    def reduced(self) -> dict[str, Any]:
        """The fields that make the same game a small one: few players and rounds, all changes within these."""
        kind: Any = type(self)
        small = _declared(kind, "small")
        found: dict[str, Any] = {name: most for name, most in small.items() if getattr(self, name, 0) > most}
        if "rounds" in found:
            last = found["rounds"]
            found["changes"] = [one.by(last) for one in self.changes]
            found["talk_until"] = self.talk_until and min(self.talk_until, last - 1)
        return found

    def reach(self, name: str) -> list[Any]:
        """All values that a setting may have in the course of an episode."""
        return [getattr(self, name), *(change.settings[name] for change in self.changes if name in change.settings)]

    def in_force(self, round_: int) -> list[Change]:
        """The changes that hold in a round."""
        return [change for change in self.changes if change.holds(round_)]

    def _with(self, active: tuple[int, ...]) -> Self:
        """The settings with some of the changes."""
        found = self._changed.get(active)
        if found is None:
            new = {name: value for k in active for name, value in self.schedule[k].settings.items()}
            found = self._changed[active] = replace(self, changes=(), talk_until=None, **new) if active else self
        return found

    @functools.cached_property
    def schedule(self) -> tuple[Change, ...]:
        """The changes; the end of talk is one."""
        if self.talk_until is None:
            return self.changes
        return (Change(from_round=self.talk_until + 1, settings={"talk": False}), *self.changes)

    @functools.cached_property
    def _changed(self) -> dict[tuple[int, ...], Self]:
        return {}

    @functools.cached_property
    def _meant(self) -> dict[str | None, frozenset[int]]:
        return {}

    def check_order(self, order: str) -> None:
        """Require an order that a regulator can give; scenarios add theirs.

        Raises:
            SettingsError: it is none.
        """
        if order != SILENCE:
            raise SettingsError("regulator.orders", order, f"can not be ordered here; there is '{SILENCE}'")

    def _read_regulator(self) -> None:
        given: Any = self.regulator
        if given is None:
            return
        if isinstance(given, Mapping):
            try:
                given = RegulatorSettings.from_json(given)
            except SettingsError as error:
                raise SettingsError(f"regulator.{error.field}", error.value, error.why) from error
            object.__setattr__(self, "regulator", given)
        if not isinstance(given, RegulatorSettings):
            raise SettingsError("regulator", given, "must be a mapping such as {powers: [log], on: [talk]}, or nothing")

    def _read_listeners(self) -> None:
        given: Any = self.listeners
        if not isinstance(given, list | tuple) or not all(isinstance(one, Listener | Mapping) for one in given):
            raise SettingsError("listeners", given, "must be a list of listeners such as {on: mention}")
        kind: Any = type(self)
        known = _declared(kind, "happenings")
        read: list[Listener] = []
        for k, one in enumerate(given):
            try:
                listener = one if isinstance(one, Listener) else Listener.from_json(one)
            except SettingsError as error:
                raise SettingsError(f"listeners[{k}].{error.field}", error.value, error.why) from error
            if listener.on not in known:
                why = f"does not happen here; {suggestion(str(listener.on), known)}"
                raise SettingsError(f"listeners[{k}].on", listener.on, why)
            if listener.above is not None and not known[listener.on]:
                raise SettingsError(f"listeners[{k}].above", listener.above, f"'{listener.on}' has no number")
            read.append(listener)
        object.__setattr__(self, "listeners", tuple(read))

    def _read_changes(self) -> None:
        given: Any = self.changes
        if not isinstance(given, list | tuple):
            raise SettingsError("changes", given, "must be a list of changes such as {from_round: 5, settings: {...}}")
        if not given:
            object.__setattr__(self, "changes", ())
            return
        base = replace(self, changes=())  # what is wrong with the settings themselves is told first
        kind: Any = type(self)
        changeable = _declared(kind, "changeable")
        read: list[Change] = []
        for k, one in enumerate(given):
            where = f"changes[{k}]"
            if not isinstance(one, Change | Mapping):
                raise SettingsError(where, one, "must be a mapping such as {from_round: 5, settings: {talk: false}}")
            try:
                change = one if isinstance(one, Change) else Change.from_json(one)
            except SettingsError as error:
                raise SettingsError(f"{where}.{error.field}", error.value, error.why) from error
            if not change.settings:
                raise SettingsError(f"{where}.settings", {}, "names nothing that changes")
            for name, value in change.settings.items():
                if name not in changeable:
                    why = f"cannot change in play; {suggestion(name, changeable)}"
                    raise SettingsError(f"{where}.settings.{name}", value, why)
                if change.players and not changeable[name]:
                    raise SettingsError(f"{where}.settings.{name}", value, "changes for all players or for none")
                if change.players and name == "talk" and value:
                    why = "can only be taken from some players; switch talk on for all, and off for the others"
                    raise SettingsError(f"{where}.settings.talk", value, why)
                try:
                    replace(base, **{name: value})
                except SettingsError as error:
                    raise SettingsError(f"{where}.settings.{error.field}", error.value, error.why) from error
            read.append(change)
        object.__setattr__(self, "changes", tuple(read))
        for turn in {change.from_round for change in read}:
            try:
                self._with(tuple(k for k, change in enumerate(self.schedule) if change.holds(turn)))
            except SettingsError as error:
                raise SettingsError("changes", error.value, f"in round {turn}: {error}") from error


@functools.cache
def _declared(kind: Any, name: str) -> Mapping[str, Any]:
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

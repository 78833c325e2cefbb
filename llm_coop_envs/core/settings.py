"""The settings of every scenario."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.mechanisms.matching import FIXED, MATCHINGS
from llm_coop_envs.mechanisms.settings import MechanismSettings, read_mechanism
from llm_coop_envs.mechanisms.stage_game import StageGame
from llm_coop_envs.treatments.changes import Change
from llm_coop_envs.treatments.delivery import TREATMENTS
from llm_coop_envs.treatments.listeners import Listener
from llm_coop_envs.treatments.perception import ALL, OWN, PERCEPTION
from llm_coop_envs.treatments.powers import SILENCE, RegulatorSettings
from llm_coop_envs.util.base_settings import Settings, added, declared, plain
from llm_coop_envs.util.checks import check_int, suggestion, within_field

__all__ = ["OWN", "PERCEPTION", "TREATMENTS", "ScenarioSettings", "Settings", "added", "plain"]

MAX_MESSAGE_LENGTH = 100_000


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(Settings):
    """Settings that every scenario has.

    `settings.in_round(5)` are those that hold in round 5, `settings.in_round(5, "firm_0")` for one player.

    Attributes:
        changeable: the fields that `changes` may name, and whether they can differ between players.
        fewest: how many players have to stay when others leave.
        newcomers: whether players may join after the first round, by a change with `until_round` and `present: false`.
        happenings: what `listeners` may listen to, and what its number is; empty where it has none.
        again: the fields that say how a game is played again, by what a mechanism calls it: `rounds`, `continuation`
            (`None` for no such words) and `remembered`; empty where repetition means nothing.
        has_groups: whether players can play in groups side by side.
        small: the most that `reduced` leaves of fields that say how many play and how long.
        talk: whether players may send messages.
        talk_until: the last round with talk. `None`: there is no last one. Wu et al. 2024 let firms talk for 400 rounds
            and then watched their prices.
        talk_mode: `"sequential"`, one after the other (in the exact parallel form), or `"simultaneous"`, all at once
            and heard afterwards.
        message_length: the longest message in characters. Longer ones are cut and flagged.
        private_messages: how many messages a speaker may send in a turn, to all hearers or to those it names
            (`to firm_2: ...`). 0: one message, to all who hear it. See `interface.addressing`.
        wording: the prompt pack that puts observations into words (`"en-a"`, `"en-b"`, `"de-a"`), or the path of a
            folder with an `observation.jinja`.
        delivery: what happens to messages: `"deliver"`, `"drop"`, `"delay"`, `"shuffle"`, `"swap"`, `"neutral"` or
            `"paraphrase"`. With `"drop"` nobody hears them. With `"shuffle"` speakers' names are dealt anew in each
            talk; with `"swap"` everybody speaks under the same other name throughout (with two players both change
            nothing). `"neutral"` replaces them by `delivery_text`, and `"paraphrase"` says the same in other words.
            Events hold both what was said and what was heard. In `changes`, `players` are the speakers.
        delivery_share: the share of messages that are treated so, drawn one by one.
        delivery_delay: how many rounds later delayed messages are heard.
        delivery_text: the neutral sentence.
        delivery_by: what paraphrases messages: `"module:function"`, `"speaker"`, or nothing for a table of English
            phrases. The function maps a text to a text, always to the same one. With `"speaker"` a language model is
            asked to rephrase its own message; for other speakers the table (`treatments.paraphrase`) is used.
        information: what players see of the others: `"all"` that the scenario shows (all sources), or `"own"`, only
            their own actions and results. Messages are heard either way.
        observation_noise: the error with which others' numbers are seen: its standard deviation, as a share of the
            number or of its range (0 in all sources). The scenario's docstring says of which. Texts, slots and numeric
            features show the same.
        memory: how many of its latest rounds a player remembers. 0: none before the present one; `None`: as many as
            the scenario shows. A language model's own notes are forgotten with them.
        changes: what changes from a round on, as a list of `{from_round: 5, until_round: 9, players: firm_0, settings:
            {talk: false}}`. `until_round` and `players` are optional; see `Change`. Where two hold at the same time,
            the later one in the list wins.
        listeners: players who are told of an event in a line of their text (`slots.notice`), as a list of `{on:
            mention, players: firm_0}`. They are told on their next turn; see `Listener`.
        regulator: the powers of a regulator, who then has a seat of that name. `None`: there is none. See
            `RegulatorSettings`.
        mechanism: the institution around the game: a kind such as `"mediation"`, or a mapping with `kind` and its
            settings. `"none"` or `None`: there is none. See `MechanismSettings`.
        group_size: how many players play with each other, in groups side by side. 0: all of them.
        matching: who is in a group: always the same players (`"fixed"`), others in each round (`"random"`), or each
            other player in turn, in pairs (`"round_robin"`).
        present: whether players take part. Only `changes` may set it to `false`: `players` leave the game for good
            from that round on; with `until_round`, in scenarios with `newcomers`, they join after that round. The texts
            of the others say who has left, unless the scenario shows who is there. Nothing counts any more for whoever
            is gone.
    """

    changeable: ClassVar[Mapping[str, bool]] = {
        "talk": True,
        **dict.fromkeys(("delivery", "delivery_share", "delivery_delay", "delivery_text", "delivery_by"), True),
    }

    fewest: ClassVar[int] = 0
    newcomers: ClassVar[bool] = False
    sections: ClassVar[Mapping[str, str]] = {
        "talk": "Talk",
        "delivery": "What becomes of messages",
        "information": "What is seen of others",
        "changes": "What changes in play",
    }
    forms: ClassVar[Mapping[str, str]] = {
        "wording": "StrPath",
        "mechanism": "MechanismSettings | Mapping[str, Any] | str | None",
    }
    happenings: ClassVar[Mapping[str, str]] = {"mention": ""}
    small: ClassVar[Mapping[str, int]] = {"rounds": 2}
    again: ClassVar[Mapping[str, str]] = {}
    has_groups: ClassVar[bool] = False
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "message_length": (1, MAX_MESSAGE_LENGTH),
        "private_messages": (0, 100),
        "delivery_share": (0, 1),
        "delivery_delay": (1, math.inf),
        "observation_noise": (0, 1),
        "group_size": (0, math.inf),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "talk_mode": ("sequential", "simultaneous"),
        "delivery": TREATMENTS,
        "information": (ALL, OWN),
        "matching": MATCHINGS,
    }

    talk: bool = True
    talk_until: int | None = None
    talk_mode: str = "sequential"
    message_length: int = 1000
    private_messages: int = added(0)
    wording: str = "en-a"
    delivery: str = added("deliver")
    delivery_share: float = added(1.0)
    delivery_delay: int = added(1)
    delivery_text: str = added("I have nothing to add at the moment.")
    delivery_by: str = added("")
    information: str = added(ALL)
    observation_noise: float = added(0.0)
    memory: int | None = added(None)
    changes: tuple[Change, ...] = added(())
    listeners: tuple[Listener, ...] = added(())
    regulator: RegulatorSettings | None = field(default=None, metadata={"added": True})
    mechanism: MechanismSettings | None = field(default=None, metadata={"added": True})
    group_size: int = added(0)
    matching: str = added(FIXED)
    present: bool = added(True)

    def __post_init__(self) -> None:
        """Check the shared fields; scenarios extend this."""
        super().__post_init__()
        check_int(self, "talk_until", 1, optional=True)
        check_int(self, "memory", 0, optional=True)
        kind: Any = type(self)
        for name in PERCEPTION:
            value = getattr(self, name)
            if value != getattr(kind, name) and name not in declared(kind, "changeable"):
                raise SettingsError(name, value, "means nothing in this scenario; leave it out")
        if isinstance(self.wording, os.PathLike):
            object.__setattr__(self, "wording", os.fspath(self.wording))
        if not isinstance(self.wording, str) or not self.wording:
            raise SettingsError("wording", self.wording, "must be a wording or the path of a folder of templates")
        for name in ("delivery_text", "delivery_by"):
            if not isinstance(getattr(self, name), str):
                raise SettingsError(name, getattr(self, name), "must be a text")
        self._read_regulator()
        self._read_mechanism()
        self._read_listeners()
        self._read_changes()

    def talks_in(self, round_: int, player: str | None = None) -> bool:
        """Whether there is talk in a round, and whether a player may speak in it."""
        return self.in_round(round_, player).talk

    @property
    def first_round(self) -> int:
        """How the first round is counted."""
        return 1

    @property
    def ever_talks(self) -> bool:
        """Whether there is talk in some round."""
        return self.talk or any(change.settings.get("talk") for change in self.changes)

    def in_round(self, round_: int, player: str | None = None) -> Self:
        """The settings that hold in a round, for everybody or for one player."""
        schedule = self.schedule
        if not schedule:
            return self
        if player not in self._changes_by_player:
            self._changes_by_player[player] = frozenset(k for k, change in enumerate(schedule) if change.means(player))
        concerning = self._changes_by_player[player]
        return self._with_changes(
            tuple(k for k, change in enumerate(schedule) if k in concerning and change.holds(round_))
        )

    def reduced(self) -> dict[str, Any]:
        """The fields that make the same game a small one: few players and rounds, all changes within these."""
        kind: Any = type(self)
        small = declared(kind, "small")
        small_fields: dict[str, Any] = {name: limit for name, limit in small.items() if getattr(self, name, 0) > limit}
        if "rounds" in small_fields:
            last = small_fields["rounds"]
            small_fields["changes"] = [change.limited_to(last) for change in self.changes]
            small_fields["talk_until"] = self.talk_until and min(self.talk_until, last - 1)
            if self.mechanism is not None and self.mechanism.is_played_again:
                small_fields["mechanism"] = replace(self.mechanism, rounds=last)
        return small_fields

    def reach(self, name: str) -> list[Any]:
        """All values that a setting may have in the course of an episode."""
        return [getattr(self, name), *(change.settings[name] for change in self.changes if name in change.settings)]

    def in_force(self, round_: int) -> list[Change]:
        """The changes that hold in a round."""
        return [change for change in self.changes if change.holds(round_)]

    def _with_changes(self, active: tuple[int, ...]) -> Self:
        """The settings with some of the changes."""
        settings = self._changed.get(active)
        if settings is None:
            new = {name: value for k in active for name, value in self.schedule[k].settings.items()}
            settings = self._changed[active] = replace(self, changes=(), talk_until=None, **new) if active else self
        return settings

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
    def _changes_by_player(self) -> dict[str | None, frozenset[int]]:
        return {}

    def check_order(self, order: str) -> None:
        """Require an order that a regulator can give; scenarios add theirs.

        Raises:
            SettingsError: it is none.
        """
        if order != SILENCE:
            raise SettingsError("regulator.orders", order, f"can not be ordered here; there is '{SILENCE}'")

    def _read_regulator(self) -> None:
        regulator: Any = self.regulator
        if regulator is None:
            return
        if isinstance(regulator, Mapping):
            with within_field("regulator"):
                regulator = RegulatorSettings.from_json(regulator)
            object.__setattr__(self, "regulator", regulator)
        if not isinstance(regulator, RegulatorSettings):
            raise SettingsError(
                "regulator", regulator, "must be a mapping such as {powers: [log], on: [talk]}, or nothing"
            )

    def stage_game(self) -> StageGame | None:
        """What a round is as a game, with what choices are worth, for mechanisms; `None` where nobody has said it."""
        return None

    def _read_mechanism(self) -> None:
        """Read the mechanism; one that has the game played again sets the fields that say so."""
        if self.group_size == 1 or (self.group_size and not self.has_groups):
            reason = "is a group of one" if self.has_groups else "means nothing in this scenario"
            raise SettingsError("group_size", self.group_size, f"{reason}; leave it out")
        with within_field("mechanism"):
            mechanism = read_mechanism(self.mechanism)
        object.__setattr__(self, "mechanism", mechanism)
        if mechanism is None or mechanism.is_elected:
            if mechanism is not None and self.matching != FIXED and mechanism.period != 1:
                reason = f"elects for rounds with others, as matching is {self.matching}; set period: 1"
                raise SettingsError("mechanism.period", mechanism.period, reason)
            return
        if not self.again:
            raise SettingsError("mechanism", mechanism.kind, "is not for this scenario; leave it out")
        if mechanism.has_records and (not self.group_size or self.matching == FIXED):
            reason = "is of players who meet others in each round; set group_size, and matching to random"
            raise SettingsError("mechanism", mechanism.kind, reason)
        for name, own in self.again.items():
            value, mine = getattr(mechanism, name), getattr(self, own)
            if mine not in (value, getattr(type(self), own)):
                reason = f"mechanism.{name} says {value}; give one of them, or both the same"
                raise SettingsError(own, mine, reason)
            object.__setattr__(self, own, value)
        with within_field("mechanism"):
            super().__post_init__()  # what the mechanism has set is bounded as what is given

    def _read_listeners(self) -> None:
        listeners: Any = self.listeners
        if not isinstance(listeners, list | tuple) or not all(
            isinstance(entry, Listener | Mapping) for entry in listeners
        ):
            raise SettingsError("listeners", listeners, "must be a list of listeners such as {on: mention}")
        kind: Any = type(self)
        happenings = declared(kind, "happenings")
        read: list[Listener] = []
        for k, entry in enumerate(listeners):
            with within_field(f"listeners[{k}]"):
                listener = entry if isinstance(entry, Listener) else Listener.from_json(entry)
            if listener.on not in happenings:
                reason = f"does not happen here; {suggestion(str(listener.on), happenings)}"
                raise SettingsError(f"listeners[{k}].on", listener.on, reason)
            if listener.above is not None and not happenings[listener.on]:
                raise SettingsError(f"listeners[{k}].above", listener.above, f"'{listener.on}' has no number")
            read.append(listener)
        object.__setattr__(self, "listeners", tuple(read))

    def _read_changes(self) -> None:
        changes: Any = self.changes
        if not isinstance(changes, list | tuple):
            raise SettingsError(
                "changes", changes, "must be a list of changes such as {from_round: 5, settings: {...}}"
            )
        if not changes:
            object.__setattr__(self, "changes", ())
            return
        base = replace(self, changes=())  # what is wrong with the settings themselves is told first
        kind: Any = type(self)
        changeable = declared(kind, "changeable")
        read: list[Change] = []
        for k, entry in enumerate(changes):
            where = f"changes[{k}]"
            if not isinstance(entry, Change | Mapping):
                raise SettingsError(where, entry, "must be a mapping such as {from_round: 5, settings: {talk: false}}")
            with within_field(where):
                change = entry if isinstance(entry, Change) else Change.from_json(entry)
            if not change.settings:
                raise SettingsError(f"{where}.settings", {}, "names nothing that changes")
            for name, value in change.settings.items():
                if name not in changeable:
                    reason = f"cannot change in play; {suggestion(name, changeable)}"
                    raise SettingsError(f"{where}.settings.{name}", value, reason)
                if change.players and not changeable[name]:
                    raise SettingsError(f"{where}.settings.{name}", value, "changes for all players or for none")
                if change.players and name == "talk" and value:
                    reason = "can only be taken from some players; switch talk on for all, and off for the others"
                    raise SettingsError(f"{where}.settings.talk", value, reason)
                with within_field(f"{where}.settings"):
                    replace(base, **{name: value})
                if name == "present" and change.until_round is not None and not kind.newcomers:
                    reason = "whoever was taken out does not come back; leave until_round out"
                    raise SettingsError(f"{where}.until_round", change.until_round, reason)
            read.append(change)
        object.__setattr__(self, "changes", tuple(read))
        for turn in {change.from_round for change in read}:
            try:
                self._with_changes(tuple(k for k, change in enumerate(self.schedule) if change.holds(turn)))
            except SettingsError as error:
                raise SettingsError("changes", error.value, f"in round {turn}: {error}") from error

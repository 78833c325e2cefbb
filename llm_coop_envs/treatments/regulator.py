"""A regulator's seat beside the players: what it is asked, and what its answers do.

A regulator sits in the last seat, `"regulator_0"`. Messages and choices are held back until it has ruled on them; a
message that it stops is never heard, a choice that it stops never counts. It answers with `Options`, so any policy that
chooses among options can sit there. Scenarios say by hooks what it may order (`interface.hooks.Hooks`).

The seat does not know its environment. The environment hands it what seats submit (`hold_messages`, `hold_choices`,
`take_reports`, `answer`), each time gets a `Ruling` back, and applies it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.interface.actions import ILLEGAL_CHOICE, MISSING_ACTION, ChoiceReader
from llm_coop_envs.interface.hooks import TALK, Over, Stage
from llm_coop_envs.interface.messages import clean_message
from llm_coop_envs.interface.moves import describe_move
from llm_coop_envs.interface.question import Number, Option, Options, Question
from llm_coop_envs.interface.slots import Heard
from llm_coop_envs.treatments.powers import REVISE, SILENCE, RegulatorSettings
from llm_coop_envs.treatments.regulator_slots import RegulatorSlots
from llm_coop_envs.treatments.ruling import Flags, Release, Ruling
from llm_coop_envs.util.packing import pack_value, unpack_value

SEAT = "regulator_0"
ORDER, REVIEW, REPORT = "order", "review", "report"
PHASES = (ORDER, REVIEW, REPORT)
ALLOW, NO_ORDER = "allow", "no order"
_REPORT_ANSWERS = ("keep silent", "report")


def _options(name: str, names: Sequence[str], legal: Sequence[int]) -> Options:
    """Ask for one of the legal answers; the first 26 have letters."""
    letters = [chr(ord("A") + k) if k < 26 else "" for k in range(len(names))]
    options = tuple(Option(choice=k, name=names[k], letter=letters[k]) for k in legal)
    return Options(name=name, options=options, known=tuple(names))


def _describe_choice(question: Question, choice: Any) -> tuple[str, float]:
    """A choice in words, and as a number."""
    if not isinstance(question, Number) or question.passing:
        return describe_move(question, choice), float(choice) if isinstance(choice, int | float) else 0.0
    if question.listed:
        value = next((number for listed, number in question.listed if listed == choice), choice)
    else:
        value = choice + question.low if question.counted else choice
    return f"{question.name} {value:.6g}", float(value)


class EmptySeat:
    """The regulator's seat of an environment without a regulator: it adds nothing and holds nothing back.

    Attributes:
        names: the names of the seats that it adds behind the players.
        reward: what the seat earned in the last step.
    """

    names: tuple[str, ...] = ()
    reward: float = 0.0

    @property
    def waiting(self) -> bool:
        """Whether a stage waits for an order."""
        return False

    def append_to(self, values: NDArray[Any], value: float) -> NDArray[Any]:
        """Values of the players, then that of this seat."""
        return values


class Regulator(EmptySeat):
    """The regulator's seat in one environment: what is held back, what is asked, what was decided.

    Args:
        settings: its powers.
        players: the players' names, in index order.
        message_length: the longest message in characters.
        discrete: whether players' choices are discrete.
        ruled: the act phases on which it rules; empty for all.

    Attributes:
        phases: the phases that it adds.
        orders: the answers to the question for an order; the first one orders nothing.
        choices: how many answers there are at most.
        reader: reads its answers.
        index: the seat's index, after all players.
        order: the order in force, as it is written in the settings; empty for none.
    """

    names = (SEAT,)
    kept: ClassVar[tuple[str, ...]] = (
        *("reward", "order", "_kind", "_speakers", "_held", "_flags", "_docket", "_again", "_revised", "_vetoed"),
        *("_shown", "_owed", "_reports", "_to_report", "_ordered_in", "_sent_back", "_stopped", "_paid"),
    )

    def __init__(
        self,
        settings: RegulatorSettings,
        players: Sequence[str],
        *,
        message_length: int,
        talked: bool,
        discrete: bool,
        ruled: Collection[str] = (),
    ) -> None:
        self.settings = settings
        self._ruled = ruled
        self.index = len(players)
        self._players = tuple(players)
        self._message_length = message_length
        self._talked = talked
        self._discrete = discrete
        self.actions = (ALLOW, *settings.powers)
        self.orders = (NO_ORDER, *settings.orders)
        self._reviews = bool(settings.powers)
        used = (bool(settings.orders), self._reviews, settings.leniency > 0)
        self.phases = tuple(phase for phase, is_used in zip(PHASES, used, strict=True) if is_used)
        self.choices = max(len(self.actions), len(self.orders))
        self.reader = ChoiceReader(spaces.Discrete(self.choices), 1)
        self.clear()

    def clear(self) -> None:
        """Forget everything: a new episode."""
        self.reward = 0.0
        self.order = ""
        self._kind = ""
        self._waiting: Stage | None = None
        self._ordered_in = -1
        self._sent_back: list[int] = []
        self._stopped: list[int] = []
        self._paid: dict[int, float] = {}
        self._clear_level()

    def _clear_level(self) -> None:
        self._speakers: list[int] = []
        self._held: dict[int, Any] = {}
        self._flags: dict[int, Flags] = {}
        self._docket: list[int] = []
        self._again: list[int] = []
        self._revised: list[int] = []
        self._vetoed: list[int] = []
        self._shown: dict[int, tuple[str, float]] = {}
        self._owed: dict[int, float] = {}
        self._reports: list[int] = []
        self._to_report = False

    def append_to(self, values: NDArray[Any], value: float) -> NDArray[Any]:
        """Values of the players, then that of this seat."""
        return np.append(values, value)

    # The clock.

    @property
    def waiting(self) -> bool:
        """Whether a stage waits for an order."""
        return self._waiting is not None

    def hold_stage(self, stage: Stage | Over, round_: int) -> Stage | Over:
        """Let an order come before the first stage of a round, which then waits for `release_stage`."""
        if not isinstance(stage, Stage) or not self.settings.orders or self._ordered_in == round_:
            return stage
        self._ordered_in, self._waiting = round_, stage
        self.order = ""
        return Stage(ORDER, [[self.index]])

    def release_stage(self) -> Stage:
        """The stage that waited for an order."""
        assert self._waiting is not None, "asked only while a stage waits"
        stage, self._waiting = self._waiting, None
        return stage

    @property
    def orders_silence(self) -> bool:
        """Whether nobody may speak in this round."""
        return self.order == SILENCE

    # What players submit.

    def hold_messages(self, speakers: list[int], messages: Mapping[int, object]) -> Ruling:
        """Hold back what the players on turn want to say."""
        ruling = Ruling()
        self._open(TALK, speakers)
        for i in speakers:
            text, flags = clean_message(messages.get(i), self._message_length)
            if flags:
                ruling.flags[i] = flags
            self._held.pop(i, None)
            if text:
                self._held[i] = messages.get(i)
                self._shown[i] = (text, 0.0)
        if self._reviews and "talk" in self.settings.on:
            self._docket = [i for i in speakers if i in self._held]
        return self._go_on(ruling)

    def hold_choices(
        self,
        phase: str,
        players: list[int],
        choices: Sequence[float],
        flags: Mapping[int, Flags],
        questions: Sequence[Question],
    ) -> Ruling:
        """Hold back the choices of the players on turn in an act phase.

        Args:
            phase: the act phase.
            players: the players on turn.
            choices: the usable choice of each of them.
            flags: the flags of those choices that were replaced, by player.
            questions: what each of them was asked.
        """
        self._open(phase, players)
        is_first = not self._held
        for i, choice, question in zip(players, choices, questions, strict=True):
            self._held[i] = choice
            self._flags[i] = flags.get(i, ())
            self._shown[i] = _describe_choice(question, choice)
        is_ruled = not self._ruled or phase in self._ruled
        self._to_report = is_ruled and is_first and self.settings.leniency > 0
        if is_ruled and self._reviews and "choices" in self.settings.on:
            self._docket = list(players)
        return self._go_on(Ruling())

    def take_reports(self, players: list[int], choices: NDArray[Any], missing: Collection[int]) -> Ruling:
        """Take the answers of the players who may report; `choices` holds one per seat, and 1 reports."""
        ruling = Ruling()
        self._to_report = False
        for i in players:
            # A continuous space holds more than the two answers: no other number reports.
            if not (choices[i] >= 0 and (choices[i] <= 1 or not self._discrete)):
                ruling.flags[i] = (MISSING_ACTION if i in missing else ILLEGAL_CHOICE,)
        self._reports = [i for i in players if choices[i] == 1]
        for i in self._reports:
            self._add_event(ruling, i, action=REPORT, on=self._kind)
        return self._go_on(ruling)

    def _open(self, phase: str, players: list[int]) -> None:
        """Begin a level, or a second try; its players know by now what became of their last submission."""
        if not self._speakers:
            self._kind, self._speakers = phase, players
        self._sent_back = [i for i in self._sent_back if i not in players]
        self._stopped = [i for i in self._stopped if i not in players]
        for i in players:
            self._paid.pop(i, None)

    # What the regulator answers.

    def answer(
        self, choices: NDArray[Any], missing: Collection[int], nature: Callable[[str], np.random.Generator]
    ) -> Ruling:
        """Take the regulator's order or ruling.

        Args:
            choices: one per seat; its own is the last.
            missing: the seats that submitted nothing usable.
            nature: a generator of this round for one purpose; whether a fine is imposed is drawn beside the game, so
                that fines move none of its other draws.
        """
        ruling = Ruling()
        answer = self._usable(choices[self.index] if len(choices) > self.index else -1)
        if answer is None:
            answer = 0
            ruling.flags[self.index] = (MISSING_ACTION if self.index in missing else ILLEGAL_CHOICE,)
        if not self.waiting:
            self._rule(ruling, answer, nature)
            return self._go_on(ruling)
        self.reward = 0.0
        self.order = "" if answer == 0 else self.orders[answer]
        self._add_event(ruling, self.index, action=ORDER, on=ORDER, order=self.order)
        return ruling

    def _usable(self, raw: Any) -> int | None:
        """The regulator's answer; `None` if it is no legal one."""
        # `raw == raw` leaves out NaN.
        answer = int(raw) if raw == raw and float(raw).is_integer() and 0 <= raw < self.choices else -1
        return answer if answer >= 0 and self.mask()[answer] else None

    def _rule(self, ruling: Ruling, answer: int, nature: Callable[[str], np.random.Generator]) -> None:
        """Rule on the first submission of the docket."""
        settings = self.settings
        i = self._docket.pop(0)
        action = self.actions[answer]
        submitted = {"text": self._shown[i][0]} if self._kind == TALK else {"choice": self._held[i]}
        penalty: dict[str, Any] = {}
        if action == REVISE:
            self._again.append(i)
            self._revised.append(i)
            self._sent_back.append(i)
        elif action == "veto":
            self._stopped.append(i)
            self._vetoed.append(i)
        elif action == "fine":
            luck = nature(f"fine/{self._kind}/{self._players[i]}").random()
            detected = bool(self._reports) or bool(luck < settings.detection)
            fined = settings.fine * (1 - settings.leniency if i in self._reports else 1) if detected else 0.0
            self._owed[i] = fined
            penalty = {"detected": detected, "fined": fined}
        about = self._players[i]
        self._add_event(ruling, self.index, action=action, on=self._kind, about=about, **submitted, **penalty)

    def _add_event(self, ruling: Ruling, seat: int, **data: Any) -> None:
        agent = SEAT if seat == self.index else self._players[seat]
        ruling.events.append({"agent": agent, **data, "flags": list(ruling.flags.get(seat, ()))})

    def _go_on(self, ruling: Ruling) -> Ruling:
        """Say who is on turn next: first for reports, then for rulings, then for revisions; else release the level."""
        self.reward = 0.0
        if self._to_report:
            ruling.turn = REPORT, self._speakers
        elif self._docket:
            ruling.turn = REVIEW, [self.index]
        elif self._again:
            ruling.turn = self._kind, self._again
            self._again = []
        else:
            ruling.release = self._release()
        return ruling

    def _release(self) -> Release:
        """Let the submissions of this level go."""
        if self._kind != TALK:
            self._paid.update({i: fine for i, fine in self._owed.items() if fine})
            if self.settings.reward == "fines":
                self.reward = math.fsum(self._owed.values())
        release = Release(self._kind, self._speakers, self._held, self._vetoed, self._flags, self._owed)
        self._clear_level()
        return release

    def earn(self, welfare: float) -> None:
        """Take the public's welfare of a round as the reward."""
        self.reward = welfare

    # What is asked and seen.

    @property
    def _about(self) -> int | None:
        """The player whose submission is ruled on; `None` if there is none, or reports come first."""
        return self._docket[0] if self._docket and not self._to_report else None

    def question(self) -> Options:
        """The question to the regulator, or to a player who may report."""
        if self._to_report:
            return _options("report", _REPORT_ANSWERS, (0, 1))
        legal = np.flatnonzero(self.mask()).tolist()
        return _options("order", self.orders, legal) if self.waiting else _options("decision", self.actions, legal)

    def mask(self, *, over: bool = False) -> NDArray[np.int8]:
        """The regulator's legal answers, (choices,); the first alone off turn and when the episode is over."""
        legal = np.zeros(self.choices, dtype=np.int8)
        legal[0] = 1
        if over:
            return legal
        if self.waiting:
            legal[: len(self.orders)] = 1
        about = self._about
        if about is not None:
            for k, action in enumerate(self.actions):
                is_possible = action != REVISE or about not in self._revised
                legal[k] = is_possible and (action != "fine" or self._kind != TALK)
        return legal

    def features(self, state: NDArray[np.float64]) -> NDArray[np.float32]:
        """The scenario's state, then what is ruled on: whether anything is (1 or -1), whose, its number, reported."""
        about = self._about
        details = [-1.0, 0.0, 0.0, 0.0]
        if about is not None:
            value = self._shown[about][1]
            share = about / max(1, self.index - 1)
            details = [1.0, share, value / (1 + abs(value)), float(about in self._reports)]
        return np.concatenate([state, details]).astype(np.float32)

    def bounds(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lower and upper bounds of the features, from those of the scenario's state."""
        return (
            np.concatenate([low, [-1, 0, -1, 0]]).astype(np.float32),
            np.concatenate([high, np.ones(4)]).astype(np.float32),
        )

    def slots(
        self, common: Mapping[str, Any], *, round_: int, heard: tuple[Heard, ...], picture: str
    ) -> RegulatorSlots:
        """What the regulator may know; `common` holds the fields of `Slots`."""
        about = self._about
        is_message = about is not None and self._kind == TALK
        text, value = ("", 0.0) if about is None else self._shown[about]
        name = "" if about is None else self._players[about]
        return RegulatorSlots(
            round=round_,
            about=name,
            message=Heard(speaker=name, text=text, own=False) if is_message else None,
            chosen="" if is_message else text,
            value=value,
            revised=about in self._revised,
            reported=tuple(self._players[i] for i in self._reports),
            said=heard,
            picture=picture,
            fine=self.settings.fine,
            detection=self.settings.detection,
            order=self.order,
            **common,
        )

    def notice_values(self, index: int, *, may_report: bool) -> dict[str, Any]:
        """What a player's notice may use: `NOTICE_NAMES`, with their values."""
        return {
            **{name: getattr(self.settings, name) for name in RegulatorSettings.__dataclass_fields__},
            "on": [kind for kind in self.settings.on if self._talked or kind != TALK],
            "order": self.order,
            "sent_back": index in self._sent_back,
            "vetoed": index in self._stopped,
            "paid": self._paid.get(index, 0.0),
            "may_report": may_report,
            "question": self.question() if may_report else None,
            "talked": self._talked,
        }

    # Snapshots.

    def get_state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        waiting = None
        if self._waiting is not None:
            waiting = [self._waiting.phase, [[int(i) for i in level] for level in self._waiting.levels]]
        return {**{name: pack_value(getattr(self, name)) for name in self.kept}, "waiting": waiting}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        for name in self.kept:
            setattr(self, name, unpack_value(state[name]))
        self._waiting = None if state["waiting"] is None else Stage(*state["waiting"])

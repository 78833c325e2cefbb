"""A regulator's seat beside the players: what it is asked, and what its answers do.

A regulator sits in the last seat, `"regulator_0"`. What somebody says or chooses is held back until the regulator has
ruled on it; what it stops was never heard, or never chosen. Its answers are `Options`, so whatever decides for players
can sit there. Scenarios say by hooks what it may order (`interface.hooks.Hooks`). Without one nothing of this is run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.channels import Message, clean_message
from llm_coop_envs.interface.actions import ChoiceReader
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.question import Number, Option, Options, Question
from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.interface.wording import PROMPTS, Templates
from llm_coop_envs.treatments.powers import REVISE, SILENCE, RegulatorSettings
from llm_coop_envs.util.packing import packed, unpacked

SEAT = "regulator_0"
TALK = "talk"
ORDER, REVIEW, REPORT = "order", "review", "report"
PHASES = (ORDER, REVIEW, REPORT)
ALLOW, NO_ORDER = "allow", "no order"
_REPORTING = ("keep silent", "report")
MISSING_ACTION, ILLEGAL_CHOICE = "missing_action", "illegal_choice"


@dataclass(frozen=True, kw_only=True)
class RegulatorSlots(Slots):
    """What a regulator may know.

    Attributes:
        round: the round, as the scenario counts.
        about: the player whose message or choice is ruled on; empty if none is.
        message: what that player wants to say; `None` where a choice is ruled on.
        chosen: what that player wants to do, in words; empty where a message is ruled on.
        value: the same as a number: a price, a number named, else the choice.
        revised: whether the player was asked for a revision already.
        reported: who has reported an agreement in this round.
        said: what can still be heard of the talk; empty if it may not read it.
        picture: the situation, as onlookers see it.
        fine: what a fine takes.
        detection: the chance that it is imposed.
        order: what it has ordered for this round; empty for nothing.
    """

    round: int
    about: str
    message: Heard | None
    chosen: str
    value: float
    revised: bool
    reported: tuple[str, ...]
    said: tuple[Heard, ...]
    picture: str
    fine: float
    detection: float
    order: str


#: What a notice to a player may say: the regulator's settings, and what it did to this player.
NOTICE_NAMES = frozenset(
    (*RegulatorSettings.__dataclass_fields__, "order", "sent_back", "vetoed", "paid", "may_report", "question")
)


#: The templates of a wording: what a regulator is shown, and what a player is told of it.
REGULATOR, NOTICE = "regulator.jinja", "notice.jinja"


@functools.cache
def load_regulation(wording: str) -> Templates:
    """The words of a wording; a folder without any takes those of `en-a`.

    Args:
        wording: a name below `prompts`, or the path of a folder.
    """
    shipped = Path(__file__).parent / PROMPTS
    folder = shipped / wording if (shipped / wording).is_dir() else Path(wording).expanduser()
    if not (folder / REGULATOR).is_file() or not (folder / NOTICE).is_file():
        folder = shipped / "en-a"
    return Templates(folder, {REGULATOR: [one.name for one in fields(RegulatorSlots)], NOTICE: NOTICE_NAMES})


def _options(name: str, names: Sequence[str], legal: Sequence[int]) -> Options:
    letters = [chr(ord("A") + k) if k < 26 else "" for k in range(len(names))]
    listed = tuple(Option(choice=k, name=names[k], letter=letters[k]) for k in legal)
    return Options(name=name, options=listed, known=tuple(names))


def _shown(question: Question, choice: float) -> tuple[str, float]:
    """A choice as words, and as a number."""
    if isinstance(question, Options):
        return next((one.name for one in question.options if one.choice == choice), str(choice)), float(choice)
    assert isinstance(question, Number), "words are no choice"
    if question.listed:
        value = next((number for listed, number in question.listed if listed == choice), choice)
    else:
        value = choice + question.low if question.counted else choice
    return f"{question.name} {value:.6g}", float(value)


class Regulator:
    """The regulator's seat in one environment: what is held back, what is asked, what was decided.

    Args:
        game: the environment, a `ScenarioEnv`.
        settings: its powers.

    Attributes:
        phases: the phases that it adds.
        choices: how many answers there are at most.
        reader: reads its answers.
        index: the seat's index, after all players.
        reward: what it earned in the last step.
        order: the order in force, as it is written in the settings; empty for none.
    """

    kept: ClassVar[tuple[str, ...]] = (
        *("reward", "order", "_kind", "_speakers", "_held", "_flags", "_docket", "_again", "_revised", "_vetoed"),
        *("_shown", "_owed", "_reports", "_to_report", "_ordered_in", "_sent_back", "_stopped", "_paid"),
    )

    def __init__(self, game: Any, settings: RegulatorSettings) -> None:
        self.game = game
        self.settings = settings
        self.index = game.n_players
        self.actions = (ALLOW, *settings.powers)
        self.orders = (NO_ORDER, *settings.orders)
        self._reviews = bool(settings.powers)
        used = (bool(settings.orders), self._reviews, settings.leniency > 0)
        self.phases = tuple(phase for phase, there in zip(PHASES, used, strict=True) if there)
        self.choices = max(len(self.actions), len(self.orders))
        self.reader = ChoiceReader(spaces.Discrete(self.choices), 1)
        self.clear()

    def clear(self) -> None:
        """A new episode."""
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
        self._flags: dict[int, tuple[str, ...]] = {}
        self._docket: list[int] = []
        self._again: list[int] = []
        self._revised: list[int] = []
        self._vetoed: list[int] = []
        self._shown: dict[int, tuple[str, float]] = {}
        self._owed: dict[int, float] = {}
        self._reports: list[int] = []
        self._to_report = False

    # The clock.

    @property
    def waiting(self) -> bool:
        """Whether a stage waits for an order."""
        return self._waiting is not None

    def next_stage(self) -> Stage | Over:
        """What comes next: an order at the beginning of a round, else what the scenario says."""
        game = self.game
        if self._waiting is not None:
            stage: Stage | Over = self._waiting
            self._waiting = None
            if self.order == SILENCE and isinstance(stage, Stage) and stage.phase == TALK:
                game._orders, stage = [], Stage(TALK, [])
            return stage
        stage = game._next_stage()
        if isinstance(stage, Stage) and self.settings.orders and self._ordered_in != game.round:
            self._ordered_in, self._waiting = game.round, stage
            self.order = ""
            game._ordered("")
            return Stage(ORDER, [[self.index]])
        return stage

    def play(self, choices: NDArray[Any], messages: Mapping[int, object], missing: Sequence[int]) -> bool:
        """Play one step; whether the level of players that began it is over."""
        game = self.game
        who = game._who.tolist()
        self.reward = 0.0
        if game.phase == ORDER:
            self._give_order(self._answer(choices, missing))
            return True
        if game.phase == REVIEW:
            self._rule(self._answer(choices, missing))
        elif game.phase == REPORT:
            self._take_reports(who, choices, missing)
        elif game.phase == TALK:
            self._take_messages(who, messages)
        else:
            self._take_choices(choices, missing)
        return self._go_on()

    def _go_on(self) -> bool:
        game = self.game
        if self._to_report:
            self._turn_to(REPORT, self._speakers)
        elif self._docket:
            self._turn_to(REVIEW, [self.index])
        elif self._again:
            self._turn_to(self._kind, self._again)
            self._again = []
        else:
            game.phase = self._kind
            self._finish()
            self._clear_level()
            return True
        return False

    def _turn_to(self, phase: str, who: list[int]) -> None:
        self.game.phase = phase
        self.game._who = np.asarray(who, dtype=np.intp)

    # What players submit.

    def _opens(self, who: list[int]) -> None:
        """Whoever submits anew has heard what became of the last submission."""
        game = self.game
        if not self._speakers:
            self._kind, self._speakers = game.phase, who
        self._sent_back = [i for i in self._sent_back if i not in who]
        self._stopped = [i for i in self._stopped if i not in who]
        for i in who:
            self._paid.pop(i, None)

    def _take_messages(self, who: list[int], messages: Mapping[int, object]) -> None:
        self._opens(who)
        limit = self.game.conversation.max_length
        for i in who:
            raw = messages.get(i)
            text, flags = clean_message(raw, limit)
            if flags:
                self.game._flags[i] = flags
            self._held.pop(i, None)
            if text:
                self._held[i] = raw
                self._shown[i] = (text, 0.0)
        if self._reviews and "talk" in self.settings.on:
            self._docket = [i for i in who if i in self._held]

    def _take_choices(self, choices: NDArray[Any], missing: Sequence[int]) -> None:
        game = self.game
        who = game._who
        self._opens(who.tolist())
        first = not self._held
        for i, value in zip(who.tolist(), game._usable(choices, who, missing).tolist(), strict=True):
            self._held[i] = value
            self._flags[i] = game._flags.get(i, ())
            self._shown[i] = _shown(game._question(i), value)
        self._to_report = first and self.settings.leniency > 0
        if self._reviews and "choices" in self.settings.on:
            self._docket = who.tolist()

    def _take_reports(self, who: list[int], choices: NDArray[Any], missing: Sequence[int]) -> None:
        self._to_report = False
        for i in who:
            # A continuous space holds more than the two answers: no other number reports.
            if not (choices[i] >= 0 and (choices[i] <= 1 or not self.game._choices.discrete)):
                self.game._flags[i] = (MISSING_ACTION if i in missing else ILLEGAL_CHOICE,)
        self._reports = [i for i in who if choices[i] == 1]
        for i in self._reports:
            self._tell(agent=self.game.possible_agents[i], action=REPORT, on=self._kind)

    # What the regulator answers.

    def _answer(self, choices: NDArray[Any], missing: Sequence[int]) -> int:
        raw = choices[self.index] if len(choices) > self.index else -1
        found = int(raw) if raw == raw and float(raw).is_integer() and 0 <= raw < self.choices else -1
        if found < 0 or not self.mask()[found]:
            self.game._flags[self.index] = (MISSING_ACTION if self.index in missing else ILLEGAL_CHOICE,)
            return 0
        return found

    def _tell(self, *, agent: str = SEAT, **data: Any) -> None:
        game = self.game
        if game.record:
            who = self.index if agent == SEAT else game.possible_agents.index(agent)
            game.emit("regulation", agent=agent, **data, flags=list(game._flags.get(who, ())))

    def _give_order(self, answer: int) -> None:
        self.order = "" if answer == 0 else self.orders[answer]
        self.game._ordered(self.order)
        self._tell(action=ORDER, on=ORDER, order=self.order)

    def _rule(self, answer: int) -> None:
        game, settings = self.game, self.settings
        i = self._docket.pop(0)
        action = self.actions[answer]
        said = {"text": self._shown[i][0]} if self._kind == TALK else {"choice": self._held[i]}
        more: dict[str, Any] = {}
        if action == REVISE:
            self._again.append(i)
            self._revised.append(i)
            self._sent_back.append(i)
        elif action == "veto":
            self._stopped.append(i)
            self._vetoed.append(i)
        elif action == "fine":
            detected = (
                bool(self._reports) or settings.detection >= 1 or bool(game.np_random.random() < settings.detection)
            )
            fined = settings.fine * (1 - settings.leniency if i in self._reports else 1) if detected else 0.0
            self._owed[i] = fined
            more = {"detected": detected, "fined": fined}
        self._tell(action=action, on=self._kind, about=game.possible_agents[i], **said, **more)

    def _finish(self) -> None:
        """Let what was not stopped be heard or done."""
        game, told = self.game, dict(self.game._flags)
        if self._kind == TALK:
            spoken = {i: self._held[i] for i in self._speakers if i in self._held and i not in self._vetoed}
            game._deliver(list(spoken), spoken)
            game._flags = told  # whoever is not on turn now was told before
            return
        who = np.asarray(self._speakers, dtype=np.intp)
        values = [game._instead(i, self._held[i]) if i in self._vetoed else self._held[i] for i in self._speakers]
        game._flags.update({i: flags for i, flags in self._flags.items() if flags})
        usable = np.asarray(values)
        if game.record:
            game._record_choices(who, usable)
        game._flags = told
        game._apply(self._kind, who, usable)
        for i, owed in self._owed.items():
            game._rewards[i] -= owed
            if owed:
                self._paid[i] = owed
        if self.settings.reward == "fines":
            self.reward = sum(self._owed.values())
        elif self.settings.reward == "welfare":
            self.reward = game._welfare()

    # What is asked and seen.

    def question(self) -> Options:
        """What the regulator, or a player who may report, is asked."""
        game = self.game
        if game.phase == REPORT:
            return _options("report", _REPORTING, (0, 1))
        names = self.orders if game.phase == ORDER else self.actions
        return _options("order" if game.phase == ORDER else "decision", names, np.flatnonzero(self.mask()).tolist())

    def mask(self) -> NDArray[np.int8]:
        """The regulator's legal answers; off turn the first alone."""
        game = self.game
        legal = np.zeros(self.choices, dtype=np.int8)
        legal[0] = 1
        if game.over or game.phase not in (ORDER, REVIEW):
            return legal
        if game.phase == ORDER:
            legal[: len(self.orders)] = 1
            return legal
        for k, action in enumerate(self.actions):
            possible = action != REVISE or self._docket[0] not in self._revised
            legal[k] = possible and (action != "fine" or self._kind != TALK)
        return legal

    def features(self) -> NDArray[np.float32]:
        """The scenario's state, then what is ruled on: whether anything is (1 or -1), whose, its number, reported."""
        game = self.game
        about = self._about
        more = [-1.0, 0.0, 0.0, 0.0]
        if about is not None:
            value = self._shown[about][1]
            more = [1.0, about / max(1, game.n_players - 1), value / (1 + abs(value)), float(about in self._reports)]
        return np.concatenate([game._state_vector(), more]).astype(np.float32)

    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lower and upper bounds of the features."""
        low, high = self.game._state_bounds
        return (
            np.concatenate([low, [-1, 0, -1, 0]]).astype(np.float32),
            np.concatenate([high, np.ones(4)]).astype(np.float32),
        )

    @property
    def read(self) -> list[Message]:
        """What can still be heard of what was said, as it was said; nothing if it may not read it."""
        return self.game.conversation.messages if self.settings.reads_talk else []

    @property
    def _about(self) -> int | None:
        return self._docket[0] if self._docket and self.game.phase == REVIEW else None

    def slots(self, common: Mapping[str, Any], heard: tuple[Heard, ...]) -> RegulatorSlots:
        """What the regulator may know; `common` holds the fields of `Slots`."""
        game, about, names = self.game, self._about, self.game.possible_agents
        talking = about is not None and self._kind == TALK
        shown = ("", 0.0) if about is None else self._shown[about]
        name = "" if about is None else names[about]
        return RegulatorSlots(
            round=game.round,
            about=name,
            message=Heard(speaker=name, text=shown[0], own=False) if talking else None,
            chosen="" if talking else shown[0],
            value=shown[1],
            revised=about in self._revised,
            reported=tuple(names[i] for i in self._reports),
            said=heard,
            picture=game._picture(),
            fine=self.settings.fine,
            detection=self.settings.detection,
            order=self.order,
            **common,
        )

    def news(self, index: int) -> dict[str, Any]:
        """What a player is told of the regulator."""
        may_report = self.game.phase == REPORT and index in self.game._who.tolist()
        return {
            **{name: getattr(self.settings, name) for name in RegulatorSettings.__dataclass_fields__},
            "order": self.order,
            "sent_back": index in self._sent_back,
            "vetoed": index in self._stopped,
            "paid": self._paid.get(index, 0.0),
            "may_report": may_report,
            "question": self.question() if may_report else None,
        }

    # Snapshots.

    def get_state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        waiting = None
        if self._waiting is not None:
            waiting = [self._waiting.phase, [[int(i) for i in level] for level in self._waiting.levels]]
        who = [int(i) for i in self.game._who]
        return {**{name: packed(getattr(self, name)) for name in self.kept}, "waiting": waiting, "who": who}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        for name in self.kept:
            setattr(self, name, unpacked(state[name]))
        self._waiting = None if state["waiting"] is None else Stage(*state["waiting"])
        self.game._who = np.asarray(state["who"], dtype=np.intp)
        self.game._ordered(self.order)

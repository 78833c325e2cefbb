"""What each seat sees after a step: its numeric row, the messages it heard, its slots and its text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.array_env import TALK, ArrayEnv
from llm_coop_envs.core.settings import OWN
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.messages import Message
from llm_coop_envs.interface.move_spaces import mask_of
from llm_coop_envs.interface.question import Question, Words
from llm_coop_envs.interface.slots import Heard, Slots, constant_names
from llm_coop_envs.interface.wording import load_wording
from llm_coop_envs.mechanisms.slots import TEMPLATE as MECHANISM
from llm_coop_envs.mechanisms.slots import load_mechanism
from llm_coop_envs.treatments.listeners import NEWS, load_news
from llm_coop_envs.treatments.presence import ADDRESS, LEFT, MOST_NAMED, load_address, load_left
from llm_coop_envs.treatments.regulator import PHASES, REPORT
from llm_coop_envs.treatments.regulator_slots import NOTICE, REGULATOR, RegulatorSlots, load_regulation

Observation = dict[str, Any]


class ObservedEnv(ArrayEnv):
    """An environment on arrays whose seats see observations, infos and texts."""

    slots_type: ClassVar[type[Slots] | Mapping[str, type[Slots]]]
    home: ClassVar[Path]
    tells_who_left: ClassVar[bool] = True  # in everybody's text

    def _load_words(self) -> None:
        """Load the wording of the settings; the words of treatments follow once it is known which there are."""
        settings = self.settings
        self._words = Words(longest=settings.message_length)
        kinds = self.slots_type.values() if isinstance(self.slots_type, Mapping) else (self.slots_type,)
        names = frozenset(field.name for kind in kinds for field in fields(kind))
        self._wording = load_wording(settings.wording, self.home, names, constant_names(self.slots_type))
        self._left_told = (-1, "")

    def _load_treatments(self) -> None:
        if self.regulator is not None:
            self._regulation = load_regulation(self.settings.wording, self.home)
        if self._notices is not None:
            self._news = load_news(self.settings.wording, self.home)

    @abstractmethod
    def action_space(self, agent: str) -> spaces.Dict:
        """The action space of `agent`."""

    @abstractmethod
    def _slots(self, index: int, common: dict[str, Any]) -> Slots:
        """The slots of one player; `common` holds the fields of `interface.slots.Slots` by name."""

    def look(
        self,
        *,
        on_turn: bool = False,
        slots_only: bool = False,
        who: Indices | None = None,
        rows: NDArray[np.float32] | None = None,
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Observations and infos of those who are playing, as the last `reset` or `step` gave them.

        What to act on after `set_state` or `submit`.

        Args:
            on_turn: only of those whose submission counts in the step to come.
            slots_only: the observations hold `phase` and `turn` alone, and the infos no `action_mask`, for those who
                decide from `slots`.
            who: only of these players, by index.
            rows: the numeric observations, if `features()` was asked for them already.
        """
        if self.over:
            return {}, {}
        if who is None:
            who = self.on_turn if on_turn else self.live
        return self._views(who, slots_only=slots_only, rows=rows)

    def question_for(self, index: int) -> Question:
        """What a seat on turn is asked; stands in its slots too."""
        return self._words if self.phase == TALK else self._choice_question(index)

    def _heard(self, index: int, *, own: bool = False) -> tuple[Heard, ...]:
        """What a player has heard, for its slots."""
        if self.conversation.silent:
            return ()
        names = self.possible_agents
        heard = self.conversation.heard(index, own=own, since=self._since(index))
        return tuple([m.as_heard(names, m.speaker == index) for m in heard])

    def _mask_by_phase(self, index: int, legal: NDArray[np.int8] | None, question: Question | None) -> Any:
        """A player's mask as its action space is made: of the only phase with choices, or of all by name."""
        space = self.action_space(self.possible_agents[index])["choice"]
        if not isinstance(space, spaces.Dict) or not set(space) <= set(self.phases):
            return mask_of(question, space) if legal is None else legal
        # In phases other than the present one nothing is chosen: the first choice is as good as any.
        masks = {name: self._reader_of(name).masks(None, self._who[:0], everyone=False) for name in space}
        by_phase = {name: None if mask is None else mask[index].copy() for name, mask in masks.items()}
        if self.phase in by_phase:
            by_phase[self.phase] = mask_of(question, space[self.phase]) if legal is None else legal
        return by_phase

    def _choice_question(self, index: int) -> Question:
        """What a seat on turn is asked outside talk."""
        if self.regulator is not None and self.phase in PHASES:
            return self.regulator.question()
        return self._answering()[0](index)

    def _regulated_slots(self, index: int, common: dict[str, Any]) -> Slots:
        """The slots of a seat beside a regulator, or of the regulator; a player's with the regulator's notice."""
        regulator = self.regulator
        assert regulator is not None, "asked only where there is a regulator"
        if index == self.n_players:
            names = self.possible_agents
            heard = tuple(message.as_heard(names, False) for message in self._read_by_regulator())
            return regulator.slots(common, round_=self.round, heard=heard, picture=self._public_picture())
        may_report = self.phase == REPORT and index in self._who.tolist()
        notice = self._regulation.render(NOTICE, regulator.notice_values(index, may_report=may_report))
        if self.phase == REPORT:  # the scenario's own words ask for nothing then
            common["on_turn"] = False
        both = (common["notice"], notice)
        return self._slots(index, {**common, "notice": "\n\n".join(part for part in both if part)})

    def _read_by_regulator(self) -> list[Message]:
        """The messages that can still be heard, as they were said; none if the regulator may not read them."""
        assert self.regulator is not None, "asked only where there is a regulator"
        return self.conversation.messages if self.regulator.settings.reads_talk else []

    def _news_text(self, index: int) -> str:
        """The unread news of a seat, a line each."""
        assert self._notices is not None, "asked only where there are listeners"
        unread = self._notices.unread(index, self._open_talk_number())
        return "\n".join(self._news.render(NEWS, news.values()).strip() for news in unread)

    def _address_text(self, index: int, *, asked: bool) -> str:
        """How to speak to some players alone, if a player is asked to speak; and whom it has not reached."""
        others = [i for i in self._reachable(index) if i != index] if asked else []
        values = {
            "names": [self.possible_agents[i] for i in others],
            "count": len(others),
            "groups": [name for name, members in self._named_groups().items() if not set(members).isdisjoint(others)],
            "most": self.settings.private_messages,
            "unreached": self._unreached.get(index, ()),
        }
        return load_address(self.settings.wording).render(ADDRESS, values).strip()

    def _mechanism_words(self, index: int, common: Mapping[str, Any]) -> dict[str, Any]:
        """What a player is told of the mechanism; in its phases the scenario's own words ask for nothing."""
        known = self._mechanism_slots(index, common["question"])
        text = load_mechanism(self.settings.wording).render(MECHANISM, vars(known))
        notice = "\n\n".join(part for part in (common["notice"], text) if part)
        is_asked = common["on_turn"] and not self._is_mechanisms
        return {"mechanism": known, "notice": notice, "on_turn": is_asked}

    def _departure_text(self) -> str:
        """The sentence that names the players who have left by a change; empty if nobody has."""
        if self._without is None or not self.tells_who_left:
            return ""
        if self._left_told[0] != self.round:
            departed = np.flatnonzero(self._without <= self.round).tolist()
            names = [self.possible_agents[i] for i in departed] if len(departed) <= MOST_NAMED else []
            values = {"names": names, "count": len(departed), "players": self.n_players}
            text = load_left(self.settings.wording).render(LEFT, values).strip() if departed else ""
            self._left_told = self.round, text
        return self._left_told[1]

    def _text(self, slots: Slots) -> str:
        """What a seat may know, in words."""
        if isinstance(slots, RegulatorSlots):
            return self._regulation.render(REGULATOR, vars(slots))
        text = self._wording.render(vars(slots))
        if not slots.notice:
            return text
        # The question stays last: the scenario's own, or the notice's where the scenario's words ask for nothing.
        body, question = text.rpartition("\n\n")[::2] if slots.on_turn else (text, "")
        return "\n\n".join(part for part in (body, slots.notice, question) if part)

    def _views(
        self, seats: Indices, *, slots_only: bool = False, rows: NDArray[np.float32] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        rows = None if slots_only else self._features() if rows is None else rows
        masks = None if slots_only else self.masks()
        turn, phase = self.turn[seats].tolist(), self.phases.index(self.phase)
        names, talk = self.possible_agents, self.settings.ever_talks
        may_talk = self.settings.talks_in(self.round)
        departures = self._departure_text()
        common = {"phase": self.phase, "may_talk": may_talk, "notice": departures, "mechanism": None}
        common["message_length"] = self.settings.message_length
        common |= {"informed": self.settings.information != OWN, "memory": self.settings.memory}
        observations: dict[str, Observation] = {}
        infos: dict[str, dict[str, Any]] = {}
        for i, is_on_turn in zip(seats.tolist(), turn, strict=True):
            question = self.question_for(i) if is_on_turn else None
            if self.settings.changes:
                now = self.settings_of(i)
                common |= {"may_talk": now.talk, "informed": now.information != OWN, "memory": now.memory}
            mine = {"me": names[i], "role": self.role_of(i), "on_turn": is_on_turn == 1, "question": question, **common}
            if self._notices:
                mine["notice"] = "\n".join(part for part in (departures, self._news_text(i)) if part)
            if self.settings.private_messages:
                both = (mine["notice"], self._address_text(i, asked=self.phase == TALK and is_on_turn == 1))
                mine["notice"] = "\n".join(part for part in both if part)
            if self._has_mechanism_words:
                mine |= self._mechanism_words(i, mine)
            slots = self._slots(i, mine) if self.regulator is None else self._regulated_slots(i, mine)
            view: Observation = {"phase": phase, "turn": is_on_turn}
            info = {"round": self.round, "step": self.cycles, "flags": self._flags.get(i, ()), "slots": slots}
            if rows is not None:
                is_player = i < self.n_players
                legal = self.regulator_mask() if not is_player else None if masks is None else masks[i].copy()
                view = {"observation": rows[i] if is_player else self.regulator_features(), **view}
                if self._asking and is_player:
                    legal = self._mask_by_phase(i, legal, question)
                mask: dict[str, Any] = {"choice": legal}
                if talk:
                    if is_player:
                        heard, mask["message"] = self.conversation.heard(i, since=self._since(i)), None
                    else:
                        heard = self._read_by_regulator()
                    view["messages"] = tuple({"speaker": m.speaker, "text": m.text} for m in heard)
                view["text"] = self._text(slots)
                info = {"action_mask": mask, **info}
            observations[names[i]], infos[names[i]] = view, info
        return observations, infos

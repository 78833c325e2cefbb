"""Talk in a running episode: which talk comes next, how messages reach their hearers, who is notified of what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.core.channels import Audience, Conversation
from llm_coop_envs.interface.addressing import TOO_MANY, UNREACHED, reach, split_letters
from llm_coop_envs.interface.hooks import TALK, Event, Stage
from llm_coop_envs.interface.messages import Message, clean_message
from llm_coop_envs.treatments.listeners import MENTION, News, Notices
from llm_coop_envs.treatments.presence import Presence


class Talking(Presence):
    """The part of `ArrayEnv` that carries messages and news, and records events."""

    record: bool
    events: list[Event]
    cycles: int
    phase: str
    conversation: Conversation
    _audience: Audience
    _orders: list[list[int]]
    _notices: Notices | None
    _treats: bool
    _flags: dict[int, tuple[str, ...]]
    _paraphrases: dict[int, str]
    _unreached: dict[int, tuple[str, ...]]

    def emit(self, kind: str, **data: Any) -> None:
        """Record an event."""
        self.events.append({"type": kind, "step": self.cycles, "round": self.round, **data})

    def happened(
        self, what: str, *, number: float = 0.0, name: str = "", concerned: Iterable[int] | None = None
    ) -> None:
        """Notify listeners that something happened.

        Args:
            what: one of the settings' `happenings`.
            number: its number.
            name: the player or thing that it is about.
            concerned: the players whom it concerns; by default all who learn what others do.
        """
        if self._notices is None:
            return
        if concerned is None and self._hides:
            concerned = np.flatnonzero(~self.blind).tolist()
        if self._without is not None:
            candidates = range(self.n_players) if concerned is None else concerned
            concerned = [i for i in candidates if self._without[i] > self.round]
        notified = self._notices.notify(News(what, number, name, self._open_talk_number()), concerned)
        if self.record and notified:
            agents = [self.possible_agents[i] for i in notified]
            self.emit("news", what=what, number=number, name=name, agents=agents)

    def _talk_stage(self, orders: Sequence[Sequence[int]], audience: Audience) -> Stage:
        """A talk phase: each order is one talk, in which everyone in it speaks once. No levels if talk has ended."""
        self._orders = [list(order) for order in orders] if self.settings.talks_in(self.round) else []
        if self.settings.changes:
            self._orders = [[i for i in order if self.settings_of(i).talk] for order in self._orders]
        if self._joins is not None:
            present = set(self.present_in(self.round).tolist())
            self._orders = [[i for i in order if i in present] for order in self._orders]
        self._audience = audience
        return Stage(TALK, self._open_talk())

    def _open_talk_number(self) -> int:
        """The number of the open talk; -1 for none."""
        return self.conversation.number if self.phase == TALK else -1

    def _open_talk(self) -> list[list[int]]:
        """Open the next talk of this phase. Returns its speakers, step by step."""
        if not self._orders:
            return []
        together = self.settings.talk_mode == "simultaneous"
        return self.conversation.open(self._orders.pop(0), self._audience, together=together, round_=self.round)

    def _take_paraphrases(self, speakers: list[int], paraphrases: Mapping[int, str]) -> None:
        """Keep the speakers' own paraphrases until their messages are delivered: a regulator may hold these back."""
        if not paraphrases and not self._paraphrases:
            return
        for i in speakers:
            self._paraphrases.pop(i, None)
            if i in paraphrases:
                self._paraphrases[i] = paraphrases[i]

    def _deliver(self, speakers: list[int], messages: Mapping[int, object]) -> None:
        """Let messages be heard, each as its treatment says; notify listeners, and record them."""
        names = self.possible_agents
        departed: frozenset[int] = frozenset()
        if self._treats and self._without is not None:
            departed = frozenset(np.flatnonzero(self._without <= self.round).tolist())
        for i, text, hearers, part in self._letters(speakers, messages):
            treated = self.settings_of(i) if self._treats else None
            message, flags = self.conversation.say(
                i,
                text,
                treated,
                players=self.n_players,
                gone=departed,
                paraphrase=self._paraphrases.pop(i, ""),
                hearers=hearers,
                part=part,
            )
            if flags:
                self._flags[i] = tuple(dict.fromkeys((*self._flags.get(i, ()), *flags)))
            # A message that is heard later, or otherwise than it was said, notifies nobody.
            if self._notices is not None and message is not None and message.delivered is None:
                mentions = self._notices.find_mentions(message.text, i)
                mentions = [listener for listener in mentions if self._hears(listener, message)]
                if mentions:
                    self.happened(MENTION, name=names[i], concerned=mentions)
            if self.record and message is not None:
                heard_by = None if message.hearers is None else [names[k] for k in message.hearers]
                self.emit(
                    "message",
                    agent=names[i],
                    text=message.text,
                    talk=message.sequence,
                    position=message.position,
                    hearers=heard_by,
                    flags=list(flags),
                    **({"private": True} if message.private else {}),
                    **self._delivery_data(message),
                )

    def _named_groups(self) -> Mapping[str, Iterable[int]]:
        """Players who can be addressed together, by a name such as `"sellers"`; by default those of each role."""
        return {f"{role}s": [i for i, own in enumerate(self._roles) if own == role] for role in self._seats()}

    def _reachable(self, speaker: int) -> list[int]:
        """The players who are in the game and hear a speaker of the open talk."""
        hearing = self.conversation.listeners(speaker)
        present = self.present_in(self.round).tolist()
        return [i for i in present if self._alive[i] and (hearing is None or i in hearing)]

    def _letters(
        self, speakers: list[int], messages: Mapping[int, object]
    ) -> Iterator[tuple[int, object, tuple[int, ...] | None, int]]:
        """The messages of the speakers: who alone hears each, `None` for all who hear the speaker, and its number."""
        most = self.settings.private_messages
        names, groups = self.possible_agents[: self.n_players], self._named_groups()
        for i in speakers:
            raw = messages.get(i)
            if not most and isinstance(raw, str | None):
                yield i, raw, None, 0
                continue
            letters = split_letters(raw, names, groups)
            if len(letters) > max(most, 1):
                self._flags[i] = (TOO_MANY,)
            unreached: list[str] = []
            for part, letter in enumerate(letters[: max(most, 1)]):
                # Without private messages nothing that is meant for some is said at all: not to all, either.
                reached, absent = reach(letter, i, names, groups, self._reachable(i) if most else ())
                unreached += absent
                if absent and self.record:
                    text = clean_message(letter.text, self.settings.message_length)[0]
                    self.emit("unreached", agent=names[i], to=[name[:40] for name in absent], text=text)
                if reached is None or reached:
                    yield i, letter.text, reached, part
            if unreached:
                self._flags[i] = (*self._flags.get(i, ()), UNREACHED)
            self._unreached[i] = tuple(name[:40] for name in unreached)

    def _hears(self, listener: int, message: Message) -> bool:
        """Whether a player hears what was said, by the end of the talk; scenarios may narrow it down."""
        return message.hearers is None or listener in message.hearers

    def _delivery_data(self, message: Message) -> dict[str, Any]:
        """The field `delivered` of a message's event; none if the message was heard as it was said."""
        delivered = message.delivered
        if delivered is None:
            return {}
        data: dict[str, Any] = {"treatment": delivered.treatment, "text": delivered.text}
        if delivered.round is not None:
            data["round"] = delivered.round
        for name in ("speaker", "instead"):
            index = getattr(delivered, name)
            if index is not None:
                data[name] = self.possible_agents[index]
        return {"delivered": data}

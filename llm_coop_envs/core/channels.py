"""Message channels: who hears whom, who speaks when, and what has been said.

Sequential speech is played in its exact parallel form. Each speaker has the level 1 + the highest level among
the earlier speakers it can hear; all speakers of one level take their turn in the same step. A speaker sees the
messages of *earlier positions* it can hear, never those of later ones, so the transcript is that of speaking one
by one, and the number of steps drops from the number of speakers to the number of levels.

Players are indices 0..n-1 here.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.interface.messages import Delivered, Message, clean_message
from llm_coop_envs.treatments.delivery import DeliverySettings, deliver
from llm_coop_envs.util.draws import Key
from llm_coop_envs.util.packing import pack_value, unpack_value


class Audience:
    """Who hears whom.

    Args:
        listeners: for each speaker the indices of those who hear it, ascending, the speaker not among them, or `None`
            for everyone; all in place of the mapping means that everyone hears everyone.
    """

    def __init__(self, listeners: Mapping[int, Sequence[int] | None] | None) -> None:
        self.heard_by = (
            None
            if listeners is None
            else {s: None if heard is None else tuple(int(i) for i in heard) for s, heard in listeners.items()}
        )

    def listeners(self, speaker: int) -> tuple[int, ...] | None:
        """Who hears `speaker`; `None` means everyone."""
        return None if self.heard_by is None else self.heard_by.get(speaker, ())

    def levels(self, order: Sequence[int]) -> list[list[int]]:
        """Group an order of speakers, each in it at most once, into levels that may speak at the same time.

        The levels come first to last; inside a level speakers keep their order.
        """
        if self.heard_by is None:
            return [[speaker] for speaker in order]
        floor: dict[int, int] = {}
        lowest = 0  # after whoever is heard by everyone
        levels: list[list[int]] = []
        for speaker in order:
            level = max(floor.get(speaker, 0), lowest)
            if level == len(levels):
                levels.append([])
            levels[level].append(speaker)
            listeners = self.heard_by.get(speaker, ())
            if listeners is None:
                lowest = level + 1
                continue
            for listener in listeners:
                if floor.get(listener, 0) <= level:
                    floor[listener] = level + 1
        return levels


def everyone() -> Audience:
    """A group: everyone hears everyone."""
    return Audience(None)


def pairs(partners: Mapping[int, int]) -> Audience:
    """One-on-one: each speaker is heard by its partner alone; `partners` maps speaker to listener."""
    return Audience({speaker: (listener,) for speaker, listener in partners.items()})


def grouped(groups: Iterable[Sequence[int]], announcers: Collection[int] = ()) -> Audience:
    """Nested groups: each hears its own talk, and whoever announces is heard by all groups.

    Args:
        groups: the members of each group; nobody is in two.
        announcers: those whom everyone hears.
    """
    heard: dict[int, Sequence[int] | None] = {}
    for members in groups:
        ordered = sorted(members)
        heard.update((speaker, [*ordered[:k], *ordered[k + 1 :]]) for k, speaker in enumerate(ordered))
    heard.update(dict.fromkeys(announcers))
    return Audience(heard)


def neighbours(players: Sequence[int], hearers: int, announcers: Collection[int] = ()) -> Audience:
    """Neighbourhoods on a ring: a speaker is heard by the next ones on both sides, half of them on each.

    Args:
        players: who stands in the ring, ascending.
        hearers: how many hear a speaker; where it is odd, one more of those that follow.
        announcers: those whom everyone hears.
    """
    size = len(players)
    hearers = min(hearers, size - 1)
    behind = hearers // 2
    steps = [step for step in range(-behind, hearers - behind + 1) if step]
    heard = {speaker: sorted(players[(k + step) % size] for step in steps) for k, speaker in enumerate(players)}
    return Audience({**heard, **dict.fromkeys(announcers)})


def within(positions: NDArray[np.int64], radius: float, speakers: Sequence[int], present: Sequence[int]) -> Audience:
    """Proximity: a speaker is heard by everyone present within a Euclidean distance, itself excluded.

    The cost grows with the number of pairs in neighbouring boxes, not with all pairs.

    Args:
        positions: (players, 2) cell coordinates.
        radius: the hearing radius in cells; a distance equal to it is heard.
        speakers: the indices of those who may speak.
        present: the indices of those who can hear at all.
    """
    box = max(1, math.ceil(radius))
    limit = radius * radius
    where = positions.tolist()
    boxes: dict[tuple[int, int], list[int]] = {}
    for i in present:
        row, col = where[i]
        boxes.setdefault((row // box, col // box), []).append(int(i))
    listeners: dict[int, list[int]] = {}
    for speaker in speakers:
        row, col = where[speaker]
        box_row, box_col = row // box, col // box
        listeners[int(speaker)] = sorted(
            other
            for near_row in (box_row - 1, box_row, box_row + 1)
            for near_col in (box_col - 1, box_col, box_col + 1)
            for other in boxes.get((near_row, near_col), ())
            if other != speaker and (where[other][0] - row) ** 2 + (where[other][1] - col) ** 2 <= limit
        )
    return Audience(listeners)


class Conversation:
    """What has been said and can still be heard.

    A talk is opened with `open`, filled with `say`, and closed by opening the next one or by `close`. While a talk
    is open and sequential, a speaker of it sees only the messages before its own position; when it is closed, all
    who heard a message keep it until `forget`. Delayed messages are heard in the round in which they are due.

    Args:
        max_length: the limit of one message in characters.

    Attributes:
        key: where the random numbers of treatments come from.
        now: the round.
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length
        self.restart()

    def restart(self) -> None:
        """Forget everything, the numbering included: a new episode."""
        self.messages: list[Message] = []
        self.key: Key = (0, 0)
        self.now = 0
        self._treated = False
        self._late: list[Message] = []
        self._audience = everyone()
        self._position: dict[int, int] = {}
        self._last_order: dict[int, int] = {}
        self._sequence = -1
        # The first talk of each round of which anything is kept.
        self._first: dict[int, int] = {}
        self._together = False
        # What each player hears besides what is meant for everyone.
        self._inboxes: dict[int, list[Message]] | None = None
        self._shared: list[Message] = []

    def open(self, order: Sequence[int], audience: Audience, *, together: bool, round_: int = 0) -> list[list[int]]:
        """Start one talk and say who speaks in which step.

        Args:
            order: the speakers, first to last.
            audience: who hears whom during it.
            together: everyone speaks at once and hears the others only afterwards.
            round_: the round.
        """
        self._audience = audience
        self._position = {int(speaker): position for position, speaker in enumerate(order)}
        self._last_order = self._position
        self._sequence += 1
        self._first.setdefault(round_, self._sequence)
        self._together = together
        if together:
            return [[int(speaker) for speaker in order]] if len(order) else []
        return audience.levels([int(speaker) for speaker in order])

    def close(self) -> None:
        """End the talk: everyone now hears what was meant for them, from later speakers too."""
        self._position = {}

    def keep_order(self) -> None:
        """After `close`: a speaker of the last sequential talk still hears only the speakers before it."""
        if not self._together:
            self._position = dict(self._last_order)

    def forget(self) -> None:
        """Drop all messages but those that are still to be heard; the talks' numbering goes on."""
        if self._treated:
            self._late = [m for m in (*self._late, *self.messages) if m.due is not None and m.due >= self.now]
        self.messages = []
        self._first = {}
        self._inboxes = None
        self._position = {}

    def say(
        self,
        speaker: int,
        raw: object,
        settings: DeliverySettings | None = None,
        *,
        players: int = 0,
        gone: Collection[int] = (),
        paraphrase: str = "",
        hearers: tuple[int, ...] | None = None,
        part: int = 0,
    ) -> tuple[Message | None, tuple[str, ...]]:
        """Deliver what a speaker of the open talk submitted.

        Args:
            speaker: the speaker.
            raw: what was submitted.
            settings: the speaker's, if they may treat messages; see `deliver`.
            players: how many players there are.
            gone: those of them who have left.
            paraphrase: the speaker's own paraphrase; empty for none.
            hearers: who alone hears it; `None` for all who hear the speaker.
            part: which of its speaker's messages in this turn it is, from 0.

        Returns:
            The message (`None` for silence), and what was done to make it deliverable.
        """
        text, flags = clean_message(raw, self.max_length)
        if not text:
            return None, flags
        place_in_talk = self._sequence, self._position[speaker]
        delivered = None
        if settings is not None:
            talkers = sorted(self._position)
            delivered = deliver(
                settings,
                self.key,
                text,
                speaker,
                place=place_in_talk,
                round_=self.now,
                talkers=talkers,
                players=players,
                gone=gone,
                own_paraphrase=paraphrase,
            )
            if delivered is not None:
                self._treated = True
                if delivered.text is not None:
                    delivered = replace(delivered, text=clean_message(delivered.text, self.max_length)[0] or None)
        audience = self._audience.listeners(speaker) if hearers is None else hearers
        message = Message(speaker, text, *place_in_talk, audience, delivered, hearers is not None, part)
        self.messages.append(message)
        if self._inboxes is not None:
            self._put(message)
        return message, flags

    def heard(self, listener: int, *, own: bool = False, since: int | None = None) -> list[Message]:
        """What `listener` has heard (and with `own` said), talk by talk, inside a talk in the one-by-one order.

        Args:
            listener: the index of who listens.
            own: with what it said itself.
            since: only what was to be heard in this round or later.
        """
        inbox = self._inbox(listener)
        if since is not None:
            first = min((talk for round_, talk in self._first.items() if round_ >= since), default=self._sequence + 1)
            inbox = [m for m in inbox if m.sequence >= first or (m.due is not None and m.due >= since)]
        bound = self._position.get(listener)
        if bound is None:
            audible = [m for m in inbox if own or m.speaker != listener]
        else:
            latest = self._sequence
            audible = [
                m
                for m in inbox
                if (own or m.speaker != listener)
                and (m.sequence != latest or (m.position < bound and not self._together) or m.speaker == listener)
            ]
        if not self._treated:
            return audible
        arriving = [
            m
            for m in sorted(self._late, key=_place)
            if m.due == self.now and m.speaker != listener and (m.hearers is None or listener in m.hearers)
        ]
        reaching = (m.reaching(listener, self.now) for m in (*arriving, *audible))
        return [m for m in reaching if m is not None]

    def listeners(self, speaker: int) -> tuple[int, ...] | None:
        """Who hears a speaker in the open talk; `None` means everyone."""
        return self._audience.listeners(speaker)

    @property
    def number(self) -> int:
        """Which talk is the latest, counted from 0 in the episode; -1 before the first."""
        return self._sequence

    @property
    def silent(self) -> bool:
        """Whether there is nothing that anybody could hear."""
        return not self.messages and not self._late

    def _inbox(self, listener: int) -> list[Message]:
        if self._inboxes is None:
            self._inboxes, self._shared = {}, []
            for message in self.messages:
                self._put(message)
        own, shared = self._inboxes.get(listener), self._shared
        if own is None:
            return shared
        return sorted([*own, *shared], key=_place) if shared else own

    def _put(self, message: Message) -> None:
        """Put a message where it belongs in what its hearers have heard: mostly at the end."""
        assert self._inboxes is not None, "made by whoever asks first"
        if message.hearers is None:
            bisect.insort(self._shared, message, key=_place)
            return
        for hearer in (*message.hearers, message.speaker):
            bisect.insort(self._inboxes.setdefault(hearer, []), message, key=_place)

    def get_state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            **({"late": list(map(_pack_message, self._late))} if self._treated else {}),
            "messages": list(map(_pack_message, self.messages)),
            "audience": pack_value(self._audience.heard_by),
            "order": pack_value(self._position),
            "sequence": self._sequence,
            "first": pack_value(self._first),
            "together": self._together,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self.messages = list(map(_unpack_message, state["messages"]))
        self._late = list(map(_unpack_message, state.get("late", ())))
        self._treated = "late" in state
        self._inboxes = None
        self._audience = Audience(unpack_value(state["audience"]))
        self._position = self._last_order = unpack_value(state["order"])
        self._sequence = state["sequence"]
        self._first = unpack_value(state.get("first", pack_value({})))
        self._together = state["together"]


def _pack_message(message: Message) -> Any:
    message_fields = [message.speaker, message.text, message.sequence, message.position, message.hearers]
    delivered = None if message.delivered is None else list(astuple(message.delivered))
    if message.private or message.part:
        return pack_value([*message_fields, delivered, message.private, message.part])
    return pack_value(message_fields if delivered is None else [*message_fields, delivered])


def _unpack_message(data: Any) -> Message:
    speaker, text, sequence, position, hearers, *others = unpack_value(data)
    delivered = Delivered(*others[0]) if others and others[0] is not None else None
    return Message(speaker, text, sequence, position, hearers, delivered, *others[1:])


def _place(message: Message) -> tuple[int, int, int]:
    return message.sequence, message.position, message.part

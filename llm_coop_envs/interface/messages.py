"""Messages as plain data: what was said, by whom, who hears it, and what each listener gets of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from llm_coop_envs.interface.slots import Heard

MESSAGE_CUT = "message_cut"
MESSAGE_CLEANED = "message_cleaned"


def clean_message(raw: object, max_length: int) -> tuple[str, tuple[str, ...]]:
    """Make one submitted message deliverable; never raise.

    Every Unicode character survives except lone surrogates, which no file or network can carry: each becomes
    U+FFFD. `None`, and anything else that is not a string, is silence. `max_length` counts code points.

    Returns:
        The message, and what was done to it: `message_cleaned`, `message_cut`, both or neither.
    """
    if raw is None:
        return "", ()
    if not isinstance(raw, str):
        return "", (MESSAGE_CLEANED,)
    flags: tuple[str, ...] = ()
    text = str(raw)
    if not text.isascii():
        fixed = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if fixed != text:
            text, flags = fixed, (MESSAGE_CLEANED,)
    if len(text) > max_length:
        text, flags = text[:max_length], (*flags, MESSAGE_CUT)
    return text, flags


@dataclass(frozen=True, slots=True)
class Delivered:
    """What listeners get of a treated message.

    Attributes:
        treatment: the name of the treatment.
        text: what they hear; `None` for nothing.
        round: the round from which they hear it; `None` for at once.
        speaker: the apparent speaker (index); `None` for the true one.
        instead: the apparent speaker shown to `speaker`, who knows that it did not say this.
    """

    treatment: str
    text: str | None
    round: int | None = None
    speaker: int | None = None
    instead: int | None = None

    def speaker_for(self, listener: int, true: int) -> int:
        """The apparent speaker of a message of the speaker `true`, to one listener."""
        if self.speaker is None:
            return true
        return self.speaker if self.speaker != listener or self.instead is None else self.instead


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said.

    Attributes:
        speaker: the index of its speaker.
        text: what was said.
        sequence: the number of the talk (one talk is one pass of all its speakers), counted from 0 in the episode.
        position: the place in that talk's one-by-one order, from 0.
        hearers: the indices of the players who hear it, ascending; `None` means everyone.
        delivered: what they hear, if it differs from what was said.
        private: whether its speaker said it to its hearers alone.
        part: which of its speaker's messages in this turn it is, from 0.
    """

    speaker: int
    text: str
    sequence: int
    position: int
    hearers: tuple[int, ...] | None
    delivered: Delivered | None = None
    private: bool = False
    part: int = 0
    _known: dict[bool, Heard] = field(default_factory=dict, init=False, repr=False, compare=False)
    _seeming: dict[int, Message] = field(default_factory=dict, init=False, repr=False, compare=False)

    def as_heard(self, names: Sequence[str], own: bool) -> Heard:
        """The message in a listener's slots, by the players' names; made once, because it comes back in all of them."""
        heard = self._known.get(own)
        if heard is None:
            to = tuple(names[i] for i in self.hearers or ()) if self.private else ()
            heard = self._known[own] = Heard(speaker=names[self.speaker], text=self.text, own=own, to=to)
        return heard

    def reaching(self, listener: int, round_: int) -> Message | None:
        """The message as a listener hears it in a round; `None` if nothing of it."""
        delivered = self.delivered
        if delivered is None or listener == self.speaker:
            return self
        if delivered.text is None or (delivered.round is not None and round_ < delivered.round):
            return None
        speaker = delivered.speaker_for(listener, self.speaker)
        if speaker not in self._seeming:
            place = self.sequence, self.position
            self._seeming[speaker] = Message(
                speaker, delivered.text, *place, self.hearers, None, self.private, self.part
            )
        return self._seeming[speaker]

    @property
    def due(self) -> int | None:
        """The round in which it is heard, if that is a later one."""
        return None if self.delivered is None else self.delivered.round

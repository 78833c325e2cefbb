"""Message delivery treatments: drop, delay, shuffle, swap, neutralise or paraphrase messages before they are heard.

A treatment is drawn when a message is said, from the message's place alone: it does not matter which speaker of a level
is asked first. The message itself stays; `Delivered` says what its listeners get.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.messages import Delivered
from llm_coop_envs.treatments.paraphrase import paraphrase
from llm_coop_envs.util.draws import MESSAGES, Key, side_generator
from llm_coop_envs.util.references import load

TREATMENTS = ("deliver", "drop", "delay", "shuffle", "swap", "neutral", "paraphrase")
DELIVER, DROP, DELAY, SHUFFLE, SWAP, NEUTRAL, PARAPHRASE = TREATMENTS
SPEAKER = "speaker"
"""For `delivery_by`: the speaker itself puts its message in other words, if its action brings a `paraphrase`."""
_CIRCLE = 2**32 - 1  # a position that no message has


class DeliverySettings(Protocol):
    """The settings that say how messages are delivered."""

    @property
    def delivery(self) -> str:
        """The treatment's name."""
        ...

    @property
    def delivery_share(self) -> float:
        """The share of messages that are treated."""
        ...

    @property
    def delivery_delay(self) -> int:
        """The number of rounds by which delayed messages are late."""
        ...

    @property
    def delivery_text(self) -> str:
        """The neutral sentence."""
        ...

    @property
    def delivery_by(self) -> str:
        """The paraphrasing function."""
        ...

    def reach(self, name: str) -> list[Any]:
        """All values that a setting may have in the course of an episode."""
        ...


def check_delivery(settings: DeliverySettings) -> None:
    """Require that the paraphrasing functions of the settings can be imported.

    Raises:
        SettingsError: one cannot, or is no function.
    """
    for reference in settings.reach("delivery_by"):
        try:
            usable = reference in ("", SPEAKER) or callable(load(reference))
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError("delivery_by", reference, f"cannot be imported ({error})") from error
        if not usable:
            raise SettingsError("delivery_by", reference, "is no function from a text to a text")


def deliver(
    settings: DeliverySettings,
    key: Key,
    text: str,
    speaker: int,
    *,
    place: tuple[int, int],
    round_: int,
    talkers: Sequence[int],
    players: int,
    gone: Collection[int] = (),
    own_paraphrase: str = "",
) -> Delivered | None:
    """Treat a message. Returns what its listeners get; `None` if it is delivered as it is.

    Args:
        settings: the speaker's settings in this round; their fields `delivery...` say what is done.
        key: the key of the random numbers.
        text: the message.
        speaker: its speaker.
        place: the number of the talk, and the message's position in it.
        round_: the round in which it is said.
        talkers: the speakers of the talk, ascending.
        players: how many players there are.
        gone: the players who have left; none of them is an apparent speaker.
        own_paraphrase: the speaker's own paraphrase; empty for none.
    """
    treatment = settings.delivery
    if treatment == DELIVER:
        return None
    if settings.delivery_share < 1 and side_generator(key, MESSAGES, *place).random() >= settings.delivery_share:
        return None
    if treatment == DELAY:
        return Delivered(treatment, text, round=round_ + settings.delivery_delay)
    if treatment in (SHUFFLE, SWAP):
        # Shuffled anew in each talk among its speakers, swapped once for the whole episode among all.
        purpose, among = ((place[0] + 1,), list(talkers)) if treatment == SHUFFLE else ((0,), list(range(players)))
        dealt = side_generator(key, MESSAGES, *purpose, _CIRCLE).permutation(among).tolist()
        circle = [i for i in dealt if i not in gone]
        at = circle.index(speaker)
        following, next_but_one = (circle[(at + steps) % len(circle)] for steps in (1, 2))
        return Delivered(treatment, text, speaker=following, instead=next_but_one)
    if treatment == PARAPHRASE:
        return Delivered(treatment, _paraphrase(text, settings.delivery_by, own_paraphrase))
    return Delivered(treatment, {DROP: None, NEUTRAL: settings.delivery_text}[treatment])


def _paraphrase(text: str, by: str, own_paraphrase: str) -> str:
    """A message in other words: the speaker's own, a function's, or those of the table."""
    if by not in ("", SPEAKER):
        replacement: str = load(by)(text)
        return replacement
    return (by and own_paraphrase) or paraphrase(text)

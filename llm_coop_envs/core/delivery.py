"""What becomes of a message between speaker and listeners: treatments whose effects show what talk does.

A treatment is decided when a message is said, from the message's place alone, so that it does not matter which of
several speakers of a level is asked first. What was said stays; who hears what follows from `Delivered`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from llm_coop_envs.core.draws import MESSAGES, Key, side_generator
from llm_coop_envs.core.messages import Delivered
from llm_coop_envs.core.paraphrase import paraphrase
from llm_coop_envs.core.references import load
from llm_coop_envs.errors import SettingsError

if TYPE_CHECKING:
    from llm_coop_envs.core.settings import ScenarioSettings

TREATMENTS = ("deliver", "drop", "delay", "shuffle", "swap", "neutral", "paraphrase")
DELIVER, DROP, DELAY, SHUFFLE, SWAP, NEUTRAL, PARAPHRASE = TREATMENTS
SPEAKER = "speaker"
"""For `delivery_by`: who speaks says it itself in other words, if it can; see `InOtherWords`."""
_CIRCLE = 2**32 - 1  # a position that no message has


class InOtherWords(str):
    """A message that brings along how its speaker says the same in other words.

    Args:
        text: the message.
        other: the other words; empty if there are none.
    """

    def __new__(cls, text: str, other: str = "") -> InOtherWords:
        """The message with its other words."""
        made = super().__new__(cls, text)
        made.other = other
        return made

    other: str


def check_delivery(settings: ScenarioSettings) -> None:
    """Find out whether the functions that say something in other words are there.

    Raises:
        SettingsError: one is not.
    """
    for reference in settings.reach("delivery_by"):
        try:
            usable = reference in ("", SPEAKER) or callable(load(reference))
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError("delivery_by", reference, f"cannot be imported ({error})") from error
        if not usable:
            raise SettingsError("delivery_by", reference, "is no function from a text to a text")


def deliver(
    settings: ScenarioSettings,
    key: Key,
    text: str,
    speaker: int,
    *,
    place: tuple[int, int],
    round_: int,
    talkers: Sequence[int],
    players: int,
    gone: Collection[int] = (),
    other: str = "",
) -> Delivered | None:
    """What becomes of a message; `None` if it is delivered as it is.

    Args:
        settings: the speaker's settings in this round; their fields `delivery...` say what is done.
        key: where the random numbers come from.
        text: what was said.
        speaker: by whom.
        place: the number of the talk, and the message's position in it.
        round_: in which round.
        talkers: the speakers of the talk, ascending.
        players: how many players there are.
        gone: those of them who have left; nobody seems to be one of them.
        other: the same in the speaker's own other words, where it brought any.
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
    words = {DROP: None, NEUTRAL: settings.delivery_text, PARAPHRASE: text}[treatment]
    if treatment == PARAPHRASE:
        own = settings.delivery_by in ("", SPEAKER)
        words = (settings.delivery_by and other) or paraphrase(text) if own else load(settings.delivery_by)(text)
    return Delivered(treatment, words)

"""What a regulator may know, as slots, and the templates that put it into words."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from pathlib import Path

from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.interface.wording import PROMPTS, Templates, read_words
from llm_coop_envs.treatments.powers import RegulatorSettings


@dataclass(frozen=True, kw_only=True)
class RegulatorSlots(Slots):
    """What a regulator may know.

    Attributes:
        round: the round, as the scenario counts.
        about: the player whose message or choice is ruled on; empty if there is none.
        message: what that player wants to say; `None` where a choice is ruled on.
        chosen: what that player wants to do, in words; empty where a message is ruled on.
        value: the choice as a number: a price, the number named, or else the choice's index; 0 for a message.
        revised: whether the player was asked for a revision already.
        reported: the players who have reported an agreement in this round.
        said: the messages that can still be heard; empty if the regulator may not read them.
        picture: the situation, as onlookers see it.
        fine: the amount of a fine.
        detection: the probability that a fine is imposed.
        order: the order in force in this round; empty for none.
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


#: What `notice.jinja` may use: the regulator's settings, and what it did to this player.
NOTICE_NAMES = frozenset(
    (
        *RegulatorSettings.__dataclass_fields__,
        "order",
        "sent_back",
        "vetoed",
        "paid",
        "may_report",
        "question",
        "talked",
    )
)


#: The templates of a wording: the regulator's text, and its notice to a player.
REGULATOR, NOTICE = "regulator.jinja", "notice.jinja"


@functools.cache
def load_regulation(wording: str, home: Path) -> Templates:
    """Load the regulator's templates of a wording; a folder without them takes those of `en-a`.

    Args:
        wording: a name below `prompts`, or the path of a folder.
        home: the scenario's folder, whose words for its options and orders they use too.
    """
    shipped = Path(__file__).parent / PROMPTS
    folder = shipped / wording if (shipped / wording).is_dir() else Path(wording).expanduser()
    if not (folder / REGULATOR).is_file() or not (folder / NOTICE).is_file():
        folder = shipped / "en-a"
    slot_names = {REGULATOR: [field_.name for field_ in fields(RegulatorSlots)], NOTICE: NOTICE_NAMES}
    return Templates(folder, slot_names, words=read_words(home / PROMPTS / folder.name))

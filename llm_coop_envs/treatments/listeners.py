"""Listeners: when something happens, chosen players are told of it, in a line beside what they know.

What happens is named by the scenario's settings (`happenings`); every scenario knows `mention`, somebody's name in a
message. A talk's mentions are told when it is over, because it is played in its exact parallel form.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.interface.wording import PROMPTS, Templates
from llm_coop_envs.treatments.changes import fits_any, read_patterns
from llm_coop_envs.util.base_settings import Settings
from llm_coop_envs.util.checks import check_number
from llm_coop_envs.util.packing import packed, unpacked

MENTION = "mention"
NEWS = "news.jinja"
#: What `news.jinja` may use besides what the scenario tells.
NEWS_NAMES = ("what", "number", "name")


@dataclass(frozen=True, kw_only=True)
class Listener(Settings):
    """Who is told when something happens.

    Attributes:
        on: what: `"mention"`, the player's name in what another one said (told when that talk is over); more is the
            scenario's to say.
        players: names or patterns such as `"firm_*"` of those who are told; empty for everybody, or for all whom it
            concerns.
        above: only where the number of what happens is above this; `None`: always.
    """

    on: str = "mention"
    players: tuple[str, ...] = ()
    above: float | None = None

    def __post_init__(self) -> None:
        """Check the fields, as far as that is possible without the scenario."""
        super().__post_init__()
        object.__setattr__(self, "players", read_patterns(self.players))
        if self.above is not None:
            check_number(self, "above", -math.inf, math.inf)


@functools.cache
def load_news(wording: str, home: Path) -> Templates:
    """The words of a wording: the scenario's own, or those for what every scenario knows.

    Args:
        wording: a name below `prompts`, or the path of a folder.
        home: the scenario's folder.
    """
    folders = [home / PROMPTS / wording, Path(__file__).parent / PROMPTS / wording, Path(wording).expanduser()]
    folder = next((one for one in folders if (one / NEWS).is_file()), home / PROMPTS / "en-a")
    if not (folder / NEWS).is_file():
        folder = Path(__file__).parent / PROMPTS / "en-a"
    return Templates(folder, {NEWS: NEWS_NAMES})


@dataclass(frozen=True, slots=True)
class News:
    """Something a player is told of.

    Attributes:
        what: which happening.
        number: its number; 0 where it has none.
        name: whom or what it is about.
        talk: the talk after which it is told; -1: at once.
    """

    what: str
    number: float = 0.0
    name: str = ""
    talk: int = -1

    def values(self) -> dict[str, Any]:
        """What the words may use."""
        return {name: getattr(self, name) for name in NEWS_NAMES}


class Notices:
    """What players are still to be told.

    Args:
        listeners: who is told of what.
        players: the players' names, in index order.
    """

    def __init__(self, listeners: Sequence[Listener], players: Sequence[str]) -> None:
        self._players = players
        self._listening = [
            (one, [i for i, name in enumerate(players) if not one.players or fits_any(name, one.players)])
            for one in listeners
        ]
        self.hears_mentions = any(one.on == MENTION for one in listeners)
        role = players[0].rpartition("_")[0]
        self._names = re.compile(rf"(?<!\w){re.escape(role)}_(0|[1-9]\d{{0,8}})(?!\w)", re.ASCII | re.IGNORECASE)
        self._waiting: dict[int, list[News]] = {}

    def __bool__(self) -> bool:
        """Whether anybody is still to be told of something."""
        return bool(self._waiting)

    def clear(self) -> None:
        """Nobody is told of anything: a new episode."""
        self._waiting = {}

    def happened(self, news: News, concerned: Iterable[int] | None = None) -> list[int]:
        """Remember something for those who listen, and say who they are.

        Args:
            news: what happened.
            concerned: whom it concerns; everybody by default.
        """
        told: set[int] = set()
        meant = None if concerned is None else set(concerned)
        for one, who in self._listening:
            if one.on == news.what and (one.above is None or news.number > one.above):
                told.update(who if meant is None else meant.intersection(who))
        for index in told:
            self._waiting.setdefault(index, []).append(news)
        return sorted(told)

    def mentioned(self, text: str, speaker: int) -> list[int]:
        """The players whom a message names, the speaker apart."""
        named = {int(number) for number in self._names.findall(text)} if self.hears_mentions else set()
        return sorted(i for i in named if i != speaker and i < len(self._players))

    def of(self, index: int, talk: int) -> list[News]:
        """What a player is told now, while a talk is open (-1: none is)."""
        return [news for news in self._waiting.get(index, ()) if news.talk < 0 or news.talk != talk]

    def told(self, who: Iterable[int], talk: int) -> None:
        """Forget what these players have been told by now."""
        for index in who:
            rest = [news for news in self._waiting.get(index, ()) if news.talk >= 0 and news.talk == talk]
            if rest:
                self._waiting[index] = rest
            else:
                self._waiting.pop(index, None)

    def get_state(self) -> Any:
        """What is still to be told, as plain data."""
        return packed({i: [(n.what, n.number, n.name, n.talk) for n in all_] for i, all_ in self._waiting.items()})

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on with what `get_state` gave."""
        self._waiting = {i: [News(*one) for one in all_] for i, all_ in unpacked(state).items()}

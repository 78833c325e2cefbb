"""Listeners: notify chosen players when something happens, by a line in their text.

A scenario's settings name what can happen (`happenings`); every scenario knows `mention`, a player's name in a message.
Mentions are notified when their talk is over, because a talk is played in its exact parallel form.
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
from llm_coop_envs.treatments.changes import EVERYONE, fits_any, read_patterns
from llm_coop_envs.util.base_settings import Settings
from llm_coop_envs.util.checks import check_number
from llm_coop_envs.util.packing import pack_value, unpack_value

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
    """Load the news templates of a wording: the scenario's own, or those for what every scenario knows.

    Args:
        wording: a name below `prompts`, or the path of a folder.
        home: the scenario's folder.
    """
    folders = [home / PROMPTS / wording, Path(__file__).parent / PROMPTS / wording, Path(wording).expanduser()]
    folder = next((path for path in folders if (path / NEWS).is_file()), home / PROMPTS / "en-a")
    if not (folder / NEWS).is_file():
        folder = Path(__file__).parent / PROMPTS / "en-a"
    return Templates(folder, {NEWS: NEWS_NAMES})


@dataclass(frozen=True, slots=True)
class News:
    """Something that players are notified of.

    Attributes:
        what: the name of the happening.
        number: its number; 0 where it has none.
        name: the player or thing that it is about.
        talk: the talk after which players are notified; -1 for at once.
    """

    what: str
    number: float = 0.0
    name: str = ""
    talk: int = -1

    def values(self) -> dict[str, Any]:
        """What `news.jinja` may use."""
        return {name: getattr(self, name) for name in NEWS_NAMES}


class Notices:
    """News that players have not read yet.

    Args:
        listeners: which players are notified of what.
        players: the players' names, in index order.
    """

    def __init__(self, listeners: Sequence[Listener], players: Sequence[str]) -> None:
        self._players = players
        self._listening = [
            (listener, [i for i, name in enumerate(players) if fits_any(name, listener.players or (EVERYONE,))])
            for listener in listeners
        ]
        self.hears_mentions = any(listener.on == MENTION for listener in listeners)
        role = players[0].rpartition("_")[0]
        self._names = re.compile(rf"(?<!\w){re.escape(role)}_(0|[1-9]\d{{0,8}})(?!\w)", re.ASCII | re.IGNORECASE)
        self._waiting: dict[int, list[News]] = {}

    def __bool__(self) -> bool:
        """Whether there is unread news."""
        return bool(self._waiting)

    def clear(self) -> None:
        """Forget all news: a new episode."""
        self._waiting = {}

    def notify(self, news: News, concerned: Iterable[int] | None = None) -> list[int]:
        """Keep news for the players who listen to it. Returns their indices, ascending.

        Args:
            news: what happened.
            concerned: the players whom it concerns; everybody by default.
        """
        notified: set[int] = set()
        candidates = None if concerned is None else set(concerned)
        for listener, players in self._listening:
            if listener.on == news.what and (listener.above is None or news.number > listener.above):
                notified.update(players if candidates is None else candidates.intersection(players))
        for index in notified:
            self._waiting.setdefault(index, []).append(news)
        return sorted(notified)

    def find_mentions(self, text: str, speaker: int) -> list[int]:
        """The players whom a message names, without the speaker."""
        mentions = {int(number) for number in self._names.findall(text)} if self.hears_mentions else set()
        return sorted(i for i in mentions if i != speaker and i < len(self._players))

    def unread(self, index: int, talk: int) -> list[News]:
        """The news for a player now; `talk` is the open talk, whose news has to wait, or -1 for none."""
        return [news for news in self._waiting.get(index, ()) if news.talk < 0 or news.talk != talk]

    def mark_read(self, players: Iterable[int], talk: int) -> None:
        """Forget what these players have read by now; news of the open talk stays."""
        for index in players:
            later = [news for news in self._waiting.get(index, ()) if news.talk >= 0 and news.talk == talk]
            if later:
                self._waiting[index] = later
            else:
                self._waiting.pop(index, None)

    def get_state(self) -> Any:
        """The unread news, as plain data."""
        return pack_value({i: [(n.what, n.number, n.name, n.talk) for n in all_] for i, all_ in self._waiting.items()})

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self._waiting = {i: [News(*entry) for entry in all_] for i, all_ in unpack_value(state).items()}

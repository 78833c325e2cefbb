"""What is talked about, by lists of words: English and German ones, and those of the scenario (`topics.json`).

A list's words count where they begin a word of the text if they end with `*`, else as whole words; upper and lower case
are the same. Irony, negation and words that are not in the lists are not seen.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from llm_coop_envs.core.records import of_type, start_of
from llm_coop_envs.core.scenario import Event, Row, Scenario

FILE = "topics.json"
PREFIX = "talk_of_"
_ANY = ""
TOPICS: Mapping[str, str] = {
    "cooperation": "doing something together or for the others",
    "rivalry": "winning against the others, or their winning",
    "promise": "what somebody is going to do",
    "threat": "what happens to those who do otherwise",
    "doubt": "not believing or not knowing",
    "choice": "what is chosen, in the scenario's words",
    "outcome": "what comes of it, in the scenario's words",
}
"""The topics, with what they are about."""

Words = Mapping[str, Mapping[str, Sequence[str]]]


def topic_measures(events: Sequence[Event], scenario: Scenario) -> Row:
    """The shares of an episode's messages that are about each topic, as `ABOUT` defines them."""
    found = sorted(_found(events, scenario).items())
    half = len(found) // 2 + len(found) % 2
    early, late = (_counted(about for _, said in some for about in said) for some in (found[:half], found[half:]))
    whole = early + late
    row: Row = {}
    for name in TOPICS:
        row[PREFIX + name] = whole[name] / whole[_ANY] if whole else None
        changed = late[name] / late[_ANY] - early[name] / early[_ANY] if early and late else None
        row[f"{PREFIX}{name}_change"] = changed
    return row


def topic_rounds(events: Sequence[Event], scenario: Scenario) -> dict[int, Row]:
    """How many messages of each round are about each topic, by the number of the round."""
    counts = {number: _counted(said) for number, said in _found(events, scenario).items()}
    return {number: {PREFIX + name: count[name] for name in TOPICS} for number, count in counts.items()}


def _found(events: Sequence[Event], scenario: Scenario) -> dict[int, list[frozenset[str]]]:
    wording = str(start_of(events)["settings"].get("wording", ""))
    home = scenario.env_class.home
    found: dict[int, list[frozenset[str]]] = {}
    for event in of_type(events, "message"):
        found.setdefault(event["round"], []).append(topics_of(event["text"], home, wording[:3]))
    return found


def _counted(said: Iterable[frozenset[str]]) -> Counter[str]:
    """How many messages are about each topic, and under `_ANY` how many there are."""
    return Counter(name for about in said for name in (_ANY, *about))


@functools.lru_cache(maxsize=65_536)
def topics_of(text: str, home: Path, language: str) -> frozenset[str]:
    """The topics that a message is about.

    Args:
        text: what was said.
        home: the scenario's room, which may have words of its own.
        language: the beginning of the wording's name, such as `"de-"`; words of all languages count if it is none.
    """
    return frozenset(name for name, words in _patterns(home, language).items() if words.search(text))


@functools.cache
def _patterns(home: Path, language: str) -> dict[str, re.Pattern[str]]:
    lists = [one for path in (Path(__file__).parent, home) if (path / FILE).is_file() for one in [_read(path / FILE)]]
    wanted = language.removesuffix("-") if language.endswith("-") else ""
    languages = [wanted] if any(wanted in one for one in lists) else {name: None for one in lists for name in one}
    found = {}
    for name in TOPICS:
        words = [word for one in lists for spoken in languages for word in one.get(spoken, {}).get(name, ())]
        if words:
            ends = "|".join(
                re.escape(word.removesuffix("*")) + (r"\w*" if word.endswith("*") else "") for word in words
            )
            found[name] = re.compile(rf"(?<!\w)(?:{ends})(?!\w)", re.IGNORECASE)
    return found


def _read(path: Path) -> Words:
    words: Words = json.loads(path.read_text(encoding="utf-8"))
    return words


ABOUT: Mapping[str, str] = {
    name: text
    for topic, about in TOPICS.items()
    for name, text in (
        (PREFIX + topic, f"Share of messages that speak of {about}, by a list of words, 0 to 1; missing without any."),
        (
            f"{PREFIX}{topic}_change",
            f"{PREFIX}{topic} in the later half of the rounds with talk less that in the earlier half, -1 to 1.",
        ),
    )
}

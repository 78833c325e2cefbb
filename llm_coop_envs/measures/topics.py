"""Topics of messages, recognised by word lists: English and German ones, and the scenario's own (`topics.json`).

A list entry that ends with `*` matches every word that begins so; any other entry matches whole words. Upper and lower
case are the same. Irony, negation and words outside the lists are not recognised.
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
"""Under this name `_count_topics` counts all messages."""
TOPICS: Mapping[str, str] = {
    "cooperation": "doing something together or for the others",
    "rivalry": "winning against the others, or their winning",
    "promise": "what somebody is going to do",
    "threat": "what happens to those who do otherwise",
    "doubt": "not believing or not knowing",
    "choice": "what is chosen, in the scenario's words",
    "outcome": "what comes of it, in the scenario's words",
}
"""What each topic is about."""

WordLists = Mapping[str, Mapping[str, Sequence[str]]]
"""Words by language and topic, as in `topics.json`."""


def topic_measures(events: Sequence[Event], scenario: Scenario) -> Row:
    """Compute the share of an episode's messages about each topic, and its change, as `ABOUT` defines them."""
    rounds = sorted(_message_topics(events, scenario).items())
    half = len(rounds) // 2 + len(rounds) % 2  # of three rounds with talk the first two are early
    early, late = (
        _count_topics(topics for _, messages in part for topics in messages) for part in (rounds[:half], rounds[half:])
    )
    whole = early + late
    row: Row = {}
    for name in TOPICS:
        row[PREFIX + name] = whole[name] / whole[_ANY] if whole else None
        changed = late[name] / late[_ANY] - early[name] / early[_ANY] if early and late else None
        row[f"{PREFIX}{name}_change"] = changed
    return row


def topic_rounds(events: Sequence[Event], scenario: Scenario) -> dict[int, Row]:
    """Count the messages about each topic in each round, by the number of the round."""
    counts = {number: _count_topics(messages) for number, messages in _message_topics(events, scenario).items()}
    return {number: {PREFIX + name: count[name] for name in TOPICS} for number, count in counts.items()}


def _message_topics(events: Sequence[Event], scenario: Scenario) -> dict[int, list[frozenset[str]]]:
    """Return the topics of each message, by the number of the round."""
    wording = str(start_of(events)["settings"].get("wording", ""))
    home = scenario.env_class.home
    by_round: dict[int, list[frozenset[str]]] = {}
    for event in of_type(events, "message"):
        by_round.setdefault(event["round"], []).append(topics_of(event["text"], home, wording[:3]))
    return by_round


def _count_topics(messages: Iterable[frozenset[str]]) -> Counter[str]:
    """Count the messages about each topic, and under `_ANY` all messages."""
    return Counter(name for topics in messages for name in (_ANY, *topics))


@functools.lru_cache(maxsize=65_536)
def topics_of(text: str, home: Path, language: str) -> frozenset[str]:
    """Return the topics of a message.

    Args:
        text: The message.
        home: The scenario's room, which may have word lists of its own.
        language: The beginning of the wording's name, such as `"de-"`. If it names no language that has lists, the
            lists of all languages are used.
    """
    return frozenset(name for name, pattern in _patterns(home, language).items() if pattern.search(text))


@functools.cache
def _patterns(home: Path, language: str) -> dict[str, re.Pattern[str]]:
    r"""Compile one pattern per topic that has words.

    Example: the entries `promis*` and `pact` become `(?<!\w)(?:promis\w*|pact)(?!\w)`.
    """
    paths = [folder / FILE for folder in (Path(__file__).parent, home)]
    lists = [_read_lists(path) for path in paths if path.is_file()]
    code = language.removesuffix("-") if language.endswith("-") else ""
    if any(code in by_language for by_language in lists):
        languages = [code]
    else:
        languages = list(dict.fromkeys(name for by_language in lists for name in by_language))
    patterns = {}
    for name in TOPICS:
        entries = [
            entry for by_language in lists for code in languages for entry in by_language.get(code, {}).get(name, ())
        ]
        if entries:
            alternatives = "|".join(
                re.escape(entry.removesuffix("*")) + (r"\w*" if entry.endswith("*") else "") for entry in entries
            )
            patterns[name] = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)
    return patterns


def _read_lists(path: Path) -> WordLists:
    lists: WordLists = json.loads(path.read_text(encoding="utf-8"))
    return lists


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

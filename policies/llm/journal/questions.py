"""Read the questions of a journal: all of them, those of an episode in order, or the one under a key."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.journal.frames import Gap, JournalError, journal_files, read_commits, require_journal
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.opening import DAMAGED
from llm_coop_envs.util.paths import StrPath

_SHOWN = 80
_NUMBER = re.compile(r"(\d+)")


def read_questions(folder: StrPath, gaps: list[str] | None = None) -> Iterator[tuple[RequestKey, Any]]:
    """Yield the journal's lines that hold a question with its answer or error, from all parts.

    Args:
        folder: the run's folder.
        gaps: receives a sentence for each gap; unreadable lines are skipped.
    """
    for path in journal_files(folder):
        for commit in read_commits(path):
            if isinstance(commit, Gap):
                if gaps is not None:
                    gaps.append(
                        f"{path}: {commit.size} bytes from byte {commit.start} cannot be read ({commit.reason})"
                    )
            else:
                with contextlib.suppress(*DAMAGED):  # `read_run` reports invalid lines
                    for line in commit.lines():
                        if "request" in line:
                            yield RequestKey(*line["key"]), line


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A question (roles and texts) with its answer, or with the error that the policy got."""

    key: RequestKey
    messages: tuple[tuple[str, str], ...]
    reply: ChatReply | None
    error: str = ""


def read_episode(folder: StrPath, episode: str, gaps: list[str] | None = None) -> list[Exchange]:
    """Read an episode's questions and answers, sorted by step, then by player, then in the order asked.

    Args:
        folder: the run's folder.
        episode: the episode's name, `"condition/seed"`.
        gaps: receives a sentence for each gap in the journal.

    Raises:
        JournalError: there is no journal, or the episode is not in it.
    """
    require_journal(folder)
    exchanges: dict[RequestKey, Exchange] = {}
    names: set[str] = set()
    for key, line in read_questions(folder, gaps):
        names.add(key.episode)
        if key.episode == episode:
            _add(exchanges, key, line)
    if not names:
        raise JournalError(f"{folder}: its journal holds no answers yet")
    if not exchanges:
        raise JournalError(f"{folder}: its journal has no episode '{episode}'; {suggestion(episode, sorted(names))}")
    return _in_order(exchanges)


def read_all_episodes(folder: StrPath, gaps: list[str] | None = None) -> dict[str, list[Exchange]]:
    """Read the questions and answers of all episodes at once, each as `read_episode` gives them.

    Args:
        folder: the run's folder.
        gaps: as for `read_episode`.

    Returns:
        The exchanges of each episode, by its name; nothing if there is no journal.
    """
    episodes: dict[str, dict[RequestKey, Exchange]] = {}
    for key, line in read_questions(folder, gaps):
        _add(episodes.setdefault(_episode_of(key), {}), key, line)
    return {name: _in_order(exchanges) for name, exchanges in episodes.items()}


def _add(exchanges: dict[RequestKey, Exchange], key: RequestKey, line: Any) -> None:
    """Add a line's exchange, unless the question was answered before."""
    if key not in exchanges or exchanges[key].reply is None:
        exchanges[key] = Exchange(
            key=key,
            messages=tuple((role, text) for role, text in line["request"]["messages"]),
            reply=ChatReply.read(line["reply"]) if line["type"] == "answer" else None,
            error=line["error"]["message"] if line["type"] == "failed" else "",
        )


def _in_order(exchanges: dict[RequestKey, Exchange]) -> list[Exchange]:
    """Exchanges by step, then by player, then in the order asked."""
    order = {key: number for number, key in enumerate(exchanges)}  # a player's own questions arrive in order
    return sorted(
        exchanges.values(), key=lambda exchange: (exchange.key.step, _natural(exchange.key.agent), order[exchange.key])
    )


def _episode_of(key: RequestKey) -> str:
    """The name `"condition/seed"` of a question's episode."""
    return "/".join(key.episode.split("/")[:2])


def list_episodes(folder: StrPath, gaps: list[str] | None = None) -> dict[str, int]:
    """List the episodes in a run's journal (`"condition/seed"`) with the number of questions of each.

    Args:
        folder: the run's folder.
        gaps: as for `read_episode`.

    Raises:
        JournalError: there is no journal.
    """
    require_journal(folder)
    episode_of = {key: _episode_of(key) for key, _ in read_questions(folder, gaps)}
    counts = Counter(episode_of.values())
    return {name: counts[name] for name in sorted(counts, key=_natural)}


def _natural(name: str) -> tuple[Any, ...]:
    """A sort key that puts player_2 before player_10."""
    return tuple(int(part) if part.isdigit() else part for part in _NUMBER.split(name))


def describe_difference(folder: StrPath, key: RequestKey, request: ChatRequest) -> str:
    """Describe, for a message, how a question differs from the one recorded under its key."""
    recorded = next((line["request"] for name, line in read_questions(folder) if name == key), None)
    return "it cannot be said in what" if recorded is None else _compare(recorded, request.plain())


def _compare(old: dict[str, Any], new: dict[str, Any]) -> str:
    for name in sorted({*old, *new} - {"messages"}):
        if old.get(name) != new.get(name):
            return f"{name} was {old.get(name)!r}, is now {new.get(name)!r}"
    old_messages, new_messages = old["messages"], new["messages"]
    if len(old_messages) != len(new_messages):
        return f"it had {len(old_messages)} messages, has now {len(new_messages)}"
    pairs = zip(old_messages, new_messages, strict=True)
    for number, ((role, text), (new_role, new_text)) in enumerate(pairs, start=1):
        if role != new_role:
            return f"message {number} was the {role}'s, is now the {new_role}'s"
        lines = itertools.zip_longest(text.splitlines(), new_text.splitlines(), fillvalue="")
        for index, (old_line, new_line) in enumerate(lines, start=1):
            if old_line != new_line:
                was, now = _excerpt(old_line, new_line), _excerpt(new_line, old_line)
                return f"message {number}, line {index} was {was!r}, is now {now!r}"
    return "only in white space at the ends of lines"


def _excerpt(text: str, other: str) -> str:
    """The part of a line around its first describe_difference from another."""
    pairs = itertools.zip_longest(text, other)
    common = next(index for index, (character, another) in enumerate(pairs) if character != another)
    start = max(0, common - _SHOWN // 2)
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")

"""The questions of a journal, and how one differs from the recorded one."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.core.checks import suggestion
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.journal.frames import Gap, JournalError, journal_files, read_commits

_SHOWN = 80
_NUMBER = re.compile(r"(\d+)")


def read_questions(folder: Path, gaps: list[str] | None = None) -> Iterator[tuple[RequestKey, Any]]:
    """The lines that hold a question and what came of it, of all parts.

    What cannot be read is left out; `gaps` gets a sentence on each.
    """
    for path in journal_files(folder):
        for commit in read_commits(path):
            if isinstance(commit, Gap):
                if gaps is not None:
                    gaps.append(
                        f"{path}: {commit.size} bytes from byte {commit.start} cannot be read ({commit.reason})"
                    )
            else:
                with contextlib.suppress(KeyError, TypeError, ValueError):  # `read_run` tells of them
                    for line in commit.lines():
                        if "request" in line:
                            yield RequestKey(*line["key"]), line


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question (roles and texts) and what came of it: an answer, or the error that the policy was told."""

    key: RequestKey
    messages: tuple[tuple[str, str], ...]
    reply: ChatReply | None
    error: str = ""


def read_episode(folder: Path, episode: str, gaps: list[str] | None = None) -> list[Exchange]:
    """An episode's questions and answers: step by step, in a step player by player, each player's own in order.

    Args:
        folder: the run's folder.
        episode: the episode's name, `"condition/seed"`.
        gaps: gets a sentence on everything in the journal that cannot be read.

    Raises:
        JournalError: there is no journal, or the episode is not in it.
    """
    _need_journal(folder)
    exchanges: dict[RequestKey, Exchange] = {}
    names: set[str] = set()
    for key, line in read_questions(folder, gaps):
        names.add(key.episode)
        if key.episode == episode and (key not in exchanges or exchanges[key].reply is None):
            exchanges[key] = Exchange(
                key=key,
                messages=tuple((role, text) for role, text in line["request"]["messages"]),
                reply=ChatReply.read(line["reply"]) if line["type"] == "answer" else None,
                error=line["error"]["message"] if line["type"] == "failed" else "",
            )
    if not names:
        raise JournalError(f"{folder}: its journal holds no answers yet")
    if not exchanges:
        raise JournalError(f"{folder}: its journal has no episode '{episode}'; {suggestion(episode, sorted(names))}")
    order = {key: number for number, key in enumerate(exchanges)}  # a player's own questions arrive in order
    return sorted(
        exchanges.values(), key=lambda exchange: (exchange.key.step, _natural(exchange.key.agent), order[exchange.key])
    )


def list_episodes(folder: Path, gaps: list[str] | None = None) -> dict[str, int]:
    """The episodes in a run's journal, `"condition/seed"` each, with how many questions of each were answered.

    Args:
        folder: the run's folder.
        gaps: as for `read_episode`.

    Raises:
        JournalError: there is no journal.
    """
    _need_journal(folder)
    episode_of = {key: "/".join(key.episode.split("/")[:2]) for key, _ in read_questions(folder, gaps)}
    counts = Counter(episode_of.values())
    return {name: counts[name] for name in sorted(counts, key=_natural)}


def _need_journal(folder: Path) -> None:
    if not journal_files(folder):
        raise JournalError(f"{folder}: holds no journal; give the folder of a run that asked a model")


def _natural(name: str) -> tuple[Any, ...]:
    """Sorts player_2 before player_10."""
    return tuple(int(part) if part.isdigit() else part for part in _NUMBER.split(name))


def difference(folder: Path, key: RequestKey, request: ChatRequest) -> str:
    """How a question differs from the one that is recorded under its key, for a message."""
    recorded = next((line["request"] for name, line in read_questions(folder) if name == key), None)
    return "it cannot be said in what" if recorded is None else _compare(recorded, request.plain())


def _compare(old: dict[str, Any], new: dict[str, Any]) -> str:
    for name in sorted({*old, *new} - {"messages"}):
        if old.get(name) != new.get(name):
            return f"{name} was {old.get(name)!r}, is now {new.get(name)!r}"
    old_messages, new_messages = old["messages"], new["messages"]
    if len(old_messages) != len(new_messages):
        return f"it had {len(old_messages)} messages, has now {len(new_messages)}"
    for number, ((role, text), (new_role, new_text)) in enumerate(
        zip(old_messages, new_messages, strict=True), start=1
    ):
        if role != new_role:
            return f"message {number} was the {role}'s, is now the {new_role}'s"
        lines = itertools.zip_longest(text.splitlines(), new_text.splitlines(), fillvalue="")
        for index, (was, now) in enumerate(lines, start=1):
            if was != now:
                return f"message {number}, line {index} was {_short(was, now)!r}, is now {_short(now, was)!r}"
    return "only in white space at the ends of lines"


def _short(text: str, other: str) -> str:
    """The part of a line around its first difference from another."""
    pairs = itertools.zip_longest(text, other)
    common = next(index for index, (character, another) in enumerate(pairs) if character != another)
    start = max(0, common - _SHOWN // 2)
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")

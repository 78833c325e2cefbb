"""What was asked and answered in an episode, in order, to read."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatReply, RequestKey
from llm_coop_envs.policies.llm.journal import JournalError, journal_files, read_questions
from llm_coop_envs.util.checks import suggestion

_NUMBER = re.compile(r"(\d+)")


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
    found: dict[RequestKey, Exchange] = {}
    names: set[str] = set()
    for key, line in read_questions(folder, gaps):
        names.add(key.episode)
        if key.episode == episode and (key not in found or found[key].reply is None):
            found[key] = Exchange(
                key=key,
                messages=tuple((role, text) for role, text in line["request"]["messages"]),
                reply=ChatReply.read(line["reply"]) if line["type"] == "answer" else None,
                error=line["error"]["message"] if line["type"] == "failed" else "",
            )
    if not names:
        raise JournalError(f"{folder}: its journal holds no answers yet")
    if not found:
        raise JournalError(f"{folder}: its journal has no episode '{episode}'; {suggestion(episode, sorted(names))}")
    order = {key: number for number, key in enumerate(found)}  # a player's own questions arrive in order
    return sorted(found.values(), key=lambda one: (one.key.step, _natural(one.key.agent), order[one.key]))


def list_episodes(folder: Path, gaps: list[str] | None = None) -> dict[str, int]:
    """The episodes in a run's journal, `"condition/seed"` each, with how many questions of each were answered.

    Args:
        folder: the run's folder.
        gaps: as for `read_episode`.

    Raises:
        JournalError: there is no journal.
    """
    _need_journal(folder)
    found = {key: "/".join(key.episode.split("/")[:2]) for key, _ in read_questions(folder, gaps)}
    counts = Counter(found.values())
    return {name: counts[name] for name in sorted(counts, key=_natural)}


def _need_journal(folder: Path) -> None:
    if not journal_files(folder):
        raise JournalError(f"{folder}: holds no journal; give the folder of a run that asked a model")


def _natural(name: str) -> tuple[Any, ...]:
    """Sorts player_2 before player_10."""
    return tuple(int(part) if part.isdigit() else part for part in _NUMBER.split(name))

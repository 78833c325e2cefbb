"""What was asked and answered in an episode, in order, to read."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.policies.llm.chat import ChatReply, RequestKey
from llm_coop_envs.policies.llm.journal import JournalError, journal_files, read_questions

# Everything that a terminal acts on instead of showing it: control characters, directions, private characters.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question (roles and texts) and what came of it: an answer, or the error that the policy was told."""

    key: RequestKey
    messages: tuple[tuple[str, str], ...]
    reply: ChatReply | None
    error: str = ""


def read_episode(folder: Path, episode: str) -> list[Exchange]:
    """An episode's questions and answers: step by step, in a step player by player, each player's own in order.

    Args:
        folder: the run's folder.
        episode: the episode's name, `"condition/seed"`.

    Raises:
        JournalError: there is no journal, or the episode is not in it.
    """
    _need_journal(folder)
    found: dict[RequestKey, Exchange] = {}
    names: set[str] = set()
    for key, line in read_questions(folder):
        names.add(key.episode)
        if key.episode == episode and key not in found:
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


def list_episodes(folder: Path) -> dict[str, int]:
    """The episodes in a run's journal, `"condition/seed"` each, with how many questions of each were answered.

    Raises:
        JournalError: there is no journal.
    """
    _need_journal(folder)
    found = {key: "/".join(key.episode.split("/")[:2]) for key, _ in read_questions(folder)}
    counts = Counter(found.values())
    return {name: counts[name] for name in sorted(counts, key=_natural)}


def _need_journal(folder: Path) -> None:
    if not journal_files(folder):
        raise JournalError(f"{folder}: holds no journal; give the folder of a run that asked a model")


def harmless(text: str) -> str:
    """A text that only shows: what a terminal would act on is written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign if sign in "\n\t" or unicodedata.category(sign) not in _ACTING else _escaped(ord(sign)) for sign in text
    )


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _natural(name: str) -> tuple[Any, ...]:
    """Sorts player_2 before player_10."""
    return tuple(int(part) if part.isdigit() else part for part in _NUMBER.split(name))

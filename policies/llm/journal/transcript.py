"""What was asked and answered in an episode, in order, from a run's journal."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.policies.llm.chat import RequestKey
from llm_coop_envs.policies.llm.journal.errors import JournalError
from llm_coop_envs.policies.llm.journal.frames import Frame, read_frames, suffix_of
from llm_coop_envs.policies.llm.journal.reader import journal_files, lines_of

_KEPT = frozenset("\n\t")
# Everything that a terminal acts on instead of showing it: control characters, directions, private characters.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question and what came of it.

    Attributes:
        key: which decision.
        messages: the question: roles and texts.
        answer: the answer; the error's sentence where the policy was told of one.
        model: who answered, as the provider reports it; empty for an error.
        finish_reason: the provider's word; `"error"` for an error.
        refusal: the provider's refusal text, if it marked one.
        reasoning: the model's visible reasoning, if the provider sent it apart from the answer.
    """

    key: RequestKey
    messages: tuple[tuple[str, str], ...]
    answer: str
    model: str
    finish_reason: str
    refusal: str | None = None
    reasoning: str | None = None


def read_episode(folder: Path, episode: str) -> list[Exchange]:
    """An episode's questions and answers: step by step, in a step player by player, each player's own in order.

    Args:
        folder: the run's folder.
        episode: the episode's name, `"condition/seed"`.

    Raises:
        JournalError: there is no journal, or the episode is not in it.
    """
    found: dict[RequestKey, Exchange] = {}
    names: set[str] = set()
    files = journal_files(folder)
    if not files:
        raise JournalError(f"{folder}: holds no journal; give the folder of a run that asked a model")
    for path in files:
        with path.open("rb") as file:
            for frame in read_frames(file, suffix_of(path)):
                if isinstance(frame, Frame):
                    for line in lines_of(frame):
                        _take(line, episode, found, names)
    if not found:
        if not names:
            raise JournalError(f"{folder}: its journal holds no answers yet")
        raise JournalError(f"{folder}: its journal has no episode '{episode}'; {suggestion(episode, sorted(names))}")
    order = {key: number for number, key in enumerate(found)}  # a player's own questions arrive in order
    return sorted(found.values(), key=lambda one: (one.key.step, _natural(one.key.agent), order[one.key]))


def harmless(text: str) -> str:
    """A text that only shows: what a terminal would act on is written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign if sign in _KEPT or unicodedata.category(sign) not in _ACTING else _escaped(sign) for sign in text
    )


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _natural(name: str) -> tuple[Any, ...]:
    """Sorts player_2 before player_10."""
    return tuple(int(part) if part.isdigit() else part for part in _NUMBER.split(name))


def _take(line: Any, episode: str, found: dict[RequestKey, Exchange], names: set[str]) -> None:
    if line["type"] != "answer" and not (line["type"] == "failed" and line.get("final")):
        return
    key = RequestKey(*line["key"])
    names.add(key.episode)
    if key.episode != episode or key in found:
        return
    messages = tuple((role, text) for role, text in line["request"]["messages"])
    if line["type"] == "failed":
        found[key] = Exchange(
            key=key, messages=messages, answer=line["error"]["message"], model="", finish_reason="error"
        )
        return
    reply = line["reply"]
    found[key] = Exchange(
        key=key,
        messages=messages,
        answer=reply["text"],
        model=reply["model"],
        finish_reason=reply["finish_reason"],
        refusal=reply.get("refusal"),
        reasoning=reply.get("reasoning"),
    )

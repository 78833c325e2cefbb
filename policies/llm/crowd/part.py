"""One process's part of a crowd: its answers are awaited, journalled and read here."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.submissions import Submissions
from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.question import ILLEGAL, Number, Question, Words
from llm_coop_envs.policies.llm.journal import CrowdQuestion, TextJournal
from llm_coop_envs.policies.llm.parsing.answer_reading import EMPTY
from llm_coop_envs.policies.llm.parsing.numbers import read_bare_numbers
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts, CallCounts
from llm_coop_envs.policies.llm.playing.answer_readers import MessageReader, NumberReader, Reader
from llm_coop_envs.policies.llm.playing.counted_reading import read_and_count, to_choice
from llm_coop_envs.policies.llm.playing.move_readers import reader_for
from llm_coop_envs.util.waiting import by_hands

#: One answer: the question, the player's index, a seed that is this player's own in this step.
AskOne = Callable[[CrowdQuestion, int, int], Awaitable[str]]
#: Many answers, in the players' order.
AskMany = Callable[[CrowdQuestion, Indices, NDArray[np.uint64]], Awaitable[Sequence[str]]]

#: How many answers are journalled at a time, and asked for at a time where the source takes many players.
BATCH = 1 << 14
# Seconds between two writes to the journal: what a kill may lose.
_JOURNAL_INTERVAL = 0.05
# Integers up to here are exact as floats.
_LARGEST = 2.0**53


class AnswerCollection:
    """The answers of some players to one question: those in the journal, and new ones that are journalled.

    Args:
        journal: keeps the answers; without one they are not kept.
        question: the question.
        players: who is asked.
        seeds: a seed for each of them.
        look: is given new answers as soon as they are kept; what it raises ends the asking.
    """

    def __init__(
        self,
        journal: TextJournal | None,
        question: CrowdQuestion,
        players: Indices,
        seeds: NDArray[np.uint64],
        look: Callable[[Sequence[str]], object] = lambda _: None,
    ) -> None:
        self._journal = journal
        self._look = look
        self._question = question
        self._players = players
        self._seeds = seeds
        self._player_list = players.tolist()
        journalled = {} if journal is None else journal.find_answers(question, self._player_list)
        self._texts: list[Any] = [journalled.get(player) for player in self._player_list]
        self._missing = [position for position, text in enumerate(self._texts) if text is None]

    async def ask_one_by_one(self, source: AskOne, concurrency: int) -> list[str]:
        """Ask for the missing answers one by one; the journal is written now and then meanwhile.

        Args:
            source: answers one player.
            concurrency: how many calls are awaited at the same time at most.

        Returns:
            The answers of all players.

        Raises:
            LlmCoopError: an answer is no text.
        """
        seeds = self._seeds.tolist()
        waiting = iter(self._missing)
        new: list[int] = []
        is_over = asyncio.Event()
        writing = asyncio.get_running_loop().create_task(self._write_now_and_then(new, is_over))

        async def work() -> None:
            for position in waiting:
                player = self._player_list[position]
                text: Any = await source(self._question, player, seeds[position])
                if not isinstance(text, str):
                    raise LlmCoopError(f"player {player} was answered {type(text).__name__}, not a text")
                self._texts[position] = text
                new.append(position)
                if writing.done():  # it raised an error: ask nobody else
                    break

        try:
            await by_hands(work, min(concurrency, len(self._missing)))
        finally:
            is_over.set()
            await writing
        return self._texts

    async def _write_now_and_then(self, new: list[int], is_over: asyncio.Event) -> None:
        """Write new answers to the journal until no more come."""
        while not is_over.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(is_over.wait(), _JOURNAL_INTERVAL)
            while new:
                batch = new[:BATCH]
                del new[:BATCH]
                await self._write(batch)

    async def _write(self, positions: Sequence[int]) -> None:
        texts = [self._texts[position] for position in positions]
        if self._journal is not None:
            await self._journal.add(self._question, [self._player_list[position] for position in positions], texts)
        self._look(texts)

    async def ask_many(self, source: AskMany, concurrency: int) -> list[str]:
        """Ask for the missing answers in batches of `BATCH` players; each is journalled when it comes.

        Args:
            source: answers many players.
            concurrency: how many batches are awaited at the same time at most.

        Returns:
            The answers of all players.

        Raises:
            LlmCoopError: an answer is no text, or there is not one for each player.
        """
        starts = iter(range(0, len(self._missing), BATCH))

        async def work() -> None:
            for start in starts:
                batch = self._missing[start : start + BATCH]
                texts = await source(self._question, self._players[batch], self._seeds[batch])
                if len(texts) != len(batch) or not all(isinstance(text, str) for text in texts):
                    raise LlmCoopError(f"{len(batch)} players were answered {len(texts)} times; each needs a text")
                for position, text in zip(batch, texts, strict=True):
                    self._texts[position] = text
                await self._write(batch)

        await by_hands(work, min(concurrency, -(-len(self._missing) // BATCH)))
        return self._texts


def read_answers(
    texts: Sequence[str], question: Question, blank: NDArray[Any], all_counts: AnswerCounts
) -> Submissions:
    """Read answers, and count what became of them.

    Args:
        texts: the answers.
        question: the question.
        blank: an array for the choices, in which every choice is missing.
        all_counts: where they are counted.
    """
    submissions, counts = Submissions(blank), all_counts.for_call(question.name)
    counts.asked += len(texts)
    counts.requests += len(texts)
    if isinstance(question, Words):
        _read_messages(texts, MessageReader(question.name, ""), submissions, all_counts, counts)
        return submissions
    reader = reader_for(question, str, numbered=True)
    unread: Sequence[int] = range(len(texts))
    if isinstance(reader, NumberReader) and isinstance(question, Number):
        unread = _read_bare_numbers(texts, question, reader, submissions, counts)
    for position in unread:
        reading = read_and_count(reader, texts[position], counts)
        counts.answered += reading.ok
        if not reading.ok:
            counts.fallbacks += 1
            all_counts.note_unread(reading.status, texts[position])
        choice = to_choice(question, reading, counts)
        if choice is None and not reading.ok:
            submissions.missing.append(position)
        elif blank.dtype.kind == "i":
            submissions.choices[position] = choice if choice is not None and math.fabs(choice) < _LARGEST else ILLEGAL
        else:
            submissions.choices[position] = choice
    return submissions


def _read_messages(
    texts: Sequence[str], reader: Reader[str], submissions: Submissions, all_counts: AnswerCounts, counts: CallCounts
) -> None:
    """Read messages; an empty answer is silence."""
    for position, text in enumerate(texts):
        reading = read_and_count(reader, text, counts)
        submissions.messages[position] = reading.value or ""
        counts.silent += reading.status == EMPTY
        if reading.ok or reading.status == EMPTY:
            counts.answered += 1
        else:
            counts.fallbacks += 1
            all_counts.note_unread(reading.status, text)


def _read_bare_numbers(
    texts: Sequence[str], question: Number, reader: NumberReader, submissions: Submissions, counts: CallCounts
) -> list[int]:
    """Read the answers that are a legal number and nothing else, all at once; the positions of the others."""
    numbers = read_bare_numbers(texts, reader.question)
    is_bare = ~np.isnan(numbers)
    if question.integer:
        counts.rounded += int((is_bare & (numbers != np.floor(numbers))).sum())
        numbers = np.floor(numbers + 0.5)
    submissions.choices[is_bare] = numbers[is_bare] - (question.low if question.counted else 0)
    counts.answered += int(is_bare.sum())
    others: list[int] = np.flatnonzero(~is_bare).tolist()
    return others

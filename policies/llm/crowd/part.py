"""A part of a crowd: its answers are waited for, journalled and read in one process."""

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
from llm_coop_envs.policies.llm.parsing.numbers import bare_numbers
from llm_coop_envs.policies.llm.parsing.reading import EMPTY
from llm_coop_envs.policies.llm.playing.answer_counts import CallCounts
from llm_coop_envs.policies.llm.playing.prompter import choice_of, read_text_of
from llm_coop_envs.policies.llm.playing.readers import NumberReader, WordReader, reader_of
from llm_coop_envs.util.waiting import by_hands

#: One answer: what is asked, the player's index, a seed that is this player's own in this step.
AskOne = Callable[[CrowdQuestion, int, int], Awaitable[str]]
#: Many answers, in the players' order.
AskMany = Callable[[CrowdQuestion, Indices, NDArray[np.uint64]], Awaitable[Sequence[str]]]

#: So many answers are put into the journal at the same time, and asked for at once where the source takes many.
TOGETHER = 1 << 14
#: Seconds after which what came is put there at the latest: what a kill may lose.
_APART = 0.05
_LARGEST = 2.0**53


async def answers(
    source: AskOne | AskMany,
    journal: TextJournal | None,
    asked: CrowdQuestion,
    who: Indices,
    seeds: NDArray[np.uint64],
    *,
    many: bool,
    hands: int,
) -> list[str]:
    """The players' answers: from the journal, or asked for now and journalled.

    Args:
        source: where they come from.
        journal: keeps them; without one they are not kept.
        asked: what is asked.
        who: the players.
        seeds: a seed for each.
        many: whether the source takes many players at a time.
        hands: how many calls are waited for at the same time at most.

    Raises:
        LlmCoopError: an answer is no text, or there is not one for each.
    """
    players = who.tolist()
    known = {} if journal is None else journal.find_answers(asked, players)
    texts: list[Any] = [known.get(player) for player in players]
    left = [place for place, text in enumerate(texts) if text is None]
    fresh: list[int] = []

    async def keep() -> None:
        while fresh:
            kept = fresh[:TOGETHER]
            del fresh[:TOGETHER]
            if journal is not None:
                await journal.add(asked, [players[place] for place in kept], [texts[place] for place in kept])

    async def one_by_one() -> None:
        ask: Any = source
        own = seeds.tolist()
        waiting = iter(left)

        async def work() -> None:
            for place in waiting:
                text = await ask(asked, players[place], own[place])
                if not isinstance(text, str):
                    raise LlmCoopError(f"player {players[place]} was answered {type(text).__name__}, not a text")
                texts[place] = text
                fresh.append(place)
                if keeping.done():  # nothing can be kept any more: ask nobody else
                    break

        keeping = asyncio.get_running_loop().create_task(keep_now_and_then())
        try:
            await by_hands(work, min(hands, len(left)))
        finally:
            over.set()
            await keeping

    over = asyncio.Event()

    async def keep_now_and_then() -> None:
        while not over.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(over.wait(), _APART)
            await keep()

    async def many_at_once() -> None:
        ask: Any = source
        waiting = iter(range(0, len(left), TOGETHER))

        async def work() -> None:
            for start in waiting:
                places = left[start : start + TOGETHER]
                given = await ask(asked, who[places], seeds[places])
                if len(given) != len(places) or not all(isinstance(text, str) for text in given):
                    raise LlmCoopError(f"{len(places)} players were answered {len(given)} times; each needs a text")
                for place, text in zip(places, given, strict=True):
                    texts[place] = text
                if journal is not None:
                    await journal.add(asked, [players[place] for place in places], given)

        await by_hands(work, min(hands, -(-len(left) // TOGETHER)))

    await (many_at_once() if many else one_by_one())
    return texts


def submit(texts: Sequence[str], question: Question, blank: NDArray[Any], counts: CallCounts) -> Submissions:
    """Read answers, and count what became of them.

    Args:
        texts: the answers.
        question: what was asked.
        blank: places for choices, in which every choice is missing.
        counts: where it is counted.
    """
    given = Submissions(blank)
    counts.asked += len(texts)
    counts.requests += len(texts)
    if isinstance(question, Words):
        words = WordReader(question.name, "")
        for place, text in enumerate(texts):
            said = read_text_of(words, text, counts)
            given.messages[place] = said.value or ""
            counts.silent += said.status == EMPTY
            counts.answered += said.ok or said.status == EMPTY
        counts.fallbacks += counts.asked - counts.ended
        return given
    reader = reader_of(question, str)
    left: Sequence[int] = range(len(texts))
    if isinstance(reader, NumberReader) and isinstance(question, Number):
        numbers = bare_numbers(texts, reader.question)
        plain = ~np.isnan(numbers)
        if question.integer:
            counts.rounded += int((plain & (numbers != np.floor(numbers))).sum())
            numbers = np.floor(numbers + 0.5)
        given.choices[plain] = numbers[plain] - (question.low if question.counted else 0)
        counts.answered += int(plain.sum())
        left = np.flatnonzero(~plain).tolist()
    for place in left:
        reading = read_text_of(reader, texts[place], counts)
        counts.answered += reading.ok
        counts.fallbacks += not reading.ok
        choice = choice_of(question, reading, counts)
        if choice is None:
            given.missing.append(place)
        elif blank.dtype.kind == "i":
            given.choices[place] = choice if math.fabs(choice) < _LARGEST else ILLEGAL
        else:
            given.choices[place] = choice
    return given

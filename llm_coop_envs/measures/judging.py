"""Statements of an episode, what rules say they are, and what a model says they are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.records import start_of
from llm_coop_envs.core.scenario import Event, Scenario
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.interface.slots import Heard
from llm_coop_envs.measures.information import same
from llm_coop_envs.measures.process import announced, talk_rounds
from llm_coop_envs.measures.rubric import (
    ACCEPTED,
    CALL,
    FALSE,
    KINDS,
    MEANINGS,
    NONE,
    PROMISE,
    PROPOSED,
    QUESTION,
    THREAT,
    RubricWords,
)
from llm_coop_envs.measures.synthetic_worlds import cohen
from llm_coop_envs.measures.topics import topics_of
from llm_coop_envs.policies.llm.chat import Chat
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.memory import Memory
from llm_coop_envs.policies.llm.playing.prompter import Prompter, Turn
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.tokens import counter_for
from llm_coop_envs.statistics.intervals import LEVEL

SHOWN = 20
"""So many of the round's earlier messages are shown at most."""
_AT_ONCE = 512
_DRAWS = 1000


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One message that is to be judged.

    Attributes:
        episode: the episode's name, such as `"talk/3"`.
        game: the scenario's title.
        number: which message of the episode, from 0.
        round: in which round.
        speaker: who said it.
        text: what was said.
        before: who said what before in this round, the newest `SHOWN`.
        done: what the speaker chose in this round, in words; empty if that is not known.
        by_rules: which of `KINDS` the rules take it for.
    """

    episode: str
    game: str
    number: int
    round: int
    speaker: str
    text: str
    before: tuple[Heard, ...]
    done: str
    by_rules: str


def statements(episode: str, events: Sequence[Event], scenario: Scenario) -> list[Statement]:
    """All messages of an episode.

    By rules a message is a threat if it has a word of that list; else, if it names a number or option without doubt: a
    false claim if its speaker chose another one in that round, an acceptance or proposal if others whom the speaker
    heard before, or who heard it and spoke after, name the same in that round, and else a promise.

    Args:
        episode: its name.
        events: its events.
        scenario: what was played.

    Raises:
        ValueError: the scenario does not say what is asked in it.
    """
    start = start_of(events)
    chosen = {one.number: one.chosen for one in talk_rounds(events, scenario.measured)}
    asked = scenario.measured.asked(start) if scenario.measured.asked is not None else {}
    wording = str(start["settings"].get("wording", ""))
    said = [event for event in events if event["type"] == "message" and event["agent"] in asked]
    values = [announced(event["text"], asked[event["agent"]]) for event in said]
    by_round: dict[int, list[int]] = {}
    for k, event in enumerate(said):
        by_round.setdefault(event["round"], []).append(k)
    found = []
    for k, event in enumerate(said):
        who, number, value = event["agent"], event["round"], values[k]
        did = chosen.get(number, {}).get(who)

        def agrees(other: int, k: int = k, value: float | None = value) -> bool:
            first, second = sorted((other, k))
            heard = said[first]["hearers"] is None or said[second]["agent"] in said[first]["hearers"]
            named = values[other]
            return (
                heard and said[other]["agent"] != said[k]["agent"] and named is not None and same(named, value or 0.0)
            )

        here = by_round[number]
        kind = NONE
        if "threat" in topics_of(event["text"], scenario.env_class.home, wording[:3]):
            kind = THREAT
        elif value is not None:
            kind = PROMISE
            if did is not None and not same(did, value):
                kind = FALSE
            elif any(agrees(other) for other in here if other < k):
                kind = ACCEPTED
            elif any(agrees(other) for other in here if other > k):
                kind = PROPOSED
        before = [said[other] for other in here if other < k][-SHOWN:]
        found.append(
            Statement(
                episode=episode,
                game=scenario.title,
                number=k,
                round=number,
                speaker=who,
                text=event["text"],
                before=tuple(Heard(speaker=one["agent"], text=one["text"], own=False) for one in before),
                done="" if did is None else _in_words(did, asked[who]),
                by_rules=kind,
            )
        )
    return found


def _in_words(value: float, question: Number | Options) -> str:
    """A choice as players would name it."""
    if isinstance(question, Options):
        return f"took {next((one.name for one in question.options if one.choice == value), value)}"
    return f"chose the {question.name} {value:.6g}"


async def judge(
    said: Sequence[Statement], chat: Chat, settings: LLMSettings, done: Callable[[], None] = lambda: None
) -> list[str | None]:
    """What a model takes statements for: one of `KINDS` each, or `None` where its answer could not be read.

    Args:
        said: the statements.
        chat: answers.
        settings: which model, and how it is asked.
        done: called after each of them.

    Raises:
        RunStopped: the budget is used up, or the model cannot be asked.
    """
    words, counters = RubricWords(), AnswerCounts()
    scripted = bool(getattr(chat, "scripted", False))
    prompter = Prompter(chat, settings, words, counter_for(settings.model)[0], counters, scripted=scripted)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(what: Statement) -> str | None:
        turn = Turn(what.episode, what.speaker, what.number, what.round, None, Memory())
        facts = prompter.facts(
            turn,
            CALL,
            {
                "game": what.game,
                "said": what.before,
                "speaker": what.speaker,
                "message": Heard(speaker=what.speaker, text=what.text, own=False),
                "done": what.done,
                "kinds": tuple(MEANINGS.items()),
            },
        )
        async with gate:
            action, _ = await prompter.choose(turn, CALL, facts, QUESTION)
        done()
        return KINDS[action["choice"]] if action else None

    outcomes = await asyncio.gather(*map(one, said), return_exceptions=True)
    for outcome in outcomes:  # raised when all other answers are in, so that none that was paid for is lost
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far two say the same.

    Attributes:
        kappa: Cohen's kappa; 0 where both always say one and the same.
        low: the lower end of its 95 % interval, by resampling episodes; `None` with fewer than two.
        high: the upper end.
        count: how many statements both spoke of.
        first: how often the first says each kind.
        second: how often the second does.
        by_kind: kappa of each kind against all others.
    """

    kappa: float
    low: float | None
    high: float | None
    count: int
    first: Mapping[str, int]
    second: Mapping[str, int]
    by_kind: Mapping[str, float]


def agreement(said: Sequence[Statement], verdicts: Sequence[str | None]) -> Agreement:
    """How far a judge and the rules agree on statements that both speak of."""
    episodes = sorted({one.episode for one in said})
    tables = np.zeros((len(episodes), len(KINDS), len(KINDS)))
    for one, verdict in zip(said, verdicts, strict=True):
        if verdict is not None:
            tables[episodes.index(one.episode), KINDS.index(verdict), KINDS.index(one.by_rules)] += 1
    total = tables.sum(axis=0)
    low = high = None
    if len(episodes) > 1:
        drawn = np.random.default_rng(0).integers(len(episodes), size=(_DRAWS, len(episodes)))
        kappas = [cohen(tables[rows].sum(axis=0)) for rows in drawn]
        tail = 100 * (1 - LEVEL) / 2
        low, high = np.percentile(kappas, [tail, 100 - tail]).tolist()
    return Agreement(
        kappa=cohen(total),
        low=low,
        high=high,
        count=int(total.sum()),
        first=dict(zip(KINDS, total.sum(axis=1).astype(int).tolist(), strict=True)),
        second=dict(zip(KINDS, total.sum(axis=0).astype(int).tolist(), strict=True)),
        by_kind={kind: cohen(_against_others(total, k)) for k, kind in enumerate(KINDS)},
    )


def _against_others(table: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    yes = table[k, k]
    first, second = table[k].sum() - yes, table[:, k].sum() - yes
    return np.array([[yes, first], [second, table.sum() - yes - first - second]])


def together(said: Iterable[Statement], kinds: Iterable[str | None]) -> float:
    """The share of an episode's rounds with talk in which two players or more propose or accept something, 0 to 1."""
    rounds: dict[int, set[str]] = {}
    for one, kind in zip(said, kinds, strict=True):
        who = rounds.setdefault(one.round, set())
        if kind in (PROPOSED, ACCEPTED):
            who.add(one.speaker)
    return sum(len(who) > 1 for who in rounds.values()) / len(rounds) if rounds else 0.0


def verdict_rows(said: Sequence[Statement], verdicts: Sequence[str | None]) -> list[dict[str, Any]]:
    """What is kept of a judgement: one record per statement, which its episode's events hold by `number`."""
    return [
        {
            "episode": one.episode,
            "number": one.number,
            "round": one.round,
            "speaker": one.speaker,
            "judge": verdict,
            "rules": one.by_rules,
        }
        for one, verdict in zip(said, verdicts, strict=True)
    ]


def counted(verdicts: Iterable[str | None]) -> dict[str, int]:
    """How often each kind was said, and how often nothing that could be read."""
    counts = Counter(verdicts)
    return {**{kind: counts[kind] for kind in KINDS}, "unread": counts[None]}

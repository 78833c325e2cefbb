"""Classify the messages of an episode: by fixed rules, and by a model that is asked the rubric's question.

`collect_statements` gathers the messages, each with the kind that the rules assign. `judge` asks a model for the kind
of each, and `measure_agreement` compares the two.
"""

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
from llm_coop_envs.measures.information import is_same
from llm_coop_envs.measures.process import read_announcement, talk_rounds
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
from llm_coop_envs.measures.synthetic_worlds import table_kappa
from llm_coop_envs.measures.topics import topics_of
from llm_coop_envs.policies.llm.chat import Chat
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.memory import Memory
from llm_coop_envs.policies.llm.playing.prompter import Prompter
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.playing.turn import Turn
from llm_coop_envs.policies.llm.tokens import counter_for
from llm_coop_envs.statistics.intervals import LEVEL

SHOWN_MESSAGES = 20
"""A judge is shown at most this many of the round's earlier messages."""
_CONCURRENCY = 512
_RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One message to classify.

    Attributes:
        episode: the episode's name, such as `"talk/3"`.
        game: the scenario's title.
        number: the message's index in the episode, from 0.
        round: the round it belongs to.
        speaker: the agent who said it.
        text: the message.
        earlier: earlier messages of this round, oldest first; at most the newest `SHOWN_MESSAGES`.
        action: the speaker's choice in this round, in words; empty if it is not known.
        by_rules: the kind (of `KINDS`) that the rules assign.
    """

    episode: str
    game: str
    number: int
    round: int
    speaker: str
    text: str
    earlier: tuple[Heard, ...]
    action: str
    by_rules: str


def collect_statements(episode: str, events: Sequence[Event], scenario: Scenario) -> list[Statement]:
    """Collect all messages of an episode, with the kind that the rules assign to each.

    Args:
        episode: The episode's name.
        events: Its events.
        scenario: The scenario that was played.

    Raises:
        ValueError: The scenario's measures have no `asked`.
    """
    start = start_of(events)
    chosen = {talk_round.number: talk_round.chosen for talk_round in talk_rounds(events, scenario.measured)}
    questions = scenario.measured.asked(start) if scenario.measured.asked is not None else {}
    language = str(start["settings"].get("wording", ""))[:3]
    messages = [event for event in events if event["type"] == "message" and event["agent"] in questions]
    values = [read_announcement(event["text"], questions[event["agent"]]) for event in messages]
    by_round: dict[int, list[int]] = {}
    for k, event in enumerate(messages):
        by_round.setdefault(event["round"], []).append(k)
    statements = []
    for k, event in enumerate(messages):
        speaker, number = event["agent"], event["round"]
        choice = chosen.get(number, {}).get(speaker)
        is_threat = "threat" in topics_of(event["text"], scenario.env_class.home, language)
        earlier = [messages[other] for other in by_round[number] if other < k][-SHOWN_MESSAGES:]
        statements.append(
            Statement(
                episode=episode,
                game=scenario.title,
                number=k,
                round=number,
                speaker=speaker,
                text=event["text"],
                earlier=tuple(Heard(speaker=message["agent"], text=message["text"], own=False) for message in earlier),
                action="" if choice is None else _describe_choice(choice, questions[speaker]),
                by_rules=THREAT if is_threat else _classify_value(k, messages, values, by_round[number], choice),
            )
        )
    return statements


def _classify_value(
    k: int,
    messages: Sequence[Event],
    values: Sequence[float | None],
    round_messages: Sequence[int],
    choice: float | None,
) -> str:
    """Classify a message that is no threat by the number or option that it names.

    - `NONE`: it names none without doubt.
    - `FALSE`: its speaker then chose something else.
    - `ACCEPTED`: somebody whom the speaker heard named the same earlier in the round.
    - `PROPOSED`: somebody who heard the message named the same later in the round.
    - `PROMISE`: any other.

    Example: "I ask 1.8" by one firm and "Fine, 1.8" by a second that heard it are a proposal and an acceptance.
    """
    value = values[k]
    if value is None:
        return NONE
    if choice is not None and not is_same(choice, value):
        return FALSE

    def agrees(other: int) -> bool:
        earlier, later = messages[min(other, k)], messages[max(other, k)]
        was_heard = earlier["hearers"] is None or later["agent"] in earlier["hearers"]
        named = values[other]
        return was_heard and earlier["agent"] != later["agent"] and named is not None and is_same(named, value)

    if any(agrees(other) for other in round_messages if other < k):
        return ACCEPTED
    return PROPOSED if any(agrees(other) for other in round_messages if other > k) else PROMISE


def _describe_choice(value: float, question: Number | Options) -> str:
    """Describe a choice as players would name it."""
    if isinstance(question, Options):
        return f"took {next((option.name for option in question.options if option.choice == value), value)}"
    return f"chose the {question.name} {value:.6g}"


async def judge(
    statements: Sequence[Statement], chat: Chat, settings: LLMSettings, on_answer: Callable[[], None] = lambda: None
) -> list[str | None]:
    """Ask a model to classify statements: one of `KINDS` each, or `None` if its answer is unusable.

    Args:
        statements: The statements.
        chat: The chat that answers.
        settings: The model and how it is asked.
        on_answer: Called after each answer.

    Raises:
        RunStopped: The budget is used up, or the model cannot be asked.
    """
    words, counters = RubricWords(), AnswerCounts()
    scripted = bool(getattr(chat, "scripted", False))
    prompter = Prompter(chat, settings, words, counter_for(settings.model)[0], counters, scripted=scripted)
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def judge_one(statement: Statement) -> str | None:
        turn = Turn(statement.episode, statement.speaker, statement.number, statement.round, None, Memory())
        facts = prompter.facts(
            turn,
            CALL,
            {
                "game": statement.game,
                "said": statement.earlier,
                "speaker": statement.speaker,
                "message": Heard(speaker=statement.speaker, text=statement.text, own=False),
                "done": statement.action,
                "kinds": tuple(MEANINGS.items()),
            },
        )
        async with gate:
            action, _ = await prompter.choose(turn, CALL, facts, QUESTION)
        on_answer()
        return KINDS[action["choice"]] if action else None

    outcomes = await asyncio.gather(*map(judge_one, statements), return_exceptions=True)
    for outcome in outcomes:  # raised only when all answers are in, so that none that was paid for is lost
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of two raters who classified the same statements.

    Attributes:
        kappa: Cohen's kappa; 0 if both always chose the same one kind.
        low: the lower end of its 95 % interval, by resampling episodes; `None` with fewer than two.
        high: the upper end.
        count: how many statements both classified.
        first: how often the first rater chose each kind.
        second: how often the second rater chose each kind.
        by_kind: kappa of each kind against all others.
    """

    kappa: float
    low: float | None
    high: float | None
    count: int
    first: Mapping[str, int]
    second: Mapping[str, int]
    by_kind: Mapping[str, float]


def measure_agreement(statements: Sequence[Statement], verdicts: Sequence[str | None]) -> Agreement:
    """Measure how far a judge, the first rater, and the rules agree on the statements that the judge classified."""
    episodes = sorted({statement.episode for statement in statements})
    tables = np.zeros((len(episodes), len(KINDS), len(KINDS)))
    for statement, verdict in zip(statements, verdicts, strict=True):
        if verdict is not None:
            tables[episodes.index(statement.episode), KINDS.index(verdict), KINDS.index(statement.by_rules)] += 1
    total = tables.sum(axis=0)
    low = high = None
    if len(episodes) > 1:
        resamples = np.random.default_rng(0).integers(len(episodes), size=(_RESAMPLES, len(episodes)))
        kappas = [table_kappa(tables[rows].sum(axis=0)) for rows in resamples]
        tail = 100 * (1 - LEVEL) / 2
        low, high = np.percentile(kappas, [tail, 100 - tail]).tolist()
    return Agreement(
        kappa=table_kappa(total),
        low=low,
        high=high,
        count=int(total.sum()),
        first=dict(zip(KINDS, total.sum(axis=1).astype(int).tolist(), strict=True)),
        second=dict(zip(KINDS, total.sum(axis=0).astype(int).tolist(), strict=True)),
        by_kind={kind: table_kappa(_one_against_rest(total, k)) for k, kind in enumerate(KINDS)},
    )


def _one_against_rest(table: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Reduce a (kinds, kinds) table to the (2, 2) table of kind `k` and all others."""
    both = table[k, k]
    first, second = table[k].sum() - both, table[:, k].sum() - both
    return np.array([[both, first], [second, table.sum() - both - first - second]])


def joint_round_share(spoken: Iterable[tuple[int, str, str | None]]) -> float:
    """Return the share of rounds with talk in which two players or more propose or accept something, 0 to 1.

    Args:
        spoken: The round, the speaker and the kind of each message.
    """
    speakers_by_round: dict[int, set[str]] = {}
    for round_, speaker, kind in spoken:
        speakers = speakers_by_round.setdefault(round_, set())
        if kind in (PROPOSED, ACCEPTED):
            speakers.add(speaker)
    if not speakers_by_round:
        return 0.0
    return sum(len(speakers) > 1 for speakers in speakers_by_round.values()) / len(speakers_by_round)


def verdict_rows(statements: Sequence[Statement], verdicts: Sequence[str | None]) -> list[dict[str, Any]]:
    """Return one JSON record per statement; `number` finds the message in the episode's events."""
    return [
        {
            "episode": statement.episode,
            "number": statement.number,
            "round": statement.round,
            "speaker": statement.speaker,
            "judge": verdict,
            "rules": statement.by_rules,
        }
        for statement, verdict in zip(statements, verdicts, strict=True)
    ]


def count_kinds(verdicts: Iterable[str | None]) -> dict[str, int]:
    """Count the verdicts of each kind, and under `unread` the unusable answers."""
    counts = Counter(verdicts)
    return {**{kind: counts[kind] for kind in KINDS}, "unread": counts[None]}

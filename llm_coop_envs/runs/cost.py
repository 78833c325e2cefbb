"""What a study with language models would cost: calls, tokens, money and time, from a dry run through its prompts.

The first episodes of each condition are played with scripted answers, by the study's own settings and prompts, and
scaled to all. A model's answers make other conversations: the figures are an estimate, and the bound on the answers
holds only where `max_tokens` limits them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.errors import StudyError
from llm_coop_envs.policies.llm.asking.estimate import DryChat, Estimate
from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.tokens import counter_for
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.studies.study import Condition, Study
from llm_coop_envs.util.checks import check_int, check_number
from llm_coop_envs.util.waiting import run_coroutine

MINUTE = 60.0
_FIGURES = ("calls", "prompt_tokens", "completion_tokens", "most_completion_tokens", "usd", "most_usd")


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What is assumed of the endpoint, for the time that a study takes.

    Attributes:
        latency: seconds from a question to its whole answer.
        at_once: episodes played side by side.
        in_flight: requests at the same time; `None` for no limit.
        requests_per_minute: likewise.
        tokens_per_minute: questions and answers together; likewise.
    """

    latency: float = 1.0
    at_once: int = 128
    in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        check_number(self, "latency", 0)
        check_int(self, "at_once", 1)
        for name in ("in_flight", "requests_per_minute", "tokens_per_minute"):
            if getattr(self, name) is not None:
                check_int(self, name, 1)

    def seconds(self, *, calls: float, tokens: float, rounds: float, longest: float) -> tuple[float, str]:
        """How long so many calls take at least, and what holds them up.

        Args:
            calls: all calls.
            tokens: their tokens.
            rounds: calls that wait for each other, over all episodes.
            longest: those of the longest episode.
        """
        bounds = {
            "answers that wait for each other": self.latency * max(longest, rounds / self.at_once),
            "requests in flight": 0.0 if self.in_flight is None else self.latency * calls / self.in_flight,
            "requests per minute": _minutes(calls, self.requests_per_minute),
            "tokens per minute": _minutes(tokens, self.tokens_per_minute),
        }
        why = max(bounds, key=lambda name: bounds[name])
        return bounds[why], why


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a condition, or the whole study, would ask.

    Attributes:
        name: the condition.
        episodes: how many it has.
        played: how many of them were played for this estimate.
        calls: questions.
        prompt_tokens: tokens of the questions.
        completion_tokens: tokens of the answers, as long as the scripted ones.
        most_completion_tokens: tokens of the answers at most; `None` if nothing limits them.
        usd: US dollars with answers as long as the scripted ones; `None` if the price is not known.
        most_usd: US dollars with answers as long as they may be; `None` likewise.
        rounds: calls of an episode that wait for each other; of all conditions, those of the longest.
        seconds: how long it takes at least.
        held_up_by: what makes it take so long.
    """

    name: str
    episodes: int
    played: int
    calls: float
    prompt_tokens: float
    completion_tokens: float
    most_completion_tokens: float | None
    usd: float | None
    most_usd: float | None
    rounds: float
    seconds: float
    held_up_by: str


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a study would cost.

    Attributes:
        study: its name.
        rows: one per condition in which a model plays.
        total: all of them.
        prices: by model; `None` where it is not known.
        counters: what counted each model's tokens.
        pace: what was assumed for the time.
    """

    study: str
    rows: tuple[Row, ...]
    total: Row
    prices: Mapping[str, Price | None]
    counters: Mapping[str, str]
    pace: Pace

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        models = {
            model: {"price": price and price.to_json(), "tokens_counted_by": self.counters[model]}
            for model, price in self.prices.items()
        }
        return {
            "study": self.study,
            "models": models,
            "assumed": dataclasses.asdict(self.pace),
            "conditions": [dataclasses.asdict(row) for row in self.rows],
            "total": dataclasses.asdict(self.total),
        }


def estimate_cost(
    study: Study,
    price_of: Callable[[str], Price | None],
    pace: Pace,
    *,
    episodes: int = 1,
    watch: Callable[[str, int], None] = lambda condition, seed: None,
) -> Cost:
    """Play the first episodes of each condition without a model, and scale them to all.

    Args:
        study: the study, with its players.
        price_of: a model's price, or `None`.
        pace: what is assumed of the endpoint.
        episodes: how many episodes of each condition are played, if it has so many.
        watch: is told which episode is begun.

    Raises:
        StudyError: no model plays in it.
    """
    models = tuple(dict.fromkeys(player.policy.partition(":")[2] for player in study.models))
    if not models:
        raise StudyError(f"study '{study.name}': no language model plays in it, so it costs nothing; give --model NAME")
    chat = DryChat(scripted_answer, price_of)
    found = []
    for condition in study.conditions:
        if not condition.asks_a_model:
            continue
        seeds = condition.seeds[:episodes]
        for seed in seeds:
            watch(condition.name, seed)
            run_coroutine(play_episode(study.seed, condition, seed, chat))
        # With what is played on after an episode, under names that begin with the episode's.
        names = [f"{condition.name}/{seed}" for seed in seeds]
        asked = [one for key, one in chat.estimates.items() if "/".join(key.split("/")[:2]) in names]
        if asked:
            found.append((condition, len(seeds), asked))
    rows = tuple(_row(condition, played, asked, pace) for condition, played, asked in found)
    return Cost(
        study=study.name,
        rows=rows,
        total=_total(rows, pace),
        prices={model: price_of(model) for model in models},
        counters={model: counter_for(model)[1] for model in models},
        pace=pace,
    )


def _row(condition: Condition, played: int, asked: Sequence[Estimate], pace: Pace) -> Row:
    """A condition's figures, scaled from the episodes that were played."""
    total = len(condition.seeds)
    scale = total / played

    def scaled(name: str) -> float | None:
        values = [getattr(one, name) for one in asked]
        return None if None in values else sum(values) * scale

    found: dict[str, Any] = {name: scaled(name) for name in _FIGURES}
    rounds = (scaled("rounds") or 0.0) / total
    row = Row(name=condition.name, episodes=total, played=played, rounds=rounds, seconds=0.0, held_up_by="", **found)
    return _timed(row, [row], pace)


def _total(rows: Sequence[Row], pace: Pace) -> Row:
    def summed(name: str) -> Any:
        values = [getattr(row, name) for row in rows]
        return None if None in values else sum(values)

    sums = {name: summed(name) for name in ("episodes", "played", *_FIGURES)}
    longest = max((row.rounds for row in rows), default=0.0)
    row = Row(name="all", rounds=longest, seconds=0.0, held_up_by="", **sums)
    return _timed(row, rows, pace)


def _timed(row: Row, parts: Sequence[Row], pace: Pace) -> Row:
    seconds, why = pace.seconds(
        calls=row.calls,
        tokens=row.prompt_tokens + row.completion_tokens,
        rounds=sum(part.rounds * part.episodes for part in parts),
        longest=max((part.rounds for part in parts), default=0.0),
    )
    return dataclasses.replace(row, seconds=seconds, held_up_by=why)


def _minutes(amount: float, per_minute: int | None) -> float:
    return 0.0 if per_minute is None else MINUTE * amount / per_minute

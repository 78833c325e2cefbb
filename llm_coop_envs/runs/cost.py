"""Estimate what a study with language models costs: calls, tokens, money and time, from a dry run of its prompts.

The first episodes of each condition are played with the study's settings and prompts and with scripted answers; their
figures are scaled to all episodes. A model's answers make other conversations, so that the figures are estimates. The
bound on answers holds only where `max_tokens` limits them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.errors import StudyError
from llm_coop_envs.policies.llm.asking.estimate import DryChat, Estimate
from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.tokens import counter_for
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.checks import check_int, check_number
from llm_coop_envs.util.waiting import run_coroutine

MINUTE = 60.0
_FIGURES = ("calls", "prompt_tokens", "completion_tokens", "most_completion_tokens", "usd", "most_usd")


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Assumptions about the endpoint, for the time that a study takes.

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
        """The least number of seconds that calls take, and the name of the bottleneck.

        Args:
            calls: the number of calls.
            tokens: their tokens.
            rounds: calls that wait for each other, summed over all episodes.
            longest: calls that wait for each other in the longest episode.
        """
        bounds = {
            "answers that wait for each other": self.latency * max(longest, rounds / self.at_once),
            "requests in flight": 0.0 if self.in_flight is None else self.latency * calls / self.in_flight,
            "requests per minute": _seconds_at_rate(calls, self.requests_per_minute),
            "tokens per minute": _seconds_at_rate(tokens, self.tokens_per_minute),
        }
        bottleneck = max(bounds, key=lambda name: bounds[name])
        return bounds[bottleneck], bottleneck


@dataclass(frozen=True, kw_only=True)
class Row:
    """The cost of a condition, or of the whole study.

    Attributes:
        name: the condition.
        episodes: the number of its episodes.
        played: the number of episodes that were played for this estimate.
        calls: questions.
        prompt_tokens: tokens of the questions.
        completion_tokens: tokens of the answers, as long as the scripted ones.
        most_completion_tokens: tokens of the answers at most; `None` if nothing limits them.
        usd: US dollars with answers as long as the scripted ones; `None` if the price is not known.
        most_usd: US dollars with answers as long as they may be; `None` likewise.
        rounds: calls of an episode that wait for each other; for the study, those of its longest episode.
        seconds: the least time that it takes.
        held_up_by: the bottleneck of that time.
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
    """The cost of a study.

    Attributes:
        study: the study's name.
        rows: one row per condition in which a model plays.
        total: their sum.
        prices: the price of each model; `None` where it is not known.
        counters: the name of the counter of each model's tokens.
        pace: the assumptions for the time.
    """

    study: str
    rows: tuple[Row, ...]
    total: Row
    prices: Mapping[str, Price | None]
    counters: Mapping[str, str]
    pace: Pace

    def to_json(self) -> dict[str, Any]:
        """The cost as plain data."""
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
        price_of: gives a model's price, or `None`.
        pace: the assumptions about the endpoint.
        episodes: the number of episodes of each condition that are played at most.
        watch: called with each episode that is begun.

    Raises:
        StudyError: no model plays in it.
    """
    models = tuple(dict.fromkeys(player.policy.partition(":")[2] for player in study.models))
    if not models:
        raise StudyError(f"study '{study.name}': no language model plays in it, so it costs nothing; give --model NAME")
    chat = DryChat(scripted_answer, price_of)
    estimated = []
    for condition in study.conditions:
        if not condition.asks_a_model:
            continue
        seeds = condition.seeds[:episodes]
        for seed in seeds:
            watch(condition.name, seed)
            run_coroutine(play_episode(study.seed, condition, seed, chat))
        # What is played on after an episode has a name that begins with the episode's, such as talk/7/firm_0.
        names = [f"{condition.name}/{seed}" for seed in seeds]
        estimates = [estimate for key, estimate in chat.estimates.items() if "/".join(key.split("/")[:2]) in names]
        if estimates:
            estimated.append((condition, len(seeds), estimates))
    rows = tuple(_condition_row(condition, played, estimates, pace) for condition, played, estimates in estimated)
    return Cost(
        study=study.name,
        rows=rows,
        total=_total_row(rows, pace),
        prices={model: price_of(model) for model in models},
        counters={model: counter_for(model)[1] for model in models},
        pace=pace,
    )


def _condition_row(condition: Condition, played: int, estimates: Sequence[Estimate], pace: Pace) -> Row:
    """A condition's figures, scaled from the episodes that were played."""
    total = len(condition.seeds)
    scale = total / played

    def scale_up(name: str) -> float | None:
        values = [getattr(estimate, name) for estimate in estimates]
        return None if None in values else math.fsum(values) * scale

    figures: dict[str, Any] = {name: scale_up(name) for name in _FIGURES}
    rounds = (scale_up("rounds") or 0.0) / total
    row = Row(name=condition.name, episodes=total, played=played, rounds=rounds, seconds=0.0, held_up_by="", **figures)
    return _with_time(row, [row], pace)


def _total_row(rows: Sequence[Row], pace: Pace) -> Row:
    def sum_over_rows(name: str) -> float | None:
        values = [getattr(row, name) for row in rows]
        return None if None in values else math.fsum(values)

    sums: dict[str, Any] = {name: sum_over_rows(name) for name in _FIGURES}
    sums |= {"episodes": sum(row.episodes for row in rows), "played": sum(row.played for row in rows)}
    longest = max((row.rounds for row in rows), default=0.0)
    row = Row(name="all", rounds=longest, seconds=0.0, held_up_by="", **sums)
    return _with_time(row, rows, pace)


def _with_time(row: Row, parts: Sequence[Row], pace: Pace) -> Row:
    seconds, bottleneck = pace.seconds(
        calls=row.calls,
        tokens=row.prompt_tokens + row.completion_tokens,
        rounds=math.fsum(part.rounds * part.episodes for part in parts),
        longest=max((part.rounds for part in parts), default=0.0),
    )
    return dataclasses.replace(row, seconds=seconds, held_up_by=bottleneck)


def _seconds_at_rate(amount: float, per_minute: int | None) -> float:
    return 0.0 if per_minute is None else MINUTE * amount / per_minute

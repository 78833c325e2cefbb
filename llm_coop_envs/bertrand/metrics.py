"""Measures of price competition, computed from recorded events.

What no firm chose says nothing of the firms, so that every measure of what they did leaves out rounds whose prices are
laid down: the first one, where a setting says so, and those in which a study forces a firm's price. One of them, at
cost, makes the mean gain of six rounds -1.62 instead of -0.34.
"""

from __future__ import annotations

import functools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.price_measures import (
    INDEX_FIRST,
    INDEX_LAST,
    MONOPOLY_ROUNDS,
    OPTIMAL_FROM,
    WINDOW,
    clip_unit,
    lasting_from,
    longest_run,
    mean_position,
    monopoly_found,
    optimal_rounds,
    price_spread,
    together,
    window_reached,
)
from llm_coop_envs.bertrand.rules import Band, Equilibria, Floats, profit_gain
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.words import WORDS
from llm_coop_envs.core.records import flagged_choices, forced_players, of_type, start_of
from llm_coop_envs.core.scenario import Event, Measures
from llm_coop_envs.interface.question import Number
from llm_coop_envs.statistics.intervals import ANYTHING, COUNT, COUNT_FROM_1, FROM_0, SHARE, YES_OR_NO, Range

LAST_ROUNDS = 50
"""Rounds of the window at the end of an episode (Fish et al. 2024 average over periods 251 to 300 of 300)."""


def _mean_of(values: Floats) -> float | None:
    """The mean of the values that are not NaN; `None` if all are."""
    missing = np.isnan(values)
    present = values[~missing] if missing.any() else values
    return float(present.mean()) if present.size else None


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Consecutive rounds in which the same firms sell.

    Attributes:
        rows: the rounds, as rows of the episode's arrays.
        firms: the firms' indices, ascending.
        equilibria: those of their market.
        band: when their prices count as held together.
    """

    rows: slice
    firms: list[int]
    equilibria: Equilibria
    band: Band

    def select_firms(self, values: Floats) -> Floats:
        """Drop the columns of firms that have left from (rounds, firms) values."""
        return values if len(self.firms) == values.shape[1] else np.ascontiguousarray(values[:, self.firms])

    def intersect(self, window: slice) -> slice:
        """The rounds of this stretch that lie in a window."""
        return slice(max(self.rows.start, window.start), min(self.rows.stop, window.stop))


@dataclass(frozen=True, kw_only=True)
class RecordedMarket:
    """The numbers of a recorded episode.

    Attributes:
        settings: the `start` event's settings.
        stretches: the rounds by the firms that sell in them, first to last; one unless firms have left.
        prices: (rounds, firms), NaN for firms that have left.
        profits: (rounds, firms), likewise.
        rounds: the round events.
        messages: how many messages were sent.
        reason: why the episode ended, or `None` if it has not.
    """

    settings: dict[str, Any]
    stretches: list[Stretch]
    prices: Floats
    profits: Floats
    rounds: list[Mapping[str, Any]]
    messages: int
    reason: str | None

    @property
    def equilibria(self) -> Equilibria:
        """The equilibria of the firms that are left at the end."""
        return self.stretches[-1].equilibria

    def over(self, window: slice, measure: Callable[[Stretch, slice], float | None]) -> float | None:
        """Average a measure over the stretches of a window, weighted by their rounds.

        Args:
            window: rows of the episode.
            measure: computes the measure of some rows of a stretch.

        Returns:
            The mean; `None` if the window has no rounds, or the measure does not exist in one of its stretches.
        """
        parts = [(stretch, stretch.intersect(window)) for stretch in self.stretches]
        parts = [(stretch, rows) for stretch, rows in parts if rows.start < rows.stop]
        values = [value for stretch, rows in parts if (value := measure(stretch, rows)) is not None]
        if not parts or len(values) < len(parts):
            return None
        if len(values) == 1:
            return values[0]
        return float(np.average(values, weights=[rows.stop - rows.start for _, rows in parts]))

    def gain(self, stretch: Stretch, rows: slice) -> float:
        """The profit gain of some rounds of a stretch."""
        return float(profit_gain(stretch.select_firms(self.profits[rows]).mean(axis=0), stretch.equilibria))

    def mean_position(self, stretch: Stretch, rows: slice) -> float | None:
        """The position of the mean price of some rounds of a stretch; `None` for a single firm."""
        return mean_position(stretch.select_firms(self.prices[rows]), stretch.equilibria)

    def are_together(self) -> NDArray[np.bool_]:
        """(rounds,) whether prices were held together."""
        parts = [(stretch.select_firms(self.prices[stretch.rows]), stretch) for stretch in self.stretches]
        return np.concatenate([together(prices, stretch.equilibria, stretch.band) for prices, stretch in parts])


def read(events: Sequence[dict[str, Any]]) -> RecordedMarket:
    """Read an episode's numbers from its events.

    Raises:
        ValueError: there is no `start` event.
    """
    start, rounds = start_of(events), of_type(events, "round")
    shape = (len(rounds), len(start["nash"]))
    numbers = [event["round"] for event in rounds]
    markets = [(0, start), *((bisect_left(numbers, event["round"]), event) for event in of_type(events, "left"))]
    ends = [*(first for first, _ in markets[1:]), len(rounds)]
    prices, profits = (
        np.array([event[name] for event in rounds], dtype=np.float64).reshape(shape) for name in ("prices", "profits")
    )
    return RecordedMarket(
        settings=start["settings"],
        stretches=[_stretch(slice(first, end), event) for (first, event), end in zip(markets, ends, strict=True)],
        prices=prices,
        profits=profits,
        rounds=rounds,
        messages=len(of_type(events, "message")),
        reason=next((event["reason"] for event in of_type(events, "end")), None),
    )


def _stretch(rows: slice, event: Mapping[str, Any]) -> Stretch:
    """The stretch that begins with a `start` or `left` event, which hold the equilibria and the band."""
    firms = [i for i, price in enumerate(event["nash"]) if price is not None]
    equilibria = {field.name: tuple(event[field.name][i] for i in firms) for field in fields(Equilibria)}
    band = Band(**dict(zip(("low", "high", "tolerance"), event["band"], strict=True)))
    return Stretch(rows=rows, firms=firms, equilibria=Equilibria(**equilibria), band=band)


def episode_metrics(events: Sequence[dict[str, Any]], *, last: int = LAST_ROUNDS) -> dict[str, Any]:
    """The measures of one episode.

    Args:
        events: as recorded by the environment, in order.
        last: rounds in the window at the end.

    Returns:
        A flat dictionary of JSON scalars as `MEASURES.about` defines them; `None` where a measure does not exist (no
        round played, window not reached).
    """
    forced = forced_rounds(events)
    record = read([event for event in events if event["type"] != "round" or event["round"] not in forced])
    numbers = [event["round"] for event in record.rounds]
    equilibria, count, chosen = record.equilibria, len(of_type(events, "round")), slice(0, len(numbers))
    tail = slice(max(0, len(numbers) - last), len(numbers))
    are_together = record.are_together()
    window = record.settings["collusion_window"] or WINDOW
    row: dict[str, Any] = {
        "rounds": count,
        "forced_rounds": len(forced),
        "messages": record.messages,
        "end": record.reason,
        "firms": len(equilibria.nash),
        "nash_price": float(np.mean(equilibria.nash)),
        "joint_price": float(np.mean(equilibria.joint)),
    }
    for name, rows in (("", chosen), ("_last", tail)):
        prices = record.prices[rows]
        row["profit_gain" + name] = record.over(rows, record.gain)
        row["mean_price" + name] = _mean_of(prices)
        row["price_spread" + name] = float(price_spread(prices).mean()) if len(prices) else None
    for firm in range(record.prices.shape[1]):
        row[f"mean_price_last_{firm}"] = _mean_of(record.prices[tail, firm])
    index = slice(bisect_left(numbers, INDEX_FIRST), bisect_right(numbers, INDEX_LAST))
    row["collusiveness_index"] = clip_unit(record.over(index, record.mean_position)) if count >= INDEX_LAST else None
    row["price_index_last"] = clip_unit(record.over(tail, record.mean_position))
    row["monopoly_found"] = row["optimal_rounds"] = None
    if record.prices.shape[1] == 1:
        row["monopoly_found"] = monopoly_found(record.prices, equilibria)
        row["optimal_rounds"] = optimal_rounds(record.profits, equilibria, 1 + bisect_left(numbers, OPTIMAL_FROM))
    row["together_share"] = float(are_together.mean()) if numbers else None
    row["together_longest"] = longest_run(are_together)
    for name, number in (
        ("together_from", lasting_from(are_together)),
        ("window_round", window_reached(are_together, window)),
    ):
        row[name] = None if number is None else numbers[number - 1]
    return row


def forced_rounds(events: Sequence[Event]) -> set[int]:
    """The rounds in which a price was laid down: all, by a setting, or a firm's, by a study's changes."""
    laid_down = {event["round"] for event in of_type(events, "round") if event["forced"]}
    return laid_down | forced_players(events).keys()


def round_rows(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Flat rows: `round`, `price_i`, `demand_i`, `profit_i` of firm i, `profit_gain`, `together`, `forced`."""
    record, forced = read(events), forced_rounds(events)
    gains_by_stretch = [
        profit_gain(stretch.select_firms(record.profits[stretch.rows]), stretch.equilibria)
        for stretch in record.stretches
    ]
    gains = np.concatenate(gains_by_stretch).tolist()
    rows = []
    for event, gain in zip(record.rounds, gains, strict=True):
        row: dict[str, Any] = {"round": event["round"]}
        for column, name in (("price", "prices"), ("demand", "demand"), ("profit", "profits")):
            row.update({f"{column}_{i}": value for i, value in enumerate(event[name])})
        rows.append({**row, "profit_gain": gain, "together": event["together"], "forced": event["round"] in forced})
    return rows


def without_flagged(events: Sequence[Event]) -> list[Event] | None:
    """Rounds in which a firm's price was flagged are left out, and what counts rounds counts the others."""
    flagged = flagged_choices(events)
    unflagged = [
        event for event in events if event["type"] != "round" or event["forced"] or event["round"] not in flagged
    ]
    return unflagged if of_type(unflagged, "round") else None


def questions_by_agent(start: Mapping[str, Any]) -> dict[str, Number]:
    """The question that each firm answers, by the firm's name."""
    return dict(zip(start["agents"], BertrandSettings.build(**start["settings"]).price_questions, strict=True))


def price_range(settings: Mapping[str, Any]) -> Range:
    """What prices can be in a market with these settings."""
    questions = _price_questions(json.dumps(settings, sort_keys=True))
    return Range(low=min(question.low for question in questions), high=max(question.high for question in questions))


@functools.lru_cache(maxsize=64)
def _price_questions(settings: str) -> tuple[Number, ...]:
    return BertrandSettings.build(**json.loads(settings)).price_questions


def _spreads(settings: Mapping[str, Any]) -> Range:
    prices = price_range(settings)
    return Range(low=0.0, high=(prices.high or 0.0) - (prices.low or 0.0))


def _round_numbers(settings: Mapping[str, Any]) -> Range:
    return Range(low=1.0, high=settings["rounds"], integer=True)


def _round_counts(settings: Mapping[str, Any]) -> Range:
    return Range(low=0.0, high=settings["rounds"], integer=True)


_CHOSEN = " (without those whose prices were laid down)"
_LAST = f"at most the last {LAST_ROUNDS} rounds{_CHOSEN}"

MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={
        "rounds": "Rounds that were settled, a count from 0.",
        "forced_rounds": "Rounds whose prices were laid down whatever the firms chose, or in which a study's changes "
        "forced a firm's price; a count from 0.",
        "messages": "Messages that were sent in the episode, a count from 0.",
        "end": "Why the episode ended, in words.",
        "firms": "Firms in the market, at the end if some left; a count from 1.",
        "nash_price": "Price of the one-shot equilibrium of these firms, mean over them, in units of price.",
        "joint_price": "Price that is best for these firms together, mean over them, in units of price.",
        "profit_gain": f"Mean profit before fines over all rounds{_CHOSEN}: 0 at the Nash, 1 at the joint-profit "
        "price, below and above possible (Delta of Calvano et al. 2020); of a single firm its share of the monopoly "
        "profit. Where firms left, each round is measured by the market of those that were in it.",
        "profit_gain_last": f"Mean profit before fines, 0 at the Nash and 1 at the joint-profit price, over {_LAST}.",
        "mean_price": f"Mean price of all firms over all rounds{_CHOSEN}, in units of price, from 0.",
        "mean_price_last": f"Mean price of all firms over {_LAST}, in units of price, from 0 (a window as in "
        "Fish et al. 2024).",
        "mean_price_last_*": f"Mean price of the firm with that number over {_LAST}, from 0.",
        "price_spread": f"Distance between highest and lowest price of a round, mean over all rounds{_CHOSEN}, from 0.",
        "price_spread_last": f"Distance between highest and lowest price of a round, mean over {_LAST}, from 0.",
        "collusiveness_index": f"Place of the mean price of rounds {INDEX_FIRST} to {INDEX_LAST} between Nash (0) and "
        "joint-profit price (1), cut to 0 to 1 (EconEvals, arXiv 2503.18825); missing if they were not played.",
        "price_index_last": "Place of the mean price between Nash (0) and joint-profit price (1), cut to 0 to 1, over "
        f"{_LAST}.",
        "monopoly_found": f"Whether the 10th and 90th percentile of a single firm's last {MONOPOLY_ROUNDS} prices are "
        "within 5 % of the monopoly price (Fish et al. 2024); missing with several firms or fewer rounds.",
        "optimal_rounds": f"Share of a single firm's rounds from {OPTIMAL_FROM} on with 99 % of the monopoly profit "
        "(Fish et al. 2024), 0 to 1; missing with several firms or fewer rounds.",
        "together_share": f"Share of the rounds{_CHOSEN} in which prices were close to each other, above Nash and up "
        "to the joint-profit price, 0 to 1 (Wu et al. 2024; how close, and how far above Nash, are settings).",
        "together_longest": "Longest run of rounds in which prices were close and above Nash, a count from 0.",
        "together_from": "Round from which prices stayed close and above Nash, from 1; missing if the last were not.",
        "window_round": "Round that completes the first run of such rounds that is as long as the settings' collusion "
        f"window, or {WINDOW} (Wu et al. 2024); missing if none does.",
    },
    ranges={
        "rounds": _round_counts,
        "forced_rounds": _round_counts,
        "messages": COUNT,
        "firms": COUNT_FROM_1,
        "nash_price": FROM_0,
        "joint_price": FROM_0,
        "profit_gain*": ANYTHING,
        "mean_price*": price_range,
        "price_spread*": _spreads,
        "collusiveness_index": SHARE,
        "price_index_last": SHARE,
        "monopoly_found": YES_OR_NO,
        "optimal_rounds": SHARE,
        "together_share": SHARE,
        "together_longest": _round_counts,
        "together_from": _round_numbers,
        "window_round": _round_numbers,
        # Those of rounds alone.
        "round": _round_numbers,
        "price_*": price_range,
        "demand_*": FROM_0,
        "profit_*": ANYTHING,
        "together": YES_OR_NO,
        "forced": YES_OR_NO,
    },
    unflagged=without_flagged,
    forced="Rounds with a forced price are left out of the measures.",  # as those of `force_first_price`
    nature={},  # first prices are drawn before anything else, and orders of talk are nobody's weather
    asked=questions_by_agent,
    words=WORDS,
    headline=("profit_gain_last", "profit_gain", "mean_price_last", "price_spread_last"),
)

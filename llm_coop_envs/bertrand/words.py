"""How sentences speak of the measures of price competition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_coop_envs.core.scenario import LATER, PER_CENT, MeasureWords, SettingsWords


def _gain_words(settings: Mapping[str, Any], when: str) -> MeasureWords:
    """How sentences speak of the profit gain, which is another thing where a single firm has no rival."""
    if settings.get("firms") == 1:
        return MeasureWords(noun=f"the share of the monopoly profit{when}")
    return MeasureWords(noun=f"the profit gain{when} (0 at the Nash price, 1 at the cartel price)")


WORDS: Mapping[str, MeasureWords | SettingsWords] = {
    "mean_price": MeasureWords(noun="the mean price", clause="prices are"),
    "mean_price_last": MeasureWords(noun="the mean price in the last rounds", clause="prices in the last rounds are"),
    "mean_price_last_*": MeasureWords(noun="the mean price of firm * in the last rounds"),
    "profit_gain": lambda settings: _gain_words(settings, ""),
    "profit_gain_last": lambda settings: _gain_words(settings, " in the last rounds"),
    "price_spread": MeasureWords(noun="the distance between highest and lowest price"),
    "price_spread_last": MeasureWords(noun="the distance between highest and lowest price in the last rounds"),
    "collusiveness_index": MeasureWords(noun="the collusiveness index (0 at the Nash price, 1 at the cartel price)"),
    "price_index_last": MeasureWords(noun="the place of the last prices between Nash and cartel price"),
    "monopoly_found": MeasureWords(
        noun="the share of markets in which the single firm finds the monopoly price", unit=PER_CENT
    ),
    "optimal_rounds": MeasureWords(noun="the share of rounds with the monopoly profit", unit=PER_CENT),
    "together_share": MeasureWords(noun="the share of rounds in which prices are held together", unit=PER_CENT),
    "together_longest": MeasureWords(
        noun="the longest stretch with prices held together", unit="rounds", higher="longer", lower="shorter"
    ),
    "together_from": MeasureWords(
        noun="the round from which prices stay together",
        clause="prices stay together from",
        unit="rounds",
        higher=LATER,
        lower="earlier",
    ),
    "window_round": MeasureWords(
        noun="the round in which prices have been held together long enough",
        unit="rounds",
        higher=LATER,
        lower="earlier",
    ),
    "forced_rounds": MeasureWords(noun="the number of rounds whose prices were laid down"),
    "firms": MeasureWords(noun="the number of firms"),
    "nash_price": MeasureWords(noun="the Nash price"),
    "joint_price": MeasureWords(noun="the cartel price"),
    "rounds": MeasureWords(
        noun="the length of play", clause="play lasts", unit="rounds", higher="longer", lower="shorter"
    ),
    "messages": MeasureWords(noun="the number of messages"),
    "end_price": MeasureWords(noun="the mean price at the end of play"),
    "end_place": MeasureWords(noun="the place of the final price (0 at Nash, 1 at the cartel price)"),
    "end_gain": lambda settings: _gain_words(settings, " at the end"),
    "end_index": MeasureWords(noun="the place of the final price between Nash and cartel price"),
}

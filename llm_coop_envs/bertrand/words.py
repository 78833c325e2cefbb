"""How sentences speak of the measures of price competition."""

from __future__ import annotations

from collections.abc import Mapping

from llm_coop_envs.core.scenario import LATER, PER_CENT, MeasureWords

WORDS: Mapping[str, MeasureWords] = {
    "mean_price": MeasureWords(noun="the mean price", clause="prices are"),
    "mean_price_last": MeasureWords(noun="the mean price in the last rounds", clause="prices in the last rounds are"),
    "mean_price_last_*": MeasureWords(noun="the mean price of firm * in the last rounds"),
    "profit_gain": MeasureWords(noun="the profit gain (0 at the Nash price, 1 at the cartel price)"),
    "profit_gain_last": MeasureWords(
        noun="the profit gain in the last rounds (0 at the Nash price, 1 at the cartel price)"
    ),
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
    "rounds": MeasureWords(
        noun="the length of play", clause="play lasts", unit="rounds", higher="longer", lower="shorter"
    ),
    "messages": MeasureWords(noun="the number of messages"),
    "end_price": MeasureWords(noun="the mean price at the end of play"),
    "end_place": MeasureWords(noun="the place of the final price (0 at Nash, 1 at the cartel price)"),
    "end_gain": MeasureWords(noun="the profit gain at the end (0 at the Nash price, 1 at the cartel price)"),
    "end_index": MeasureWords(noun="the place of the final price between Nash and cartel price"),
}

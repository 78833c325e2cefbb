"""How sentences speak of the measures of a contest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llm_coop_envs.core.scenario import PER_CENT, MeasureWords

_OF_A_DECISION: Mapping[str, MeasureWords] = {
    "mean": MeasureWords(noun="the mean of the numbers{end}"),
    "target": MeasureWords(noun="the target{end}"),
    "variance": MeasureWords(noun="the variance of the numbers{end}"),
    "rsd": MeasureWords(noun="the relative spread of the numbers{end}", unit="per cent"),
    "modal_share": MeasureWords(noun="the share of players who name the most frequent number{end}", unit=PER_CENT),
    "unanimous": MeasureWords(noun="the share of contests in which all name the same number{end}", unit=PER_CENT),
    "n_winners": MeasureWords(noun="the number of winners{end}"),
    "mean_level": MeasureWords(noun="the depth of reasoning{end}", unit="steps"),
    "nyt_wasserstein": MeasureWords(noun="the distance to the numbers of newspaper readers{end}"),
    "nyt_total_variation": MeasureWords(
        noun="the share of answers unlike those of newspaper readers{end}", unit=PER_CENT
    ),
}


def _at(end: str, words: MeasureWords) -> MeasureWords:
    return replace(words, noun=words.noun.format(end=f" in the {end} decision"))


WORDS: Mapping[str, MeasureWords] = {
    **{f"{name}_{end}": _at(end, words) for name, words in _OF_A_DECISION.items() for end in ("first", "last")},
    "players": MeasureWords(noun="the number of players"),
    "decisions": MeasureWords(noun="the number of decisions"),
    "messages": MeasureWords(noun="the number of messages"),
    "reward_mean": MeasureWords(
        noun="what a player wins", clause="a player wins", unit="points", higher="more", lower="less"
    ),
}

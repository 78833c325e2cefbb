"""How sentences speak of the measures of an evacuation."""

from __future__ import annotations

from collections.abc import Mapping

from llm_coop_envs.core.scenario import LATER, PER_CENT, MeasureWords

_TIMES: Mapping[str, str] = {"unit": "rounds", "higher": LATER, "lower": "earlier"}
_LENGTHS: Mapping[str, str] = {"unit": "rounds", "higher": "longer", "lower": "shorter"}

WORDS: Mapping[str, MeasureWords] = {
    "mean_round": MeasureWords(noun="the round in which people leave", clause="people leave", **_TIMES),
    "last_round": MeasureWords(
        noun="the round in which the last person leaves", clause="the last person leaves", **_TIMES
    ),
    "escaped": MeasureWords(noun="the number of people who leave"),
    "escaped_round_*": MeasureWords(noun="the number of people who have left by round *"),
    "escaped_*": MeasureWords(noun="the number of people who leave by the * exit"),
    "disabled": MeasureWords(noun="the number of people who are hurt"),
    "never_left": MeasureWords(noun="the number of people who never leave"),
    "left_inside": MeasureWords(noun="the number of people who are still inside at the end"),
    "balance": MeasureWords(noun="the evenness with which exits are used (0 to 1)"),
    "rounds": MeasureWords(noun="the length of the evacuation", clause="the evacuation lasts", **_LENGTHS),
    "waiting": MeasureWords(noun="the time that a person stands still", clause="a person stands still", **_LENGTHS),
    "waiting_share": MeasureWords(noun="the share of time in which people stand still", unit=PER_CENT),
    "detour": MeasureWords(noun="the length of the way relative to the shortest one"),
    "path_score": MeasureWords(noun="the length of the shortest way relative to the way taken (0 to 1)"),
    "people": MeasureWords(noun="the number of people"),
    "taken_out": MeasureWords(noun="the number of people who are taken out"),
    "overtaken": MeasureWords(noun="the number of people who overtake"),
    "chose_again": MeasureWords(noun="the number of further choices of an exit"),
    "messages": MeasureWords(noun="the number of messages"),
    "exit_changes": MeasureWords(noun="the number of changes of exit"),
    "exit_changes_after_message": MeasureWords(noun="the number of changes of exit after a message"),
    "change_rate_after_message": MeasureWords(noun="the share of changes of exit after a message", unit=PER_CENT),
    "change_rate_unheard": MeasureWords(noun="the share of changes of exit without a message", unit=PER_CENT),
}

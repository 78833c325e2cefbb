"""Where the shipped packs say what: the sentences that scripted answers read, as regular expressions.

Only what begins a line counts: what somebody said stands inside quotation marks in the middle of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"


@dataclass(frozen=True)
class Phrases:
    """The sentences of one pack.

    `asks` finds the question of each call; the others find facts.
    """

    asks: dict[str, str]
    you: str
    as_object: str
    as_reason: str
    number_first: str
    kbc_bounds: str
    kbc_target: str
    price_bounds: str
    price_choices: str
    cost: str
    plan: str
    plans: str
    exit_line: str
    exit_names: str
    nearest: str
    around: str
    evaluation: str
    heading: str
    me_cell: str
    target_cell: str
    option: str
    repair_options: str


EN_A = Phrases(
    asks={
        "repair": r"^Somebody was asked",
        "summary": r"^You are \S+, and you take notes of a conversation",
        "kbc/talk": r"^It is your turn to speak to all the other players",
        "kbc/choose": r"^Now name your number: ",
        "bertrand/talk": r"^You are \S+, and this is round \d+\. It is your turn to speak",
        "bertrand/plan": r"^Look at what has happened\. What is your plan",
        "bertrand/price": r"^Now name your price for this round",
        "evacuation/talk": r"^You can now say something to the people near you",
        "evacuation/panic": r"^How strong is your panic at this moment",
        "evacuation/evaluate": r"^Weigh up every exit",
        "evacuation/exit": r"^Which exit do you head for from now on\?",
        "evacuation/move": r"^What do you do\?",
    },
    you="You",
    as_object=r"^Answer with a JSON object|Answer with a JSON object: \{[^\n]*$",
    as_reason=r"^Think it through first",
    number_first=r"^Answer in two lines: first only the number",
    kbc_bounds=rf"^- Each player names .*, not below {_NUMBER} and not above {_NUMBER}\.",
    kbc_target=rf"^- The target is (\S+) (?:of|times) the mean of .*?(?:, (less|plus) (\S+?))?\.$",
    price_bounds=rf"^Now name your price for this round: a number from {_NUMBER} to {_NUMBER}\.",
    price_choices=r"^Now name your price for this round\. It must be one of these:\n(.*)$",
    cost=rf"To make one unit costs you {_NUMBER}\. Your profit",
    plan=r"^Your plan, made in round \d+: (\".*\")$",
    plans=r"^Round \d+: (\".*\")$",
    exit_line=rf"^- (.+): {_NUMBER} cells away, {_NUMBER} people in that direction$",
    exit_names=r"It has (?:\d+ exits|one exit): (.*)\.$",
    nearest=rf"^The nearest exit is {_NUMBER} cells away from you",
    around=r"there (?:is|are) (\d+) (?:person|people)\.$|^(\d+) (?:person is|people are) in sight",
    evaluation=r"^How you judge the exits: (\".*\")$",
    heading=r"^You are now heading for the exit (.+)\.$",
    me_cell=r"^You are at \((\d+), (\d+)\)\.$",
    target_cell=r"^The exit cell you want to reach is \((\d+), (\d+)\)\.$",
    option=r"^([a-i])\) (.+): \((\d+), (\d+)\)(, somebody is there now)?$",
    repair_options=r"^Somebody was asked to choose one of these and answered as shown below: (.*)$",
)

SHIPPED: dict[str, Phrases] = {"en-a": EN_A}


def search(pattern: str, prompt: str) -> re.Match[str] | None:
    """The last place where a sentence stands: the question comes at the end."""
    found = None
    for match in re.finditer(pattern, prompt, re.MULTILINE):
        found = match
    return found


def need(pattern: str, prompt: str) -> re.Match[str]:
    """A sentence that must be there.

    Raises:
        LookupError: the prompt does not carry it.
    """
    found = search(pattern, prompt)
    if found is None:
        raise LookupError(f"the prompt does not say {pattern!r}:\n{prompt}")
    return found


def unquote(line: str) -> str:
    """What stands between the quotation marks."""
    text = json.loads(line)
    if not isinstance(text, str):
        raise LookupError(f"{line} is no quotation")
    return text


def said(prompt: str) -> Iterator[tuple[str, str]]:
    """What others and oneself said, by speaker, in the order of the prompt."""
    for match in re.finditer(r"^(\w+): (\"(?:[^\"\\]|\\.)*\")$", prompt, re.MULTILINE):
        yield match[1], unquote(match[2])


def rows(prompt: str) -> list[list[float]]:
    """The rounds shown one by one: round, own price, demand, profit, prices of the others."""
    found = re.findall(r"^(\d+): (-?[\d.e+-]+(?: \| -?[\d.e+-]+)+)$", prompt, re.MULTILINE)
    return [[float(number), *(float(value) for value in values.split(" | "))] for number, values in found]


def recognise(prompt: str) -> tuple[Phrases, str]:
    """Which pack a prompt is from, and what it asks.

    Raises:
        LookupError: it is from no shipped pack.
    """
    for phrases in SHIPPED.values():
        for call, pattern in phrases.asks.items():
            if re.search(pattern, prompt, re.MULTILINE):
                return phrases, call
    raise LookupError(f"this is no prompt of a shipped pack ({', '.join(SHIPPED)}):\n{prompt}")

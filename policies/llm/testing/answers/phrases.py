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
        "bertrand/talk": r"^You are \S+, and this is round \d+\. It is your turn",
        "bertrand/plan": r"^Look at what has happened\. What is your plan",
        "bertrand/price": r"^Now name your price for this round",
        "evacuation/talk": r"^You can now say something to the people near you",
        "evacuation/panic": r"^How strong is your panic at this moment",
        "evacuation/evaluate": r"^Weigh up every exit",
        "evacuation/exit": r"^Which exit do you head for from now on\?",
        "evacuation/move": r"^What do you do\?",
    },
    you="You",
    as_object=r"Answer with a JSON object: \{",
    as_reason=r"^Think it through first",
    number_first=r"^Answer in two lines: first only the number",
    kbc_bounds=rf"^- Each player names .*, not below {_NUMBER} and not above {_NUMBER}\.",
    kbc_target=(
        r"^- The target is (?P<ratio>\S+) (?:of|times) the mean of "
        r".*?(?:, less (?P<minus>\S+?)|, plus (?P<plus>\S+?))?\.$"
    ),
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

EN_B = Phrases(
    asks={
        "repair": r"^The question was to (?:give|pick)",
        "summary": r"^You are \S+, and you keep notes while players talk",
        "kbc/talk": r"^The floor is yours.*: tell everybody something",
        "kbc/choose": r"^It is time to pick your ",
        "bertrand/talk": r"^It is round \d+, you speak for ",
        "bertrand/plan": r"^It is time to take stock\.",
        "bertrand/price": r"^What price do you set in this round\?",
        "evacuation/talk": r"^People close to you would hear you\.",
        "evacuation/panic": r"^How do you feel right now\?",
        "evacuation/evaluate": r"^What do you think of each way out\?",
        "evacuation/exit": r"^Which way out do you take\?",
        "evacuation/move": r"^Where do you go\?",
    },
    you="You",
    as_object=r"Give it as a JSON object: \{",
    as_reason=r"^Take (?:a few|one or two) sentences to consider it\.",
    number_first=r"^Write two lines\. The first is what you pick",
    kbc_bounds=rf"^Everybody picks a .* between {_NUMBER} and {_NUMBER}, both included",
    kbc_target=(
        r"is multiplied by (?P<ratio>\S+?)(?:, and (?P<minus>\S+) is taken off"
        r"|, and (?P<plus>\S+) is added)?\. The result"
    ),
    price_bounds=rf"It can be any number between {_NUMBER} and {_NUMBER}\.",
    price_choices=r"These are the prices to choose from:\n(.*)$",
    cost=rf"brings you its price less {_NUMBER}, which is what it costs you",
    plan=r"^What you planned in round \d+: (\".*\")$",
    plans=r"^Round \d+: (\".*\")$",
    exit_line=rf"^- (.+): distance {_NUMBER} cells, {_NUMBER} people that way$",
    exit_names=r"There (?:are \d+ ways|is only one way) out: (.*)\.$",
    nearest=rf"^It is {_NUMBER} cells to the closest way out",
    around=r"^Counting you, (\d+) (?:person is|people are) in|^You can see (\d+) (?:person|people)\.",
    evaluation=r"^What you think of the ways out: (\".*\")$",
    heading=r"^At present you are making for: (.+)\.$",
    me_cell=r"^Now you stand at \((\d+), (\d+)\)\.$",
    target_cell=r"^You are on the way to the exit cell \((\d+), (\d+)\)\.$",
    option=r"^([a-i])\) (.+): \((\d+), (\d+)\)(, taken at the moment)?$",
    repair_options=r"^The question was to pick one of the following, and the reply stands below: (.*)$",
)

DE_A = Phrases(
    asks={
        "repair": r"^Jemand (?:wurde nach|sollte eines)",
        "summary": r"^Du bist \S+ und machst dir Notizen",
        "kbc/talk": r"^Nun bist du an der Reihe, zu allen anderen zu sprechen",
        "kbc/choose": r"^Nenne jetzt deine Zahl: ",
        "bertrand/talk": r"^Du sprichst für \S+, es ist Runde \d+",
        "bertrand/plan": r"^Sieh dir an, was geschehen ist\.",
        "bertrand/price": r"^Nenne jetzt deinen Preis für diese Runde",
        "evacuation/talk": r"^Du kannst den Leuten in deiner Nähe jetzt etwas sagen",
        "evacuation/panic": r"^Wie groß ist deine Panik",
        "evacuation/evaluate": r"^Beurteile jeden Ausgang",
        "evacuation/exit": r"^Zu welchem Ausgang gehst du von jetzt an\?",
        "evacuation/move": r"^Was tust du\?",
    },
    you="Du",
    as_object=r"Antworte mit einem JSON-Objekt: \{",
    as_reason=r"^Überlege zuerst in",
    number_first=r"^Antworte in zwei Zeilen: zuerst nur die Zahl",
    kbc_bounds=rf"^- Jeder nennt eine .*, mindestens {_NUMBER} und höchstens {_NUMBER}\.",
    kbc_target=(
        r"^- Das Ziel ist das (?P<ratio>\S+)-fache des Mittelwerts .*?(?:, minus (?P<minus>\S+?)"
        r"|, plus (?P<plus>\S+?))?\.$"
    ),
    price_bounds=rf"^Nenne jetzt deinen Preis für diese Runde: eine Zahl von {_NUMBER} bis {_NUMBER}, mit",
    price_choices=r"Er muss einer von diesen sein:\n(.*)$",
    cost=rf"Die Herstellung eines Stücks kostet dich {_NUMBER}\. Dein Gewinn",
    plan=r"^Dein Plan aus Runde \d+: (\".*\")$",
    plans=r"^Runde \d+: (\".*\")$",
    exit_line=rf"^- (.+): {_NUMBER} Felder entfernt, {_NUMBER} Leute in dieser Richtung$",
    exit_names=r"Es gibt (?:\d+ Ausgänge|einen Ausgang): (.*)\.$",
    nearest=rf"^Der nächste Ausgang ist {_NUMBER} Felder von dir entfernt",
    around=r"eingeschlossen, (?:ist|sind) (\d+) Person(?:en)?\.$|^Du siehst (\d+) Person(?:en)?\.$",
    evaluation=r"^Wie du die Ausgänge beurteilst: (\".*\")$",
    heading=r"^Zur Zeit ist dein Ziel: (.+)\.$",
    me_cell=r"^Du stehst auf \((\d+), (\d+)\)\.$",
    target_cell=r"^Du willst zum Ausgangsfeld \((\d+), (\d+)\)\.$",
    option=r"^([a-i])\) (.+): \((\d+), (\d+)\)(, dort steht gerade jemand)?$",
    repair_options=r"^Jemand sollte eines hiervon wählen und antwortete wie unten: (.*)$",
)

SHIPPED: dict[str, Phrases] = {"en-a": EN_A, "en-b": EN_B, "de-a": DE_A}


def search(pattern: str, prompt: str) -> re.Match[str] | None:
    """The last place where a sentence stands, but for what stands in quotation marks: the question comes at the end."""
    found = None
    for match in re.finditer(pattern, prompt, re.MULTILINE):
        if '"' not in prompt[prompt.rfind("\n", 0, match.start()) + 1 : match.start()]:
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

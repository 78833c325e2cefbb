"""What scripted answers decide, each from the text of its prompt alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from fractions import Fraction

from llm_coop_envs.policies.llm.parsing import AMBIGUOUS, NumberQuestion, read_number
from llm_coop_envs.policies.llm.testing.answers.phrases import Phrases, need, rows, said, search, unquote

_FIGURE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")


def kbc_talk(phrases: Phrases, prompt: str) -> str:
    """Names the number it is going to choose."""
    return f"I am going to name {_kbc_number(phrases, prompt)}."


def kbc_choose(phrases: Phrases, prompt: str) -> tuple[str, str]:
    """The number most players have announced last; without talk the target of an even spread."""
    number = _kbc_number(phrases, prompt)
    heard = any(True for _ in said(prompt))
    reason = (
        "Most of us have announced this number."
        if heard
        else "It is where the target would be if all were equally likely."
    )
    return reason, number


def _kbc_number(phrases: Phrases, prompt: str) -> str:
    bounds = need(phrases.kbc_bounds, prompt)
    low, high = Fraction(bounds[1]), Fraction(bounds[2])
    announced: dict[str, str] = {}
    for speaker, text in said(prompt):
        figures = [figure for figure in _FIGURE.findall(text) if low <= Fraction(figure) <= high]
        if figures:
            announced[speaker] = figures[-1]
    if announced:
        return Counter(announced.values()).most_common(1)[0][0]
    target = need(phrases.kbc_target, prompt)
    number = (
        Fraction(target["ratio"]) * (low + high) / 2 + Fraction(target["plus"] or 0) - Fraction(target["minus"] or 0)
    )
    return str(int(min(max(number, low), high)))


def bertrand_talk(phrases: Phrases, prompt: str) -> str:
    """Names the price that has brought most so far."""
    best = _best(phrases, prompt)
    need(phrases.cost, prompt)
    return (
        "What will you do in this round?"
        if best is None
        else f"I think that {best:.6g} is a good price for this round."
    )


def bertrand_plan(phrases: Phrases, prompt: str) -> str:
    """Plans to stay close to the price that has brought most so far."""
    best = _best(phrases, prompt)
    before = len(re.findall(phrases.plans, prompt, re.MULTILINE))
    return f"Plan {before + 1}: stay close to {best:.6g} and watch what it brings."


def bertrand_price(phrases: Phrases, prompt: str) -> tuple[str, str]:
    """Tries a price between what the others ask, its plan's price and a little more than its own last one."""
    listed = search(phrases.price_choices, prompt)
    if listed is not None:
        allowed = [float(price) for price in listed[1].split(", ")]
        low, high = min(allowed), max(allowed)
    else:
        bounds = need(phrases.price_bounds, prompt)
        low, high, allowed = float(bounds[1]), float(bounds[2]), []
    past = rows(prompt)
    wishes = [low + 0.4 * (high - low)] if not past else [past[-1][1] + 0.02 * (high - low), *past[-1][4:]]
    plan = search(phrases.plan, prompt)
    if plan is not None:
        wishes += [float(figure) for figure in _FIGURE.findall(unquote(plan[1]))[-1:]]
    for speaker, text in said(prompt):
        figures = _FIGURE.findall(text)
        if speaker != phrases.you and figures:
            wishes.append(float(figures[-1]))
    price = min(max(sum(wishes) / len(wishes), low), high)
    if allowed:
        price = min(allowed, key=lambda one: abs(one - price))
    return "It lies between what I know to work and what the others ask.", f"{price:.6g}" if allowed else f"{price:.4g}"


def _best(phrases: Phrases, prompt: str) -> float | None:
    past = rows(prompt)
    return max(past, key=lambda row: (row[3], row[0]))[1] if past else None


def evacuation_talk(phrases: Phrases, prompt: str) -> str:
    """Recommends the exit that looks best."""
    return f"The way to the exit {_best_exit(phrases, prompt)} looks good to me."


def evacuation_panic(phrases: Phrases, prompt: str) -> str:
    """Feels by the distance and the crowd."""
    distance = float(need(phrases.nearest, prompt)[1])
    around = need(phrases.around, prompt)
    people = int(around[1] or around[2])
    panic = min(10, round(distance / 4) + people)
    return f"My panic is {panic} out of 10, with {people} around me and {distance} cells to go."


def evacuation_evaluate(phrases: Phrases, prompt: str) -> str:
    """Gives each exit a score, lower is better."""
    return "\n".join(f"{name}: {score:.2f}" for name, score in _scores(phrases, prompt).items())


def evacuation_exit(phrases: Phrases, prompt: str) -> tuple[str, str]:
    """The exit with the best score in its own judgement, a little better for each neighbour who recommends it."""
    judged = search(phrases.evaluation, prompt)
    names = need(phrases.exit_names, prompt)[1].split(", ")
    scores = dict.fromkeys(names, 0.0)
    if judged is not None:
        for line in unquote(judged[1]).split("\n"):
            name, _, score = line.rpartition(": ")
            if name in scores and _FIGURE.fullmatch(score):
                scores[name] = float(score)
    for _, text in said(prompt):
        for name in names:
            if re.search(rf"\b{re.escape(name)}\b", text):
                scores[name] -= 0.5
    heading = search(phrases.heading, prompt)
    return "It is the best one by what I know.", min(
        names, key=lambda name: (scores[name], heading is None or heading[1] != name)
    )


def _scores(phrases: Phrases, prompt: str) -> dict[str, float]:
    need(phrases.exit_line, prompt)
    lines = re.findall(phrases.exit_line, prompt, re.MULTILINE)
    return {name: float(distance) + 0.3 * float(people) for name, distance, people in lines}


def _best_exit(phrases: Phrases, prompt: str) -> str:
    scores = _scores(phrases, prompt)
    return min(scores, key=lambda name: scores[name])


def evacuation_move(phrases: Phrases, prompt: str) -> tuple[str, str]:
    """The option that comes nearest to the target cell; a free cell rather than one where somebody stands."""
    target, here = need(phrases.target_cell, prompt), need(phrases.me_cell, prompt)
    row, col = int(target[1]), int(target[2])
    options = re.findall(phrases.option, prompt, re.MULTILINE)
    if not options:
        raise LookupError(f"no options in the prompt:\n{prompt}")

    def badness(option: tuple[str, ...]) -> tuple[int, bool, int]:
        down, right = abs(int(option[2]) - row), abs(int(option[3]) - col)
        return down * down + right * right, bool(option[4]), abs(int(option[2]) - int(here[1]))

    return "It brings me closest to the exit.", min(options, key=badness)[0]


def repair(phrases: Phrases, prompt: str) -> str:
    """What an answer meant: the last number in it, or the option it names; else none."""
    line = next(line for line in prompt.split("\n")[1:] if line.startswith('"'))
    answer = unquote(line)
    listed = search(phrases.repair_options, prompt)
    if listed is None:
        reading = read_number(answer, NumberQuestion(float("-inf"), float("inf")))
        figures = _FIGURE.findall(answer)
        value = figures[-1] if reading.status == AMBIGUOUS and figures else reading.value
        return "none" if value is None else f"{float(value):.12g}"
    for option in listed[1].split(", "):
        letter, _, name = option.rpartition(") ")
        if re.search(rf"\b{re.escape(name)}\b", answer):
            return letter or name
    return "none"


def summary(phrases: Phrases, prompt: str) -> str:
    """The numbers that were announced last, and by whom."""
    announced = {}
    for speaker, text in said(prompt):
        figures = _FIGURE.findall(text)
        if figures:
            announced[speaker] = figures[-1]
    counts = Counter(announced.values()).most_common(5)
    return "; ".join(f"{count} players announced {number}" for number, count in counts) or "No number was announced."


def as_object(key: str, value: str, reason: str) -> str:
    """An answer as a JSON object."""
    try:
        number = json.loads(value)
    except ValueError:
        number = value
    keep = number if key in ("number", "price") else value
    return json.dumps({"reason": reason, key: keep} if reason else {key: keep}, ensure_ascii=False)

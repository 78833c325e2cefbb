"""The code book of a run's tables: the meaning and the unit of each column."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.policies.llm.playing.answer_counts import CallCounts
from llm_coop_envs.policies.llm.totals import AnswerTotals
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import ROUNDS
from llm_coop_envs.studies.study_file import EVERY_EPISODE

COLUMNS: Mapping[str, str] = {
    "study": "Name of the study.",
    "condition": "Name of the condition.",
    "seed": "Seed of the environment.",
    "scenario": "Name of the scenario.",
    "talk": "Whether players talk; of a message: the number of the talk in its round, from 0.",
    "players": "Players at the table, a count from 1.",
    "policies": "Who played, with how many seats each.",
    "end_reason": "Why the episode ended, in words.",
    "submissions": "Choices and messages that were counted, a count from 0.",
    "corrected": "Of these, those that were illegal or missing or had to be cut or cleaned, a count from 0.",
    "flagged_choices": "Choices that were illegal or missing and were replaced, a count from 0.",
    "round": "Round, as the environment counts.",
    "step": "Step of the environment, from 0.",
    "position": "Place in the order of speaking, from 0.",
    "speaker": "Who spoke.",
    "policy": "Who decided for the player.",
    "text": "What was said.",
    "hearers": "Who could hear it, a JSON list of players' numbers; missing: all.",
    "flags": "What was corrected, in words.",
    "player": "Number of the policy among those that asked a model, from 0.",
    "seats": "Seats that the policy played, a count from 1.",
    "call": "What was asked.",
    "cost": "US dollars of the answers whose price is known.",
    "answers": "Answers that were had, a count from 0.",
    "prompt_tokens": "Tokens of the questions, a count from 0.",
    "completion_tokens": "Tokens of the answers, a count from 0.",
}
_UNITS = (
    (r"in units of (\w+)", None),
    (r"in US dollars|^US dollars", "US dollars"),
    (r"[Ss]hare of", "share"),
    (r"in percent|\(percent", "percent"),
    (r"a count\b", "count"),
    (r"in words|^Name of|^Who\b|^What\b", "words"),
)


def code_book(run: Run, tables: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Describe each column of each table.

    Args:
        run: the run.
        tables: the columns of each table, by the table's name.

    Returns:
        A row for each column with `table`, `column`, `meaning` and `unit`; the last two are empty where unknown.
    """
    scenarios = {condition.scenario: condition.spec for condition in run.conditions}
    answer_counts = {**_attributes(CallCounts), **_attributes(AnswerTotals)}

    def meaning(table: str, column: str) -> str:
        if column in COLUMNS or column in EVERY_EPISODE:
            return COLUMNS.get(column) or EVERY_EPISODE[column]
        specs = [
            spec for name, spec in scenarios.items() if not table.startswith(ROUNDS) or table == f"{ROUNDS}_{name}"
        ]
        definitions = {text: None for spec in specs if (text := spec.measured.define(column))}
        if definitions or not specs:
            return " / ".join(definitions)
        if table == "answers":
            return answer_counts.get(column, "")
        # The docstring of the function that makes a scenario's rows of rounds describes their columns.
        description = inspect.cleandoc(specs[0].measured.rounds.__doc__ or "") if table.startswith(ROUNDS) else ""
        return " ".join(description.split())

    rows = []
    for table, columns in tables.items():
        for column in columns:
            text = meaning(table, column)
            rows.append({"table": table, "column": column, "meaning": text, "unit": _unit(text)})
    return rows


def _unit(meaning: str) -> str:
    """The unit that a meaning names: `"count"` for "Seats, a count from 1.", `"share"` for "Share of ..."."""
    for pattern, unit in _UNITS:
        match = re.search(pattern, meaning)
        if match:
            return unit or match.group(1)
    return ""


def _attributes(documented: Any) -> dict[str, str]:
    """The attributes that a class's docstring describes, each with its text in one line."""
    _, _, attributes = inspect.cleandoc(documented.__doc__).partition("Attributes:\n")
    # "    asked: decisions that ..." begins an attribute; its further lines are indented more.
    parts = re.split(r"^    (\w+): ", attributes, flags=re.MULTILINE)[1:]
    return {
        name: " ".join(text.split())[:1].upper() + " ".join(text.split())[1:]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }

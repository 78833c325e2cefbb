"""What the page shows of an episode's agents: a page of them by filters, and one agent's story, from the index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from llm_coop_envs.errors import RunError

#: How many agents a page has unless asked for, and at most.
PAGE, _MOST_PAGE = 50, 500
#: How many counts are kept.
_KEPT_TOTALS = 100
#: From how many agents on a name is looked up by how it begins.
_LARGE = 50_000
#: From how many messages with a text on it is not counted who said it.
_MOST_FOUND = 2_000
#: The largest integer that SQLite takes.
_MOST_INTEGER = (1 << 63) - 1
_MODEL = "EXISTS (SELECT 1 FROM calls WHERE calls.episode = ? AND agent = name AND model = ?)"
_SORTED = {"number": "number", "name": "name", "last": "last", "said": "said", "flags": "flags"}


class AgentPages:
    """Pages of agents. Counts are kept, as counting a million takes long and further pages are asked for."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], int] = {}

    def read(
        self, table: sqlite3.Connection, run: str, episode: str, query: Mapping[str, str], reading: str
    ) -> dict[str, Any]:
        """One page; see `Episodes.agents`.

        Args:
            table: the index.
            run: the run's name.
            episode: its condition and seed.
            query: what is asked for.
            reading: how far the calls are read, if they are not all in the index.
        """
        sort = query.get("sort", "number")
        column = _SORTED.get(sort.lstrip("-"), "number")
        down = " DESC" if sort.startswith("-") else ""
        first, count = integer(query, "first", 0), min(integer(query, "most", PAGE), _MOST_PAGE)
        about, mark = fetch_row(table, "SELECT about, mark FROM episodes WHERE name = ?", episode)
        players = json.loads(about)["players"]
        where, values, total = _filter(table, episode, query, large=players > _LARGE)
        counted = total is None
        if total is None:
            total = players if len(values) == 1 else self._count(table, (run, mark, reading), where, values)
        skipped = first
        if len(values) == 1 and column == "number":  # a page far behind is found by its number
            where += f" AND number <= {players - 1 - first}" if down else f" AND number >= {first}"
            skipped = 0
        # Which ones they are stands in an index; only those that are shown are looked up beside it.
        rows = table.execute(
            "SELECT number, name, policy, persona, choices, said, flags FROM "
            f"(SELECT number FROM agents WHERE {where} ORDER BY {column}{down}, number LIMIT ? OFFSET ?) "
            f"CROSS JOIN agents USING (number) WHERE episode = ? ORDER BY {column}{down}, number",
            (*values, count, skipped, episode),
        ).fetchall()
        agents = []
        for number, agent, policy, persona, choices, messages_said, flags in rows:
            used = read_use(table, episode, agent)
            row = {"number": number, "name": agent, "policy": policy, "persona": persona, "said": messages_said}
            agents.append({**row, "flags": flags, "choices": json.loads(choices)[-24:], **used})
        return {"total": total, "counted": counted, "first": first, "rows": agents, "reading": reading}

    def _count(self, table: sqlite3.Connection, of: tuple[str, str, str], where: str, values: list[Any]) -> int:
        """How many agents fulfil a condition."""
        if where == f"episode = ? AND {_MODEL}":
            counted = table.execute("SELECT agents FROM models WHERE (episode, model) = (?, ?)", values[1:]).fetchone()
            if counted is not None:
                return int(counted[0])
        key = (*of, where, *values)
        if key not in self._totals:
            if len(self._totals) > _KEPT_TOTALS:
                self._totals.clear()
            (self._totals[key],) = fetch_row(table, f"SELECT COUNT(*) FROM agents WHERE {where}", *values)
        return self._totals[key]


def read_story(table: sqlite3.Connection, run: str, episode: str, number: int) -> dict[str, Any]:
    """All of one agent: choices, what it said and heard, what it was asked and what that cost."""
    row = table.execute(
        "SELECT name, policy, persona, choices, flags FROM agents WHERE episode = ? AND number = ?",
        (episode, number),
    ).fetchone()
    if row is None:
        raise RunError(f"{run}, {episode}: has no agent {number}")
    agent, policy, persona, choices, flags = row
    messages = table.execute(
        "SELECT round, step, agent, text, hearers FROM messages WHERE episode = ? AND (agent = ? OR "
        "hearers IS NULL OR EXISTS (SELECT 1 FROM json_each(hearers) WHERE value = ?)) ORDER BY id LIMIT 4000",
        (episode, number, number),
    ).fetchall()
    calls = table.execute(
        "SELECT id, step, call, attempt, tokens, cost, model, failed FROM calls WHERE episode = ? "
        "AND agent = ? ORDER BY step, id LIMIT 5000",
        (episode, agent),
    ).fetchall()
    used = read_use(table, episode, agent)
    names = ("id", "step", "call", "attempt", "tokens", "cost", "model", "failed")
    return {
        **{"number": number, "name": agent, "policy": policy, "persona": persona, "flags": flags},
        "choices": json.loads(choices),
        "said": [
            {"round": r, "own": speaker == number, **read_message(speaker, text, hearers, step)}
            for r, step, speaker, text, hearers in messages
        ],
        "calls": [dict(zip(names, call, strict=True)) for call in calls],
        **used,
    }


def _filter(
    table: sqlite3.Connection, episode: str, query: Mapping[str, str], *, large: bool
) -> tuple[str, list[Any], int | None]:
    """The condition that agents fulfil, its values, and how many there are where that need not be counted.

    Names are looked up by how they begin if there are many.
    """
    total: int | None = None
    where: list[str] = ["episode = ?"]
    values: list[Any] = [episode]

    def text(name: str) -> str:
        return query.get(name, "").strip()

    for name in ("policy", "persona"):  # a value, or a part of one behind ~
        if text(name).startswith("~"):
            where.append(f"instr(lower({name}), lower(?))")
            values.append(text(name)[1:].strip())
        elif text(name):
            where.append(f"{name} = ?")
            values.append(text(name))
    if text("name") and large:
        where.append("name BETWEEN ? AND ?")
        values += [text("name"), text("name") + "\U0010ffff"]
    elif text("name"):
        where.append("instr(lower(name), lower(?))")
        values.append(text("name"))
    if text("model"):
        where.append(_MODEL)
        values += [episode, text("model")]
    for name, sign in (("low", ">="), ("high", "<=")):
        if text(name):
            where.append(f"last {sign} ?")
            try:
                values.append(float(text(name)))
            except ValueError as error:
                raise RunError(f"{name}={text(name)!r}: must be a number") from error
    if text("said"):
        total = _filter_by_message(table, episode, text("said"), where, values)
    return " AND ".join(where), values, total


def _filter_by_message(
    table: sqlite3.Connection, episode: str, text: str, where: list[str], values: list[Any]
) -> int | None:
    """Add the condition that agents said a text; how many did at least, if they are too many to be listed."""
    if counted := len(text) >= 3 and "\0" not in text:  # what the search by words takes
        speakers = table.execute(
            "SELECT agent FROM said CROSS JOIN messages ON id = said.rowid WHERE said MATCH ? AND episode = ? LIMIT ?",
            ('"' + text.replace('"', '""') + '"', episode, _MOST_FOUND),
        ).fetchall()
        if len(speakers) < _MOST_FOUND:
            where.append("number IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted({agent for (agent,) in speakers})))
            return None
    # So many said it that those who come first are soon found, one by one.
    where.append(
        "EXISTS (SELECT 1 FROM messages WHERE messages.episode = ? AND agent = number AND instr(lower(text), lower(?)))"
    )
    values += [episode, text]
    return _MOST_FOUND if counted else None


def read_use(table: sqlite3.Connection, episode: str, agent: str) -> dict[str, Any]:
    """What an agent's calls came to."""
    calls, repairs, tokens, cost, priced = fetch_row(
        table,
        "SELECT COUNT(*), COALESCE(SUM(attempt > 0), 0), COALESCE(SUM(tokens), 0), COALESCE(SUM(cost), 0), COUNT(cost) "
        "FROM calls WHERE episode = ? AND agent = ?",
        *(episode, agent),
    )
    return {"calls_made": calls, "repairs": repairs, "tokens": tokens, "cost": cost if priced else None}


def read_message(agent: int, text: str, hearers: str | None, step: int) -> dict[str, Any]:
    """A message as the page takes it."""
    return {"agent": agent, "text": text, "hearers": None if hearers is None else json.loads(hearers), "step": step}


def fetch_row(table: sqlite3.Connection, statement: str, *values: Any) -> tuple[Any, ...]:
    """The first row of a statement.

    Raises:
        RunError: there is none.
    """
    row: tuple[Any, ...] | None = table.execute(statement, values).fetchone()
    if row is None:
        raise RunError("the index does not hold it any more; load the page again")
    return row


def integer(query: Mapping[str, str], name: str, default: int | None = None) -> int:
    """An integer of a question, 0 or more.

    Raises:
        RunError: it is none, or missing without a default.
    """
    try:
        return min(max(0, int(query[name] if default is None else query.get(name, default))), _MOST_INTEGER)
    except (KeyError, ValueError) as error:
        raise RunError(f"{name}={query.get(name)!r}: must be an integer") from error

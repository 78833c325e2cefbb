"""What the page shows of one episode: its frames with the talk, its agents, one agent's story."""

from __future__ import annotations

import functools
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.run.control import order
from llm_coop_envs.benchmarks.run.folder import Run
from llm_coop_envs.benchmarks.view.index import LARGE, Index
from llm_coop_envs.benchmarks.view.known_runs import KnownRuns
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.fastjson import loads
from llm_coop_envs.policies.llm.journal import read_from
from llm_coop_envs.policies.llm.journal.frames import FOLDER
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.scenes.on_page import face_of

PAGE = 50
_MOST_PAGE = 500
_MOST_LIVE = 20_000
_KEPT_LIVE = 8
_KEPT_TOTALS = 1000
_LARGE = 50_000
"""From how many agents on a name is looked up by how it begins."""
_SAID = 400
"""Messages of a round that are sent at once."""
_SORTED = {"number": "number", "name": "name", "last": "last", "said": "said", "flags": "flags"}


class Indexing(Exception):
    """What is asked for is being read by a process of its own."""


class Episodes:
    """Episodes of the runs in a folder.

    Args:
        known: the runs.
        apart: whether what is large is read by a process of its own; else at once.
    """

    def __init__(self, known: KnownRuns, *, apart: bool = True) -> None:
        self._known = known
        self._apart = apart
        self._busy: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._totals: dict[tuple[Any, ...], int] = {}
        self._events: dict[tuple[Path, str], list[Any]] = {}
        self._scenes = functools.lru_cache(maxsize=4)(self._scenes_of)
        self._index = functools.lru_cache(maxsize=64)(lambda folder, digest: Index(known.run(folder)))

    def about(self, name: str, condition: str, seed: int) -> dict[str, Any]:
        """The episode without its frames.

        Raises:
            RunError: it is not there, or damaged.
            Indexing: it is being read.
        """
        index, live = self._ready(name, condition, seed)
        with index.opened() as table:
            (text,) = _one(table, "SELECT about FROM episodes WHERE name = ?", f"{condition}/{seed}")
        return {**json.loads(text), "live": live, "condition": condition, "seed": seed, "run": name}

    def frames(self, name: str, condition: str, seed: int, first: int, most: int) -> list[dict[str, Any]]:
        """Some frames, each with what was said in its round."""
        index, _ = self._ready(name, condition, seed)
        episode = f"{condition}/{seed}"
        with index.opened() as table:
            rows = table.execute(
                "SELECT place, frame FROM frames WHERE episode = ? AND place >= ? ORDER BY place LIMIT ?",
                (episode, first, most),
            ).fetchall()
            found = [{"place": place, **json.loads(text)} for place, text in rows]
            for one in found:
                said = table.execute(
                    "SELECT agent, text, hearers, step FROM messages WHERE episode = ? AND round = ? "
                    "ORDER BY id LIMIT ?",
                    (episode, one["round"], _SAID + 1),
                ).fetchall()
                one["said"] = [_message(*row) for row in said[:_SAID]]
                one["unsent"] = len(said) > _SAID
        return found

    def agents(self, name: str, condition: str, seed: int, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of agents.

        Args:
            name: the run.
            condition: the condition.
            seed: the seed.
            query: `first` and `most`; filters `name`, `policy` and `persona` (behind `~` a part of one), `model`,
                `low` and `high` (of the last choice) and `said` (a text that a message contains); `sort`, with `-`
                before it for the largest first.
        """
        index, _ = self._ready(name, condition, seed)
        episode = f"{condition}/{seed}"
        reading = False
        try:
            self._take_journal(index)
        except Indexing:
            reading = True
        sort = query.get("sort", "number")
        column = _SORTED.get(sort.lstrip("-"), "number")
        down = " DESC" if sort.startswith("-") else ""
        first, most = _integer(query, "first", 0), min(_integer(query, "most", PAGE), _MOST_PAGE)
        with index.opened() as table:
            about, mark = _one(table, "SELECT about, mark FROM episodes WHERE name = ?", episode)
            players = json.loads(about)["players"]
            where, values = _filter(episode, query, large=players > _LARGE)
            key = (name, mark, where, *values)
            total = players if len(values) == 1 else self._totals.get(key)
            if total is None:  # counting a million takes long, and pages of the same ones are looked at
                (total,) = _one(table, f"SELECT COUNT(*) FROM agents WHERE {where}", *values)
                if len(self._totals) > _KEPT_TOTALS:
                    self._totals.clear()
                self._totals[key] = total
            skipped = first
            if len(values) == 1 and column == "number":  # a page far behind is found by its number
                where += f" AND number <= {players - 1 - first}" if down else f" AND number >= {first}"
                skipped = 0
            # Which ones they are stands in an index; only those that are shown are looked up beside it.
            rows = table.execute(
                "SELECT number, name, policy, persona, choices, said, flags FROM "
                f"(SELECT number FROM agents WHERE {where} ORDER BY {column}{down}, number LIMIT ? OFFSET ?) "
                f"CROSS JOIN agents USING (number) WHERE episode = ? ORDER BY {column}{down}, number",
                (*values, most, skipped, episode),
            ).fetchall()
            found = []
            for number, who, policy, persona, choices, said, flags in rows:
                used = _used(table, episode, who)
                row = {"number": number, "name": who, "policy": policy, "persona": persona, "said": said}
                found.append({**row, "flags": flags, "choices": json.loads(choices)[-24:], **used})
        return {"total": total, "first": first, "rows": found, "reading": reading}

    def story(self, name: str, condition: str, seed: int, number: int) -> dict[str, Any]:
        """All of one agent: choices, what it said and heard, what it was asked and what that cost."""
        index, live = self._ready(name, condition, seed)
        episode = f"{condition}/{seed}"
        self._take_journal(index)
        with index.opened() as table:
            row = table.execute(
                "SELECT name, policy, persona, choices, flags FROM agents WHERE episode = ? AND number = ?",
                (episode, number),
            ).fetchone()
            if row is None:
                raise RunError(f"{name}, {episode}: has no agent {number}")
            who, policy, persona, choices, flags = row
            said = table.execute(
                "SELECT round, step, agent, text, hearers FROM messages WHERE episode = ? AND (agent = ? OR "
                "hearers IS NULL OR EXISTS (SELECT 1 FROM json_each(hearers) WHERE value = ?)) ORDER BY id LIMIT 4000",
                (episode, number, number),
            ).fetchall()
            calls = table.execute(
                "SELECT id, step, call, attempt, tokens, cost, model, failed FROM calls WHERE episode = ? "
                "AND agent = ? ORDER BY step, id LIMIT 5000",
                (episode, who),
            ).fetchall()
            used = _used(table, episode, who)
        names = ("id", "step", "call", "attempt", "tokens", "cost", "model", "failed")
        return {
            **{"number": number, "name": who, "policy": policy, "persona": persona, "flags": flags, "live": live},
            "choices": json.loads(choices),
            "said": [{"round": r, "step": s, "agent": a, "text": t, "own": a == number} for r, s, a, t, _ in said],
            "calls": [dict(zip(names, call, strict=True)) for call in calls],
            **used,
        }

    def call(self, name: str, number: int) -> dict[str, Any]:
        """One question with its answer, from the journal."""
        index = self._index_of(name)
        with index.opened() as table:
            found = table.execute("SELECT part, start, line FROM calls WHERE id = ?", (number,)).fetchone()
        if found is None:
            raise RunError(f"{name}: has no question {number}")
        part, start, line = found
        commit = next(read_from(index.run.folder / FOLDER / part, start), None)
        lines = [] if commit is None else commit.data.splitlines()
        try:
            held = loads(lines[line])
            question = held["request"]
        except (IndexError, ValueError, KeyError) as error:
            raise RunError(
                f"{name}: the journal's part {part} is no longer what was read; load the page again"
            ) from error
        settings = {key: value for key, value in question.items() if key not in ("messages", "extra")}
        reply = held.get("reply", {})
        return {
            "key": held["key"],
            "messages": [{"role": role, "text": text} for role, text in question["messages"]],
            "settings": settings,
            "reply": {
                key: reply.get(key) for key in ("text", "reasoning", "refusal", "finish_reason", "model", "usage")
            },
            "latency": reply.get("latency"),
            "cost": reply.get("cost"),
            "error": held.get("error", {}).get("message"),
        }

    def sight(self, name: str, condition: str, seed: int, place: int, number: int) -> dict[str, Any]:
        """What one player saw when a frame was taken."""
        run = self._known.run(name)
        face = face_of(_condition(run, condition).spec.page)
        episode = f"{condition}/{seed}"
        if face.sight is None:
            raise RunError(f"{name}, {episode}: what a player sees cannot be said in this scenario")
        index, live = self._ready(name, condition, seed)
        with index.opened() as table:
            (mark,) = _one(table, "SELECT mark FROM episodes WHERE name = ?", episode)
        scenes = self._scenes(name, condition, seed, mark, live)
        scene = next((one for at, one in enumerate(scenes) if at == place), None)
        if scene is None or not 0 <= number < len(scene.agents):
            raise RunError(f"{name}, {episode}: has no frame {place} with a player {number}")
        return face.sight(scene, number)

    def _scenes_of(self, name: str, condition: str, seed: int, mark: str, live: bool) -> Sequence[Any]:
        run = self._known.run(name)
        if live:
            events = self._live_events(run, f"{condition}/{seed}")
        else:
            _, events = run.read_events(condition, seed)
        return frames(events, per="round")

    def _index_of(self, name: str) -> Index:
        found: Index = self._index(name, self._known.run(name).manifest["digest"])
        return found

    def _ready(self, name: str, condition: str, seed: int) -> tuple[Index, bool]:
        """The index that holds the episode as it is now, and whether it is being played."""
        run = self._known.run(name)
        if seed not in _condition(run, condition).seeds:
            raise RunError(f"{name}: condition '{condition}' has no seed {seed}")
        index = self._index_of(name)
        if not run.events_path(condition, seed).is_file():
            self._take_live(index, run, f"{condition}/{seed}")
            return index, True
        if not index.known(f"{condition}/{seed}", index.mark(condition, seed)):
            if self._apart and index.large(condition, seed):
                self._begin_apart(run, f"{condition}/{seed}")
            with self._lock:
                index.take_episode(condition, seed)
        return index, False

    def _take_live(self, index: Index, run: Run, episode: str) -> None:
        there = max(
            (
                told.get("playing", {}).get(episode, {}).get("events", 0)
                for told in self._known.live_of(run.folder).values()
            ),
            default=0,
        )
        if not there:
            raise RunError(f"{run.folder}: episode {episode} is not there yet")
        if there > _MOST_LIVE:
            raise RunError(f"{episode}: {there:,} events so far; it is shown when it is finished")
        mark = f"live {there}"
        if not index.known(episode, mark):
            with self._lock:
                events = self._live_events(run, episode)
                index.take(episode, f"live {len(events)}", {}, events)

    def _live_events(self, run: Run, episode: str) -> list[Any]:
        """The events so far of an episode that is being played; only new ones are fetched."""
        if len(self._events) > _KEPT_LIVE:
            self._events.clear()
        held = self._events.setdefault((run.folder, episode), [])
        what = {"do": "events", "episode": episode, "first": len(held), "most": _MOST_LIVE}
        nobody: dict[str, Any] = {"events": [], "there": -1}
        answer = next(iter(order(run.folder, what, elsewhere=True).values()), nobody)
        held += answer["events"]
        if len(held) != answer["there"]:
            del self._events[run.folder, episode]
            raise RunError(f"{run.folder}: episode {episode} is no longer being played; load the page again")
        return list(held)

    def _take_journal(self, index: Index) -> None:
        left = index.journal_left()
        if left and self._apart and left > LARGE:
            self._begin_apart(index.run, "")
        elif left:
            with self._lock:
                index.take_journal()

    def _begin_apart(self, run: Run, episode: str) -> None:
        """Let another process take in what is large.

        Raises:
            Indexing: it is at it.
            RunError: it could not.
        """
        key = (str(run.folder), episode)
        with self._lock:
            busy = self._busy.get(key)
            if busy is None:
                words = [sys.executable, "-m", "llm_coop_envs.benchmarks.view.index", str(run.folder)]
                busy = self._busy[key] = subprocess.Popen(
                    words + ([episode] if episode else []), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
                )
            if busy.poll() is None:
                raise Indexing(episode or "the journal")
            del self._busy[key]
        _, said = busy.communicate()
        if busy.returncode:
            raise RunError(said.decode(errors="replace").strip().splitlines()[-1:][0] if said.strip() else "it failed")

    def close(self) -> None:
        """End the processes that are still reading."""
        for busy in self._busy.values():
            busy.terminate()
            busy.communicate()


def _condition(run: Run, name: str) -> Any:
    found = next((one for one in run.conditions if one.name == name), None)
    if found is None:
        raise RunError(f"{run.folder}: has no condition '{name}'")
    return found


def _filter(episode: str, query: Mapping[str, str], *, large: bool) -> tuple[str, list[Any]]:
    """The condition that agents fulfil, and its values; names are looked up by how they begin if there are many."""
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
        where.append("EXISTS (SELECT 1 FROM calls WHERE calls.episode = ? AND agent = name AND model = ?)")
        values += [episode, text("model")]
    for name, sign in (("low", ">="), ("high", "<=")):
        if text(name):
            where.append(f"last {sign} ?")
            try:
                values.append(float(text(name)))
            except ValueError as error:
                raise RunError(f"{name}={text(name)!r}: must be a number") from error
    if text("said"):
        found = "SELECT agent FROM messages WHERE messages.episode = ? AND "
        values += [episode]
        if len(text("said")) >= 3:
            where.append(f"number IN ({found} id IN (SELECT rowid FROM said WHERE said MATCH ?))")
            values.append('"' + text("said").replace('"', '""') + '"')
        else:
            where.append(f"number IN ({found} instr(lower(text), lower(?)))")
            values.append(text("said"))
    return " AND ".join(where), values


def _used(table: sqlite3.Connection, episode: str, agent: str) -> dict[str, Any]:
    calls, repairs, tokens, cost, priced = _one(
        table,
        "SELECT COUNT(*), COALESCE(SUM(attempt > 0), 0), COALESCE(SUM(tokens), 0), COALESCE(SUM(cost), 0), COUNT(cost) "
        "FROM calls WHERE episode = ? AND agent = ?",
        *(episode, agent),
    )
    return {"calls_made": calls, "repairs": repairs, "tokens": tokens, "cost": cost if priced else None}


def _message(agent: int, text: str, hearers: str | None, step: int) -> dict[str, Any]:
    return {"agent": agent, "text": text, "hearers": None if hearers is None else json.loads(hearers), "step": step}


def _one(table: sqlite3.Connection, statement: str, *values: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] | None = table.execute(statement, values).fetchone()
    if found is None:
        raise RunError("the index does not hold it any more; load the page again")
    return found


def _integer(query: Mapping[str, str], name: str, default: int) -> int:
    try:
        return max(0, int(query.get(name, default)))
    except ValueError as error:
        raise RunError(f"{name}={query[name]!r}: must be an integer") from error

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

from llm_coop_envs.errors import RunError
from llm_coop_envs.page.courses import read_course
from llm_coop_envs.page.index import LARGE, Index, Taking
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.policies.llm.journal import read_from
from llm_coop_envs.policies.llm.journal.frames import FOLDER
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.scenes.on_page import face_of
from llm_coop_envs.runs.control import ask
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.util.fastjson import loads

PAGE = 50
_MOST_PAGE = 500
_MOST_LIVE = 50_000
_FETCHED = 2_000
"""Events that are fetched at once from a run that is being played, so that it is not held up."""
_KEPT_LIVE = 4
_KEPT_TOTALS = 100
_LARGE = 50_000
"""From how many agents on a name is looked up by how it begins."""
_SAID = 400
"""Messages of a round that are sent at once."""
_MOST_FOUND = 2_000
"""From how many messages with a text on it is not counted who said it."""
_MOST_INTEGER = (1 << 63) - 1
"""The largest one that SQLite takes."""
_MODEL = "EXISTS (SELECT 1 FROM calls WHERE calls.episode = ? AND agent = name AND model = ?)"
_SORTED = {"number": "number", "name": "name", "last": "last", "said": "said", "flags": "flags"}


class Indexing(Exception):
    """What is asked for is being read by a process of its own."""


class Episodes:
    """Episodes of the runs in a folder.

    Args:
        known: the runs.
        apart: whether what is large is read by a process of its own; else at once.
    """

    def __init__(self, known_runs: KnownRuns, *, apart: bool = True) -> None:
        self._known = known_runs
        self._apart = apart
        self._busy: dict[tuple[Path, str], subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._totals: dict[tuple[Any, ...], int] = {}
        self._following: dict[tuple[Path, str], _Following] = {}
        self._scenes = functools.lru_cache(maxsize=4)(self._scenes_of)
        self._index = functools.lru_cache(maxsize=64)(lambda folder, digest: Index(open_run(folder)))

    def summarise(self, name: str, condition: str, seed: int) -> dict[str, Any]:
        """The episode without its frames.

        Raises:
            RunError: it is not there, or damaged.
            Indexing: it is being read.
        """
        index, live, share = self._ready(name, condition, seed)
        with index.connect() as table:
            (text,) = _one(table, "SELECT about FROM episodes WHERE name = ?", f"{condition}/{seed}")
        context = {"live": live, "reading": share, "condition": condition, "seed": seed, "run": name}
        return {**json.loads(text), **context}

    def frames(self, name: str, condition: str, seed: int, first: int, count: int) -> list[dict[str, Any]]:
        """Some frames, each with what was said in its round."""
        index, *_ = self._ready(name, condition, seed)
        episode = f"{condition}/{seed}"
        with index.connect() as table:
            rows = table.execute(
                "SELECT place, frame FROM frames WHERE episode = ? AND place >= ? ORDER BY place LIMIT ?",
                (episode, first, count),
            ).fetchall()
            frames = [{"place": number, **json.loads(text)} for number, text in rows]
            for frame in frames:
                messages = table.execute(
                    "SELECT agent, text, hearers, step FROM messages WHERE episode = ? AND round = ? "
                    "ORDER BY id LIMIT ?",
                    (episode, frame["round"], _SAID + 1),
                ).fetchall()
                frame["said"] = [_message(*row) for row in messages[:_SAID]]
                frame["unsent"] = len(messages) > _SAID
        return frames

    def course(self, name: str, condition: str, seed: int) -> dict[str, Any]:
        """Its course by round; see `read_course`."""
        index, *_ = self._ready(name, condition, seed)
        episode = f"{condition}/{seed}"
        with index.connect() as table:
            (text,) = _one(table, "SELECT about FROM episodes WHERE name = ?", episode)
            return read_course(table, episode, json.loads(text))

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
        index, *_ = self._ready(name, condition, seed, whole=True)
        episode = f"{condition}/{seed}"
        reading = ""
        try:
            self._take_journal(index)
        except Indexing as progress:
            reading = str(progress)
        sort = query.get("sort", "number")
        column = _SORTED.get(sort.lstrip("-"), "number")
        down = " DESC" if sort.startswith("-") else ""
        first, count = integer(query, "first", 0), min(integer(query, "most", PAGE), _MOST_PAGE)
        with index.connect() as table:
            about, mark = _one(table, "SELECT about, mark FROM episodes WHERE name = ?", episode)
            players = json.loads(about)["players"]
            where, values, total = _filter(table, episode, query, large=players > _LARGE)
            counted = total is None
            if total is None:
                total = players if len(values) == 1 else self._count(table, (name, mark, reading), where, values)
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
                used = _used(table, episode, agent)
                row = {"number": number, "name": agent, "policy": policy, "persona": persona, "said": messages_said}
                agents.append({**row, "flags": flags, "choices": json.loads(choices)[-24:], **used})
        return {"total": total, "counted": counted, "first": first, "rows": agents, "reading": reading}

    def _count(self, table: sqlite3.Connection, of: tuple[str, str, str], where: str, values: list[Any]) -> int:
        """How many agents fulfil a condition; kept, as counting a million takes long and more pages are looked at."""
        if where == f"episode = ? AND {_MODEL}":
            counted = table.execute("SELECT agents FROM models WHERE (episode, model) = (?, ?)", values[1:]).fetchone()
            if counted is not None:
                return int(counted[0])
        key = (*of, where, *values)
        if key not in self._totals:
            if len(self._totals) > _KEPT_TOTALS:
                self._totals.clear()
            (self._totals[key],) = _one(table, f"SELECT COUNT(*) FROM agents WHERE {where}", *values)
        return self._totals[key]

    def story(self, name: str, condition: str, seed: int, number: int) -> dict[str, Any]:
        """All of one agent: choices, what it said and heard, what it was asked and what that cost."""
        index, live, _ = self._ready(name, condition, seed, whole=True)
        episode = f"{condition}/{seed}"
        self._take_journal(index)
        with index.connect() as table:
            row = table.execute(
                "SELECT name, policy, persona, choices, flags FROM agents WHERE episode = ? AND number = ?",
                (episode, number),
            ).fetchone()
            if row is None:
                raise RunError(f"{name}, {episode}: has no agent {number}")
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
            used = _used(table, episode, agent)
        names = ("id", "step", "call", "attempt", "tokens", "cost", "model", "failed")
        return {
            **{"number": number, "name": agent, "policy": policy, "persona": persona, "flags": flags, "live": live},
            "choices": json.loads(choices),
            "said": [
                {"round": r, "own": speaker == number, **_message(speaker, text, hearers, step)}
                for r, step, speaker, text, hearers in messages
            ],
            "calls": [dict(zip(names, call, strict=True)) for call in calls],
            **used,
        }

    def costs(self, run: Run) -> dict[str, tuple[float | None, int]]:
        """Cost and tokens of a run's episodes, by name; the cost is `None` where no price is known.

        Raises:
            Indexing: the journal is being read.
        """
        index = self._index_of(run)
        self._take_journal(index)
        with index.connect() as table:
            rows = table.execute(
                "SELECT episode, CASE WHEN COUNT(cost) THEN SUM(cost) END, SUM(tokens) FROM calls GROUP BY episode"
            )
            return {episode: (cost, tokens) for episode, cost, tokens in rows}

    def call(self, name: str, number: int) -> dict[str, Any]:
        """One question with its answer, from the journal."""
        index = self._index_of(self._known.run(name))
        with index.connect() as table:
            position = table.execute("SELECT part, start, line FROM calls WHERE id = ?", (number,)).fetchone()
        if position is None:
            raise RunError(f"{name}: has no question {number}")
        part, start, line = position
        commit = next(read_from(index.run.folder / FOLDER / part, start), None)
        lines = [] if commit is None else commit.data.splitlines()
        try:
            entry = loads(lines[line])
            question = entry["request"]
        except (IndexError, ValueError, KeyError) as error:
            raise RunError(
                f"{name}: the journal's part {part} is no longer what was read; load the page again"
            ) from error
        settings = {key: value for key, value in question.items() if key not in ("messages", "extra")}
        reply = entry.get("reply", {})
        return {
            "key": entry["key"],
            "messages": [{"role": role, "text": text} for role, text in question["messages"]],
            "settings": settings,
            "reply": {
                key: reply.get(key) for key in ("text", "reasoning", "refusal", "finish_reason", "model", "usage")
            },
            "latency": reply.get("latency"),
            "cost": reply.get("cost"),
            "error": entry.get("error", {}).get("message"),
        }

    def sight(self, name: str, condition: str, seed: int, number_of_frame: int, number: int) -> dict[str, Any]:
        """What one player saw when a frame was taken."""
        run = self._known.run(name)
        face = face_of(_condition(run, condition).spec.page)
        episode = f"{condition}/{seed}"
        if face.sight is None:
            raise RunError(f"{name}, {episode}: what a player sees cannot be said in this scenario")
        index, live, _ = self._ready(name, condition, seed)
        with index.connect() as table:
            (mark,) = _one(table, "SELECT mark FROM episodes WHERE name = ?", episode)
        scenes = self._scenes(name, condition, seed, mark, live)
        scene = next((candidate for at, candidate in enumerate(scenes) if at == number_of_frame), None)
        if scene is None or not 0 <= number < len(scene.agents):
            raise RunError(f"{name}, {episode}: has no frame {number_of_frame} with a player {number}")
        return face.sight(scene, number)

    def _scenes_of(self, name: str, condition: str, seed: int, mark: str, live: bool) -> Sequence[Any]:
        run = self._known.run(name)
        if live:
            events = self._following[run.folder, f"{condition}/{seed}"].events
        else:
            _, events = run.read_events(condition, seed)
        return frames(events, per="round")

    def _index_of(self, run: Run) -> Index:
        index: Index = self._index(run.folder, run.manifest["digest"])
        return index

    def reading(self, run: Run) -> dict[str, int]:
        """How many percent were read of what is being read of a run; "" is its journal."""
        percentages = {}
        for folder, episode in list(self._busy):
            if folder == run.folder:
                index = self._index_of(run)
                unread, total = index.journal_left() if not episode else (0, 1)
                condition, _, seed = episode.rpartition("/")
                share = index.share(episode, index.mark(condition, int(seed))) if episode else None
                percentages[episode] = share or 100 - 100 * unread // max(1, total)
        return percentages

    def _ready(self, name: str, condition: str, seed: int, *, whole: bool = False) -> tuple[Index, bool, int | None]:
        """The index that holds the episode as it is now, whether it is being played, and how far it is being read.

        Raises:
            Indexing: nothing of it can be shown yet; with `whole`, not all of it.
        """
        run, episode = self._known.run(name), f"{condition}/{seed}"
        if seed not in _condition(run, condition).seeds:
            raise RunError(f"{name}: condition '{condition}' has no seed {seed}")
        index = self._index_of(run)
        if not run.events_path(condition, seed).is_file():
            self._take_live(index, run, episode)
            return index, True, None
        self._following.pop((run.folder, episode), None)
        mark = index.mark(condition, seed)
        if not index.holds(episode, mark):
            if self._apart and index.large(condition, seed) and self._read_apart(run, episode):
                share = index.share(episode, mark)
                if share is None or whole:
                    raise Indexing(f"{episode}, {share or 0} %")
                return index, False, share
            with self._lock:
                index.take_episode(condition, seed)
        return index, False, None

    def _take_live(self, index: Index, run: Run, episode: str) -> None:
        """Fetch what is new of an episode that is being played."""
        sessions = self._known.live_of(run.folder)
        progress = next(
            (session["playing"][episode] for session in sessions.values() if episode in session["playing"]), None
        )
        if progress is None:
            raise RunError(f"{run.folder}: episode {episode} is not there yet")
        if "by" not in progress:
            raise RunError(f"{episode}: is being played on another machine; it is shown when it is finished")
        if not progress["events"]:
            raise RunError(f"{episode}: has begun, and no round of it is there yet; players that learn do so first")
        if progress["events"] > _MOST_LIVE:
            raise RunError(f"{episode}: {progress['events']:,} events so far; it is shown when it is finished")
        with self._lock:
            if len(self._following) > _KEPT_LIVE:
                self._following.clear()
            following = self._following.get((run.folder, episode))
            if following is None or following.by != progress["by"] or not index.holds(episode, following.mark):
                following = self._following[run.folder, episode] = _Following(
                    progress["by"], Taking(index, episode, {})
                )
            if len(following.events) != progress["events"]:
                try:
                    following.fetch(episode)
                except (OSError, RunError) as error:
                    del self._following[run.folder, episode]
                    raise RunError(f"{episode}: is no longer being played; load the page again") from error

    def _take_journal(self, index: Index) -> None:
        unread, total = index.journal_left()
        # The end of what a process reads is its own, too: whoever takes it in here waits until that is done.
        large = unread > LARGE or (unread and (index.run.folder, "") in self._busy)
        if large and self._apart and self._read_apart(index.run, ""):
            raise Indexing(f"the journal, {100 - 100 * unread // total} %")
        if unread:
            with self._lock:
                index.take_journal()

    def _read_apart(self, run: Run, episode: str) -> bool:
        """Let another process take in what is large; whether it is still at it.

        Raises:
            RunError: it could not.
        """
        key = (run.folder, episode)
        with self._lock:
            busy = self._busy.get(key)
            if busy is None:
                command = [sys.executable, "-m", "llm_coop_envs.page.index", str(run.folder)]
                busy = self._busy[key] = subprocess.Popen(
                    command + ([episode] if episode else []), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
                )
            if busy.poll() is None:
                return True
            del self._busy[key]
        _, errors = busy.communicate()
        if busy.returncode:
            raise RunError(
                errors.decode(errors="replace").strip().splitlines()[-1:][0] if errors.strip() else "it failed"
            )
        return False

    def close(self) -> None:
        """End the processes that are still reading."""
        for busy in self._busy.values():
            busy.terminate()
            busy.communicate()


class _Following:
    """An episode that is being played, as far as it was fetched.

    Args:
        by: the name of the socket that gives its events.
        taking: where it is kept.
    """

    def __init__(self, by: str, taking: Taking) -> None:
        self.by = by
        self.events: list[Any] = []
        self.mark = ""
        self._taking = taking

    def fetch(self, episode: str) -> None:
        """Fetch what is new, and keep it.

        Raises:
            OSError: nobody is there any more.
            RunError: it is not being played any more, or damaged.
        """
        available = -1
        while len(self.events) != available:
            order = {"do": "events", "episode": episode, "first": len(self.events), "most": _FETCHED}
            answer = ask(self.by, order)
            available = min(answer["there"], _MOST_LIVE)
            if not answer["events"] or len(self.events) > available:
                break
            self.events += answer["events"]
            self._taking.add(answer["events"])
        self.mark = f"live {self.by} {len(self.events)}"
        self._taking.keep(self.mark)


def _condition(run: Run, name: str) -> Any:
    condition = next((candidate for candidate in run.conditions if candidate.name == name), None)
    if condition is None:
        raise RunError(f"{run.folder}: has no condition '{name}'")
    return condition


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

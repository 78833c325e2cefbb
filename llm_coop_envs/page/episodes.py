"""What the page shows of one episode: its frames with the talk, its course, its agents and calls."""

from __future__ import annotations

import functools
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.page.agents import AgentPages, fetch_row, read_message, read_story
from llm_coop_envs.page.courses import read_course
from llm_coop_envs.page.index import LARGE, Index, Taking
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.policies.llm.journal import read_from
from llm_coop_envs.policies.llm.journal.frames import FOLDER
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.scenes.on_page import face_of
from llm_coop_envs.runs.control import ask
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.util.children import module_command
from llm_coop_envs.util.opening import DAMAGED

_MOST_LIVE = 50_000
_FETCHED = 2_000
"""Events that are fetched at once from a run that is being played, so that it is not held up."""
_KEPT_LIVE = 4
_SAID = 400
"""Messages of a round that are sent at once."""


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
        self._agent_pages = AgentPages()
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
            (text,) = fetch_row(table, "SELECT about FROM episodes WHERE name = ?", f"{condition}/{seed}")
        title = _condition(self._known.run(name), condition).title
        context = {"live": live, "reading": share, "condition": condition, "title": title, "seed": seed, "run": name}
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
                frame["said"] = [read_message(*row) for row in messages[:_SAID]]
                frame["unsent"] = len(messages) > _SAID
        return frames

    def course(self, name: str, condition: str, seed: int) -> dict[str, Any]:
        """Its course by round; see `read_course`."""
        index, *_ = self._ready(name, condition, seed)
        episode = f"{condition}/{seed}"
        with index.connect() as table:
            (text,) = fetch_row(table, "SELECT about FROM episodes WHERE name = ?", episode)
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
        with index.connect() as table:
            return self._agent_pages.read(table, name, episode, query, reading)

    def story(self, name: str, condition: str, seed: int, number: int) -> dict[str, Any]:
        """All of one agent; see `read_story`."""
        index, live, _ = self._ready(name, condition, seed, whole=True)
        self._take_journal(index)
        with index.connect() as table:
            return {**read_story(table, name, f"{condition}/{seed}", number), "live": live}

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
        try:
            entry = commit.lines()[line] if commit is not None else {}
            question = entry["request"]
        except DAMAGED as error:
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
            (mark,) = fetch_row(table, "SELECT mark FROM episodes WHERE name = ?", episode)
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
                command = module_command("llm_coop_envs.page.index", str(run.folder))
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

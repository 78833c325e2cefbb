"""What the page shows of the runs in a folder, as plain data: read from run folders, their indexes, and live sessions.

Names that come from outside are looked up among what was found, and never become part of a path.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.page.labels import read_labels
from llm_coop_envs.page.measured import MeasureReader, summarise
from llm_coop_envs.page.spending import SpendingReader
from llm_coop_envs.runs import control
from llm_coop_envs.runs.branch import BRANCH
from llm_coop_envs.runs.failures import summarise_failures
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.runs.session_ends import find_unended
from llm_coop_envs.storage.files import read_json
from llm_coop_envs.storage.folder import COMPLETE, INTERRUPTED, MANIFEST, RUNNING
from llm_coop_envs.util.keys import scrub
from llm_coop_envs.util.opening import DAMAGED

DEPTH = 3
_LIVE_SECONDS = 0.5


class KnownRuns:
    """The runs of a folder.

    Args:
        folder: a run's folder, or one that holds such folders, up to `DEPTH` levels below.

    Raises:
        RunError: there is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise RunError(f"{folder}: is no folder; give the folder that runs are in, such as runs")
        self._folder = folder
        self._runs: dict[Path, tuple[tuple[int, int], Run]] = {}
        self._live: dict[Path, tuple[float, dict[str, dict[str, Any]]]] = {}
        self._measured = MeasureReader()
        self._spending = SpendingReader()

    def folders(self) -> dict[str, Path]:
        """The run folders by the names that they have on the page."""
        folders = {}
        if (self._folder / MANIFEST).is_file():  # a pipe of that name would be waited for
            return {self._folder.resolve().name: self._folder}
        for where, below, files in os.walk(self._folder):
            inside = Path(where).relative_to(self._folder)
            if MANIFEST in files and inside.parts and Path(where, MANIFEST).is_file():
                folders[inside.as_posix()] = Path(where)
            if MANIFEST in files or len(inside.parts) >= DEPTH:
                below.clear()
        return folders

    def run(self, name: str) -> Run:
        """A run by its name.

        Raises:
            RunError: there is none, or it cannot be read.
        """
        folder = self.folders().get(name)
        if folder is None:
            raise RunError(f"{name}: there is no such run (any more)")
        try:
            status = (folder / MANIFEST).stat()
        except OSError as error:
            raise RunError(f"{folder}: cannot be read ({error.strerror})") from error
        mark = status.st_mtime_ns, status.st_size
        opened = self._runs.get(folder)
        if opened is None or opened[0] != mark:
            opened = self._runs[folder] = mark, open_run(folder)
        return opened[1]

    def live_of(self, folder: Path) -> dict[str, dict[str, Any]]:
        """What the sessions say that play a run now, by part; they are asked twice a second at most."""
        at, sessions = self._live.get(folder, (0.0, {}))
        if time.monotonic() - at > _LIVE_SECONDS:
            sessions = control.query_sessions(folder)
            self._live[folder] = time.monotonic(), sessions
        return sessions

    def runs(self) -> list[dict[str, Any]]:
        """All runs, those that began last first; of one that cannot be read a sentence."""
        summaries = []
        for name, folder in self.folders().items():
            try:
                summaries.append(self.summary(name))
            except (LlmCoopError, *DAMAGED) as error:
                # The latter: a file in the folder is JSON, and not what this program writes there.
                problem = str(error) if isinstance(error, LlmCoopError) else f"is damaged ({error!r})"
                about: dict[str, Any] = {"run": name, "problem": scrub(problem), "state": "unreadable"}
                with contextlib.suppress(RunError, OSError):
                    manifest = read_json(folder / MANIFEST, str)
                    about["study"] = f"{manifest.get('study') or manifest.get('kind') or ''}"
                summaries.append(about)
        return sorted(summaries, key=lambda summary: str(summary.get("started") or ""), reverse=True)

    def summary(self, name: str) -> dict[str, Any]:
        """What a list of runs says of one."""
        run = self.run(name)
        manifest = run.manifest
        live = self.live_of(run.folder)
        sessions = manifest["sessions"]
        state = _state(run, live)
        finished = len(run.finished()) if state != COMPLETE else manifest["finished"]
        seconds_left = [one["left"] for one in live.values() if one.get("left") is not None]
        return {
            "run": name,
            **read_labels(run.folder),
            "study": manifest["study"],
            "description": manifest["description"],
            "state": state,
            "conditions": len(run.conditions),
            "finished": finished,
            "total": run.total,
            "started": sessions[0]["started"] if sessions else None,
            "ended": sessions[-1]["ended"] if sessions and not live else None,
            "left": max(seconds_left, default=None),
            "models": sorted({model["policy"].partition(":")[2] for model in manifest["models"]}),
            **self._spending.read(run, live),
            "rates": self._measured.rates(run, live),
            "budget": next((session["asking"]["budget"] for session in reversed(sessions) if "asking" in session), {}),
            "live": {part: _session_for_page(status) for part, status in live.items()},
        }

    def detail(self, name: str) -> dict[str, Any]:
        """What the page of one run shows beside its summary."""
        run = self.run(name)
        finished = run.finished()
        measured = self._measured.read(run)
        conditions = []
        for condition in run.conditions:
            played = [seed for seed in condition.seeds if (condition.name, seed) in finished]
            rows = [measured.rows.get((condition.name, seed), {}) for seed in played]
            headline = {
                measure: summary
                for measure in condition.spec.measured.headline
                if (summary := summarise(condition, measure, dict(zip(played, rows, strict=True)))) is not None
            }
            conditions.append(
                {
                    "name": condition.name,
                    "title": condition.title,
                    "scenario": condition.spec.title,
                    "talk": bool(condition.settings.get("talk")),
                    "first_seed": condition.seeds[0],
                    "finished": len(played),
                    "policies": sorted(set(condition.policies)),
                    "branch": condition.branch,
                    "headline": headline,
                }
            )
        origin = run.manifest.get(BRANCH)
        branch = None
        if origin is not None:
            names = {path.resolve(): other for other, path in self.folders().items()}
            branch = {"at": origin["at"], "run": names.get(Path(origin["run"])), "of": Path(origin["run"]).name}
        unended = find_unended(run, self.live_of(run.folder))
        return {
            **self.summary(name),
            "found": conditions,
            "unread": measured.unread,
            "branch": branch,
            "sessions": [
                {
                    "started": session["started"],
                    "ended": session["ended"],
                    "unended": asdict(unended[number]) if number in unended else None,
                    "command": scrub(session.get("command") or ""),
                    "workers": session.get("workers"),
                    "part": session.get("asking", {}).get("part"),
                    "why": scrub(str((session.get("asked") or {}).get("why") or "")),
                }
                for number, session in [*enumerate(run.manifest["sessions"])][-50:]
            ],
            "parts": _parts(run.folder),
            "mixed": [*run.program_changes(), *filter(None, [scrub(summarise_failures(run))])],
        }

    def episode_rows(self, name: str) -> tuple[list[dict[str, Any]], int]:
        """All episodes of a run: condition, seed, how far, headline measures, fallbacks; and how many are unread."""
        run = self.run(name)
        live = self.live_of(run.folder).values()
        shares = {key: status.get("shares", {}).get(key) for status in live for key in status["playing"]}
        finished = run.finished()
        measured = self._measured.read(run)
        failures = run.failures()
        rows = []
        for condition, seed in run.episodes:
            key, episode = (condition.name, seed), f"{condition.name}/{seed}"
            counts = measured.counts.get(key, {})
            states = {"finished": key in finished, "playing": episode in shares, "failed": key in failures}
            rows.append(
                {
                    "condition": condition.name,
                    "title": condition.title,
                    "seed": seed,
                    "state": next((state for state, is_so in states.items() if is_so), "waiting"),
                    "problem": scrub(failures.get(key, ""))[:500],
                    "share": shares.get(episode),
                    "measures": measured.rows.get(key, {}),
                    "asked": counts.get("asked"),
                    "fallbacks": counts.get("fallbacks"),
                }
            )
        return rows, measured.unread


def _state(run: Run, live: Mapping[str, Mapping[str, Any]]) -> str:
    if live:
        if all(status.get("stopping") for status in live.values()):
            return "stopping"
        if all(status["paused"] for status in live.values()):
            # Episodes of models wait in the middle, those of rules are finished first.
            under_way = any(status.get("counters", {}).get("in_flight", status["playing"]) for status in live.values())
            return "pausing" if under_way else "paused"
        return RUNNING
    if run.manifest["status"] != RUNNING:
        return str(run.manifest["status"])
    this_host = socket.gethostname()
    elsewhere = sorted(
        {session["host"] for session in control.read_sessions(run.folder) if session["host"] != this_host}
    )
    return f"running on {', '.join(elsewhere)}" if elsewhere else INTERRUPTED


def _session_for_page(status: Mapping[str, Any]) -> dict[str, Any]:
    """What goes to the page of what a session says."""
    counters = status.get("counters") or {}
    return {
        **{name: status.get(name) for name in ("most", "devices")},
        "playing": {
            name: {"events": progress["events"], "share": status.get("shares", {}).get(name)}
            for name, progress in status["playing"].items()
        },
        **{name: counters.get(name) for name in ("in_flight", "waiting", "limit")},
        "held": status["paused"],
        "why": scrub(str(counters.get("paused") or "")),
    }


def _parts(folder: Path) -> list[dict[str, Any]]:
    """The writers of the parts of a run's journal, on whatever machine: the leases beside them show heartbeats.

    A lease's files are numbered, such as `a.jsonl.lock.2`; the highest number is the present one.
    """
    numbered: dict[str, tuple[int, Path]] = {}
    for path in (folder / "journal").glob("*.lock.*"):
        lease, _, number = path.name.rpartition(".")
        if number.isdecimal():
            numbered[lease] = max(numbered.get(lease, (0, path)), (int(number), path))
    parts = []
    for lease, (_, path) in sorted(numbered.items()):
        with contextlib.suppress(OSError, RunError):
            holder, age = read_json(path, str), max(0.0, time.time() - path.stat().st_mtime)
            if holder.get("pid") is not None:  # else its writer has left it
                parts.append(
                    {"part": lease.split(".")[0], "host": holder.get("host"), "pid": holder["pid"], "age": age}
                )
    return parts

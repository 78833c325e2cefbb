"""What the page shows of the runs in a folder, as plain data: read from run folders, their indexes, and live sessions.

Names that come from outside are looked up among what was found, and never become part of a path.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.runs import control
from llm_coop_envs.runs.branch import BRANCH
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.storage.files import read_json
from llm_coop_envs.storage.folder import COMPLETE, INTERRUPTED, MANIFEST, RUNNING
from llm_coop_envs.util.keys import scrub

DEPTH = 3
_HEADERS_READ = 300
_LIVE_SECONDS = 0.5
_COUNTED = ("answers", "prompt_tokens", "completion_tokens", "cost", "unpriced", "retries", "filtered")


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
        self._opened: dict[Path, tuple[tuple[int, int], Run]] = {}
        self._live: dict[Path, tuple[float, dict[str, dict[str, Any]]]] = {}
        self._headers: dict[Path, list[dict[str, Any]]] = {}

    def folders(self) -> dict[str, Path]:
        """The run folders by the names that they have on the page."""
        found = {}
        if (self._folder / MANIFEST).is_file():  # a pipe of that name would be waited for
            return {self._folder.resolve().name: self._folder}
        for where, below, files in os.walk(self._folder):
            place = Path(where).relative_to(self._folder)
            if MANIFEST in files and place.parts and Path(where, MANIFEST).is_file():
                found[place.as_posix()] = Path(where)
            if MANIFEST in files or len(place.parts) >= DEPTH:
                below.clear()
        return found

    def run(self, name: str) -> Run:
        """A run by its name.

        Raises:
            RunError: there is none, or it cannot be read.
        """
        folder = self.folders().get(name)
        if folder is None:
            raise RunError(f"{name}: there is no such run (any more)")
        try:
            held = (folder / MANIFEST).stat()
        except OSError as error:
            raise RunError(f"{folder}: cannot be read ({error.strerror})") from error
        mark = held.st_mtime_ns, held.st_size
        known = self._opened.get(folder)
        if known is None or known[0] != mark:
            known = self._opened[folder] = mark, open_run(folder)
        return known[1]

    def live_of(self, folder: Path) -> dict[str, dict[str, Any]]:
        """What the sessions say that play a run now, by part; they are asked twice a second at most."""
        at, found = self._live.get(folder, (0.0, {}))
        if time.monotonic() - at > _LIVE_SECONDS:
            found = control.live(folder)
            self._live[folder] = time.monotonic(), found
        return found

    def runs(self) -> list[dict[str, Any]]:
        """All runs, those that began last first; of one that cannot be read a sentence."""
        found = []
        for name, folder in self.folders().items():
            try:
                found.append(self.summary(name))
            except (LlmCoopError, KeyError, TypeError, ValueError, AttributeError) as error:
                # The latter: a file in the folder is JSON, and not what this program writes there.
                why = str(error) if isinstance(error, LlmCoopError) else f"is damaged ({error!r})"
                about: dict[str, Any] = {"run": name, "problem": scrub(why), "state": "unreadable"}
                with contextlib.suppress(RunError, OSError):
                    manifest = read_json(folder / MANIFEST, str)
                    about["study"] = f"{manifest.get('study') or manifest.get('kind') or ''}"
                found.append(about)
        return sorted(found, key=lambda one: str(one.get("started") or ""), reverse=True)

    def summary(self, name: str) -> dict[str, Any]:
        """What a list of runs says of one."""
        run = self.run(name)
        manifest = run.manifest
        live = self.live_of(run.folder)
        held = manifest["sessions"]
        state = _state(run, live)
        counted = [one.get("asked", {}).get("counters", {}) for one in held]
        counted += [one["counters"] for one in live.values() if one.get("counters")]
        finished = len(run.finished()) if state != COMPLETE else manifest["finished"]
        left = [one["left"] for one in live.values() if one.get("left") is not None]
        if live and not left:
            left = _pace(live, finished, run.total)
        return {
            "run": name,
            "study": manifest["study"],
            "description": manifest["description"],
            "state": state,
            "conditions": len(run.conditions),
            "finished": finished,
            "total": run.total,
            "started": held[0]["started"] if held else None,
            "ended": held[-1]["ended"] if held and not live else None,
            "left": max(left, default=None),
            "models": sorted({one["policy"].partition(":")[2] for one in manifest["models"]}),
            "used": {one: sum(part.get(one) or 0 for part in counted) for one in (*_COUNTED, "maybe_cost")},
            "errors": sum(sum((part.get("errors") or {}).values()) for part in counted),
            "calls": sum(part.get("calls") or 0 for part in counted),
            "rates": self._rates(run, live),
            "budget": next((one["asking"]["budget"] for one in reversed(held) if "asking" in one), {}),
            "live": {part: _shown(one) for part, one in live.items()},
        }

    def detail(self, name: str) -> dict[str, Any]:
        """What the page of one run shows beside its summary."""
        run = self.run(name)
        there = run.finished()
        measured = self._measures(run)
        found = []
        for one in run.conditions:
            played = [seed for seed in one.seeds if (one.name, seed) in there]
            rows = [measured[one.name, seed] for seed in played if (one.name, seed) in measured]
            headline = {}
            for measure in one.spec.measured.headline:
                values = [row[measure] for row in rows if isinstance(row.get(measure), int | float)]
                if values:
                    mean = sum(values) / len(values)
                    headline[measure] = {"mean": mean, "n": len(values), "about": one.spec.measured.define(measure)}
            found.append(
                {
                    "name": one.name,
                    "title": one.title,
                    "scenario": one.spec.title,
                    "talk": bool(one.settings.get("talk")),
                    "seeds": len(one.seeds),
                    "finished": len(played),
                    "policies": sorted(set(one.policies)),
                    "branch": one.branch,
                    "headline": headline,
                }
            )
        origin = run.manifest.get(BRANCH)
        branch = None
        if origin is not None:
            known = {path.resolve(): other for other, path in self.folders().items()}
            branch = {"at": origin["at"], "run": known.get(Path(origin["run"])), "of": Path(origin["run"]).name}
        return {
            **self.summary(name),
            "found": found,
            "branch": branch,
            "sessions": [
                {
                    "started": one["started"],
                    "ended": one["ended"],
                    "command": scrub(one.get("command") or ""),
                    "workers": one.get("workers"),
                    "part": one.get("asking", {}).get("part"),
                    "why": scrub(str((one.get("asked") or {}).get("why") or "")),
                }
                for one in run.manifest["sessions"][-50:]
            ],
            "parts": _parts(run.folder),
            "mixed": run.mixed(),
        }

    def episodes(self, name: str, condition: str, first: int = 0, most: int = 200) -> dict[str, Any]:
        """Some episodes of a condition: seed, how far, headline measures."""
        run = self.run(name)
        one = next((one for one in run.conditions if one.name == condition), None)
        if one is None:
            raise RunError(f"{name}: has no condition '{condition}'")
        playing = {key: told for live in self.live_of(run.folder).values() for key, told in live["playing"].items()}
        measured = self._measures(run)
        rows = []
        for seed in one.seeds[first : first + most]:
            there = run.events_path(condition, seed).is_file()
            row = measured.get((condition, seed), {})
            state = "finished" if there else "playing" if f"{condition}/{seed}" in playing else "waiting"
            headline = {m: row[m] for m in one.spec.measured.headline if row.get(m) is not None}
            rows.append({"seed": seed, "state": state, "measures": headline})
        return {"total": len(one.seeds), "first": first, "rows": rows}

    def _measures(self, run: Run) -> Mapping[tuple[str, int], dict[str, Any]]:
        """The headline measures of a finished run's episodes."""
        path = run.folder / "episodes.parquet"
        if not run.complete or not path.is_file():
            return {}
        import pyarrow.parquet as pq

        wanted = {measure for one in run.conditions for measure in one.spec.measured.headline}
        try:
            file = pq.ParquetFile(path)
            columns = [one for one in file.schema_arrow.names if one in wanted | {"condition", "seed"}]
            rows = file.read(columns=columns).to_pylist()
        except (OSError, ValueError) as error:
            why = " ".join(str(error).split())  # Arrow's own may have several lines
            raise RunError(f"{path}: cannot be read ({why}); 'llm-coop run' makes it anew") from error
        return {(row["condition"], row["seed"]): row for row in rows}

    def _rates(self, run: Run, live: Mapping[str, dict[str, Any]]) -> dict[str, int]:
        """How many questions were asked, and how many of them were repaired or fell back so far."""
        sums = {"asked": 0, "repaired": 0, "fallbacks": 0}
        path = run.folder / "answers.parquet"
        if not run.manifest["models"]:
            return sums
        if run.complete and path.is_file():
            if path not in self._headers:
                import pyarrow.parquet as pq

                with contextlib.suppress(OSError, ValueError):
                    file = pq.ParquetFile(path)
                    held = [one for one in sums if one in file.schema_arrow.names]
                    self._headers[path] = file.read(columns=held).to_pylist()
            counts = self._headers.get(path, [])
        else:
            counts = [one for name in sorted(run.finished())[-_HEADERS_READ:] for one in self._asked(run, *name)]
            counts += [one["rates"] for one in live.values() if "rates" in one]
        for one in counts:
            for name in sums:
                sums[name] += one.get(name) or 0
        return sums

    def _asked(self, run: Run, condition: str, seed: int) -> list[dict[str, Any]]:
        """The counts in an episode's header."""
        path = run.events_path(condition, seed)
        if path not in self._headers:
            self._headers[path] = []
            with contextlib.suppress(OSError, EOFError, ValueError), gzip.open(path, "rb") as file:
                header = json.loads(file.readline())
                self._headers[path] = [count for one in header.get("answers", []) for count in one["calls"].values()]
        return self._headers[path]


def _state(run: Run, live: Mapping[str, Mapping[str, Any]]) -> str:
    if live:
        if all(one.get("stopping") for one in live.values()):
            return "stopping"
        if all(one["paused"] for one in live.values()):
            # Episodes of models wait in the middle, those of rules are finished first.
            under_way = any(one.get("counters", {}).get("in_flight", one["playing"]) for one in live.values())
            return "pausing" if under_way else "paused"
        return RUNNING
    if run.manifest["status"] != RUNNING:
        return str(run.manifest["status"])
    here = socket.gethostname()
    elsewhere = sorted({one["host"] for one in control.sessions(run.folder) if one["host"] != here})
    return f"running on {', '.join(elsewhere)}" if elsewhere else INTERRUPTED


def _pace(live: Mapping[str, Mapping[str, Any]], finished: int, total: int) -> list[float]:
    """Seconds that are left at the pace of the session so far."""
    found = []
    for one in live.values():
        begun = one.get("begun_with")
        if begun is not None and finished > begun:
            found.append((time.time() - one["since"]) / (finished - begun) * (total - finished))
    return found


def _shown(one: Mapping[str, Any]) -> dict[str, Any]:
    """What goes to the page of what a session says."""
    counters = one.get("counters") or {}
    return {
        **{name: one.get(name) for name in ("most", "devices")},
        "playing": {
            name: {"events": told["events"], "share": one.get("shares", {}).get(name)}
            for name, told in one["playing"].items()
        },
        **{name: counters.get(name) for name in ("in_flight", "waiting", "limit")},
        "held": one["paused"],
        "why": scrub(str(counters.get("paused") or "")),
    }


def _parts(folder: Path) -> list[dict[str, Any]]:
    """Who writes the parts of a run's journal, on whatever machine; a file beside each shows a heartbeat."""
    found = []
    for path in sorted((folder / "journal").glob("*.lock")):
        with contextlib.suppress(OSError, RunError):
            told = read_json(path, str)
            age = max(0.0, time.time() - path.stat().st_mtime)
            found.append(
                {"part": path.name.split(".")[0], "host": told.get("host"), "pid": told.get("pid"), "age": age}
            )
    return found

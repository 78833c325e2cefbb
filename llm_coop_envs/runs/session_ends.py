"""What is known of sessions that recorded no end: how they ended, and when they were last seen."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.runs.control import read_sessions
from llm_coop_envs.runs.folder import Run

PLAYING, KILLED, UNKNOWN = "plays now", "was killed", "killed, or plays elsewhere"


@dataclass(frozen=True, kw_only=True)
class Unended:
    """A session without a recorded end.

    Attributes:
        how: `PLAYING`, `KILLED`, or `UNKNOWN`.
        seen: when it last wrote something, as an ISO time; `None` if it wrote nothing.
    """

    how: str
    seen: str | None


def find_unended(run: Run, live: Mapping[str, Any] | None = None) -> dict[int, Unended]:
    """Describe the sessions that recorded no end, by their number.

    A session that another one of the same part followed was killed: two cannot write one part at a time. It was last
    seen when it wrote to the journal, or, without a model, an episode's file.

    Args:
        run: the run.
        live: the sessions that play it now on this machine, by part; `None` if nobody asked.
    """
    sessions = run.manifest["sessions"]
    next_of: dict[int, Any] = {}
    for number, session in enumerate(sessions):
        if session["ended"] is None:
            later = (other for other in sessions[number + 1 :] if _part(other) == _part(session))
            next_of[number] = next(later, None)
    described = {
        number: Unended(how=PLAYING, seen=None)
        for number, later in next_of.items()
        if later is None and live and _part(sessions[number]) in live
    }
    if len(described) == len(next_of):
        return described  # and the journal of a run that plays is not read
    is_here = live is not None and all(own["host"] == socket.gethostname() for own in read_sessions(run.folder))
    times = _written(run, any("asking" in sessions[number] for number in next_of))
    for number, later in next_of.items():
        if number in described:
            continue
        part, begun = _part(sessions[number]), _timestamp(sessions[number])
        end = float("inf") if later is None else _timestamp(later)
        seen = max((time for own, time in times if own in (part, None) and begun <= time <= end), default=None)
        described[number] = Unended(
            how=KILLED if later or is_here else UNKNOWN,
            seen=None if seen is None else datetime.fromtimestamp(int(seen), timezone.utc).isoformat(),
        )
    return described


def _part(session: Mapping[str, Any]) -> str:
    return session.get("asking", {}).get("part") or "main"


def _timestamp(session: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(session["started"]).timestamp()


def _written(run: Run, asked: bool) -> list[tuple[str | None, float]]:
    """When something was written, with the part that wrote it: lines of the journal, or else episodes."""
    if asked:
        from llm_coop_envs.policies.llm.journal import read_run

        with contextlib.suppress(LlmCoopError):
            return [(report.path.name.split(".")[0], time) for report in read_run(run.folder) for time in report.times]
    paths = (run.events_path(condition, seed) for condition, seed in run.finished())
    return [(None, path.stat().st_mtime) for path in paths if path.is_file()]

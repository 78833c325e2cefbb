"""What a run asked its models, and what it paid: by the counters of its sessions, or by its journal."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.runs.folder import Run

#: How often the journal of a run that plays is read again.
_SECONDS = 20.0
_COUNTED = ("answers", "prompt_tokens", "completion_tokens", "unpriced")


class SpendingReader:
    """Adds up what runs spent.

    A session that was killed wrote no counters, but all its answers stand in the journal. So a run with such a session
    is counted by the journal, which holds those of all other sessions, too.
    """

    def __init__(self) -> None:
        self._journals: dict[Path, tuple[float, dict[str, Any]]] = {}

    def read(self, run: Run, live: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Calls, errors, and under `used` answers, tokens and dollars.

        Args:
            run: the run.
            live: what the sessions say that play it now, by part.
        """
        asking = [session for session in run.manifest["sessions"] if "asking" in session]
        if sum(session["ended"] is None for session in asking) > len(live):
            with contextlib.suppress(LlmCoopError):
                return self._read_journal(run.folder, bool(live))
        ended = [(session["asking"].get("part") or "main", session) for session in asking]
        counted = [(part, session.get("asked", {}).get("counters", {})) for part, session in ended]
        return _add_up([*counted, *((part, status.get("counters") or {}) for part, status in live.items())])

    def _read_journal(self, folder: Path, is_live: bool) -> dict[str, Any]:
        from llm_coop_envs.policies.llm.journal import journal_files, read_run

        at, spending = self._journals.get(folder, (0.0, {}))
        changed = max((path.stat().st_mtime for path in journal_files(folder)), default=0.0)
        if not spending or (at < changed and (not is_live or time.time() - at > _SECONDS)):
            at = time.time()
            spending = _add_up(
                (
                    report.path.name,
                    {
                        **vars(report),
                        "answers": report.answers - report.cached,
                        "maybe_cost": report.lost_usd,
                    },
                )
                for report in read_run(folder)
            )
            self._journals[folder] = at, spending
        return spending


def _add_up(counted: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Add up counters, each with the part that it is of."""
    counters = list(counted)
    # A session's counter of what may have been paid in vain goes on from that of the same part's session before.
    in_vain: dict[str, float] = {}
    for part, counts in counters:
        in_vain[part] = max(in_vain.get(part, 0.0), counts.get("maybe_cost") or 0.0)
    return {
        "used": {
            **{name: sum(counts.get(name) or 0 for _, counts in counters) for name in _COUNTED},
            "cost": math.fsum(counts.get("cost") or 0 for _, counts in counters),
            "maybe_cost": math.fsum(in_vain.values()),
        },
        "errors": sum(sum((counts.get("errors") or {}).values()) for _, counts in counters),
        "calls": sum(counts.get("calls") or 0 for _, counts in counters),
    }

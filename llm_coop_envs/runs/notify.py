"""Notices of a run for a person who is away: a command of theirs gets each as JSON on its standard input."""

from __future__ import annotations

import json
import os
import queue
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.keys import scrub

FINISHED, STOPPED, FAILED, PART = "finished", "stopped", "failed", "part"
PAUSED, RESUMED, BUDGET, FALLBACKS = "paused", "resumed", "budget", "fallbacks"
#: What each kind of notice says.
NOTICES: Mapping[str, str] = {
    FINISHED: "all episodes are played and the tables are written",
    PART: "this part of a run is done, and others go on",
    STOPPED: "the session ended early: Ctrl-C, an order, --limit, or failed episodes",
    FAILED: "the session ended with an error",
    PAUSED: "a person paused it, or a model has not been reached for a minute",
    RESUMED: "it goes on",
    BUDGET: "the budget is used up",
    FALLBACKS: "more than 5 % of a condition's answers cannot be read",
}
SECONDS = 30.0
"""How long the command may take."""
_MOST_FAULTS = 3


class Notifier:
    """Runs a command for each notice, one after the other, in a thread: the run does not wait for it.

    The command is split into words as a shell does, and no shell runs it.

    Args:
        command: the command, as somebody typed it.
        say: called with a sentence when the command fails, the first three times.

    Raises:
        SettingsError: the command is empty, has a quotation mark too many, or its program is not there.
    """

    def __init__(self, command: str, say: Callable[[str], None]) -> None:
        self._words = split_command(command)
        self._say = say
        self._faults = 0
        self._notices: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True, name="notify")
        self._thread.start()

    def send(self, kind: str, sentence: str, **more: Any) -> None:
        """Send a notice.

        Args:
            kind: one of `NOTICES`.
            sentence: what happened.
            **more: further fields, as plain data.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        notice = {"event": kind, "sentence": scrub(sentence), "time": now, **more}
        self._notices.put(json.dumps(notice, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Wait until all notices are sent, or their time is over."""
        self._notices.put(None)
        self._thread.join(2 * SECONDS)

    def _run(self) -> None:
        while (notice := self._notices.get()) is not None:
            fault = self._deliver(notice)
            if fault and self._faults < _MOST_FAULTS:
                self._faults += 1
                self._say(f"--notify: {self._words[0]} {fault}; the run goes on")

    def _deliver(self, notice: bytes) -> str:
        """Run the command once; returns what went wrong, without the command's arguments, which may hold a secret."""
        try:
            done = subprocess.run(self._words, input=notice, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"took more than {SECONDS:.0f} seconds"
        except OSError as error:
            return f"cannot be run ({error.strerror})"
        return f"ended with code {done.returncode}" if done.returncode else ""


def split_command(command: str) -> list[str]:
    """The words of a command, its program looked up.

    Raises:
        SettingsError: the command is empty, has a quotation mark too many, or its program is not there.
    """
    try:
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise SettingsError("notify", command, f"is no command ({error})") from error
    if not words:
        raise SettingsError("notify", command, "is empty; give a command, such as 'notify-send llm-coop'")
    program = shutil.which(words[0])
    if program is None:
        raise SettingsError("notify", words[0], "is no program that can be run; give its path")
    return [program, *words[1:]]


def describe(folder: Path, study: str, finished: int, total: int) -> dict[str, Any]:
    """The fields of a notice that say which run it is of."""
    return {"run": str(folder.absolute()), "study": study, "finished": finished, "total": total}

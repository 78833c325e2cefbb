"""The interface by which a run tells of its progress."""

from __future__ import annotations

from llm_coop_envs.runs.folder import Run
from llm_coop_envs.util.pace import Remaining


class Watcher:
    """Ignores all progress of a run; subclasses show it, or log it elsewhere."""

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Called before `todo` missing episodes are played; 0 workers mean side by side in this process."""

    def episode(self, condition: str, seed: int, seconds: float, remaining: Remaining | None) -> None:
        """Called after each episode; `remaining` says how long the others take, `None` if that is not known."""

    def stopping(self) -> None:
        """Called at the first Ctrl-C: running episodes are finished, no more are begun."""

    def tables(self) -> None:
        """Called when all episodes are there, before tables are written."""

    def say(self, sentence: str) -> None:
        """Called with a sentence for the user."""

    def notice(self, kind: str, sentence: str) -> None:
        """Called with what a person who is away wants to know; `kind` is one of `notify.NOTICES`, in any thread."""

    def show_questions(self, line: str) -> None:
        """Called several times a second with a line on questions to models and their cost so far."""

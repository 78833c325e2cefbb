"""Who is told how a run goes."""

from __future__ import annotations

from llm_coop_envs.runs.folder import Run


class Watcher:
    """Is told how a run goes, and looks away; subclasses show what they like."""

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Episodes are about to be played; `todo` are missing. No workers: side by side in this process."""

    def episode(self, condition: str, seed: int, seconds: float, left: float | None) -> None:
        """An episode is done; about `left` seconds remain, if that can be said."""

    def stopping(self) -> None:
        """The first Ctrl-C: running episodes are finished, no more are begun."""

    def tables(self) -> None:
        """All episodes are there; tables are being written."""

    def say(self, sentence: str) -> None:
        """Something the user should know, once."""

    def asked(self, line: str) -> None:
        """What models were asked so far, and what it cost; several times a second."""

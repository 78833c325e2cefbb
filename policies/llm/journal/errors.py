"""The journal's error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from llm_coop_envs.errors import RunError


class JournalError(RunError):
    """A journal cannot be written, read or continued."""


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into a sentence."""
    try:
        yield
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be written ({error.strerror or error}); free space or mend the rights, then run again to "
            "continue"
        ) from error

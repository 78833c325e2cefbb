"""Python's garbage collector while thousands of questions are held."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# With hundreds of conversations in memory the usual thresholds (700, 10, 10) look through all of them again and again;
# next to nothing in them is a cycle.
THRESHOLDS = (50_000, 50, 100)


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let the collector look at what is alive less often, for as long as a run of models takes."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)

"""Ctrl-C and other requests to stop while a run is played."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.util.interrupts import on_interrupt


class Interrupts:
    """Counts Ctrl-C: the first one asks the run to stop, the second one ends it at once."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._count = 0
        self._listener: Callable[[int], None] | None = None
        self._heard = on_interrupt(self._hear)

    def __enter__(self) -> Interrupts:
        """Listen from now on; only the main thread can."""
        self._heard.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        self._heard.__exit__(None, None, None)

    def is_stop_requested(self) -> bool:
        """Whether the run is to stop."""
        return self._count > 0

    def stop(self) -> None:
        """Act as the first Ctrl-C, if there was none yet; may be called from any thread."""
        if not self._count:
            self._hear(signal.SIGINT, None)

    def listen(self, listener: Callable[[int], None] | None) -> None:
        """Call a listener with the count at every Ctrl-C; it then also handles the second one. `None` removes it."""
        self._listener = listener
        if self._count and listener is not None:
            listener(self._count)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._listener is not None:
            self._listener(self._count)
        elif self._count > 1:
            raise KeyboardInterrupt
        if self._count == 1:
            self._watcher.stopping()

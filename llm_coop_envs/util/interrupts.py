"""Ctrl-C, handled otherwise for a while."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def on_interrupt(handler: Any) -> Iterator[None]:
    """Let Ctrl-C call a handler (as `signal.signal` takes it) meanwhile; nothing is changed outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)

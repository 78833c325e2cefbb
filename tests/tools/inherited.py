"""What tests inherit from whoever starts them, put aside: signals, locale, time zone, terminal, home, keys, proxies.

`make test-odd` starts them from an odd environment, which shows that nothing is left.
"""

from __future__ import annotations

import contextlib
import locale
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

#: What finds programs and packages, and what steers the tests themselves; everything else is forgotten.
KEPT = {
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "SSL_CERT_FILE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "UPDATE_GOLDEN",
    "USER",
}
KEPT_PREFIXES = ("COV", "HYPOTHESIS", "PIP_", "PYTEST", "PYTHON", "UV_", "VIRTUAL_ENV")


def forget() -> None:
    """Give this process and its children an environment that is the same everywhere."""
    pip_file = Path.home() / ".config" / "pip" / "pip.conf"
    for name in [*os.environ]:
        if name not in KEPT and not name.startswith(KEPT_PREFIXES):
            del os.environ[name]
    # The same folder for all workers and sessions, because drawing libraries keep lists of fonts there.
    home = Path(tempfile.gettempdir()) / f"llm-coop-tests-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    home.mkdir(mode=0o700, exist_ok=True)
    os.environ.update(HOME=str(home), TZ="UTC", LC_ALL="C.UTF-8", TERM="xterm")
    # Hundreds of processes are started, and each would compile the package anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if pip_file.is_file():
        os.environ.setdefault("PIP_CONFIG_FILE", str(pip_file))
    if hasattr(time, "tzset"):
        time.tzset()
    with contextlib.suppress(locale.Error):  # some systems have no such locale
        locale.setlocale(locale.LC_ALL, "C.UTF-8")
    # A shell's background jobs ignore Ctrl-C, and their children inherit that: tests that press it would wait in vain.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

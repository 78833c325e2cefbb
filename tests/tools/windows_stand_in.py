"""Python as it is on Windows, as far as that can be told from elsewhere: what is missing there is missing here.

    python tests/tools/windows_stand_in.py SITE STUDY RUN

Plays a study with the package that is installed in the folder SITE, reports on the run and verifies it, and prints
where the package's parts were imported from. It shows calls that Windows does not have. It does not show how Windows
treats paths, locks, open files and terminals.
"""

import asyncio  # noqa: F401  what asks for the system when it is imported comes first, and finds the real one
import importlib.abc
import json
import multiprocessing.connection  # noqa: F401
import os
import signal
import site
import socket
import sys
import types

import matplotlib.pyplot  # noqa: F401
import numpy as np  # noqa: F401
import pettingzoo  # noqa: F401
import pyarrow.parquet  # noqa: F401
import scipy.stats  # noqa: F401
import typer.rich_utils  # noqa: F401
import yaml  # noqa: F401

#: What is not there.
MISSING = {
    os: ("fork", "getuid", "geteuid", "getloadavg", "sysconf", "sched_getaffinity", "mkfifo", "O_NONBLOCK", "killpg"),
    signal: ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGSTOP", "SIGCONT", "setitimer"),
    socket: ("SO_PEERCRED",),  # and AF_UNIX, without which asyncio does not work on other systems
}
MISSING_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"}


class NoSuchModules(importlib.abc.MetaPathFinder):
    """Finds none of the modules that are missing."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname in MISSING_MODULES:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


class Locks(types.ModuleType):
    """`msvcrt` with its locks: one byte of a file belongs to one descriptor."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        super().__init__("msvcrt")
        self.owners = {}

    def locking(self, descriptor, mode, size):
        info = os.fstat(descriptor)
        place = (info.st_dev, info.st_ino, os.lseek(descriptor, 0, os.SEEK_CUR))
        if mode == self.LK_NBLCK and self.owners.setdefault(place, descriptor) == descriptor:
            return
        if mode == self.LK_UNLCK and self.owners.get(place) == descriptor:
            del self.owners[place]
            return
        raise PermissionError(13, "Permission denied")


def become_windows():
    """Take away what is missing there, and put in what is only there."""
    for module, names in MISSING.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in MISSING_MODULES & set(sys.modules):
        del sys.modules[name]
    sys.meta_path.insert(0, NoSuchModules())
    sys.modules["msvcrt"] = Locks()
    sys.platform = "win32"
    close = os.close

    def close_and_unlock(descriptor):
        locks = sys.modules["msvcrt"].owners
        for place in [place for place, owner in locks.items() if owner == descriptor]:
            del locks[place]
        close(descriptor)

    def kill(process, number):
        raise AssertionError(f"the signal {number} for process {process}: 0 is Ctrl-C there")

    exists = os.path.exists
    os.path.exists = lambda path: not os.fspath(path).startswith("/proc") and exists(path)
    os.close, os.kill = close_and_unlock, kill


def main(folder, study, run):
    """Play, report, verify."""
    # Another checkout may be installed here, too, under the same name.
    sys.meta_path = [finder for finder in sys.meta_path if "Editable" not in getattr(finder, "__name__", "")]
    for name in [name for name in sys.modules if name.startswith(("__editable__", "llm_coop_envs"))]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    site.addsitedir(folder)
    become_windows()
    from llm_coop_envs.cli.main import app

    for words in (["run", study, "-o", run, "--workers", "1"], ["report", run], ["verify", run, "--again"]):
        code = app(words, standalone_mode=False)
        assert not code, words
    import llm_coop_envs.policies
    import llm_coop_envs.render

    print(json.dumps([module.__file__ for module in (llm_coop_envs, llm_coop_envs.policies, llm_coop_envs.render)]))


if __name__ == "__main__":
    main(*sys.argv[1:])

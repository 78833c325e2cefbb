"""The socket by which a run is steered while it is played: `llm-coop pause`, `resume`, `stop`, `limit`, and the page.

A session listens on a Unix socket in a folder that only its user may enter, and answers nobody else: the kernel says
who the peer is. The run folder holds no more than the socket's name, so that a folder from somebody else can lead
nowhere. A message and its answer are a line of JSON each.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import stat
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.run.steering import Steering
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import read_json, write_json

POINTER = ".control-"
ANSWER_SECONDS = 5.0
_NAME = re.compile(r"[0-9a-f]{16}")
_LONGEST = 100  # bytes of a socket's path: the kernels take 104 to 108
_MOST_BYTES = 1 << 16


@contextlib.contextmanager
def listening(folder: Path, part: str, steering: Steering) -> Iterator[str]:
    """Answer on a socket as long as the block lasts.

    Args:
        folder: the run's folder, which gets the pointer.
        part: the part of the run that this session plays.
        steering: is told what is wanted.

    Yields:
        Why the run cannot be steered; empty if it can.
    """
    with contextlib.ExitStack() as opened:
        try:
            path = _own_folder() / secrets.token_hex(8)
            listener = opened.enter_context(socket.socket(_unix(), socket.SOCK_STREAM))
            listener.bind(str(path))
            opened.callback(path.unlink, missing_ok=True)
            listener.listen()
            pointer = folder / f"{POINTER}{part}.json"
            told = {"name": path.name, "host": socket.gethostname(), "pid": os.getpid()}
            write_json(pointer, told)
        except (OSError, RunError) as error:
            yield f"This run cannot be paused or steered from outside: {error}"
            return
        opened.callback(pointer.unlink, missing_ok=True)
        over = threading.Event()
        thread = threading.Thread(target=_serve, args=(listener, steering, over), daemon=True, name="control")
        thread.start()
        try:
            yield ""
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
            thread.join(ANSWER_SECONDS)


def sessions(folder: Path) -> list[dict[str, Any]]:
    """What the run folder says of the sessions that play it: `part`, `host`, `pid`, `name`; they may be gone."""
    found = []
    for path in sorted(folder.glob(f"{POINTER}*.json")):
        with contextlib.suppress(RunError):
            told = read_json(path, str)
            if _NAME.fullmatch(str(told.get("name"))):
                found.append({**told, "part": path.name[len(POINTER) : -len(".json")]})
    return found


def order(folder: Path, what: Mapping[str, Any], *, elsewhere: bool = False) -> dict[str, dict[str, Any]]:
    """Send an order to all sessions of this user that play a run on this machine.

    Args:
        folder: the run's folder.
        what: the order.
        elsewhere: pass over sessions on other machines.

    Returns:
        What each answered, by the name of its part; empty if nobody plays the run.

    Raises:
        RunError: a session plays on another machine or refuses the order; the others were reached.
    """
    answers: dict[str, dict[str, Any]] = {}
    wrong: list[str] = []
    for session in sessions(folder):
        if session["host"] != socket.gethostname():
            if elsewhere:
                continue
            wrong.append(f"part {session['part']} is played on {session['host']}; give the order there")
            continue
        try:
            answers[session["part"]] = _asked(session["name"], what)
        except RunError as error:
            wrong.append(str(error))
        except OSError:
            continue  # it was killed
    if wrong:
        raise RunError(f"{folder}: {'; '.join(wrong)}")
    return answers


def _asked(name: str, what: Mapping[str, Any]) -> dict[str, Any]:
    with socket.socket(_unix(), socket.SOCK_STREAM) as talk:
        talk.settimeout(ANSWER_SECONDS)
        talk.connect(str(_own_folder() / name))
        talk.sendall(json.dumps(what).encode() + b"\n")
        with talk.makefile("rb") as lines:
            answer = json.loads(lines.readline() or b"{}")
    if "error" in answer:
        raise RunError(answer["error"])
    found: dict[str, Any] = answer
    return found


def _serve(listener: socket.socket, steering: Steering, over: threading.Event) -> None:
    while not over.is_set():
        try:
            talk, _ = listener.accept()
        except OSError:
            return
        # A peer that is slow, gone or no user of ours must not keep the others from being heard.
        with talk, contextlib.suppress(OSError):
            talk.settimeout(ANSWER_SECONDS)
            talk.sendall(json.dumps(_answer(talk, steering)).encode() + b"\n")


def _answer(talk: socket.socket, steering: Steering) -> dict[str, Any]:
    with talk.makefile("rb") as lines:
        wanted = lines.readline(_MOST_BYTES)  # whoever it is: closing with unread bytes would lose the answer
    if peer_user(talk) != os.getuid():
        return {"error": "this run belongs to another user"}
    try:
        return steering.obey(json.loads(wanted))
    except (RunError, ValueError, TypeError, AttributeError) as error:
        return {"error": str(error)}


def peer_user(talk: socket.socket) -> int:
    """The number of the user at the other end, as the kernel knows it; -1 where it does not say."""
    if sys.platform == "linux":
        _, user, _ = struct.unpack("3i", talk.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return int(user)
    if hasattr(socket, "LOCAL_PEERCRED"):  # macOS and FreeBSD: struct xucred begins with a version and the user
        _, user = struct.unpack("Ii", talk.getsockopt(0, socket.LOCAL_PEERCRED, 128)[:8])
        return int(user)
    return -1


def _unix() -> socket.AddressFamily:
    if sys.platform == "win32":
        raise RunError("this system has no Unix sockets; use Ctrl-C in its terminal")
    return socket.AF_UNIX


def _own_folder() -> Path:
    """A folder that nobody else may enter, with a short path.

    Raises:
        RunError: there is none, or somebody else made it.
    """
    _unix()
    places = [Path(base, "llm-coop") for base in (os.environ.get("XDG_RUNTIME_DIR"),) if base and Path(base).is_dir()]
    places += [Path(base, f"llm-coop-{os.getuid()}") for base in (tempfile.gettempdir(), "/tmp")]
    folder = next((one for one in places if len(os.fsencode(one)) < _LONGEST - 17), places[-1])
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    held = folder.lstat()
    if not stat.S_ISDIR(held.st_mode) or held.st_uid != os.getuid() or held.st_mode & 0o077:
        raise RunError(f"{folder}: is not a folder of this user alone; remove it")
    return folder

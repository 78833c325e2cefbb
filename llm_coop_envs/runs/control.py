"""The socket by which a run is steered while it is played: `llm-coop pause`, `resume`, `stop`, `limit`, and the page.

A session listens on a Unix socket in a folder that only its user may enter, and answers nobody else: the kernel says
who the peer is. The run folder holds no more than the socket's name, so that a folder from somebody else can lead
nowhere. A message and its answer are a line of JSON each.

No socket reaches another machine. Orders for a session there are left as a file in the run's folder, which both share;
it looks for one every few seconds, does what a file of its own user says, and answers beside the socket's name.
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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.steering import Steering
from llm_coop_envs.storage.files import read_json, write_json

POINTER = ".control-"
LEFT = ".order-"
ANSWER_SECONDS = 5.0
WORKER_SECONDS = 0.5
LOOK_SECONDS = 3.0  # how often a session looks for orders that were left for it
FAR_SECONDS = 30.0  # how long an order waits for a session elsewhere, and when one that is silent counts as gone
_NAME = re.compile(r"[0-9a-f]{16}")
_LONGEST = 100  # bytes of a socket's path: the kernels take 104 to 108
_MOST_BYTES = 1 << 16


@contextlib.contextmanager
def answering(name: str, steering: Steering, look: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Answer on a socket as long as the block lasts.

    Args:
        name: the socket's name.
        steering: is told what is wanted, and says how it goes.
        look: called every few seconds.

    Raises:
        OSError: there can be no socket.
        RunError: its folder is not this user's alone.
    """
    path = socket_path(name)
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.socket(_unix(), socket.SOCK_STREAM))
        listener.bind(str(path))
        opened.callback(path.unlink, missing_ok=True)
        listener.listen()
        listener.settimeout(LOOK_SECONDS)
        over = threading.Event()
        thread = threading.Thread(target=_serve, args=(listener, steering, over, look), daemon=True, name="control")
        thread.start()
        try:
            yield
        finally:
            over.set()
            # Wakes the thread; one that waits with a time limit would spin until then on a socket that is shut down.
            with contextlib.suppress(OSError), socket.socket(_unix(), socket.SOCK_STREAM) as talk:
                talk.connect(str(path))
            thread.join(ANSWER_SECONDS)


@contextlib.contextmanager
def listening(folder: Path, part: str, steering: Steering) -> Iterator[str]:
    """Let a session be steered as long as the block lasts.

    Args:
        folder: the run's folder, which gets the pointer.
        part: the part of the run that this session plays.
        steering: is told what is wanted.

    Yields:
        Why the run cannot be steered; empty if it can.
    """
    pointer, left = folder / f"{POINTER}{part}.json", folder / f"{LEFT}{part}.json"
    name = secrets.token_hex(8)
    told = {"name": name, "host": socket.gethostname(), "pid": os.getpid()}

    def look() -> None:
        order = _taken(left)
        if order is not None:
            write_json(pointer, {**told, "answered": order.get("number"), "answer": _obeyed(steering, order)})

    with contextlib.ExitStack() as opened:
        try:
            left.unlink(missing_ok=True)  # what was left for a session that is gone
            opened.enter_context(answering(name, steering, look))
            write_json(pointer, told)
        except (OSError, RunError) as error:
            yield f"This run cannot be paused or steered from outside: {error}"
            return
        opened.callback(pointer.unlink, missing_ok=True)
        yield ""


def sessions(folder: Path) -> list[dict[str, Any]]:
    """What the run folder says of the sessions that play it: `part`, `host`, `pid`, `name`; they may be gone."""
    found = []
    for path in sorted(folder.glob(f"{POINTER}*.json")):
        with contextlib.suppress(RunError):
            told = read_json(path, str)
            if _NAME.fullmatch(str(told.get("name"))):
                found.append({**told, "part": path.name[len(POINTER) : -len(".json")]})
    return found


def order(folder: Path, what: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Send an order to all sessions of this user that play a run, on this machine or with the folder on another one.

    Returns:
        What each answered, by the name of its part; empty if nobody plays the run.

    Raises:
        RunError: a session refuses the order, or one on another machine does not answer; the others were reached.
    """
    answers: dict[str, dict[str, Any]] = {}
    wrong: list[str] = []
    far = {}
    for session in sessions(folder):
        if session["host"] != socket.gethostname():
            far[session["part"]] = {**session, "number": secrets.token_hex(8)}
            continue
        try:
            answers[session["part"]] = ask(session["name"], what)
        except RunError as error:
            wrong.append(str(error))
        except OSError:
            continue  # it was killed
    for part, session in far.items():
        write_json(folder / f"{LEFT}{part}.json", {**what, "number": session["number"]})
    end = time.monotonic() + FAR_SECONDS
    while far and time.monotonic() < end:
        for told in sessions(folder):
            if told.get("answered") == far.get(told["part"], {}).get("number", ""):
                answers[told["part"]] = told["answer"]
                del far[told["part"]]
        time.sleep(0.1)
    wrong += [f"part {part} on {one['host']} did not answer; give the order there" for part, one in far.items()]
    wrong += [str(one["error"]) for one in answers.values() if "error" in one]
    if wrong:
        raise RunError(f"{folder}: {'; '.join(wrong)}")
    return answers


def live(folder: Path) -> dict[str, dict[str, Any]]:
    """What the sessions that play a run say of it, by part; nobody is waited for long.

    Of an episode that is being played on this machine, `by` names the socket that gives its events. Sessions on other
    machines are asked by the way, so that what they say is some seconds old.
    """
    found: dict[str, dict[str, Any]] = {}
    for session in sessions(folder):
        if session["host"] != socket.gethostname():
            told = _asked_by_the_way(folder, session)
            if told is not None:
                found[session["part"]] = told
            continue
        with contextlib.suppress(OSError, RunError):
            told = found[session["part"]] = ask(session["name"], {"do": "status"})
            told["playing"] = {name: {**one, "by": session["name"]} for name, one in told["playing"].items()}
            for name, one in _workers(told.pop("workers", ())):
                told["playing"].update({episode: {**how, "by": name} for episode, how in one["playing"].items()})
                told["devices"] += one["devices"]
    return found


def ask(name: str, what: Mapping[str, Any]) -> dict[str, Any]:
    """The answer on the socket of this name.

    Raises:
        RunError: the order is refused.
        OSError: nobody listens.
    """
    with _sent(name, what, ANSWER_SECONDS) as talk:
        return _heard(talk)


def socket_path(name: str) -> Path:
    """Where the socket of this name is."""
    return _own_folder() / name


def _workers(names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What worker processes say; one that has no time is passed over."""
    with contextlib.ExitStack() as opened:
        talks = {}
        for name in names:
            with contextlib.suppress(OSError):
                talks[name] = opened.enter_context(_sent(name, {"do": "status"}, WORKER_SECONDS))
        end = time.monotonic() + WORKER_SECONDS
        for name, talk in talks.items():
            with contextlib.suppress(OSError, RunError):
                talk.settimeout(max(0.001, end - time.monotonic()))
                yield name, _heard(talk)


@contextlib.contextmanager
def _sent(name: str, what: Mapping[str, Any], seconds: float) -> Iterator[socket.socket]:
    with socket.socket(_unix(), socket.SOCK_STREAM) as talk:
        talk.settimeout(seconds)
        talk.connect(str(socket_path(name)))
        talk.sendall(json.dumps(what).encode() + b"\n")
        yield talk


def _heard(talk: socket.socket) -> dict[str, Any]:
    with talk.makefile("rb") as lines:
        answer = json.loads(lines.readline() or b"{}")
    if "error" in answer:
        raise RunError(answer["error"])
    found: dict[str, Any] = answer
    return found


def _asked_by_the_way(folder: Path, session: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a session on another machine said last; a question is left for it, unless it is silent for too long."""
    path = folder / f"{LEFT}{session['part']}.json"
    try:
        if time.time() - path.stat().st_mtime > FAR_SECONDS:
            return None
    except OSError:
        with contextlib.suppress(OSError), path.open("x", encoding="utf-8") as file:
            file.write('{"do": "status"}')
    told = session.get("answer")
    return told if isinstance(told, dict) and "error" not in told else None


def _taken(path: Path) -> dict[str, Any] | None:
    """The order that was left in a file by this user; it is taken away."""
    taken = path.with_suffix(".taken")
    try:
        os.replace(path, taken)
        held = taken.lstat()
        if stat.S_ISREG(held.st_mode) and held.st_uid == os.getuid() and held.st_size <= _MOST_BYTES:
            return read_json(taken, str)
    except (OSError, RunError):
        return None
    finally:
        with contextlib.suppress(OSError):
            taken.unlink(missing_ok=True)
    return None


def _obeyed(steering: Steering, order: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return steering.obey(order)
    except (RunError, ValueError, TypeError, AttributeError) as error:
        return {"error": str(error)}


def _serve(listener: socket.socket, steering: Steering, over: threading.Event, look: Callable[[], None]) -> None:
    due = 0.0
    while not over.is_set():
        if time.monotonic() >= due:
            with contextlib.suppress(OSError, RunError):  # a disk that is full, say
                look()
            due = time.monotonic() + LOOK_SECONDS
        try:
            talk, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:
            return
        if over.is_set():
            talk.close()
            return
        # A peer that is slow, gone or no user of ours must not keep the others from being heard.
        with talk, contextlib.suppress(OSError):
            talk.settimeout(ANSWER_SECONDS)
            talk.sendall(_packed(_answer(talk, steering)) + b"\n")


def _packed(answer: Mapping[str, Any]) -> bytes:
    from llm_coop_envs.util.fastjson import dumps  # several times as fast, where events are many

    return dumps(answer)


def _answer(talk: socket.socket, steering: Steering) -> dict[str, Any]:
    with talk.makefile("rb") as lines:
        wanted = lines.readline(_MOST_BYTES)  # whoever it is: closing with unread bytes would lose the answer
    if peer_user(talk) != os.getuid():
        return {"error": "this run belongs to another user"}
    try:
        return _obeyed(steering, json.loads(wanted))
    except (ValueError, RecursionError) as error:
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

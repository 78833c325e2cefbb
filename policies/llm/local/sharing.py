"""Share one server per model and machine among all runs that use it; it ends with the last of them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.policies.llm.chat import LOCAL, EndpointStopped, RunStopped
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.local.models import find_weights
from llm_coop_envs.policies.llm.local.server import ALIVE, MODULE, SLOTS, ServerStatus
from llm_coop_envs.storage.lock import FileLock
from llm_coop_envs.util.children import module_command
from llm_coop_envs.util.extras import need

_START_SECONDS = 120.0
_POLL = 0.1
_LOOK = 1.0


def check_local(endpoints: Sequence[Endpoint]) -> None:
    """Check, before anything is written, that the local models among some endpoints can be served.

    Raises:
        LlmCoopError: one cannot.
    """
    for endpoint in endpoints:
        if endpoint.is_local:
            if sys.platform == "win32":
                raise SettingsError("model", endpoint.model, "runs on Linux and macOS; give the address of a server")
            need("xllamacpp", f"running {endpoint.model}", "local")
            find_weights(endpoint.model)
            if endpoint.base_url is not None:
                raise SettingsError(
                    "base_url", endpoint.base_url, f"{endpoint.model} starts its own server; leave the address out"
                )


@contextlib.contextmanager
def serve_models(
    endpoints: Sequence[Endpoint], folder: Path, notify: Callable[[str], None]
) -> Iterator[list[Endpoint]]:
    """Serve the local models among a run's endpoints.

    Args:
        endpoints: the run's endpoints.
        folder: the run's folder; servers that are started write their logs there.
        notify: receives a sentence about each server.

    Yields:
        The endpoints, those of local models with the addresses of their servers.

    Raises:
        LlmCoopError: a server cannot be started.
    """
    check_local(endpoints)
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(_serve_model(endpoint, folder, notify)) if endpoint.is_local else endpoint
            for endpoint in endpoints
        ]


async def watch_servers(endpoints: Sequence[Endpoint], stop: Callable[[RunStopped], None]) -> None:
    """Stop a run when the server of one of its local models has ended for good.

    Args:
        endpoints: the endpoints that `serve_models` yielded.
        stop: called with the reason.
    """
    local = {
        endpoint.model: _meeting_place(find_weights(endpoint.model)) for endpoint in endpoints if endpoint.is_local
    }
    while local:
        for model, meeting_place in local.items():
            status = _read(meeting_place.with_suffix(".json"))
            if status is not None and status.why:
                advice = "every answer so far is kept, run again to continue"
                stop(EndpointStopped(f"{model}: {status.why}; see {status.log}; {advice}"))
                return
        await asyncio.sleep(_LOOK)


@contextlib.contextmanager
def _serve_model(endpoint: Endpoint, folder: Path, notify: Callable[[str], None]) -> Iterator[Endpoint]:
    weights = find_weights(endpoint.model)
    name = endpoint.model.removeprefix(LOCAL)
    short = weights.stem if name.endswith(weights.name) else name
    status_path, users_path, starting_path = map(_meeting_place(weights).with_suffix, (".json", ".users", ".start"))
    with FileLock(users_path) as users:
        users.take(shared=True, wait=True)
        with FileLock(starting_path) as starting:
            starting.take(wait=True)
            status = _read(status_path)
            if status is None:
                log = folder / f"{short}.log"
                _start(weights, short, users_path, status_path, log)
                status = _wait(status_path, short, log)
                if status.url:
                    notify(f"{endpoint.model} is served at {status.url}; its log is {log}")
            elif status.url:
                notify(f"{endpoint.model} is served at {status.url} for another run too; its log is {status.log}")
        if status.why:
            raise RunError(f"{endpoint.model}: {status.why}; see {status.log}")
        limits = endpoint.limits
        if limits.most > SLOTS:  # further requests would wait in the server while their time limit runs
            limits = dataclasses.replace(limits, start=min(limits.start, SLOTS), most=SLOTS)
        yield dataclasses.replace(endpoint, base_url=f"{status.url}/v1", client="lean", limits=limits)


def _meeting_place(weights: Path) -> Path:
    """The path without suffix of the files that this user's runs of a model share; nobody else can write there."""
    user = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"llm-coop-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != user:
        raise RunError(
            f"{folder}: belongs to somebody else; servers of local models cannot be shared there, set TMPDIR"
        )
    return folder / hashlib.sha256(str(weights).encode()).hexdigest()[:16]


def _start(weights: Path, name: str, users: Path, status_path: Path, log: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # One core stays free: the threads of llama.cpp wait for each other by spinning, so if another process takes the
    # core of one of them, all of them stall.
    threads = max(1, cores - 1)
    log.parent.mkdir(parents=True, exist_ok=True)
    paths = str(users), str(status_path), str(log.resolve())
    command = module_command(MODULE, "guard", str(weights), name, str(threads), *paths)
    with log.open("ab") as file:
        # In a session of its own the guard survives the run's Ctrl-C and its end; only the users' lock ends it.
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, check=True)


def _wait(status_path: Path, name: str, log: Path) -> ServerStatus:
    begun = time.monotonic()
    while time.monotonic() - begun < _START_SECONDS:
        status = _read(status_path)
        if status is not None:
            return status
        time.sleep(_POLL)
    raise RunError(f"the server of {name} was not ready within {_START_SECONDS:.0f} s; see {log}")


def _read(status_path: Path) -> ServerStatus | None:
    """Read the state that a living guard has written; `None` if there is none."""
    with FileLock(status_path.with_suffix(ALIVE)) as alive:
        if alive.take():
            return None
    try:
        return ServerStatus(**json.loads(status_path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None

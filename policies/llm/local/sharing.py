"""One server per model and machine, shared by all runs that use it, ended with the last of them."""

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
from llm_coop_envs.policies.llm.local.server import ALIVE, MODULE, SLOTS, Served
from llm_coop_envs.storage.lock import FileLock
from llm_coop_envs.util.extras import need

_START_SECONDS = 120.0
_POLL = 0.1
_LOOK = 1.0


def check_local(endpoints: Sequence[Endpoint]) -> None:
    """Find out, before anything is written, whether the local models among them can be served; else raise.

    Raises:
        LlmCoopError: they cannot.
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
def served(endpoints: Sequence[Endpoint], folder: Path, notify: Callable[[str], None]) -> Iterator[list[Endpoint]]:
    """The endpoints, with servers running for those of local models.

    Args:
        endpoints: where a run's models are.
        folder: the run's folder; a server that is started writes its log there.
        notify: is told, in sentences, of servers.

    Raises:
        LlmCoopError: a server cannot be started.
    """
    check_local(endpoints)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(_served(one, folder, notify)) if one.is_local else one for one in endpoints]


async def watch(endpoints: Sequence[Endpoint], stop: Callable[[RunStopped], None]) -> None:
    """Stop a run when the server of one of its local models has ended for good, which no retry would change.

    Args:
        endpoints: as `served` gave them.
        stop: is told why.
    """
    local = {one.model: _meeting_place(find_weights(one.model)) for one in endpoints if one.is_local}
    while local:
        for model, place in local.items():
            found = _read(place.with_suffix(".json"))
            if found is not None and found.why:
                kept = "every answer so far is kept, run again to continue"
                stop(EndpointStopped(f"{model}: {found.why}; see {found.log}; {kept}"))
                return
        await asyncio.sleep(_LOOK)


@contextlib.contextmanager
def _served(endpoint: Endpoint, folder: Path, notify: Callable[[str], None]) -> Iterator[Endpoint]:
    weights = find_weights(endpoint.model)
    name = endpoint.model.removeprefix(LOCAL)
    short = weights.stem if name.endswith(weights.name) else name
    told, users_path, starting_path = map(_meeting_place(weights).with_suffix, (".json", ".users", ".start"))
    with FileLock(users_path) as users:
        users.take(shared=True, wait=True)
        with FileLock(starting_path) as starting:
            starting.take(wait=True)
            found = _read(told)
            if found is None:
                log = folder / f"{short}.log"
                _start(weights, short, users_path, told, log)
                found = _wait(told, short, log)
                if found.url:
                    notify(f"{endpoint.model} is served at {found.url}; its log is {log}")
            elif found.url:
                notify(f"{endpoint.model} is served at {found.url} for another run too; its log is {found.log}")
        if found.why:
            raise RunError(f"{endpoint.model}: {found.why}; see {found.log}")
        limits = endpoint.limits
        if limits.most > SLOTS:  # more would only wait in the server, where their time runs
            limits = dataclasses.replace(limits, start=min(limits.start, SLOTS), most=SLOTS)
        yield dataclasses.replace(endpoint, base_url=f"{found.url}/v1", client="lean", limits=limits)


def _meeting_place(weights: Path) -> Path:
    """What the files begin with at which this user's runs of a model meet; no other user may write there."""
    user = os.getuid()
    place = Path(tempfile.gettempdir()) / f"llm-coop-{user}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.is_symlink() or place.stat().st_uid != user:
        raise RunError(f"{place}: belongs to somebody else; servers of local models cannot be shared there, set TMPDIR")
    return place / hashlib.sha256(str(weights).encode()).hexdigest()[:16]


def _start(weights: Path, name: str, users: Path, told: Path, log: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # One core stays free: the threads of llama.cpp wait for each other by spinning, and where another process takes
    # the core of one of them, all of them stand still.
    threads = max(1, cores - 1)
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", MODULE, "guard"]
    command += [str(weights), name, str(threads), str(users), str(told), str(log.resolve())]
    with log.open("ab") as file:
        # It goes on in a session of its own: neither the run's Ctrl-C nor its end reaches it, only the users' lock.
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, check=True)


def _wait(told: Path, name: str, log: Path) -> Served:
    begun = time.monotonic()
    while time.monotonic() - begun < _START_SECONDS:
        found = _read(told)
        if found is not None:
            return found
        time.sleep(_POLL)
    raise RunError(f"the server of {name} was not ready within {_START_SECONDS:.0f} s; see {log}")


def _read(told: Path) -> Served | None:
    """What a guard that lives has written."""
    with FileLock(told.with_suffix(ALIVE)) as alive:
        if alive.take():
            return None
    try:
        return Served(**json.loads(told.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None

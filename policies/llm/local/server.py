"""The processes of a local model: the server, and a guard that ends it with its last user.

`sharing` starts `python -m llm_coop_envs.policies.llm.local.server guard …`. The guard starts `… serve …`, which runs
llama.cpp's server in its process. The guard writes the server's address to a file, restarts the server once if it dies,
and ends it when no run holds the users' lock any more. The kernel releases a run's lock however the run ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.lock import FileLock
from llm_coop_envs.util.children import module_command

#: How many questions are answered at the same time, and the tokens for each, prompt and answer together.
SLOTS = 4
CONTEXT = 8192
#: MiB of memory in which the server caches beginnings of prompts; llama.cpp's default is 8,192.
KEPT_MIB = 512
MODULE = "llm_coop_envs.policies.llm.local.server"
#: The suffix of the file that a guard locks for as long as it lives.
ALIVE = ".alive"
_POLL = 0.3
_END_SECONDS = 5.0
_ONCE_MORE = 1


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """The state of a server, as its guard writes it.

    Attributes:
        url: the server's address; empty once it has failed for good.
        log: the log of guard and server.
        why: why there is no server.
    """

    url: str = ""
    log: str = ""
    why: str = ""

    def write(self, path: Path) -> None:
        """Write the state to a file for the runs."""
        write_whole(path, json.dumps(asdict(self)).encode())


def serve(weights: str, name: str, port: int, threads: int) -> None:
    """Serve until standard input ends, which happens when the guard ends in whatever way."""
    import xllamacpp  # pyright: ignore[reportMissingImports]

    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {name}
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT
    parameters.cache_ram_mib = KEPT_MIB
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


def guard(weights: str, name: str, threads: int, users: Path, status_path: Path, log: str) -> None:
    """Start a server, restart it once if it dies, and end it when no run uses it.

    Args:
        weights: the model's file.
        name: the model's name, as the server reports it.
        threads: the number of computing threads.
        users: the file on which every run holds a shared lock.
        status_path: the file to which the `ServerStatus` is written.
        log: the name of the log that receives standard error.
    """
    url, port, deaths = "", 0, 0
    with FileLock(status_path.with_suffix(ALIVE)) as alive, FileLock(users) as lock:
        alive.take(wait=True)
        while deaths <= _ONCE_MORE:
            command = module_command(MODULE, "serve", weights, name, str(port), str(threads))
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdin is not None
                assert server.stdout is not None
                url = server.stdout.readline().strip()
                if url:
                    port = int(url.rpartition(":")[2])  # a restarted server uses the same port
                    ServerStatus(url=url, log=log).write(status_path)
                while server.poll() is None:
                    if lock.take():
                        status_path.unlink(missing_ok=True)
                        server.stdin.close()
                        try:
                            server.wait(_END_SECONDS)
                        except subprocess.TimeoutExpired:
                            server.kill()
                        return
                    time.sleep(_POLL)
            deaths += 1
            print(f"the server of {name} ended by itself (exit code {server.returncode})", file=sys.stderr, flush=True)
            if not url:
                break  # it never started: a restart would fail in the same way
        reason = f"the server of {name} " + ("ended twice by itself" if url else "could not be started")
        ServerStatus(log=log, why=reason).write(status_path)
        lock.take(wait=True)
        status_path.unlink(missing_ok=True)


def main(arguments: list[str]) -> None:
    """Run one of the two processes: `serve` or `guard`."""
    role, weights, name, *arguments_of_role = arguments
    if role == "serve":
        serve(weights, name, int(arguments_of_role[0]), int(arguments_of_role[1]))
    else:
        threads, users, status_path, log = arguments_of_role
        if os.fork():
            os._exit(0)  # the run that started this process continues without waiting for the guard's end
        guard(weights, name, int(threads), Path(users), Path(status_path), log)


if __name__ == "__main__":
    main(sys.argv[1:])

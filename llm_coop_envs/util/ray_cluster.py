"""Reaching Ray: a cluster that is there, or one that is started on this machine."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

from llm_coop_envs.errors import MissingExtra, RunError
from llm_coop_envs.util.children import module_command
from llm_coop_envs.version import __version__

LOCAL = "local"
_KNOCK_SECONDS = 5.0
_ANSWER_SECONDS = 20.0  # most of which its command takes to start on a busy machine


@contextlib.contextmanager
def connected(address: str, cores: int, given: str) -> Iterator[Any]:
    """Ray, connected, and left at the end; where this process is connected already, that cluster is used and kept.

    Args:
        address: a cluster's address, `"auto"` for the one of this machine, or `"local"` to start Ray here.
        cores: how many tasks run at the same time, if it is started here.
        given: how the address was given, with `{}` in its place, for errors.

    Yields:
        The module `ray`.

    Raises:
        MissingExtra: Ray is not installed.
        RunError: no cluster is reached.
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError as error:
        raise MissingExtra(given.format(address), "ray") from error
    if ray.is_initialized():
        yield ray
        return
    where: dict[str, Any] = (
        {"num_cpus": cores, "include_dashboard": False} if address == LOCAL else {"address": address}
    )
    try:
        _knock(address)
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise RunError(
            f"{given.format(address)}: no Ray cluster is reached there ({short(error)}); start one with "
            f"'ray start --head', or give {given.format(LOCAL)}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def short(error: Exception) -> str:
    """The last line of what Ray says, which is what happened."""
    lines = str(error).strip().splitlines()
    return lines[-1][:300] if lines else type(error).__name__


def same_version(version: str) -> None:
    """Require that a Ray worker has the driver's version of this package.

    Raises:
        RunError: it has another one.
    """
    if version != __version__:
        raise RunError(f"a Ray worker has llm-coop-envs {__version__}, the driver {version}; install the same")


def _knock(address: str) -> None:
    """Find out whether a cluster answers at an address; Ray itself tries for minutes."""
    scheme, _, host_and_port = address.rpartition("://")
    host, _, port = host_and_port.rpartition(":")
    if not host or not port.isdecimal():
        return
    socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()
    if scheme:  # Ray's client has a time limit
        return
    asking = module_command("ray.scripts.scripts", "health-check", "--address", address)
    try:
        result = subprocess.run(asking, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise ConnectionError(f"no answer within {_ANSWER_SECONDS:.0f} seconds") from error
    if result.returncode:
        raise ConnectionError(result.stderr or result.stdout or f"exit code {result.returncode}")

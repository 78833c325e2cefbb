"""Reaching Ray: a cluster that is there, or one that is started on this machine."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from llm_coop_envs.errors import MissingExtra, RunError

LOCAL = "local"
_KNOCK_SECONDS = 5.0


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
        ray.init(**where, log_to_driver=False, logging_level="ERROR")
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


def _knock(address: str) -> None:
    """Find out whether anything listens at an address; Ray itself tries for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()

"""The machines of a session: this one with its SLURM task, and the nodes of a Ray cluster if it uses one."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import Any


def describe_devices() -> list[dict[str, Any]]:
    """Describe each machine: `host`, `cores`, `load` or `used` cores, `memory` and `most_memory` in bytes if known."""
    machine: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "cores": os.cpu_count()}
    with contextlib.suppress(OSError, AttributeError):
        machine["load"] = os.getloadavg()[0]
    with contextlib.suppress(ImportError):
        import resource

        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        machine["memory"] = size if sys.platform == "darwin" else size * 1024
    with contextlib.suppress(OSError, ValueError, AttributeError):
        machine["most_memory"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if "SLURM_JOB_ID" in os.environ:
        machine["slurm"] = "_".join(filter(None, map(os.environ.get, ("SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID"))))
    return [machine, *_ray_nodes()]


def _ray_nodes() -> list[dict[str, Any]]:
    ray: Any = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return []
    free = {}
    with contextlib.suppress(Exception):  # whatever a cluster that is going away raises
        free = ray._private.state.available_resources_per_node()
    return [
        {
            "host": node["NodeManagerHostname"],
            "ray": node["NodeID"][:8],
            "alive": node["Alive"],
            "cores": node["Resources"].get("CPU"),
            "used": node["Resources"].get("CPU", 0) - free.get(node["NodeID"], {}).get("CPU", 0),
            "most_memory": node["Resources"].get("memory"),
        }
        for node in ray.nodes()
    ]

"""How much memory a crowd takes, estimated before it is played, and how much there is."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from llm_coop_envs.errors import SettingsError

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

#: From how many players on it is estimated.
CROWD = 10_000
# Bytes, measured (docs/populations_at_scale.md): of a player, of one recorded choice, of what one said and heard.
_PLAYER, _CHOICE, _TALKER = 450, 450, 3000


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process may still have, where the system tells (Linux): of the machine's, and of its group's.

    Args:
        root: where the system's folders are.
    """
    limits: list[int] = []
    with contextlib.suppress(OSError):
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with contextlib.suppress(OSError):  # what a job of SLURM or a container may have (control groups, version 2)
        group = Path((root / "proc/self/cgroup").read_text(encoding="utf-8").strip().rpartition("::")[2])
        for cgroup in (group, *group.parents):
            folder = root / "sys/fs/cgroup" / cgroup.relative_to("/")
            with contextlib.suppress(OSError, ValueError):  # `max`: as much as there is
                limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
                statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                files = sum(int(statistics.get(f"{kind}_file", 0)) for kind in ("active", "inactive"))  # is given back
                limits.append(limit - used + files)
    return min(limits, default=None)


def memory_for(env: ScenarioEnv) -> int:
    """About how many bytes an episode takes."""
    settings = env.settings
    decisions = getattr(settings, "decisions", getattr(settings, "rounds", 1))
    each = _PLAYER + _CHOICE * decisions * env.record + _TALKER * settings.ever_talks
    return int(env.n_players * each)


def check_memory(env: ScenarioEnv) -> None:
    """Require that a crowd's episode fits into the memory that there is.

    Raises:
        SettingsError: it does not.
    """
    if env.n_players < CROWD:
        return
    needed, free = memory_for(env), free_memory()
    if free is not None and needed > free:
        advice = "play fewer, or fewer rounds, or without recording" if env.record else "play fewer"
        reason = f"take about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; {advice}"
        raise SettingsError("players", env.n_players, reason)

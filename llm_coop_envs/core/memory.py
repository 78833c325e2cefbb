"""How much memory a crowd takes, estimated before it is played, and how much there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llm_coop_envs.errors import SettingsError

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

#: From how many players on it is estimated.
CROWD = 10_000
# Bytes, measured (docs/populations_at_scale.md): of a player, of one recorded choice, of what one said and heard.
_PLAYER, _CHOICE, _TALKER = 450, 450, 3000


def free_memory() -> int | None:
    """Bytes that new processes may have, where the system tells (Linux)."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None


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
    needed, free = memory_for(env), free_memory()
    if env.n_players >= CROWD and free is not None and needed > free:
        advice = "play fewer, or fewer rounds, or without recording" if env.record else "play fewer"
        why = f"take about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; {advice}"
        raise SettingsError("players", env.n_players, why)

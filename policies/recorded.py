"""The policy kind `recorded`: a player whose moves somebody else recorded; it can be read, and not played again.

`recorded:openai/gpt-4o` in a run folder says who sat there, in the words of the records (`runs.imported`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from llm_coop_envs.errors import SettingsError

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

LABEL = "recorded by others"


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> NoReturn:
    """Refuse to play: only the moves are known, not the player.

    Raises:
        SettingsError: always.
    """
    reason = "was recorded by others, and only its moves are known; name a player that can be asked"
    raise SettingsError("policy", f"recorded:{argument}", reason)


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: Chat | None = None) -> NoReturn:
    """Refuse to play; see `check`."""
    check(scenario, argument, options)

"""The policy kind `human`: a person who plays in a study, at the terminal of its process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.base_policy import Policy
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.human.terminal import TerminalHuman

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

LABEL = "human"


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> None:
    """Refuse arguments and options; this kind has none.

    Raises:
        SettingsError: there is an argument or option.
    """
    if argument:
        raise SettingsError("policy", f"human:{argument}", "a person has no variants; write 'human'")
    if options:
        name = next(iter(options))
        raise SettingsError(name, options[name], "is no option; 'human' has none")


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: Chat | None = None) -> Policy:
    """Seat a person at the terminal."""
    check(scenario, argument, options)
    return TerminalHuman()

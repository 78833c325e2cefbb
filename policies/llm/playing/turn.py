"""One player's turn: what its prompts are made from, and the keys of its requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from llm_coop_envs.policies.llm.chat import RequestKey
from llm_coop_envs.policies.llm.playing.memory import Memory
from llm_coop_envs.policies.llm.playing.personas import Persona


@dataclass(slots=True)
class Turn:
    """One player's turn in one step.

    Attributes:
        episode: the episode's name.
        agent: the name of the player who decides.
        step: the environment's step.
        round: the round, as the environment counts.
        persona: the player's persona, or `None`.
        memory: the player's private memory.
        text: the environment's own text, where the workflow asks with it; else empty.
        notice: a regulator's notice to the player, for workflows that ask with their own templates; it precedes them.
        attempts: how many requests were made in this turn, by call.
    """

    episode: str
    agent: str
    step: int
    round: int
    persona: Persona | None
    memory: Memory
    text: str = ""
    notice: str = ""
    attempts: dict[str, int] = field(default_factory=dict)

    def key(self, call: str) -> RequestKey:
        """Make the key of the next request of a call."""
        attempt = self.attempts.get(call, 0)
        self.attempts[call] = attempt + 1
        return RequestKey(self.episode, self.agent, self.step, call, attempt)

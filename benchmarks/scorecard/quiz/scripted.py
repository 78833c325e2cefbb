"""Who answers a quiz without a model."""

from __future__ import annotations

from llm_coop_envs.core.base_policy import Action, ScriptedPolicy
from llm_coop_envs.core.policy import Request
from llm_coop_envs.interface.question import Number


class RandomAnswer(ScriptedPolicy):
    """Answers any question with any number that it allows, all equally likely."""

    def decide(self, request: Request) -> Action:
        """Draw an answer."""
        asked, rng = request.info["slots"].question, self.episode.rng
        assert isinstance(asked, Number), "a quiz asks for numbers"
        if asked.integer:
            return {"choice": float(rng.integers(int(asked.low), int(asked.high), endpoint=True))}
        return {"choice": float(rng.uniform(asked.low, asked.high))}


POLICIES = {"random": RandomAnswer}

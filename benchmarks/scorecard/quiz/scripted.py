"""Scripted policies for the quiz."""

from __future__ import annotations

from llm_coop_envs.core.base_policy import Action, ScriptedPolicy
from llm_coop_envs.core.policy import Request
from llm_coop_envs.interface.question import Number


class RandomAnswer(ScriptedPolicy):
    """Answers any question with any number that it allows, all equally likely."""

    def decide(self, request: Request) -> Action:
        """Draw an answer."""
        question, rng = request.info["slots"].question, self.episode.rng
        assert isinstance(question, Number), "a quiz asks for numbers"
        if question.integer:
            return {"choice": float(rng.integers(int(question.low), int(question.high), endpoint=True))}
        return {"choice": float(rng.uniform(question.low, question.high))}


POLICIES = {"random": RandomAnswer}

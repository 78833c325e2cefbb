"""The descriptor of the quiz, which the registry finds by name but does not list."""

from __future__ import annotations

from llm_coop_envs.core.scenario import Scenario

_ROOM = __name__.rpartition(".")[0]

SCENARIO = Scenario(
    name="quiz",
    title="Questions about the rules",
    env=f"{_ROOM}.env:QuizEnv",
    measures=f"{_ROOM}.metrics:MEASURES",
    scripted=f"{_ROOM}.scripted:POLICIES",
    opponent="random",
)

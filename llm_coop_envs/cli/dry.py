"""`llm-coop run --dry`: one episode to look at, with nothing paid and nothing written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

from llm_coop_envs.cli.transcript import quoted
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.policies.llm.asking.estimate import DryChat
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.studies.study import Study


def show_episode(study: Study, say: Callable[[str], None]) -> None:
    """Play a study's first episode and say what is asked and done in it; a language model's answers are scripted.

    Args:
        study: the study; its first condition is played with its first seed.
        say: is told each prompt with its answer, message, choice and settled round, in order.
    """
    condition = replace(study.conditions[0], after=None)
    events_shown = 0

    def follow(env: ScenarioEnv) -> None:
        nonlocal events_shown
        for event in env.events[events_shown:]:
            where = f"round {event['round']}"
            if event["type"] == "message":
                to = f" to {', '.join(event['hearers'])}, privately" if event.get("private") else ""
                say(f"{where}, {event['agent']} says{to}:\n{quoted(event['text'])}")
            elif event["type"] == "choice":
                say(f"{where}, {event['agent']} chooses {json.dumps(event['choice'])}")
            elif event["type"] == "round":
                settled = {name: value for name, value in event.items() if name not in ("type", "step", "round")}
                say(f"{where} is settled: {json.dumps(settled)}\n")
        events_shown = len(env.events)

    seed = condition.seeds[0]
    say(f"Condition {condition.name}, seed {seed}: the first episode of {study.name}.\n")
    asyncio.run(play_episode(study.seed, condition, seed, _Shown(say), on_step=follow))


class _Shown(DryChat):
    """Scripted answers, said with their prompts."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(scripted_answer, lambda model: None)
        self._say = say

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Answer, and say both."""
        reply = await super().ask(key, request)
        prompts = [f"{message.role}:\n{quoted(message.content)}" for message in request.messages]
        self._say("\n".join([f"{key.agent} is asked ({key.call}):", *prompts, "answered by script, not by a model:"]))
        self._say(f"{quoted(reply.text)}\n")
        return reply

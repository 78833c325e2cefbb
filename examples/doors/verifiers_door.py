"""A game as a verifiers environment: an agent for each learner's seat, simultaneous moves, a reward for each trace.

Needs `pip install verifiers` (v1, tried with 0.4.0). Each task is one episode, its seed the task's number:

    PYTHONPATH=examples/doors vf-eval verifiers_door --env.taskset.scenario bertrand
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from llm_coop_envs.policies.llm.seats import ChatSeats

__all__ = ["GameEnv", "GameTaskset"]


class GameConfig(vf.TasksetConfig):
    """The arguments of `ChatSeats`; without `learners` every seat is a learner's."""

    scenario: str = "bertrand"
    learners: list[str] | None = None
    reward: str = "own"
    settings: dict[str, Any] = Field(default_factory=dict)


class GameData(vf.TaskData):
    """One episode: the arguments of `ChatSeats`, and the seed."""

    game: dict[str, Any]
    seed: int


class GameTask(vf.Task[GameData, vf.State, vf.TaskConfig]):
    """One episode; the game begins each conversation, so there is no prompt."""


class GameTaskset(vf.Taskset[GameTask, GameConfig]):
    """The same game with every seed."""

    INFINITE = True

    def load(self) -> Iterator[GameTask]:
        """Episodes with the seeds 0, 1, 2, ...; an unknown scenario, seat or reward is an error that names it."""
        config = self.config
        game = {"learners": config.learners, "reward": config.reward, **config.settings}
        ChatSeats(config.scenario, **game)
        for seed in itertools.count():
            data = GameData(name=f"{config.scenario}#{seed}", game={"scenario": config.scenario, **game}, seed=seed)
            yield GameTask(data, config.task)


class GameEnvConfig(vf.EnvConfig):
    """The agents: one role, which is run once for each learner's seat."""

    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})


class GameEnv(vf.Env[GameEnvConfig]):
    """Holds the conversations of all learners open side by side while the game plays on between their moves."""

    async def run(self, task: GameTask, agents: Any) -> None:
        """Play one episode, and record each seat's reward and measures in its trace."""
        seats = ChatSeats(**task.data.game)
        async with AsyncExitStack() as stack:
            open_seats = {
                name: await stack.enter_async_context(agents.player.interaction(task)) for name in seats.learners
            }
            questions, done = seats.init(task.data.seed), False
            earned = dict.fromkeys(seats.learners, 0.0)
            while not done:
                replies = await asyncio.gather(*(self._reply(open_seats[name], questions[name]) for name in questions))
                questions, rewards, done, infos = seats.step(dict(zip(questions, replies, strict=True)))
                earned = {name: earned[name] + rewards[name] for name in earned}
        for name, interaction in open_seats.items():
            trace = interaction.trace
            trace.record_reward(task.data.game["reward"], earned[name])
            trace.record_metrics({count: infos[name][count] for count in ("decisions", "fallbacks", "forfeits")})
            measured = {measure: value for measure, value in seats.metrics().items() if isinstance(value, int | float)}
            trace.record_metrics({measure: float(value) for measure, value in measured.items()})
            trace.info.update(seat=name, why=infos[name]["why"], events=seats.env.events)

    @staticmethod
    async def _reply(interaction: Any, messages: list[dict[str, str]]) -> str | None:
        """The agent's reply; `None`, a forfeit, once its run has ended."""
        if interaction.trace.info.get("left"):
            return None
        segment = await interaction.turn(messages[-1]["content"])
        if segment.terminated:
            interaction.trace.info["left"] = True
            return None
        return str(segment.last_reply)

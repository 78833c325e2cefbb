"""One seat as a Gymnasium environment; policies play the others."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.policy import PolicyLike, Seating
from llm_coop_envs.core.waiting import run_coroutine, run_through
from llm_coop_envs.errors import ResetNeeded, SettingsError
from llm_coop_envs.wrappers.numeric import NumericView


class SingleAgentView(gymnasium.Env[Any, Any]):
    """One player's game.

    `step` plays on until this player is on turn again or out of the game; the reward is the sum over the steps played.
    The other players' generators follow from the seed, so that an episode repeats exactly.

    Args:
        env: the environment itself, not a wrapped one.
        agent: the seat to leave free.
        others: a policy for each other seat, or one policy for all of them.
        numeric: observe and act as in `NumericView` (Box and Discrete) instead of dictionaries with text.

    Raises:
        SettingsError: there is no such seat, or a seat is left without a policy.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"]}

    def __init__(
        self,
        env: ScenarioEnv,
        agent: str,
        others: Mapping[str, PolicyLike] | PolicyLike,
        *,
        numeric: bool = False,
    ) -> None:
        if not isinstance(env, ScenarioEnv):
            raise SettingsError("env", type(env).__name__, "SingleAgentView goes directly around parallel_env()")
        if agent not in env.possible_agents:
            names = env.possible_agents
            raise SettingsError("agent", agent, f"is no seat; seats are {names[0]} to {names[-1]}")
        self.env = env
        self.agent = agent
        self.render_mode = env.render_mode
        self._me = env.possible_agents.index(agent)
        rest = [name for name in env.possible_agents if name != agent]
        self._table = Seating(others if isinstance(others, Mapping) else dict.fromkeys(rest, others), rest)
        self._numeric = NumericView(env) if numeric else None
        face = env if self._numeric is None else self._numeric
        self.observation_space = face.observation_space(agent)
        self.action_space = face.action_space(agent)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._views: tuple[dict[str, Any], dict[str, Any]] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode and play to this player's first turn.

        Args:
            seed: seeds the environment and, apart from it, the other players; `None` continues the running stream.
            options: passed to the scenario.
        """
        super().reset(seed=seed)
        self._views = self.env.reset(seed=seed, options=options)
        entropy = int(self.np_random.integers(2**63))
        self._table.begin(
            self.env.metadata["name"], self.env.settings, self.env.possible_agents, np.random.SeedSequence(entropy)
        )
        # Nobody leaves and nothing is earned before a first turn, so these outcomes carry no news.
        self._play_others()
        return self._mine()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play this player's action and everything up to its next turn.

        Args:
            action: as in `action_space`.

        Raises:
            ResetNeeded: before the first `reset`, or after the end of an episode.
        """
        if self._views is None or self.agent not in self.env.agents:
            raise ResetNeeded("this player's episode is over or not begun; call reset() first")
        submitted = {"choice": action, "message": ""} if self._numeric is not None else action
        reward, terminated, truncated = self._one_step({self.agent: submitted})
        if not (terminated or truncated):
            more, terminated, truncated = self._play_others()
            reward += more
        observation, info = self._mine()
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """The whole environment, as the render mode it was made with says."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment and the event loop of the others."""
        self.env.close()
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _play_others(self) -> tuple[float, bool, bool]:
        total, terminated, truncated = 0.0, False, False
        while not (terminated or truncated) and self._me not in self.env.on_turn.tolist():
            reward, terminated, truncated = self._one_step({})
            total += reward
        return total, terminated, truncated

    def _one_step(self, mine: dict[str, Any]) -> tuple[float, bool, bool]:
        if self._views is None:
            raise AssertionError("reset() has been called")
        deciding = self._table.act(*self._views)
        if not self._table.waits:
            actions = run_through(deciding)
        else:
            if self._loop is None:
                # One loop for the view's lifetime: a model's client keeps its connections in it. It is closed with the
                # view, or at the latest when the view is collected.
                self._loop = asyncio.new_event_loop()
                weakref.finalize(self, self._loop.close)
            actions = run_coroutine(deciding, self._loop)
        observations, rewards, terminations, truncations, infos = self.env.step({**actions, **mine})
        self._views = observations, infos
        return rewards[self.agent], terminations[self.agent], truncations[self.agent]

    def _mine(self) -> tuple[Any, dict[str, Any]]:
        if self._views is None:
            raise AssertionError("reset() has been called")
        if self._numeric is not None:
            observations, infos = self._numeric._views([self.agent], np.array([self._me], dtype=np.intp))
            return observations[self.agent], infos[self.agent]
        observations, infos = self._views
        return observations[self.agent], infos[self.agent]

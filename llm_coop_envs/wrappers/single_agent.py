"""One seat as a Gymnasium environment, with policies in the other seats."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.policy import PolicyLike, Seating
from llm_coop_envs.core.registry import find_scenario, scenario_of
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.treatments.regulator import SEAT
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.waiting import run_coroutine, run_through
from llm_coop_envs.wrappers.numeric import NumericView

T = TypeVar("T")


class SingleAgentView(gymnasium.Env[Any, Any]):
    """A Gymnasium environment for one player.

    `step` plays until this player is on turn again or out of the game, and returns the sum of the rewards meanwhile.
    The random generators of the other players follow from the seed, so that an episode can be repeated exactly.

    Args:
        env: the environment itself, not a wrapped one.
        agent: the seat to leave free.
        others: a policy for each other seat, or one policy for all; or the name of a scripted one.
        numeric: observe and act as in `NumericView` (Box and Discrete or Box) instead of dictionaries with text.
        mask_in_obs: as in `NumericView`; needs `numeric`.
        normalised: as in `NumericView`; needs `numeric`.

    Raises:
        SettingsError: there is no such seat, or a seat is left without a policy.
    """

    metadata: dict[str, Any] = ScenarioEnv.metadata

    def __init__(
        self,
        env: ScenarioEnv,
        agent: str,
        others: Mapping[str, PolicyLike | str] | PolicyLike | str,
        *,
        numeric: bool = False,
        mask_in_obs: bool = False,
        normalised: bool = True,
    ) -> None:
        if not isinstance(env, ScenarioEnv):
            raise SettingsError("env", type(env).__name__, "SingleAgentView goes directly around parallel_env()")
        if agent not in env.possible_agents:
            names = env.possible_agents
            raise SettingsError("agent", agent, f"is no seat; seats are {names[0]} to {names[-1]}")
        if not numeric and (mask_in_obs or not normalised):
            name, value = ("mask_in_obs", True) if mask_in_obs else ("normalised", False)
            raise SettingsError(name, value, "is of the numeric view; say numeric=True")
        self.env = env
        self.metadata = env.metadata
        self.agent = agent
        self.render_mode = env.render_mode
        self._me = env.possible_agents.index(agent)
        other_agents = [name for name in env.possible_agents if name != agent]
        by_seat = others if isinstance(others, Mapping) else dict.fromkeys(other_agents, others)
        self._table = Seating(_scripted_by_name(env, by_seat), other_agents)
        self._numeric = NumericView(env, mask_in_obs=mask_in_obs, normalised=normalised) if numeric else None
        view_env = env if self._numeric is None else self._numeric
        self.observation_space = view_env.observation_space(agent)
        self.action_space = view_env.action_space(agent)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._views: tuple[dict[str, Any], dict[str, Any]] | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the columns of a numeric observation are.

        Raises:
            SettingsError: observations are dictionaries with text.
        """
        if self._numeric is None:
            raise SettingsError("feature_names", self.agent, "are of the numeric view; say numeric=True")
        return self._numeric.feature_names

    def __repr__(self) -> str:
        """The view, its seat and its environment."""
        return f"SingleAgentView, {self.agent}, of {self.env!r}"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode and play to this player's first turn.

        Args:
            seed: seeds the environment and, apart from it, the other players; `None` continues the running stream.
            options: passed to the scenario.
        """
        super().reset(seed=seed)
        if self._numeric is None:
            self._views = self.env.reset(seed=seed, options=options)
        else:
            self._views = {}, {}
            self.env.begin(seed, options)
        entropy = int(self.np_random.integers(2**63))
        self._table.begin(
            self.env.metadata["name"], self.env.settings, self.env.possible_agents, np.random.SeedSequence(entropy)
        )
        # Before the first turn nobody leaves and nothing is earned, so the outcomes can be dropped.
        self._play_others()
        return self._view()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play this player's action and everything up to its next turn.

        Args:
            action: as in `action_space`.

        Raises:
            ResetNeeded: before the first `reset`, or after the end of an episode.
        """
        if self._views is None or self.agent not in self.env.agents:
            raise ResetNeeded("this player's episode is over or not begun; call reset() first")
        submitted = (
            action if self._numeric is None else {"choice": self._numeric.choice(action, self.agent), "message": ""}
        )
        reward, terminated, truncated = self._one_step({self.agent: submitted})
        if not (terminated or truncated):
            later_reward, terminated, truncated = self._play_others()
            reward += later_reward
        observation, info = self._view()
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which choices are legal now, as MaskablePPO of sb3-contrib asks for it.

        Raises:
            ActionError: choices are continuous and have no mask.
        """
        if self.env.regulator is not None and self.agent == SEAT:
            return self.env.regulator_mask().astype(np.bool_)
        masks = self.env.masks() if self._numeric is None else self._numeric.masks()
        if masks is None:
            raise ActionError("these choices are continuous and have no mask; use an algorithm without masks")
        mine: NDArray[np.bool_] = masks[self._me].astype(np.bool_)
        return mine

    def render(self) -> Any:
        """Render the environment in its render mode."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment and the event loop of the others."""
        self.env.close()
        if self._loop is not None:
            run_coroutine(self._loop.shutdown_asyncgens(), self._loop)
            self._loop.close()
            self._loop = None

    def _play_others(self) -> tuple[float, bool, bool]:
        """Play until this player is on turn or out; returns its reward, and whether it was terminated or truncated."""
        total, terminated, truncated = 0.0, False, False
        while not (terminated or truncated) and self._me not in self.env.on_turn.tolist():
            reward, terminated, truncated = self._one_step({})
            total += reward
        return total, terminated, truncated

    def _one_step(self, own_action: dict[str, Any]) -> tuple[float, bool, bool]:
        """Play one step of the environment; `own_action` is this player's action by its name, or empty off turn."""
        if self._views is None:
            raise AssertionError("reset() has been called")
        env, views = self.env, self._views
        if self._numeric is not None:
            # No text is built for this player, nor for policies that decide without one.
            views = env.look(on_turn=True, slots_only=self._table.slots_only)
        deciding = self._table.act(*views)
        actions = self._wait(deciding) if self._table.waits else run_through(deciding, self._wait)
        present = env.live
        if self._numeric is None:
            observations, rewards, terminations, truncations, infos = env.step({**actions, **own_action})
            self._views = observations, infos
        else:
            env.submit({**actions, **own_action})
            rewards, terminations, truncations = env.outcomes(present)
        return rewards[self.agent], terminations[self.agent], truncations[self.agent]

    def _wait(self, deciding: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            # One loop for the view's lifetime, because a model's client keeps its connections in it. It is closed
            # with the view, or at the latest when the view is garbage-collected.
            self._loop = asyncio.new_event_loop()
            weakref.finalize(self, self._loop.close)
        return run_coroutine(deciding, self._loop)

    def _view(self) -> tuple[Any, dict[str, Any]]:
        if self._views is None:
            raise AssertionError("reset() has been called")
        if self._numeric is not None:
            observations, infos = self._numeric._views([self.agent], np.array([self._me], dtype=np.intp))
            return observations[self.agent], infos[self.agent]
        observations, infos = self._views
        return observations[self.agent], infos[self.agent]


def make_single_agent(
    scenario: str,
    *,
    agent: str | None = None,
    others: Mapping[str, PolicyLike | str] | PolicyLike | str | None = None,
    numeric: bool = False,
    mask_in_obs: bool = False,
    normalised: bool = True,
    **settings: Any,
) -> SingleAgentView:
    """Make the environment of `gymnasium.make("llm_coop/SCENARIO-v0")`: one seat is free, policies take the others.

    Args:
        scenario: the name of the scenario.
        agent: the free seat; the first by default.
        others: a policy for each other seat, or one for all, or the name of a scripted policy; the scenario's usual
            opponent by default.
        numeric: see `SingleAgentView`.
        mask_in_obs: see `NumericView`; used only if `numeric`.
        normalised: see `NumericView`; used only if `numeric`.
        **settings: settings of the scenario, as for `parallel_env`.

    Raises:
        SettingsError: there is no such scripted policy, or see `parallel_env` and `SingleAgentView`.
    """
    scenario_ = find_scenario(scenario)
    env = scenario_.environment(**settings)
    free_seat = agent or env.possible_agents[0]
    usual = {seat: scenario_.opponent_of(seat) for seat in env.possible_agents if seat != free_seat}
    view = {"mask_in_obs": mask_in_obs, "normalised": normalised} if numeric else {}
    return SingleAgentView(env, free_seat, usual if others is None else others, numeric=numeric, **view)


def _scripted_by_name(env: ScenarioEnv, by_seat: Mapping[str, PolicyLike | str]) -> dict[str, PolicyLike]:
    """Policies by seat; of each scripted one that is given by its name there is one, which plays all its seats."""
    if not any(isinstance(policy, str) for policy in by_seat.values()):
        return {seat: policy for seat, policy in by_seat.items() if not isinstance(policy, str)}
    scenario, by_name, filled = scenario_of(env.name), dict[str, PolicyLike](), dict[str, PolicyLike]()
    for seat, policy in by_seat.items():
        if isinstance(policy, str):
            name = policy.removeprefix(f"{scenario.name}/")
            if name not in scenario.policies:
                reason = f"is no scripted policy; {suggestion(name, scenario.policies)}"
                raise SettingsError("others", policy, reason)
            policy = by_name.setdefault(name, by_name.get(name) or scenario.policies[name]())
        filled[seat] = policy
    return filled

"""Play one episode with an environment and the policies in its seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from llm_coop_envs.core.chunks import ask_table
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.memory import check_memory
from llm_coop_envs.core.policy import PolicyLike, Seating, waits
from llm_coop_envs.policies.kinds import make
from llm_coop_envs.util.waiting import run_coroutine, run_through


async def play_async(
    env: ScenarioEnv,
    seats: Mapping[str, PolicyLike | str] | PolicyLike | str,
    *,
    seed: int,
    policy_seed: np.random.SeedSequence | None = None,
    on_step: Callable[[ScenarioEnv], None] | None = None,
    name: str = "episode",
) -> dict[str, float]:
    """Play one episode to its end.

    Args:
        env: the environment. If it was made with `record=True`, it has the episode's events afterwards.
        seats: a policy, or the name of one (`policies.make`), per agent name, or one for all seats.
        seed: the environment's seed.
        policy_seed: the source of the policies' generators; `SeedSequence([seed, 1])` by default.
        on_step: called after `reset` and after every step.
        name: the episode's name, unique in its run.

    Returns:
        Each agent's sum of rewards.

    Raises:
        SettingsError: a crowd needs more memory than is available, or a name is no policy.
    """
    check_memory(env)
    table = Seating(_by_seat(env, seats), env.possible_agents)
    table.begin(
        env.metadata["name"],
        env.settings,
        env.possible_agents,
        np.random.SeedSequence([seed, 1]) if policy_seed is None else policy_seed,
        name,
    )
    totals = np.zeros(len(env.possible_agents))
    env.begin(seed=seed)
    if on_step is not None:
        on_step(env)
    while env.agents:
        # Only players on turn get observations: rendering texts is most of an episode's cost.
        decisions = await ask_table(table, env)
        env.advance(decisions.choices, decisions.messages, decisions.missing, decisions.paraphrases)
        totals += env.rewards
        if on_step is not None:
            on_step(env)
    return dict(zip(env.possible_agents, totals.tolist(), strict=True))


def play(
    env: ScenarioEnv,
    seats: Mapping[str, PolicyLike | str] | PolicyLike | str,
    *,
    seed: int,
    policy_seed: np.random.SeedSequence | None = None,
    on_step: Callable[[ScenarioEnv], None] | None = None,
    name: str = "episode",
) -> dict[str, float]:
    """Play one episode without `await`, also inside a running event loop such as a notebook's; see `play_async`."""
    by_seat = _by_seat(env, seats)
    run = run_coroutine if any(map(waits, by_seat.values())) else run_through
    return run(play_async(env, by_seat, seed=seed, policy_seed=policy_seed, on_step=on_step, name=name))


def _by_seat(env: ScenarioEnv, seats: Mapping[str, PolicyLike | str] | PolicyLike | str) -> dict[str, PolicyLike]:
    """A policy for each seat; one plays all seats of the same name."""
    given = seats if isinstance(seats, Mapping) else dict.fromkeys(env.possible_agents, seats)
    names = dict.fromkeys(policy for policy in given.values() if isinstance(policy, str))
    made = {name: make(name) for name in names}
    return {seat: made[policy] if isinstance(policy, str) else policy for seat, policy in given.items()}

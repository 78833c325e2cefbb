"""Playing an environment with sampled actions, and digesting everything it returns."""

import hashlib
import json

import numpy as np


def sampled(env, infos, *, masked=True):
    """A sampled action for every player present."""
    return {
        agent: env.action_space(agent).sample(mask=infos[agent]["action_mask"] if masked else None)
        for agent in env.agents
    }


def seed_actions(env, seed):
    for i, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + i)


def plain(value):
    """Anything an environment returns, as JSON data that keeps every bit."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.tobytes().hex()]
    if isinstance(value, float):
        return value.hex()
    if value is None or isinstance(value, str | int):
        return value
    return repr(value)


def digest(*values):
    return hashlib.sha256(json.dumps([plain(v) for v in values], sort_keys=True).encode()).hexdigest()


def play(env, *, seed=None, action_seed=0, limit=400, start=None, masked=True):
    """Play an episode; return the digest of every step.

    `start` are the views to go on from instead of `reset(seed)`.
    """
    if start is None:
        start = env.reset(seed=seed)
        seed_actions(env, action_seed)
    observations, infos = start
    trace = [digest(observations, infos)]
    while env.agents and len(trace) <= limit:
        step = env.step(sampled(env, infos, masked=masked))
        infos = step[4]
        trace.append(digest(*step, env.state()))
    return trace

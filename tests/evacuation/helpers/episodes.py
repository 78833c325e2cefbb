"""Small episodes of the evacuation."""

from llm_coop_envs.core.policy import Request
from llm_coop_envs.evacuation.scripted import NearestExit
from llm_coop_envs.evacuation_v0 import parallel_env

DOOR = {"rows": 9, "cols": 9, "exits": [["door", 8, 4]], "talk": False, "record": True}


def request(agent, observation, info):
    return Request(agent, observation, info)


def corridor(positions, **settings):
    """People at given places of a room with one exit below, all walking to it; returns the environment at its end."""
    env = parallel_env(**{**DOOR, "people": len(positions), **settings})
    observations, infos = env.reset(seed=0, options={"positions": positions})
    policy = NearestExit()
    totals = dict.fromkeys(env.possible_agents, 0.0)
    ends = {}
    while env.agents:
        on_turn = [a for a in env.agents if observations[a]["turn"]]
        actions = {a: policy.decide(request(a, observations[a], infos[a])) for a in on_turn}
        observations, rewards, terminations, _, infos = env.step(actions)
        for agent, reward in rewards.items():
            totals[agent] += reward
            if terminations[agent]:
                ends[agent] = env.round
    return env, totals, ends


def rounds(env):
    return [event for event in env.events if event["type"] == "round"]


def play_on(env):
    policy = NearestExit()
    observations, infos = env.look()
    while env.agents:
        on_turn = [a for a in env.agents if observations[a]["turn"]]
        actions = {a: policy.decide(request(a, observations[a], infos[a])) for a in on_turn}
        observations, _, _, _, infos = env.step(actions)

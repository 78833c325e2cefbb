"""A small price competition without talk, for tests of its environment."""

from llm_coop_envs import bertrand_v0

make = bertrand_v0.parallel_env
FIRMS = ["firm_0", "firm_1"]


def priced(env, *prices):
    """One pricing step at these prices or indices."""
    return env.step({agent: {"choice": price} for agent, price in zip(env.possible_agents, prices, strict=True)})


def silent(**settings):
    plain = {"talk": False, "initial_prices": None, "force_first_price": False, "record": True}
    return make(**{"preset": "team_up_linear", **plain, **settings})


def rounds(env):
    return [event for event in env.events if event["type"] == "round"]

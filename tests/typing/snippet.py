"""What type checkers must accept, and what they must refuse: lines marked `# refused`."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies import Request, from_function, play
from llm_coop_envs.treatments.changes import Change
from llm_coop_envs.wrappers import NumericView, SingleAgentView, TextView

# Every legal form.
bertrand_v0.parallel_env()
env = bertrand_v0.parallel_env(preset="calvano", rounds=5, cost=[1, 2.0], initial_prices="random", price_floor="cost")
bertrand_v0.parallel_env(collusion_margin=0.1, cost=1, quality=(2.0, 2.0), price_cap=None, wording=Path("words"))
bertrand_v0.parallel_env(changes=[{"from_round": 5, "settings": {"talk": False}}, Change(from_round=7)])
bertrand_v0.parallel_env(render_mode="rgb_array", max_cycles=3, record=True, regulator={"powers": ["log"]})
kbc_v0.parallel_env(ratio="2/3", offset=Fraction(1, 2), tolerance=0.5, groups=3, announcers="player_1*")
kbc_v0.parallel_env(ratio=[2, 3], groups=[2, 2], personas=["calm"], talk_mode="simultaneous", listeners=[])
evacuation_v0.parallel_env(exits=[["left", 5, 0]], desks=[(1, 2)], exit_widths=[3, 3, 1], reward_lost=None)
evacuation_v0.parallel_env(exits=(("left", 5, 0), ("right", 8, 9)), desks="published")
evacuation_v0.parallel_env(exits={"left": [[5, 0], (6, 0)]}, desks="none")
read: dict[str, Any] = {"rounds": 5}
bertrand_v0.parallel_env(**read)
bertrand_v0.env(rounds=5).reset()
bertrand_v0.raw_env(preset="fish").reset()
prices: tuple[tuple[float, ...], ...] = env.settings.grids
NumericView(env, mask_in_obs=True)
SingleAgentView(env, "firm_0", from_function(lambda request: 1.5), numeric=True, normalised=False)
TextView(env)


async def ask(request: Request) -> float:
    return 1.5


play(env, {"firm_0": from_function(ask), "firm_1": from_function(lambda request: ask(request))}, seed=0)

# What a misprint, or a value of the wrong kind, looks like.
bertrand_v0.parallel_env(round=5)  # refused
bertrand_v0.parallel_env(rounds="5")  # refused
bertrand_v0.parallel_env(demand="cubic")  # refused
bertrand_v0.parallel_env(preset="calvino")  # refused
bertrand_v0.parallel_env(players=3)  # refused
bertrand_v0.env(round=5)  # refused
bertrand_v0.raw_env(demand="cubic")  # refused
kbc_v0.parallel_env(player=3)  # refused
kbc_v0.parallel_env(groups="three")  # refused
kbc_v0.env(firms=3)  # refused
evacuation_v0.parallel_env(exits=5)  # refused
evacuation_v0.raw_env(render_mode="movie")  # refused
NumericView(env, mask_in_observation=True)  # refused
SingleAgentView(env, "firm_0", from_function(ask), numerical=True)  # refused
SingleAgentView(env, "firm_0", from_function(ask), numeric=True, mask=True)  # refused
TextView(env, masks=True)  # refused
from_function(5.5)  # refused

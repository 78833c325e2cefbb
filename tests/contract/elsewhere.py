"""Run in another process: play one configuration, or go on from a state on standard input; print the digests."""

import json
import sys

from configurations import CONFIGURATIONS
from rollout import play, seed_actions

module, settings = CONFIGURATIONS[sys.argv[1]]
state = json.load(sys.stdin)
env = module.parallel_env(**settings)
if state is None:
    trace = play(env, seed=6)
else:
    env.set_state(state)
    seed_actions(env, 0)
    trace = play(env, start=env.look())
print(*trace)

"""Twenty-one configurations and what their events and measures come to, as a script for any interpreter.

python tests/tools/same_bytes.py > digests.json
"""

import hashlib
import json
import sys
from collections.abc import Iterator

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.measures.process import process_measures
from llm_coop_envs.policies import make, play
from llm_coop_envs.treatments.regulator import SEAT

SHORT = {"rounds": 6, "collusion_window": 0}
ROOM = {"people": 25, "rows": 13, "cols": 13, "rounds": 18}
UNLIKE = {"quality": [2.0, 2.1, 1.9, 2.05], "cost": [1.0, 1.1, 0.9, 1.03]}
FINES = {"powers": ["fine"], "fine": 0.3, "on": ["choices"], "detection": 0.5, "reward": "fines"}
LEAVE = [{"from_round": 4, "players": ["*_1", "*_3"], "settings": {"present": False}}]

GAMES = (
    ("bertrand/price_matching", {"firms": 3, **SHORT}),
    ("bertrand/best_reply", {"firms": 4, **UNLIKE, **SHORT}),
    ("bertrand/uniform", {"firms": 5, **SHORT}),
    ("bertrand/uniform", {"firms": 5, "demand": "linear", "quality": 14, "cost": 2, "d": 1 / 300, **SHORT}),
    ("bertrand/uniform", {"firms": 7, "prices": "grid", **SHORT}),
    ("bertrand/win_continue_lose_reverse", {"firms": 3, "observation_noise": 0.05, "bin_size": 3, **SHORT}),
    ("bertrand/uniform", {"firms": 5, "changes": LEAVE, **SHORT}),
    ("bertrand/uniform", {"firms": 3, "delivery": "delay", **SHORT}),
    ("bertrand/tit_for_tat", {"preset": "team_up_linear", **SHORT}),
    ("bertrand/uniform", {"preset": "fish", "rounds": 8}),
    ("bertrand/uniform", {"firms": 3, "regulator": FINES, **SHORT}),
    ("kbc/poisson", {"players": 7, "session": "repeated", "rounds": 5}),
    ("kbc/level_k", {"players": 7, "choices": "real", "session": "repeated", "rounds": 5, "talk": False}),
    ("kbc/poisson", {"preset": "half_plus_five"}),
    ("kbc/poisson", {"players": 9, "groups": [2, 3, 4], "session": "repeated", "rounds": 4}),
    ("kbc/follower", {"players": 8, "delivery": "swap", "session": "repeated", "rounds": 4}),
    ("evacuation/rule_based", ROOM),
    ("evacuation/crowd_aware", ROOM),
    ("evacuation/shares", ROOM),
    ("evacuation/herding", {**ROOM, "changes": LEAVE}),
    ("evacuation/random", {**ROOM, "control": "exit"}),
)


def play_games() -> Iterator[tuple[str, str, str]]:
    """Play every configuration; yields its name, its events and its measures as text."""
    for number, (policy, settings) in enumerate(GAMES):
        scenario = find_scenario(policy.partition("/")[0])
        env = scenario.environment(record=True, **settings)
        seats = {name: make(policy) for name in env.possible_agents if name != SEAT}
        if SEAT in env.possible_agents:
            seats[SEAT] = make("regulator/always", action="fine")
        play(env, seats, seed=number)
        events = json.loads(json.dumps(env.events))
        measures = [scenario.episode_metrics(events), scenario.round_rows(events), process_measures(events, scenario)]
        yield f"{number} {policy}", json.dumps(events), json.dumps(measures)


if __name__ == "__main__":
    digests = {name: [hashlib.sha256(text.encode()).hexdigest() for text in texts] for name, *texts in play_games()}
    json.dump(digests, sys.stdout)

"""Twenty-four players name a number, talk, and name one again: how far apart are they?

python examples/beauty_contest.py
"""

import llm_coop_envs
from llm_coop_envs.kbc.metrics import round_rows
from llm_coop_envs.policies import play, scripted


def main() -> None:
    """Play one session in which most players follow the number that they hear most."""
    env = llm_coop_envs.kbc_v0.parallel_env(record=True)
    policies = [scripted.make("kbc/follower", k=k) for k in (0, 1, 2, 3)]
    seats = {agent: policies[i % 4] for i, agent in enumerate(env.possible_agents)}
    seats["player_0"] = scripted.make("kbc/announcer", number=10)
    play(env, seats, seed=0)
    print("scripted players, 24 of them")
    for row in round_rows(env.events):
        print(
            f"k = {row['round']}: mean {row['mean']:5.1f}, variance {row['variance']:6.1f}, winners {row['n_winners']}"
        )


if __name__ == "__main__":
    main()

"""A game's seat as a SkyRL environment (`BaseTextEnv`).

Needs `pip install skyrl-gym` (tried with 0.4.0). SkyRL's generator makes one environment for each row of its data set;
`rows` makes such rows. Run this file to see an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

from llm_coop_envs.policies.llm.seats import ChatSeat

NAME = "llm_coop"


class SeatEnvironment(BaseTextEnv):
    """One learner's seat.

    Args:
        env_config: SkyRL's settings of this environment, which are ignored. The length of an episode is the game's
            `max_cycles`, not SkyRL's `max_turns`: a game that ends early has no reward for unplayed rounds.
        extras: the row: `game` holds the arguments of `ChatSeat`, by default a firm beside a price-matching one, and
            `seed` the seed.

    Raises:
        SettingsError: the scenario, seat, policy or reward is unknown.
    """

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        row = dict(extras or {})
        # Parquet adds the arguments of other rows' games with the value `None`.
        game = {name: value for name, value in row.get("game", {}).items() if value is not None}
        self._seed = row.get("seed", 0)
        self.seat = ChatSeat(game.pop("scenario", "bertrand"), **game)

    def init(self, prompt: ConversationType) -> tuple[ConversationType, dict[str, Any]]:
        """Begin the episode with the game's first question; the row's prompt is not used."""
        messages = self.seat.init(self._seed)
        return messages, self.seat.seats.infos()[self.seat.agent]

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Take the model's reply, and play to its next question."""
        messages, reward, done, info = self.seat.step(action)
        self.turns += 1
        return BaseTextEnvStepOutput(observations=messages, reward=reward, done=done, metadata=info)

    def get_metrics(self) -> dict[str, Any]:
        """Counts of the replies, and after the episode's end the scenario's measures."""
        info = self.seat.seats.infos()[self.seat.agent]
        counts = {name: info[name] for name in ("decisions", "fallbacks", "forfeits")}
        over = not self.seat.seats.env.agents
        return {**counts, **(self.seat.seats.metrics() if over else {})}


def rows(episodes: int, **game: Any) -> list[dict[str, Any]]:
    """Rows of a SkyRL data set, one for each episode; `Dataset.from_list(rows(100)).to_parquet(...)` stores them."""
    prompt = [{"role": "user", "content": "The game asks."}]  # SkyRL wants one in each row
    return [{"prompt": prompt, "env_class": NAME, "game": game, "seed": seed} for seed in range(episodes)]


if NAME not in skyrl_gym.envs.registration.registry:
    skyrl_gym.register(id=NAME, entry_point=f"{__name__}:SeatEnvironment")


def main() -> None:
    """Play one episode with a firm that always sets the same price."""
    (row,) = rows(1, talk=False, max_cycles=5)
    env = skyrl_gym.make(NAME, extras=row)
    conversation, _ = env.init(row["prompt"])
    done = False
    while not done:
        print(conversation[-1]["content"], "\n")
        output = env.step("1.6")
        conversation, done = conversation + output["observations"], output["done"]
        print("reward", output["reward"], "\n")
    print(env.get_metrics())


if __name__ == "__main__":
    main()

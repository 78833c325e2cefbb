"""Who sits where in an episode: the seats of mixes are dealt, those of a population follow its people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_coop_envs.studies.conditions import Condition, Player, seat_matches
from llm_coop_envs.util.shares import divide

if TYPE_CHECKING:
    import numpy as np

    from llm_coop_envs.policies.population import People


def assign_seats(
    condition: Condition, agents: Sequence[str], rng: np.random.Generator, people: People | None = None
) -> dict[str, Player]:
    """Assign players to seats.

    The seats of a mix are divided by largest remainders of the shares and then dealt out at random. The seats of a
    population are assigned by the cells of its people.

    Args:
        condition: the condition.
        agents: the environment's agents, in order.
        rng: deals the seats of mixes.
        people: the people in the seats, in the order of the agents, if there is a population.

    Returns:
        A player for each agent; equal players are the same object.
    """
    import numpy as np

    result: dict[str, Player] = {}
    for pattern, players in condition.seats:
        mine = [agent for agent in agents if agent not in result and seat_matches(pattern, agent)]
        if people is not None and any(player.cell for player in players):
            # Each of the people is in exactly one cell. A regulator's seat comes last and is not among the people.
            cells = sum(k * people.in_cell(player.cell) for k, player in enumerate(players))
            player_index = dict(zip(agents, np.broadcast_to(cells, people.size).tolist(), strict=False))
            result.update({agent: players[player_index[agent]] for agent in mine})
            continue
        if len(players) == 1:
            result.update(dict.fromkeys(mine, players[0]))
            continue
        counts = divide(len(mine), [player.share for player in players])
        dealt = [player for player, count in zip(players, counts, strict=True) for _ in range(count)]
        result.update({agent: dealt[i] for agent, i in zip(mine, rng.permutation(len(mine)).tolist(), strict=True)})
    return {agent: result[agent] for agent in agents if agent in result}

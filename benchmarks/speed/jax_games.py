"""Games as JaxMARL writes environments, to compare batches with: one function of state and actions, mapped over copies.

They are compiled for one thread and compute in 32 bits; episodes end and begin anew by themselves. Without JAX each of
them raises `ImportError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from llm_coop_envs import bertrand_v0, evacuation_v0
from llm_coop_envs.bertrand.rules import profit_table
from llm_coop_envs.evacuation.room import STAY, VIEW_RADIUS, Room
from llm_coop_envs.evacuation.vision import view_of

# A rollout of so many steps is one call, as in JaxMARL's training loops.
_ROLLOUT = 16


def _rollouts(one_step: Any, state: Any, shape: tuple[int, ...], choices: int) -> Callable[[int], tuple[int, Any]]:
    """A function that plays at least so many steps of all copies.

    Args:
        one_step: of one copy: its state and actions to the next state and what is seen.
        state: of all copies.
        shape: of the actions, (copies, agents); they are drawn in advance.
        choices: how many actions there are.

    Returns:
        The function; it returns the steps, and what was seen in each of its rollouts.
    """
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    rollout = jax.jit(lambda state, actions: jax.lax.scan(jax.vmap(one_step), state, actions))
    actions = jnp.asarray(np.random.default_rng(0).integers(0, choices, (_ROLLOUT, *shape)))

    def play(steps: int) -> tuple[int, Any]:
        nonlocal state
        count, seen = -(-steps // _ROLLOUT), []
        for _ in range(count):
            state, shown = rollout(state, actions)
            seen.append(shown[-1])
        wait: Any = jax.block_until_ready
        wait(seen)
        return count * _ROLLOUT, seen

    return play


def jax_market(copies: int, **settings: Any) -> Callable[[int], int]:
    """Prepare a market; rewards and observations are looked up in our tables.

    Returns:
        A function that plays so many steps and returns the agent-steps in them.
    """
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    market = bertrand_v0.parallel_env(**settings).settings
    grids, profits = jnp.asarray(market.grids, jnp.float32), jnp.asarray(profit_table(market.market, market.grids)[1])
    nash, joint = (jnp.asarray(values, jnp.float32) for values in (market.equilibria.nash, market.equilibria.joint))

    def observe(prices: Any, earned: Any) -> Any:
        position = (prices - nash) / (joint - nash)
        return jnp.stack([jnp.ones(2), position, position[::-1], earned], axis=1)

    def one_step(state: Any, actions: Any) -> Any:
        key, rounds = state
        earned = profits[actions[0], actions[1]].astype(jnp.float32)
        over = rounds + 1 >= market.rounds
        key, drawing = jax.random.split(key)
        start = jax.random.randint(drawing, (2,), 0, market.grid_points)
        chosen = jnp.where(over, start, actions)
        shown = profits[chosen[0], chosen[1]].astype(jnp.float32)
        seen = observe(jnp.take_along_axis(grids, chosen[:, None], axis=1)[:, 0], shown)
        return (key, jnp.where(over, 0, rounds + 1)), (seen, earned, over)

    state: Any = (jax.random.split(jax.random.PRNGKey(0), copies), jnp.zeros(copies, jnp.int32))
    play = _rollouts(one_step, state, (copies, 2), market.grid_points)
    return lambda steps: play(steps)[0] * copies * 2


def jax_evacuation(copies: int, **settings: Any) -> Callable[[int], int]:
    """Prepare an evacuation in which people choose exits and walk all at once, of which nobody is hurt.

    Simpler than ours in its favour: nobody follows into a cell that somebody leaves at that moment, and who gets a cell
    that several want is settled by one draw each. Observations have the columns of ours.

    Returns:
        A function that plays so many steps and returns the agent-steps in them, of those inside.
    """
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    rules = evacuation_v0.parallel_env(**settings).settings
    room, people, exits = rules.room, rules.people, len(rules.room.exit_names)
    cells, pairs = len(room.inside), jnp.arange(people)
    # Where nobody can step stands for everything beyond: the last cell, which is always taken.
    is_exit = jnp.asarray(np.append(room.exit_at[room.inside] >= 0, False))
    following, beside = jnp.asarray(_following(room)), jnp.asarray(_neighbours(room))
    towards = jnp.asarray(_seen_towards(room))
    row, col = (jnp.asarray(np.append(part, 0), jnp.int32) for part in room.row_col(room.inside))
    distances = np.column_stack([room.mean_distance, room.nearest_distance]) / np.hypot(room.rows, room.cols)
    distance = jnp.asarray(np.vstack([distances, distances[:1]]), jnp.float32)
    nearest = jnp.asarray(np.append(room.nearest_exit, 0))
    targets = jnp.asarray(np.vstack([room.target_cell, room.target_cell[:1]]))
    goals = jnp.asarray(room.table_index(room.exit_cells))
    starts = jnp.asarray(room.table_index(room.start_cells))

    def begin(key: Any) -> Any:
        chance = jax.random.uniform(key, (len(starts),))
        site = starts[jax.lax.top_k(chance, people)[1]]
        nobody = jnp.full(people, -1)
        return site, jnp.ones(people, bool), nobody, jnp.zeros(people, jnp.int32), jnp.ones(people, bool), jnp.int32(0)

    def observe(site: Any, last: Any, inside: Any, heading: Any, target: Any, plans: Any, rounds: Any) -> Any:
        taken = jnp.zeros(cells + 1, bool).at[jnp.where(inside, site, cells)].set(True).at[cells].set(True)
        down, right = row[site][None] - row[site][:, None], col[site][None] - col[site][:, None]
        away = jnp.maximum(abs(down), abs(right))
        side = 2 * VIEW_RADIUS + 1
        offset = jnp.clip((down + VIEW_RADIUS) * side + right + VIEW_RADIUS, 0, side * side - 1)
        is_near = inside[None] & (away <= VIEW_RADIUS)
        seen = jnp.where(is_near[..., None], towards[site[:, None], offset], 0).sum(axis=1)
        around = (inside[None] & (away <= 1)).sum(axis=1)
        goal, half = goals[target], jnp.zeros(people)
        columns = [row[site] / room.rows, col[site] / room.cols, row[site] - row[last], col[site] - col[last]]
        columns += [(row[goal] - row[site]) / room.rows, (col[goal] - col[site]) / room.cols]
        columns += [*distance[site, :exits].T, *(seen / people).T, *(heading == jnp.arange(exits)[:, None])]
        columns += [distance[site, exits], around / 9, plans, half, half, half]
        columns += [jnp.full(people, rounds / rules.last_round), *~taken[beside[site]].T]
        return jnp.where(inside[:, None], jnp.stack([part.astype(jnp.float32) for part in columns], axis=1), 0.0)

    def one_step(state: Any, actions: Any) -> Any:
        key, (site, inside, heading, target, plans, rounds) = state
        key, beginning, planning, meeting = jax.random.split(key, 4)
        chosen = jnp.where(heading < 0, nearest[site], heading)
        chosen = jnp.where(plans, actions, chosen)
        target = jnp.where(plans | (heading < 0), targets[site, chosen], target)
        taken = jnp.zeros(cells + 1, bool).at[jnp.where(inside, site, cells)].set(True).at[cells].set(True)
        ways = following[site, target]
        is_free = ~taken[ways]
        wish = jnp.where(is_free.any(axis=1) & inside, ways[pairs, is_free.argmax(axis=1)], cells)
        chance = jax.random.uniform(meeting, (people,))
        winning = jnp.zeros(cells + 1).at[wish].max(chance)
        moves = (wish < cells) & (winning[wish] == chance)
        present, last, site = inside, site, jnp.where(moves, wish, site)
        inside = inside & ~is_exit[site]
        rounds = rounds + 1
        over = ~inside.any() | (rounds >= rules.last_round)
        rewards = jnp.where(present, jnp.where(inside, rules.reward_inside, rules.reward_out), 0.0)
        rewards = rewards + jnp.where(over & inside, rules.lost, 0.0)
        plans = inside & (jax.random.uniform(planning, (people,)) < rules.replan_probability)
        after, new = (site, inside, chosen, target, plans, rounds), begin(beginning)
        state = jax.tree.map(lambda one, other: jnp.where(over, one, other), new, after)
        seen = observe(state[0], jnp.where(over, state[0], last), *state[1:])
        return (key, state), (seen, rewards, over, present.sum())

    keys = jax.random.split(jax.random.PRNGKey(0), copies)
    state = (keys, jax.vmap(begin)(keys))
    play = _rollouts(one_step, state, (copies, people), exits)
    return lambda steps: sum(int(present.sum()) for present in play(steps)[1])


def _neighbours(room: Room) -> Any:
    """(T, 8) the indices of the cells beside each cell; T, which stands for everything beyond, where nobody can go."""
    around = room.inside[:, None] + np.delete(room.moves, STAY)
    return np.vstack([_sites(room, around), np.full((1, around.shape[1]), len(room.inside))])


def _following(room: Room) -> Any:
    """(T, E, 8) the cells beside each cell that are nearer to each exit cell, the nearest first."""
    moves = np.delete(room.moves, STAY)
    around = room.inside[:, None] + moves
    following = np.full((len(room.inside) + 1, len(room.exit_cells), len(moves)), len(room.inside))
    for exit_, cell in enumerate(room.exit_cells):
        away = room.squared_distance(around, cell)
        is_nearer = away < room.squared_distance(room.inside, cell)[:, None]
        order = np.argsort(np.where(is_nearer, away, np.iinfo(np.int64).max), axis=1, kind="stable")
        sites = np.where(is_nearer, _sites(room, around), len(room.inside))
        following[:-1, exit_] = np.take_along_axis(sites, order, axis=1)
    return following


def _sites(room: Room, padded: Any) -> Any:
    """The indices of padded cells in the room's tables; their number where nobody can stand."""
    return np.where(room.blocked[padded] == 0, room.table_index(padded), len(room.inside))


def _seen_towards(room: Room) -> Any:
    """(T, 441, G) how many cells of each exit lie in the direction of each cell around a watcher."""
    views, _, sets = view_of(room).views()
    sizes = np.bincount(room.exit_group)
    counted = np.add.reduceat(sets[views].astype(np.uint8), np.append(0, np.cumsum(sizes)[:-1]), axis=1)
    counts = counted.transpose(0, 2, 1)
    return np.concatenate([counts, counts[:1]])

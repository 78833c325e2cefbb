"""Playing price competition on from one point more than once: what would have happened if a firm had asked otherwise.

    env = bertrand_v0.parallel_env(preset="calvano", rounds=1000, record=True)
    game = Branching(env, policies, seed=0)
    await game.play(100)                                   # let play settle
    responses = await deviations(game, to="best_reply")    # force every firm once, and watch

The environment is put back with `set_state`, policies with `get_state` and `set_state` where they have them; of others
the attributes are copied. Random numbers go on alike in all branches, so that branches differ by the deviation only.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.bertrand.deviation import HORIZON, Floats, Response
from llm_coop_envs.bertrand.env import ACT, BertrandEnv
from llm_coop_envs.bertrand.equilibrium import best_reply
from llm_coop_envs.bertrand.paths import EXACT, PathCycle, discounted, path_cycle, same_cycle
from llm_coop_envs.bertrand.rules import nearest, positions
from llm_coop_envs.core.policy import PolicyLike, Seating
from llm_coop_envs.errors import RunError, SettingsError

TARGETS = ("best_reply", "nash", "joint", "lowest", "highest")

LONGEST_CYCLE = 64
"""From so many rounds of a cycle deviations start at most."""


@dataclass(frozen=True, eq=False)
class Path:
    """Some rounds.

    Attributes:
        prices: (rounds, firms).
        profits: (rounds, firms).
    """

    prices: Floats
    profits: Floats


class Branching:
    """An episode under way, and what might follow.

    Args:
        env: the environment, made with `record=True` and with rounds enough for all that will be played.
        seats: a policy per agent name, or one policy for all seats.
        seed: the environment's seed.
        policy_seed: where the policies' generators come from; `SeedSequence([seed, 1])` by default.
        name: the episode's name; branches are called `NAME/LABEL`, so that what a policy keeps under it stays apart.

    Attributes:
        env: the environment.
        path: all rounds of the main line.

    Raises:
        SettingsError: the environment does not record, or could end early.
    """

    def __init__(
        self,
        env: BertrandEnv,
        seats: Mapping[str, PolicyLike] | PolicyLike,
        *,
        seed: int,
        policy_seed: np.random.SeedSequence | None = None,
        name: str = "episode",
    ) -> None:
        if not env.record:
            raise SettingsError("record", False, "branches are read from the recorded events; set it to True")
        if env.settings.collusion_window:
            why = "prices held together would end the episode; set it to 0"
            raise SettingsError("collusion_window", env.settings.collusion_window, why)
        self.env = env
        self._table = Seating(
            seats if isinstance(seats, Mapping) else dict.fromkeys(env.possible_agents, seats), env.possible_agents
        )
        self._seed = np.random.SeedSequence([seed, 1]) if policy_seed is None else policy_seed
        self._name = name
        env.begin(seed=seed)
        self._begin(name)
        empty = np.zeros((0, env.n_players))
        self.path = Path(empty, empty)

    def _begin(self, name: str) -> None:
        """Tell the policies that an episode of that name starts; they get the same generators every time."""
        same = np.random.SeedSequence(
            self._seed.entropy, spawn_key=self._seed.spawn_key, pool_size=self._seed.pool_size
        )
        self._table.begin(self.env.metadata["name"], self.env.settings, self.env.possible_agents, same, name)

    async def play(self, rounds: int, forced: Mapping[int, object] | None = None) -> Path:
        """Play the main line on.

        Args:
            rounds: how many rounds.
            forced: the choices that firms (by index) are forced to in all of them, to begin from where play would not
                have led.

        Returns:
            The new rounds.

        Raises:
            RunError: the episode ended before.
        """
        new = await self._rounds(rounds, forced or {}, rounds)
        self.path = Path(
            np.concatenate([self.path.prices, new.prices]), np.concatenate([self.path.profits, new.profits])
        )
        return new

    async def branch(
        self, rounds: int, label: str, forced: Mapping[int, object] | None = None, periods: int = 1
    ) -> Path:
        """Play on from here, then put everything back.

        Args:
            rounds: how many rounds.
            label: the branch's name.
            forced: the choices that firms (by index) are forced to in the first rounds; they are asked nevertheless.
            periods: for how many rounds.

        Raises:
            RunError: the episode ended before.
        """
        env = self.env
        world, events = env.get_state(), env.events
        minds = [_saved(policy) for policy in self._table.policies]
        self._begin(f"{self._name}/{label}")
        for policy, mind in zip(self._table.policies, minds, strict=True):
            _put_back(policy, mind)
        env.set_state(world)
        try:
            return await self._rounds(rounds, forced or {}, periods)
        finally:
            env.set_state(world)
            env.events = events
            self._begin(self._name)
            for policy, mind in zip(self._table.policies, minds, strict=True):
                _put_back(policy, mind)

    async def _rounds(self, rounds: int, forced: Mapping[int, object], periods: int) -> Path:
        env, names = self.env, self.env.possible_agents
        first = len(env.events)
        played = 0
        while played < rounds:
            if env.over:
                why = f"the episode ended after {env.round} rounds; give the environment more"
                raise RunError(f"{why} (rounds={env.settings.rounds})")
            acting = env.phase == ACT
            actions = await self._table.act(*env.look(on_turn=True))
            if acting and played < periods:
                actions |= {names[firm]: {"choice": choice} for firm, choice in forced.items()}
            env.submit(actions)
            played += acting
        settled = [event for event in env.events[first:] if event["type"] == "round"]
        return Path(
            np.array([event["prices"] for event in settled], dtype=np.float64),
            np.array([event["profits"] for event in settled], dtype=np.float64),
        )


async def deviations(
    game: Branching,
    to: str | float = "best_reply",
    *,
    firms: Sequence[int] | None = None,
    periods: int = 1,
    horizon: int = 4 * HORIZON,
    kept: int = HORIZON,
    delta: float = 0.95,
    tolerance: float = EXACT,
    everywhere: bool = True,
) -> list[Response]:
    """Force each firm to another price and watch, from every round of the cycle play is in.

    If play is in no cycle, from this round only. The main line is played on by one round less than the cycle has.

    Args:
        game: where play stands.
        to: `"best_reply"` (static, to what the rivals are about to ask; Calvano et al. 2020), `"nash"`, `"joint"`,
            `"lowest"`, `"highest"`, or a price; on a grid the nearest point is taken. Cuts and rises are both of
            interest (Epivent and Lambin 2024).
        firms: who deviates, one after the other; `None`: everyone.
        periods: for how many rounds.
        horizon: how many rounds of each branch are played. It must hold the way back and the cycle twice for
            everything to be known; players that cost money may take less.
        kept: how many of them are kept.
        delta: discount factor per round.
        tolerance: up to which distance prices count as equal, as a share of the distance from Nash to joint profit.
        everywhere: deviate from every round of the cycle, not only from this one.

    Returns:
        The responses, firm by firm within each round. Where both branches end in cycles, values are of endless play,
        and `returned` says that the cycles are the same. Otherwise values count the horizon only, and play has
        returned when it stays, to the end, within `tolerance` of what it would have been in the same rounds.

    Raises:
        SettingsError: an impossible number.
        RunError: the episode ended before everything was played.
    """
    if periods < 1 or not periods < horizon or kept < 2:
        raise SettingsError("periods", periods, f"must be 1 or more, and below the horizon {horizon}, which keeps 2")
    if not 0.0 <= delta < 1.0:
        raise SettingsError("delta", delta, "must be at least 0 and below 1")
    found: list[Response] = []
    place, places = 0, 1
    while place < places:
        usual = await game.branch(horizon, f"usual-{place}")
        cycle = path_cycle(usual.prices, usual.profits, game.env.marks, tolerance=tolerance)
        if place == 0 and everywhere and cycle is not None:
            places = min(cycle.length, LONGEST_CYCLE)
        for firm in range(game.env.n_players) if firms is None else firms:
            choice = deviation_choice(game.env, usual.prices[0], firm, to)
            after = await game.branch(horizon, f"deviation-{place}-{firm}", {firm: choice}, periods)
            found.append(_response(game.env, firm, usual, cycle, after, periods, kept, delta, tolerance))
        place += 1
        if place < places:
            await game.play(1)
    return found


def deviation_choice(env: BertrandEnv, prices: Floats, firm: int, to: str | float) -> int | float:
    """The choice a deviation goes to: an index on a grid, else a price.

    Args:
        env: the environment.
        prices: (firms,) what would be asked in this round.
        firm: who deviates.
        to: see `deviations`.

    Raises:
        SettingsError: there is no such target, or the price is not within the range.
    """
    settings, market, marks = env.settings, env.market, env.marks
    grid = settings.grids[firm] if settings.prices == "grid" else None
    low, high = (grid[0], grid[-1]) if grid else (settings.floors[firm], settings.cap)
    if to == "best_reply":
        asked = prices.tolist()
        if grid is None:
            return float(np.clip(best_reply(market, firm, asked), low, high))
        earned = [market.profits([*asked[:firm], price, *asked[firm + 1 :]])[firm] for price in grid]
        return int(np.argmax(earned))
    named = {"nash": marks.nash[firm], "joint": marks.joint[firm], "lowest": low, "highest": high}
    price = named.get(to) if isinstance(to, str) else float(to)
    if price is None:
        raise SettingsError("to", to, f"must be a price or one of {', '.join(TARGETS)}")
    if not low - EXACT <= price <= high + EXACT:
        raise SettingsError("to", to, f"firm {firm}'s prices go from {low:g} to {high:g}")
    return nearest(grid, price) if grid else price


def _response(
    env: BertrandEnv,
    firm: int,
    usual: Path,
    cycle: PathCycle | None,
    after: Path,
    periods: int,
    kept: int,
    delta: float,
    tolerance: float,
) -> Response:
    end = path_cycle(after.prices, after.profits, env.marks, tolerance=tolerance)
    length: int | None
    if cycle is not None and end is not None:
        returned = same_cycle(cycle, end, env.marks, tolerance)
        length = max(end.begins + 1, periods)
    else:
        cycle = end = None
        away = np.abs(positions(after.prices, env.marks) - positions(usual.prices, env.marks)).max(axis=1) > tolerance
        left = int(np.flatnonzero(away)[-1]) + 2 if away.any() else 1
        returned = left <= len(away)
        length = max(left, periods) if returned else None
    return Response(
        firm=firm,
        before=usual.prices[0],
        prices=after.prices[:kept],
        profits=after.profits[:kept],
        length=length,
        returned=returned,
        value=float(discounted(after.profits, delta, end)[firm]),
        value_before=float(discounted(usual.profits, delta, cycle)[firm]),
    )


def _saved(policy: PolicyLike) -> tuple[bool, Any, Any]:
    """What a policy keeps: whether it says so itself, its state, and its generator's.

    The shape of a policy asks for neither `get_state` nor `episode`; types cannot follow `hasattr`.
    """
    own = hasattr(policy, "get_state")
    episode = getattr(policy, "episode", None)
    stream = None if episode is None else episode.rng.bit_generator.state
    return own, policy.get_state() if own else copy.deepcopy(vars(policy)), stream  # type: ignore[attr-defined]


def _put_back(policy: PolicyLike, saved: tuple[bool, Any, Any]) -> None:
    own, state, stream = saved
    if not own:
        vars(policy).clear()
        vars(policy).update(copy.deepcopy(state))
        return
    policy.set_state(state)  # type: ignore[attr-defined]
    if stream is not None:
        policy.episode.rng.bit_generator.state = stream  # type: ignore[attr-defined]

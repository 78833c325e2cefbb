"""Playing an episode on from one point more than once: what would have happened otherwise.

    env = bertrand_v0.parallel_env(preset="calvano", rounds=1000, record=True)
    game = Branching(env, policies, seed=0)
    await game.play(100)                                   # the main line
    events = await game.branch(20, "cut", {0: 3})          # firm 0 is forced to choice 3 once; then all is put back

The environment is put back with `set_state`, policies with `get_state` and `set_state` where they have them; of others
the attributes are copied. Random numbers go on alike in all branches, so that branches differ by what is forced only.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.policy import PolicyLike, Seating
from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import RunError, SettingsError


class Branching:
    """An episode under way, and what might follow.

    Args:
        env: the environment, made with `record=True` and with rounds enough for all that will be played.
        seats: a policy per agent name, or one policy for all seats.
        seed: the environment's seed.
        policy_seed: where the policies' generators come from; `SeedSequence([seed, 1])` by default.
        name: the episode's name; branches are called `NAME/LABEL`, so that what a policy keeps under it stays apart.
        played: the events of an episode that these policies have just played, with these seeds and this name. The
            environment is taken to where it ended, which must not be the end of this environment's own episodes.

    Attributes:
        env: the environment; `env.events` are those of the main line.

    Raises:
        SettingsError: the environment does not record.
    """

    def __init__(
        self,
        env: ScenarioEnv,
        seats: Mapping[str, PolicyLike] | PolicyLike,
        *,
        seed: int,
        policy_seed: np.random.SeedSequence | None = None,
        name: str = "episode",
        played: Sequence[Event] = (),
    ) -> None:
        if not env.record:
            raise SettingsError("record", False, "branches are read from the recorded events; set it to True")
        self.env = env
        self._table = Seating(
            seats if isinstance(seats, Mapping) else dict.fromkeys(env.possible_agents, seats), env.possible_agents
        )
        self._seed = np.random.SeedSequence([seed, 1]) if policy_seed is None else policy_seed
        self._name = name
        env.begin(seed=seed)
        if played:
            submit_again(env, played)
        else:
            self._begin(name)

    @property
    def waits(self) -> bool:
        """Whether anybody at the table may wait for something, such as an answer that is paid for."""
        return self._table.waits

    def _begin(self, name: str) -> None:
        """Tell the policies that an episode of that name starts; they get the same generators every time."""
        same = np.random.SeedSequence(
            self._seed.entropy, spawn_key=self._seed.spawn_key, pool_size=self._seed.pool_size
        )
        self._table.begin(self.env.metadata["name"], self.env.settings, self.env.possible_agents, same, name)

    async def play(self, rounds: int, forced: Mapping[int, object] | None = None) -> list[Event]:
        """Play the main line on.

        Args:
            rounds: how many rounds.
            forced: the choices that players (by index) are forced to in all of them, to begin from where play would
                not have led.

        Returns:
            The new events.

        Raises:
            RunError: the episode ended before.
        """
        return await self._rounds(rounds, forced or {}, rounds)

    async def branch(
        self,
        rounds: int,
        label: str,
        forced: Mapping[int, object] | None = None,
        periods: int = 1,
        *,
        unheard: bool = False,
    ) -> list[Event]:
        """Play on from here, then put everything back.

        Args:
            rounds: how many rounds.
            label: the branch's name.
            forced: the choices that players (by index) are forced to in the first rounds; they are asked nevertheless.
            periods: for how many rounds.
            unheard: whether nobody hears what is said; speakers are asked nevertheless.

        Returns:
            The branch's events.

        Raises:
            RunError: the episode ended before.
        """
        env = self.env
        world, events = env.get_state(), env.events
        minds = [saved(policy) for policy in self._table.policies]

        def all_back(name: str) -> None:
            self._begin(name)
            for policy, mind in zip(self._table.policies, minds, strict=True):
                put_back(policy, mind)
            env.set_state(world)

        all_back(f"{self._name}/{label}")
        try:
            return await self._rounds(rounds, forced or {}, periods, unheard=unheard)
        finally:
            all_back(self._name)
            env.events = events

    async def _rounds(
        self, rounds: int, forced: Mapping[int, object], periods: int, *, unheard: bool = False
    ) -> list[Event]:
        env, names = self.env, self.env.possible_agents
        first, slots_only = len(env.events), self._table.slots_only
        for played in range(rounds):
            if env.over:
                why = f"the episode ended after {env.round} rounds; give the environment more"
                raise RunError(f"{why} (rounds={getattr(env.settings, 'rounds', env.round)})")
            number = env.round
            while env.round == number and not env.over:
                actions = await self._table.act(*env.look(on_turn=True, slots_only=slots_only))
                if env.phase != TALK and played < periods:
                    actions |= {names[player]: {"choice": choice} for player, choice in forced.items()}
                env.submit({} if unheard and env.phase == TALK else actions)
        return env.events[first:]


class Afterwards(Protocol):
    """What a scenario measures after an episode, by playing on from its end; made by `build` from plain options.

    A scenario's descriptor names the class of it in `after`; it is a `core.settings.Settings`. What its measures mean
    stands in the class's `about`, by name, as in `core.scenario.Measures`.
    """

    def longer(self, settings: ScenarioSettings) -> Mapping[str, Any]:
        """The settings, by name, of an environment in which the same episode does not end where it ended.

        Raises:
            SettingsError: episodes with these settings cannot be played on.
        """
        ...

    async def measure(self, game: Branching) -> Row:
        """Play on, and say what is measured: columns of the episode's row, as JSON scalars or lists of numbers."""
        ...


def submit_again(env: ScenarioEnv, events: Sequence[Event]) -> None:
    """Play recorded choices and messages again, from the beginning.

    Args:
        env: the environment, just begun with the same seed.
        events: all events of the episode.

    Raises:
        RunError: another episode follows from them than was recorded.
    """
    submitted: dict[int, dict[str, dict[str, Any]]] = {}
    for event in events:
        if event["type"] in ("choice", "message"):
            submitted.setdefault(event["step"], {})[event["agent"]] = _submitted(event)
    for step in range(events[-1]["step"]):
        if env.over:
            break
        env.submit(submitted.get(step, {}))
    settled = [[one for one in told if one["type"] == "round"] for told in (events, env.events)]
    if settled[0] != settled[1] or env.over:
        raise RunError("the recorded episode cannot be played on: its settings lead to other rounds, or to its end")


def _submitted(event: Event) -> dict[str, Any]:
    """A recorded choice or message as its player submitted it; what was heard of a message is its paraphrase."""
    if event["type"] == "choice":
        return {"choice": event["choice"]}
    heard = event.get("delivered", {}).get("text")
    return {"message": event["text"], "paraphrase": heard} if heard else {"message": event["text"]}


def saved(policy: PolicyLike) -> tuple[bool, Any, Any]:
    """What a policy keeps: whether it says so itself, its state, and its generator's.

    The shape of a policy asks for neither `get_state` nor `episode`; types cannot follow `hasattr`.
    """
    own = hasattr(policy, "get_state")
    episode = getattr(policy, "episode", None)
    stream = None if episode is None else episode.rng.bit_generator.state
    return own, policy.get_state() if own else copy.deepcopy(vars(policy)), stream  # type: ignore[attr-defined]


def put_back(policy: PolicyLike, kept: tuple[bool, Any, Any]) -> None:
    """Let a policy go on with what `saved` gave."""
    own, state, stream = kept
    if not own:
        vars(policy).clear()
        vars(policy).update(copy.deepcopy(state))
        return
    policy.set_state(state)  # type: ignore[attr-defined]
    if stream is not None:
        policy.episode.rng.bit_generator.state = stream  # type: ignore[attr-defined]

"""Play an episode on from one point more than once, to see what would have happened otherwise.

    env = bertrand_v0.parallel_env(preset="calvano", rounds=1000, record=True)
    game = Branching(env, policies, seed=0)
    await game.play(100)                                   # the main line
    events = await game.branch(20, "cut", {0: 3})          # firm 0 is forced to choice 3 once; then all is restored

The environment is restored with `set_state`. So are policies that have `get_state` and `set_state`; the attributes of
other policies are copied. All branches continue with the same random numbers, so they differ only by what is forced.
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
    """A running episode that can be branched.

    Args:
        env: the environment, made with `record=True` and enough rounds for everything that will be played.
        seats: a policy per agent name, or one policy for all seats.
        seed: the environment's seed.
        policy_seed: the source of the policies' generators; `SeedSequence([seed, 1])` by default.
        name: the episode's name. Branches are called `NAME/LABEL`, so that policies store their answers separately.
        played: the events of an episode that these policies have just played, with these seeds and this name. The
            environment is brought to the point where it ended, which must not be the end of this environment's
            episodes.

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
        """Whether a policy may wait for something, such as a model's answer."""
        return self._table.waits

    def _begin(self, name: str) -> None:
        """Start an episode for the policies, with the same generators every time."""
        seed = np.random.SeedSequence(
            self._seed.entropy, spawn_key=self._seed.spawn_key, pool_size=self._seed.pool_size
        )
        self._table.begin(self.env.metadata["name"], self.env.settings, self.env.possible_agents, seed, name)

    async def play(self, rounds: int, forced: Mapping[int, object] | None = None) -> list[Event]:
        """Play the main line on.

        Args:
            rounds: how many rounds.
            forced: choices by player index that replace the players' own in all these rounds, to reach a point to
                which play would not have led.

        Returns:
            The new events.

        Raises:
            RunError: the episode ended earlier.
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
        """Play on from here, then restore environment and policies.

        Args:
            rounds: how many rounds.
            label: the branch's name.
            forced: choices by player index that replace the players' own in the first rounds. The players are asked
                all the same.
            periods: the number of rounds with forced choices.
            unheard: whether messages are dropped. The speakers are asked all the same.

        Returns:
            The branch's events.

        Raises:
            RunError: the episode ended earlier.
        """
        env = self.env
        env_state, events = env.get_state(), env.events
        memories = [save_state(policy) for policy in self._table.policies]

        def restore(name: str) -> None:
            self._begin(name)
            for policy, memory in zip(self._table.policies, memories, strict=True):
                restore_state(policy, memory)
            env.set_state(env_state)

        restore(f"{self._name}/{label}")
        try:
            return await self._rounds(rounds, forced or {}, periods, unheard=unheard)
        finally:
            restore(self._name)
            env.events = events

    async def _rounds(
        self, rounds: int, forced: Mapping[int, object], periods: int, *, unheard: bool = False
    ) -> list[Event]:
        env, names = self.env, self.env.possible_agents
        first, slots_only = len(env.events), self._table.slots_only
        for played in range(rounds):
            if env.over:
                reason = f"the episode ended after {env.round} rounds; give the environment more"
                raise RunError(f"{reason} (rounds={getattr(env.settings, 'rounds', env.round)})")
            number = env.round
            while env.round == number and not env.over:
                actions = await self._table.act(*env.look(on_turn=True, slots_only=slots_only))
                if env.phase != TALK and played < periods:
                    actions |= {names[player]: {"choice": choice} for player, choice in forced.items()}
                env.submit({} if unheard and env.phase == TALK else actions)
        return env.events[first:]


class Afterwards(Protocol):
    """Measures that a scenario takes after an episode, by playing on from its end.

    A scenario's descriptor names the class in `after`. The class is a `core.settings.Settings`, made by `build` from
    plain options; its `about` describes the measures by name, as in `core.scenario.Measures`.
    """

    def longer(self, settings: ScenarioSettings) -> Mapping[str, Any]:
        """The settings, by name, to change so that the same episode does not end where it ended.

        Raises:
            SettingsError: episodes with these settings cannot be played on.
        """
        ...

    async def measure(self, game: Branching) -> Row:
        """Play on and return the measures: columns of the episode's row, as JSON scalars or lists of numbers."""
        ...


def submit_again(env: ScenarioEnv, events: Sequence[Event]) -> None:
    """Replay recorded choices and messages from the beginning.

    Args:
        env: the environment, just begun with the same seed.
        events: all events of the episode.

    Raises:
        RunError: the replayed rounds differ from the recorded ones, or the episode is over.
    """
    for actions in submitted_steps(events):
        if env.over:
            break
        env.submit(actions)
    recorded, replayed = ([event for event in history if event["type"] == "round"] for history in (events, env.events))
    if recorded != replayed or env.over:
        raise RunError("the recorded episode cannot be played on: its settings lead to other rounds, or to its end")


def submitted_steps(events: Sequence[Event]) -> list[dict[str, dict[str, Any]]]:
    """What the players submitted in each step of a recorded episode, as `env.submit` takes it."""
    submitted: dict[int, dict[str, dict[str, Any]]] = {}
    for event in events:
        if event["type"] in ("choice", "message"):
            actions = submitted.setdefault(event["step"], {})
            action = _submitted(event)
            if event["agent"] in actions:  # one of several messages of a turn
                action = {"message": [actions[event["agent"]]["message"], action["message"]]}
            actions[event["agent"]] = action
    return [submitted.get(step, {}) for step in range(events[-1]["step"])]


def _submitted(event: Event) -> dict[str, Any]:
    """A recorded choice or message as its player submitted it; what was heard of a message is its paraphrase."""
    if event["type"] == "choice":
        return {"choice": event.get("stated", event["choice"])}
    if event.get("private"):
        return {"message": {"text": event["text"], "to": event["hearers"]}}
    heard = event.get("delivered", {}).get("text")
    return {"message": event["text"], "paraphrase": heard} if heard else {"message": event["text"]}


def save_state(policy: PolicyLike) -> tuple[bool, Any, Any]:
    """Save a policy's memory.

    Returns:
        Whether the policy has `get_state`; its state, or a copy of its attributes; and its generator's state.
    """
    # `PolicyLike` declares neither `get_state` nor `episode`, and types cannot follow `hasattr`.
    own = hasattr(policy, "get_state")
    episode = getattr(policy, "episode", None)
    stream = None if episode is None else episode.rng.bit_generator.state
    return own, policy.get_state() if own else copy.deepcopy(vars(policy)), stream  # type: ignore[attr-defined]


def restore_state(policy: PolicyLike, memory: tuple[bool, Any, Any]) -> None:
    """Restore the memory that `save_state` returned."""
    own, state, stream = memory
    if not own:
        vars(policy).clear()
        vars(policy).update(copy.deepcopy(state))
        return
    policy.set_state(state)  # type: ignore[attr-defined]
    if stream is not None:
        policy.episode.rng.bit_generator.state = stream  # type: ignore[attr-defined]

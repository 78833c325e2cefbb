"""One episode of a study: its environment, its policies, its randomness."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.policies import Policy, play_async
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.policies.switching import Successor, Switching
from llm_coop_envs.studies.players import Described, Learns, Recorded, make_policy
from llm_coop_envs.studies.study import Condition, Player, PolicyChange, assign_seats
from llm_coop_envs.treatments.regulator import SEAT

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat
    from llm_coop_envs.policies.population import People


@dataclass(frozen=True, kw_only=True)
class Played:
    """An episode that was played.

    Attributes:
        policies: the policy of each seat, by full name.
        events: the recorded events.
        returns: each agent's sum of rewards.
        answers: for each policy that asked a model, what became of the answers.
        measures: what was measured of learning before the episode, and by playing on after it.
        people: who sat in the seats, if a population did: each column's values and everybody's code.
    """

    policies: dict[str, str]
    events: list[Event]
    returns: dict[str, float] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    measures: Row = field(default_factory=dict)
    people: dict[str, Any] = field(default_factory=dict)


async def play_episode(
    study_seed: int,
    condition: Condition,
    seed: int,
    chat: Chat | None = None,
    policy_seed: np.random.SeedSequence | None = None,
    on_step: Callable[[ScenarioEnv], None] | None = None,
    on_begin: Callable[[Sequence[Policy]], None] | None = None,
) -> Played:
    """Play one episode.

    Args:
        study_seed: the study's seed.
        condition: what is played.
        seed: the environment's seed.
        chat: answers the questions of policies that ask a model.
        policy_seed: where the policies' generators come from; by default from the other three.
        on_step: called after the episode's start and after every step.
        on_begin: given all policies before the episode's start.
    """
    env = condition.spec.environment(record=True, **condition.settings)
    seating, deciding = episode_randomness(study_seed, condition.streams, seed).spawn(2)
    deciding = policy_seed or deciding
    people = None
    if condition.crowd is not None:
        people = condition.crowd.draw(sum(agent != SEAT for agent in env.possible_agents), seating.spawn(1)[0])
    players = assign_seats(condition, env.possible_agents, np.random.default_rng(seating), people)
    deciding_for: dict[int, Policy] = {}
    made: list[tuple[str, Policy]] = []
    for player in players.values():
        if id(player) not in deciding_for:
            deciding_for[id(player)], parts = _seated(condition, player, chat)
            made += parts
    seats = {agent: deciding_for[id(player)] for agent, player in players.items()}
    name = f"{condition.name}/{seed}"
    measures: Row = {}
    answers: list[dict[str, Any]] = []
    if people is not None:
        answers = await _describe(condition, people, seats, [policy for _, policy in made], chat, name)
    for _, policy in made:
        if isinstance(policy, Learns):
            measures |= policy.learn(env.settings, study_seed, condition.seeds.index(seed))
    if on_begin is not None:
        on_begin([policy for _, policy in made])
    follow = _told(condition.changes, on_step) if condition.changes else on_step
    returns = await play_async(env, seats, seed=seed, policy_seed=deciding, on_step=follow, name=name)
    played = Played(
        policies={agent: player.policy for agent, player in players.items()},
        events=env.events,
        returns=returns,
        answers=[
            *answers,
            *({"policy": name, **policy.record()} for name, policy in made if isinstance(policy, Recorded)),
        ],
        measures=measures,
        people={} if people is None else people.to_json({name for one in players.values() for name in one.cell}),
    )
    after = condition.afterwards()
    if after is not None:
        longer = condition.spec.environment(record=True, **{**condition.settings, **after.longer(env.settings)})
        game = Branching(longer, seats, seed=seed, policy_seed=deciding, name=name, played=env.events)
        measures |= await after.measure(game)
    return played


async def _describe(
    condition: Condition,
    people: People,
    seats: Mapping[str, Policy],
    made: Sequence[Policy],
    chat: Chat | None,
    name: str,
) -> list[dict[str, Any]]:
    """Tell policies that want to know who sits in their seats; what became of the answers of who wrote it."""
    told = [policy for policy in made if isinstance(policy, Described)]
    if people.population.background is None or not told:
        return []
    # Rules read nothing; of seats whose policy changes it is not known who will.
    rules = [policy for policy in seats.values() if policy in made and policy not in told]
    mine = {seat: i for i, (seat, policy) in enumerate(seats.items()) if seat != SEAT and policy not in rules}
    answers = []
    backgrounds: Mapping[str, str]
    if condition.writer is not None and chat is not None:
        from llm_coop_envs.policies.population.writing import Writer

        writer = Writer(people, chat, condition.writer.policy, condition.writer.options)
        backgrounds = await writer.write(name, mine)
        answers = [writer.record()]
    else:
        backgrounds = people.backgrounds(mine)
    for policy in told:
        policy.backgrounds = backgrounds
    return answers


def _told(
    changes: Sequence[PolicyChange], on_step: Callable[[ScenarioEnv], None] | None
) -> Callable[[ScenarioEnv], None]:
    """Record which changes of policies hold, where others did before; those of settings are told by the environment."""
    before: list[PolicyChange] = []

    def follow(env: ScenarioEnv) -> None:
        nonlocal before
        holding = [one for one in changes if one.when.holds(env.round)]
        if holding != before and not env.over:
            env.emit("change", policies=[one.to_json() for one in holding])
            before = holding
        if on_step is not None:
            on_step(env)

    return follow


def _seated(condition: Condition, player: Player, chat: Chat | None) -> tuple[Policy, list[tuple[str, Policy]]]:
    """Who decides for a player's seats, and all policies of which that is made, each with its name."""

    def make(one: Player) -> Policy:
        return make_policy(condition.scenario, one.policy, one.options, chat)

    policy = make(player)
    later = [(when, after, make(after)) for when, before, after in condition.successors if before == player]
    parts = [(player.policy, policy), *((after.policy, made) for _, after, made in later)]
    if not later:
        return policy, parts
    return Switching(policy, [Successor(change=when, policy=made) for when, _, made in later]), parts


def episode_randomness(study_seed: int, streams: str, seed: int) -> np.random.SeedSequence:
    """Where an episode's policies get their randomness.

    It depends on these three values only: not on the process, the order of episodes, or Python's hash seed.

    Args:
        study_seed: the study's seed.
        streams: the condition's `streams`: arms of one comparison have the same.
        seed: the environment's seed.
    """
    digest = hashlib.sha256(streams.encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4").tolist()
    return np.random.SeedSequence([study_seed, *words, seed])

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
from llm_coop_envs.studies.conditions import Condition, Player, PolicyChange
from llm_coop_envs.studies.dealing import assign_seats
from llm_coop_envs.studies.players import BackgroundReader, EpisodeLearner, RecordingPolicy, make_policy
from llm_coop_envs.studies.tournament_settings import RETURN
from llm_coop_envs.treatments.regulator import SEAT

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat
    from llm_coop_envs.policies.population import People

#: The type of the record that an episode's file begins with.
EPISODE = "episode"


@dataclass(frozen=True, kw_only=True)
class PlayedEpisode:
    """An episode that was played.

    Attributes:
        policies: the full name of each seat's policy.
        events: the recorded events.
        returns: each agent's sum of rewards.
        answers: for each policy that asked a model, its record of the answers.
        measures: measures of learning before the episode, and of playing on after it.
        people: the people in the seats, if there is a population: the values of each column, and everybody's code.
        recorded: of an imported episode, where its records stand and what they say was paid (`runs.imported`).
    """

    policies: dict[str, str]
    events: list[Event]
    returns: dict[str, float] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    measures: Row = field(default_factory=dict)
    people: dict[str, Any] = field(default_factory=dict)
    recorded: dict[str, Any] = field(default_factory=dict)


async def play_episode(
    study_seed: int,
    condition: Condition,
    seed: int,
    chat: Chat | None = None,
    policy_seed: np.random.SeedSequence | None = None,
    on_step: Callable[[ScenarioEnv], None] | None = None,
    on_begin: Callable[[Sequence[Policy]], None] | None = None,
) -> PlayedEpisode:
    """Play one episode.

    Args:
        study_seed: the study's seed.
        condition: the condition.
        seed: the environment's seed.
        chat: answers the questions of policies that ask a model.
        policy_seed: seeds the policies' generators; by default made from study, condition and seed.
        on_step: called after the episode's start and after every step.
        on_begin: called with all policies before the episode's start.
    """
    env = condition.spec.environment(record=True, **condition.settings)
    seating, deciding = episode_randomness(study_seed, condition.streams, seed).spawn(2)
    deciding = policy_seed or deciding
    people = None
    if condition.crowd is not None:
        people = condition.crowd.draw(sum(agent != SEAT for agent in env.possible_agents), seating.spawn(1)[0])
    players = assign_seats(condition, env.possible_agents, np.random.default_rng(seating), people)
    seats, policies = _make_policies(condition, players, chat)
    name = f"{condition.name}/{seed}"
    measures: Row = {}
    answers: list[dict[str, Any]] = []
    if people is not None:
        answers = await _give_backgrounds(condition, people, seats, [policy for _, policy in policies], chat, name)
    for _, policy in policies:
        if isinstance(policy, EpisodeLearner):
            measures |= policy.learn(env.settings, study_seed, condition.seeds.index(seed))
    if on_begin is not None:
        on_begin([policy for _, policy in policies])
    follow = _record_changes(condition.changes, on_step) if condition.changes else on_step
    returns = await play_async(env, seats, seed=seed, policy_seed=deciding, on_step=follow, name=name)
    if condition.tournament is not None:
        measures |= {f"{RETURN}{agent}": value for agent, value in returns.items()}
    played = PlayedEpisode(
        policies={agent: player.policy for agent, player in players.items()},
        events=env.events,
        returns=returns,
        answers=[
            *answers,
            *({"policy": name, **policy.record()} for name, policy in policies if isinstance(policy, RecordingPolicy)),
        ],
        measures=measures,
        people={} if people is None else people.to_json({name for player in players.values() for name in player.cell}),
    )
    afterwards = condition.afterwards()
    if afterwards is not None:  # the same game again, with rounds to play on in
        longer = condition.spec.environment(record=True, **{**condition.settings, **afterwards.longer(env.settings)})
        game = Branching(longer, seats, seed=seed, policy_seed=deciding, name=name, played=env.events)
        measures |= await afterwards.measure(game)
    return played


async def _give_backgrounds(
    condition: Condition,
    people: People,
    seats: Mapping[str, Policy],
    policies: Sequence[Policy],
    chat: Chat | None,
    name: str,
) -> list[dict[str, Any]]:
    """Give the backgrounds of the people in the seats to policies that read them.

    Returns:
        The writer's record of its answers, if a language model wrote the backgrounds.
    """
    readers = [policy for policy in policies if isinstance(policy, BackgroundReader)]
    if people.population.background is None or not readers:
        return []
    # No background for seats that rules play throughout; a seat whose policy changes may get a reader later.
    rules = [policy for policy in seats.values() if policy in policies and policy not in readers]
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
    for policy in readers:
        policy.backgrounds = backgrounds
    return answers


def _record_changes(
    changes: Sequence[PolicyChange], on_step: Callable[[ScenarioEnv], None] | None
) -> Callable[[ScenarioEnv], None]:
    """Record an event where other changes of policies hold than before; the environment records those of settings."""
    previous: list[PolicyChange] = []

    def follow(env: ScenarioEnv) -> None:
        nonlocal previous
        holding = [change for change in changes if change.when.holds(env.round)]
        if holding != previous and not env.over:
            env.emit("change", policies=[change.to_json() for change in holding])
            previous = holding
        if on_step is not None:
            on_step(env)

    return follow


def _make_policies(
    condition: Condition, players: Mapping[str, Player], chat: Chat | None
) -> tuple[dict[str, Policy], list[tuple[str, Policy]]]:
    """The policy of each seat, equal players sharing one; and all policies that these consist of, with their names."""
    policy_of: dict[int, Policy] = {}
    named_policies: list[tuple[str, Policy]] = []
    for player in players.values():
        if id(player) not in policy_of:
            policy_of[id(player)], parts = _make_player_policies(condition, player, chat)
            named_policies += parts
    return {agent: policy_of[id(player)] for agent, player in players.items()}, named_policies


def _make_player_policies(
    condition: Condition, player: Player, chat: Chat | None
) -> tuple[Policy, list[tuple[str, Policy]]]:
    """The policy that decides for a player's seats, and the policies that it switches between, with their names."""

    def make(chosen: Player) -> Policy:
        return make_policy(condition.scenario, chosen.policy, chosen.options, chat)

    policy = make(player)
    later = [
        (when, successor, make(successor)) for when, replaced, successor in condition.successors if replaced == player
    ]
    parts = [
        (player.policy, policy),
        *((successor.policy, successor_policy) for _, successor, successor_policy in later),
    ]
    if not later:
        return policy, parts
    return Switching(
        policy, [Successor(change=when, policy=successor_policy) for when, _, successor_policy in later]
    ), parts


def episode_randomness(study_seed: int, streams: str, seed: int) -> np.random.SeedSequence:
    """The seed sequence of an episode's policies.

    It depends on these three values only: not on the process, the order of episodes, or Python's hash seed.

    Args:
        study_seed: the study's seed.
        streams: the condition's `streams`: arms of one comparison have the same.
        seed: the environment's seed.
    """
    digest = hashlib.sha256(streams.encode()).digest()
    name_words = np.frombuffer(digest[:16], dtype="<u4").tolist()
    return np.random.SeedSequence([study_seed, *name_words, seed])


def is_episode(header: Any, events: list[Any]) -> bool:
    """Whether records are a whole episode."""
    if not isinstance(header, dict) or not events or {*map(type, events)} != {dict}:
        return False
    if not isinstance(header.get("policies"), dict) or not isinstance(header.get("program", {}), dict):
        return False
    return (header.get("type"), events[-1].get("type")) == (EPISODE, "end")

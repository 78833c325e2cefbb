"""A condition of a study: a scenario with its settings, players, changes in play and seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.records import FORCED
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.core.settings import PERCEPTION, ScenarioSettings, plain
from llm_coop_envs.errors import MissingExtra, SettingsError
from llm_coop_envs.policies import kinds
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.studies.players import asks_a_model, check_policy, normalise_policy
from llm_coop_envs.treatments.changes import Change, fits_any
from llm_coop_envs.util.references import load
from llm_coop_envs.util.yaml_source import as_node

if TYPE_CHECKING:
    from llm_coop_envs.policies.branching import Afterwards
    from llm_coop_envs.policies.population import Population

SEATS = "seats"
GIVEN, GIVEN_MODEL = "given", "given_model"
"""Stand in `policies` for a player from the command line: a policy that asks no model, or a language model."""
GIVEN_MODELS = ("given_model_1", "given_model_2")
"""Stand in `policies` for two language models from the command line that meet."""
WAITS_FOR = {
    GIVEN: "a player: --policy NAME",
    GIVEN_MODEL: "a language model: --policy llm --model NAME",
    **dict.fromkeys(GIVEN_MODELS, "two language models: --model NAME --model OTHER"),
}
"""The players from the command line, and how they are given, by the names that stand for them."""


@dataclass(frozen=True, kw_only=True)
class Player:
    """A policy with its options, and its share of the seats.

    Attributes:
        policy: its full name: `"scenario/name"`, or `"kind:argument"` as in `players`.
        options: the arguments of its factory.
        share: its weight in a mix.
        endpoint: fields of the endpoint of its model. They belong to a run, change nothing that is played, and are left
            out of the plain data.
        cell: the people of a population whose seats it fills, as codes by column; empty without a population.
    """

    policy: str
    options: Mapping[str, Any]
    share: float = 1.0
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    cell: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The player as plain data."""
        sits = {"cell": dict(self.cell)} if self.cell else {}
        return {"policy": self.policy, "options": plain(self.options), "share": self.share, **sits}


@dataclass(frozen=True, kw_only=True)
class PolicyChange:
    """Another policy from a round on, or the same one with other options.

    Attributes:
        when: the rounds and the players for which the change holds.
        policy: the full name of the policy that then decides; empty if the same one goes on.
        options: the options of the new policy, or those that change of the same one.
        endpoint: as in `Player`.
        for_models: whether the change holds for language models only.
    """

    when: Change
    policy: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    for_models: bool = False

    def successor_of(self, scenario: str, player: Player) -> Player:
        """The player that decides in place of another one while the change holds.

        Raises:
            LlmCoopError: it cannot be made; a `SettingsError` names the option.
        """
        name, options = self.policy, {**self.options, **self.endpoint}
        if not name:
            name, options = player.policy, {**player.options, **options}
            if asks_a_model(name):
                model = name.partition(":")[2]
                same = options.setdefault("model", model) == model
                name, options = LLM, {**(player.endpoint if same else {}), **options}
        try:
            return make_player(scenario, name, options)
        except MissingExtra:  # `check_players` raises it
            return Player(policy=name, options=options)

    def to_json(self) -> dict[str, Any]:
        """The change as plain data."""
        when = {name: value for name, value in self.when.to_json().items() if name != "settings"}
        optional = {"for_models": True} if self.for_models else {}
        return {**when, "policy": self.policy, "options": plain(self.options), **optional}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PolicyChange:
        """The change that `to_json` made."""
        own = {name: data[name] for name in ("policy", "options", "for_models") if name in data}
        return cls(when=Change.from_json({k: v for k, v in data.items() if k not in own}), **own)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A scenario with its settings and players, and the seeds it is played with.

    Attributes:
        name: unique in the study; part of file names.
        title: its name in reports.
        scenario: the scenario's name.
        settings: all settings as plain data.
        changed: the settings that the study file gives, without the preset's.
        preset: the preset's name, if any.
        seats: (pattern, players) in the order in which they apply.
        seeds: the environment's seed of each episode.
        after: options of the measures that are taken by playing on after each episode (`Scenario.after`); `None` for
            none.
        variant: the title of its variant in the file, with which its own title ends; empty if it is none.
        pair: a name shared with the conditions that it is compared with, seed by seed; empty without any.
        when: how a sentence speaks of it, such as "when firms can talk"; empty to name its title.
        family: the family of tests in which the p values of its comparison are adjusted; empty for the scenario's.
        cluster: the cluster of each seed; its seeds share a component and count as one. Empty if each seed is its own.
        changes: changes of policies in play; changes of settings are among the settings.
        branch: for an arm of a branched run, the `condition` that it continues, `at` which round, and that condition's
            `streams`; `None` for other conditions.
        tournament: the settings of the tournament that it is a line-up of (`studies.tournament_settings`): everybody's
            sum of rewards is then measured, and line-ups are not compared one by one; `None` for others.
        awaits: the name in `policies` of the player from the command line that it waits for (`"given_model_1"` for two
            models); empty once it can be played.
        model: options of language models from the command line, and under `"seats"` those by seat pattern, `None`
            where a seat keeps its player. Left out of the plain data: they become options of players.
        population: the population in its seats as plain data (`policies.population`); `None` without one.
        writer: the language model that writes the backgrounds of its people; `None` without one.
    """

    name: str
    title: str
    scenario: str
    settings: Mapping[str, Any]
    changed: Mapping[str, Any]
    preset: str | None
    seats: tuple[tuple[str, tuple[Player, ...]], ...]
    seeds: tuple[int, ...]
    after: Mapping[str, Any] | None = None
    variant: str = ""
    pair: str = ""
    when: str = ""
    family: str = ""
    cluster: Mapping[int, str] = field(default_factory=dict)
    changes: tuple[PolicyChange, ...] = ()
    branch: Mapping[str, Any] | None = None
    tournament: Mapping[str, Any] | None = None
    awaits: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)
    population: Mapping[str, Any] | None = None
    writer: Player | None = None

    def model_options(self, agent: str) -> Mapping[str, Any] | None:
        """The options of a language model from the command line in a seat; `None` if the seat keeps its player."""
        seats: Mapping[str, Mapping[str, Any] | None] = self.model.get(SEATS, {})
        own = next((seat_options for seat, seat_options in seats.items() if seat_matches(seat, agent)), {})
        shared = {name: value for name, value in self.model.items() if name != SEATS}
        return None if own is None else {**shared, **own}

    @property
    def streams(self) -> str:
        """The name that its policies' random numbers depend on, besides the two seeds: its pair, or else its own."""
        return str(self.branch["streams"]) if self.branch else self.pair or self.name

    @property
    def units(self) -> int:
        """The number of units of its statistics: its clusters, or else its episodes."""
        return len({self.cluster.get(seed, seed) for seed in self.seeds})

    @property
    def is_treated(self) -> bool:
        """Whether something changes in play, or the delivery of messages or perception is manipulated."""
        usual = {name: getattr(ScenarioSettings, name) for name in ("delivery", *PERCEPTION)}
        return bool(self.change_descriptions) or any(
            self.settings.get(name, value) != value for name, value in usual.items()
        )

    @property
    def has_forced_choices(self) -> bool:
        """Whether its changes force somebody's choices."""
        return any(change.policy == FORCED for change in self.changes)

    def forces_in(self, number: int) -> bool:
        """Whether its changes force somebody's choices in a round."""
        return any(change.policy == FORCED and change.when.holds(number) for change in self.changes)

    @property
    def change_descriptions(self) -> list[str]:
        """The changes in play in words, such as `delivery = "shuffle" from round 3 on`."""
        settings = [
            (when, _join_settings(when.settings)) for when in map(Change.from_json, self.settings.get("changes", ()))
        ]
        return [
            " ".join(filter(None, (description, str(when)))) for when, description in (*settings, *self._policy_changes)
        ]

    @property
    def schedule(self) -> list[tuple[Change, str]]:
        """The changes in play with a description of each; the end of talk is one of them."""
        settings = self.spec.settings_type.build(**self.settings)
        return [*((when, _join_settings(when.settings)) for when in settings.schedule), *self._policy_changes]

    @property
    def _policy_changes(self) -> list[tuple[Change, str]]:
        return [
            (
                change.when,
                " ".join(
                    filter(None, (change.policy, f"({_join_settings(change.options)})" if change.options else ""))
                ),
            )
            for change in self.changes
        ]

    @property
    def spec(self) -> Scenario:
        """The scenario."""
        return find_scenario(self.scenario)

    @property
    def asks_a_model(self) -> bool:
        """Whether a language model plays in it."""
        return any(map(asks_a_model, self.policies))

    @property
    def is_recorded(self) -> bool:
        """Whether others recorded what was played in it (`runs.imported`)."""
        return any(kinds.parse(policy)[0] == kinds.RECORDED for policy in self.policies)

    def afterwards(self) -> Afterwards | None:
        """The measurement by playing on after each episode, if there is one.

        Raises:
            SettingsError: an option is impossible, or episodes with these settings cannot be played on.
        """
        if self.after is None:
            return None
        kind = load(self.spec.after)
        if kind is None:
            raise SettingsError("after", dict(self.after), f"{self.scenario} measures nothing after an episode")
        measurement: Afterwards = kind.build(**self.after)
        measurement.longer(self.spec.settings_type.build(**self.settings))
        return measurement

    @cached_property
    def successors(self) -> tuple[tuple[Change, Player, Player], ...]:
        """(when, player, successor) for each change of policies and each player that it replaces.

        Raises:
            LlmCoopError: a successor cannot be made.
        """
        if not self.changes or self.awaits:
            return ()
        agents = set(self.spec.environment(**self.settings).possible_agents)
        successors = []
        for pattern, players in self.seats:
            mine = {agent for agent in agents if seat_matches(pattern, agent)}
            agents -= mine
            for change in self.changes:
                if any(map(change.when.means, mine)):
                    affected = [player for player in players if not change.for_models or asks_a_model(player.policy)]
                    successors += [
                        (change.when, player, change.successor_of(self.scenario, player)) for player in affected
                    ]
        return tuple(successors)

    @cached_property
    def crowd(self) -> Population | None:
        """The population that sits in its seats, if there is one."""
        if self.population is None:
            return None
        from llm_coop_envs.policies.population import read_population

        return read_population(as_node(self.population, f"condition {self.name}", "population"), recorded=True)

    @property
    def players(self) -> tuple[Player, ...]:
        """All players: those of the seats, their successors, and the writer of backgrounds if a model reads them."""
        deciding = (
            *(player for _, players in self.seats for player in players),
            *(player for _, _, player in self.successors),
        )
        writes = self.writer is not None and any(asks_a_model(player.policy) for player in deciding)
        return (*deciding, self.writer) if writes and self.writer is not None else deciding

    @property
    def policies(self) -> tuple[str, ...]:
        """The full names of all policies that may play, each once."""
        return tuple(dict.fromkeys(player.policy for player in self.players))

    def with_endpoints(self, endpoint_of: Callable[[Player], Mapping[str, Any]]) -> Condition:
        """The condition with other endpoints for its models."""

        def endpoint_for(player: Player) -> Mapping[str, Any]:
            return endpoint_of(player) if asks_a_model(player.policy) else player.endpoint

        seats = tuple(
            (pattern, tuple(replace(player, endpoint=endpoint_for(player)) for player in players))
            for pattern, players in self.seats
        )
        changes = []
        for change in self.changes:
            successor = next((player for when, _, player in self.successors if when is change.when), None)
            changes.append(change if successor is None else replace(change, endpoint=endpoint_for(successor)))
        writer = None if self.writer is None else replace(self.writer, endpoint=endpoint_for(self.writer))
        return replace(self, seats=seats, changes=tuple(changes), writer=writer)

    def to_json(self) -> dict[str, Any]:
        """The condition as plain data."""
        optional = {
            "after": plain(self.after),
            "variant": self.variant,
            "pair": self.pair,
            "when": self.when,
            "family": self.family,
            "cluster": {str(seed): label for seed, label in self.cluster.items()},
            "changes": [change.to_json() for change in self.changes],
            "branch": plain(self.branch),
            "tournament": plain(self.tournament),
            "population": plain(self.population),
            "writer": None if self.writer is None else self.writer.to_json(),
        }
        return {
            **{name: value for name, value in optional.items() if value or (value == {} and name != "cluster")},
            "name": self.name,
            "title": self.title,
            "scenario": self.scenario,
            "preset": self.preset,
            "changed": plain(self.changed),
            "settings": plain(self.settings),
            "seats": [[pattern, [player.to_json() for player in players]] for pattern, players in self.seats],
            "seeds": list(self.seeds),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Condition:
        """The condition that `to_json` made."""
        seats = tuple((pattern, tuple(Player(**player) for player in players)) for pattern, players in data["seats"])
        changes = tuple(map(PolicyChange.from_json, data.get("changes", ())))
        optional: dict[str, Any] = {"writer": Player(**data["writer"])} if "writer" in data else {}
        optional["cluster"] = {int(seed): label for seed, label in data.get("cluster", {}).items()}
        return cls(**{**data, "seats": seats, "seeds": tuple(data["seeds"]), "changes": changes, **optional})


def _join_settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {json.dumps(plain(value))}" for name, value in values.items())


def make_player(scenario: str, policy: str, options: Mapping[str, Any], share: float = 1.0) -> Player:
    """Make a player once it is clear that its policy can be made.

    Args:
        scenario: the scenario's name.
        policy: the policy's full name.
        options: the policy's options, with those that say where its model is reached.
        share: its weight in a mix.

    Raises:
        LlmCoopError: the policy cannot be made; a `SettingsError` names the option.
    """
    check_policy(scenario, policy, options)
    name, own, endpoint = normalise_policy(policy, options)
    return Player(policy=name, options=own, share=share, endpoint=endpoint)


def seat_matches(pattern: str, agent: str) -> bool:
    """Whether a pattern such as `firm_*` or `all` in a study's `policies` matches an agent."""
    return fits_any(agent, (pattern,))

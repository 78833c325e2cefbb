"""A condition of a study: a scenario with its settings, who plays it, what changes in play, and its seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.core.settings import PERCEPTION, ScenarioSettings, plain
from llm_coop_envs.errors import MissingExtra, SettingsError
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.studies.players import asks_a_model, check_policy, settle
from llm_coop_envs.treatments.changes import Change, fits_any
from llm_coop_envs.util.references import load
from llm_coop_envs.util.shares import divide
from llm_coop_envs.util.yaml_source import spot_of

if TYPE_CHECKING:
    import numpy as np

    from llm_coop_envs.policies.branching import Afterwards
    from llm_coop_envs.policies.population import People, Population

SEATS = "seats"
GIVEN, GIVEN_MODEL = "given", "given_model"
"""Stand in `policies` for whoever is given on the command line: a policy that asks no model, or a language model."""
GIVEN_MODELS = ("given_model_1", "given_model_2")
"""Two language models that meet."""
WAITS_FOR = {
    GIVEN: "a player: --policy NAME",
    GIVEN_MODEL: "a language model: --policy llm --model NAME",
    **dict.fromkeys(GIVEN_MODELS, "two language models: --model NAME --model OTHER"),
}
"""What a condition waits for, by the policy that stands in for it, and how it is given."""


@dataclass(frozen=True, kw_only=True)
class Player:
    """A policy, and how many of the seats it fills.

    Attributes:
        policy: its full name: `"scenario/name"`, or `"kind:argument"` as in `players`.
        options: what its factory is given.
        share: its weight in a mix.
        endpoint: where its model is reached; this belongs to a run, changes nothing in what is played, and is left out
            of the plain data.
        cell: the people of a population whose seats it fills, as codes by column; empty for whoever is dealt to it.
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
        when: the rounds in which it holds, and for which players.
        policy: the full name of the policy that then decides; empty if the same one goes on.
        options: its options; of the same policy those that change.
        endpoint: as in `Player`.
        for_models: whether it is for language models only, and whoever else plays goes on as before.
    """

    when: Change
    policy: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    for_models: bool = False

    def follow(self, scenario: str, player: Player) -> Player:
        """Who decides in place of a player while the change holds.

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
        except MissingExtra:  # told by `check_players`, as of all players
            return Player(policy=name, options=options)

    def to_json(self) -> dict[str, Any]:
        """The change as plain data."""
        when = {name: value for name, value in self.when.to_json().items() if name != "settings"}
        told = {"for_models": True} if self.for_models else {}
        return {**when, "policy": self.policy, "options": plain(self.options), **told}

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
        changed: the settings that the study gives itself, without the preset's.
        preset: the preset's name, if any.
        seats: (pattern, players) in the order in which they apply.
        seeds: the environment's seed of each episode.
        after: the options of what is measured after each episode (`Scenario.after`); `None` if nothing is.
        variant: the title of the variant that it is of the condition in the file, which ends its own; empty if none.
        pair: what it shares with the conditions that it is compared with, seed by seed; empty without any.
        family: the tests among which the p values of its comparison are adjusted; empty for all of the scenario.
        changes: where other policies, or other options, hold from a round on; those of settings stand in the settings.
        branch: of an arm of a branched run: the `condition` that it continues, `at` which round, and that condition's
            `streams`; `None` for all others.
        awaits: `"given"`, `"given_model"`, or `"given_model_1"` for two of them, while some of its seats wait for that
            player; it is not played then.
        model: options of the language models that are given for its seats, and under `"seats"` those of some seats by
            pattern, `None` where a seat keeps its player. Left out of the plain data: they become options of players.
        population: who sits in its seats, as plain data (`policies.population`); `None` if nobody says.
        writer: the language model that writes their backgrounds; `None` without one.
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
    family: str = ""
    changes: tuple[PolicyChange, ...] = ()
    branch: Mapping[str, Any] | None = None
    awaits: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)
    population: Mapping[str, Any] | None = None
    writer: Player | None = None

    def model_options(self, agent: str) -> Mapping[str, Any] | None:
        """What a language model that is given for a seat is told beside its own options; `None`: it is not seated."""
        seats: Mapping[str, Mapping[str, Any] | None] = self.model.get(SEATS, {})
        own = next((one for seat, one in seats.items() if fits(seat, agent)), {})
        shared = {name: value for name, value in self.model.items() if name != SEATS}
        return None if own is None else {**shared, **own}

    @property
    def streams(self) -> str:
        """What the random numbers of its policies hang on, besides the two seeds: its pair, else its name."""
        return str(self.branch["streams"]) if self.branch else self.pair or self.name

    @property
    def treated(self) -> bool:
        """Whether something changes in play, or messages, sight or memory are not as usual."""
        usual = {name: getattr(ScenarioSettings, name) for name in ("delivery", *PERCEPTION)}
        return bool(self.what_changes) or any(self.settings.get(name, value) != value for name, value in usual.items())

    @property
    def what_changes(self) -> list[str]:
        """What changes in play, in words."""
        settings = [(when, _words(when.settings)) for when in map(Change.from_json, self.settings.get("changes", ()))]
        return [" ".join(filter(None, (what, str(when)))) for when, what in (*settings, *self._policy_changes)]

    @property
    def schedule(self) -> list[tuple[Change, str]]:
        """What changes in play: when, and what in words; the end of talk is a change, too."""
        settings = self.spec.settings_type.build(**self.settings)
        return [*((when, _words(when.settings)) for when in settings.schedule), *self._policy_changes]

    @property
    def _policy_changes(self) -> list[tuple[Change, str]]:
        return [
            (one.when, " ".join(filter(None, (one.policy, f"({_words(one.options)})" if one.options else ""))))
            for one in self.changes
        ]

    @property
    def spec(self) -> Scenario:
        """The scenario."""
        return find_scenario(self.scenario)

    @property
    def asks_a_model(self) -> bool:
        """Whether a language model plays in it."""
        return any(map(asks_a_model, self.policies))

    def afterwards(self) -> Afterwards | None:
        """What is measured after each episode, if anything is.

        Raises:
            SettingsError: an option is impossible, or episodes with these settings cannot be played on.
        """
        if self.after is None:
            return None
        kind = load(self.spec.after)
        if kind is None:
            raise SettingsError("after", dict(self.after), f"{self.scenario} measures nothing after an episode")
        made: Afterwards = kind.build(**self.after)
        made.longer(self.spec.settings_type.build(**self.settings))
        return made

    @cached_property
    def successors(self) -> tuple[tuple[Change, Player, Player], ...]:
        """For each change of policies and each player that it means: when, who decides before, and who then.

        Raises:
            LlmCoopError: who then decides cannot be made.
        """
        if not self.changes or self.awaits:
            return ()
        agents = set(self.spec.environment(**self.settings).possible_agents)
        found = []
        for pattern, players in self.seats:
            mine = {agent for agent in agents if fits(pattern, agent)}
            agents -= mine
            for one in self.changes:
                if any(map(one.when.means, mine)):
                    meant = [player for player in players if not one.for_models or asks_a_model(player.policy)]
                    found += [(one.when, player, one.follow(self.scenario, player)) for player in meant]
        return tuple(found)

    @cached_property
    def crowd(self) -> Population | None:
        """The population that sits in its seats, if there is one."""
        if self.population is None:
            return None
        from llm_coop_envs.policies.population import read_population

        return read_population(spot_of(self.population, f"condition {self.name}", "population"), recorded=True)

    @property
    def players(self) -> tuple[Player, ...]:
        """All that may decide, those who follow others last; with a model also who writes backgrounds for it."""
        deciding = (*(one for _, players in self.seats for one in players), *(one for _, _, one in self.successors))
        writes = self.writer is not None and any(asks_a_model(one.policy) for one in deciding)
        return (*deciding, self.writer) if writes and self.writer is not None else deciding

    @property
    def policies(self) -> tuple[str, ...]:
        """The full names of all policies that may play, each once."""
        return tuple(dict.fromkeys(player.policy for player in self.players))

    def reached(self, endpoint_of: Callable[[Player], Mapping[str, Any]]) -> Condition:
        """The condition with its models reached elsewhere."""

        def where(one: Player) -> Mapping[str, Any]:
            return endpoint_of(one) if asks_a_model(one.policy) else one.endpoint

        seats = tuple(
            (pattern, tuple(replace(one, endpoint=where(one)) for one in players)) for pattern, players in self.seats
        )
        changes = []
        for one in self.changes:
            after = next((player for when, _, player in self.successors if when is one.when), None)
            changes.append(one if after is None else replace(one, endpoint=where(after)))
        writer = None if self.writer is None else replace(self.writer, endpoint=where(self.writer))
        return replace(self, seats=seats, changes=tuple(changes), writer=writer)

    def to_json(self) -> dict[str, Any]:
        """The condition as plain data."""
        optional = {
            "after": plain(self.after),
            "variant": self.variant,
            "pair": self.pair,
            "family": self.family,
            "changes": [one.to_json() for one in self.changes],
            "branch": plain(self.branch),
            "population": plain(self.population),
            "writer": None if self.writer is None else self.writer.to_json(),
        }
        return {
            **{name: value for name, value in optional.items() if value or value == {}},
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
        told = {"writer": Player(**data["writer"])} if "writer" in data else {}
        return cls(**{**data, "seats": seats, "seeds": tuple(data["seeds"]), "changes": changes, **told})


def _words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {json.dumps(plain(value))}" for name, value in values.items())


def assign_seats(
    condition: Condition, agents: Sequence[str], rng: np.random.Generator, people: People | None = None
) -> dict[str, Player]:
    """Who plays which seat.

    The seats of a mix are divided by largest remainders of the shares, then dealt out at random; those of a
    population's players by who sits there.

    Args:
        condition: the condition.
        agents: the environment's agents, in order.
        rng: deals the seats of mixes.
        people: who sits there, in the order of the agents, if a population does.

    Returns:
        A player for each agent; equal players are the same object.
    """
    import numpy as np

    result: dict[str, Player] = {}
    for pattern, players in condition.seats:
        mine = [agent for agent in agents if agent not in result and fits(pattern, agent)]
        if people is not None and any(player.cell for player in players):
            # Everybody is of one cell; a regulator comes last, and is nobody of them.
            cells = sum(k * people.in_cell(player.cell) for k, player in enumerate(players))
            place = dict(zip(agents, np.broadcast_to(cells, people.size).tolist(), strict=False))
            result.update({agent: players[place[agent]] for agent in mine})
            continue
        if len(players) == 1:
            result.update(dict.fromkeys(mine, players[0]))
            continue
        counts = divide(len(mine), [player.share for player in players])
        dealt = [player for player, count in zip(players, counts, strict=True) for _ in range(count)]
        result.update({agent: dealt[i] for agent, i in zip(mine, rng.permutation(len(mine)).tolist(), strict=True)})
    return {agent: result[agent] for agent in agents if agent in result}


def make_player(scenario: str, policy: str, options: Mapping[str, Any], share: float = 1.0) -> Player:
    """A player that can be made.

    Args:
        scenario: the scenario's name.
        policy: its full name.
        options: what its factory is given, and where its model is reached.
        share: its weight in a mix.

    Raises:
        LlmCoopError: it cannot be made; a `SettingsError` names the option.
    """
    check_policy(scenario, policy, options)
    name, own, endpoint = settle(policy, options)
    return Player(policy=name, options=own, share=share, endpoint=endpoint)


def fits(pattern: str, agent: str) -> bool:
    """Whether a pattern of a study's `policies` means an agent."""
    return fits_any(agent, (pattern,))

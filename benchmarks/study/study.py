"""Study files: conditions x seeds, who plays, and what is measured.

A study is YAML. `policies` says who sits where: a policy's name for everyone, or a mapping from seats (`firm_0`, a
pattern such as `firm_*`, or `all`) to policies. A seat named exactly goes before patterns, patterns in their order,
`all` last. In place of a name there may be `{name: ..., options: {...}}`, or `{mix: [...]}` of such entries with a
`share` each. Where it says `given` or `given_model`, the condition is played only with a policy, or a language model,
that is given on the command line.

A condition may have `variants`: a list of mappings with a name each, whose fields are put over the condition's. Each
makes a condition of its own, `<condition>-<variant>`, so that players x markets need not be written out. A `grid` lists
values of settings, as in `{players: [6, 12], talk: [true, false]}`; each combination makes a condition of its own, such
as `<condition>-players-6-talk-true`. `after` asks for what the scenario measures by playing on from the end of each
episode, with its options.

Conditions with the same `pair` are arms of one comparison: their policies draw the same random numbers, and reports
show by how much they differ, seed by seed. P values are adjusted for all tests of a scenario, or for those of a
`family` that the arms name.

`model` holds the options that make an arm where a language model is given for its seats: a persona, a temperature. They
win over what is given for all models. Under `seats` it may hold options by seat, or nothing for a seat that keeps its
own player.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.benchmarks.study.players import asks_a_model, check_policy, full_name, learns, settle
from llm_coop_envs.benchmarks.study.yaml_source import Spot, read_yaml, read_yaml_file
from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.core.scenario import Scenario, load
from llm_coop_envs.core.settings import plain, suggestion
from llm_coop_envs.core.shares import divide
from llm_coop_envs.errors import LlmCoopError, MissingExtra, SettingsError, StudyError
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.storage.folder import digest_of

if TYPE_CHECKING:
    import numpy as np

    from llm_coop_envs.policies.branching import Afterwards

SHIPPED = Path(__file__).parent / "shipped"
MAX_SEED = 2**63 - 1
MAX_EPISODES = 1_000_000
MAX_SWEPT = 1_000
EVERYONE = "all"

EVERY_EPISODE: Mapping[str, str] = {
    "players": "Seats that were played, a count from 1.",
    "submissions": "Choices and messages that counted, a count from 0.",
    "corrected": "Submissions among them that the environment had to correct, a count from 0.",
    "flagged_choices": "Choices that were illegal or missing, so that the environment's own stood in, a count from 0.",
}
"""Measures that every episode's row has besides the scenario's, with what they mean."""

_STUDY_FIELDS = ("name", "description", "source", "settles", "seed", "conditions", "measures")
_PLAYED_FIELDS = ("name", "title", "scenario", "preset", "settings", "policies", "seeds", "episodes", "after")
_PLAIN_FIELDS = (*_PLAYED_FIELDS, "pair", "family", "model")
_VARIANT_FIELDS = (*_PLAIN_FIELDS, "grid")
_CONDITION_FIELDS = (*_VARIANT_FIELDS, "variants")

GIVEN, GIVEN_MODEL = "given", "given_model"
"""Stand in `policies` for whoever is given on the command line: a policy that asks no model, or a language model."""
_GIVEN = (GIVEN, GIVEN_MODEL)
_SEATS = "seats"


@dataclass(frozen=True, kw_only=True)
class Player:
    """A policy, and how many of the seats it fills.

    Attributes:
        policy: its full name: `"scenario/name"`, or `"kind:argument"` as in `players`.
        options: what its factory is given.
        share: its weight in a mix.
        endpoint: where its model is reached; this belongs to a run, changes nothing in what is played, and is left out
            of the plain data.
    """

    policy: str
    options: Mapping[str, Any]
    share: float = 1.0
    endpoint: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The player as plain data."""
        return {"policy": self.policy, "options": plain(self.options), "share": self.share}


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
        awaits: `"given"` or `"given_model"` while some of its seats wait for that player; it is not played then.
        model: options of the language models that are given for its seats, and under `"seats"` those of some seats by
            pattern, `None` where a seat keeps its player. Left out of the plain data: they become options of players.
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
    awaits: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)

    def model_options(self, agent: str) -> Mapping[str, Any] | None:
        """What a language model that is given for a seat is told beside its own options; `None`: it is not seated."""
        seats: Mapping[str, Mapping[str, Any] | None] = self.model.get(_SEATS, {})
        own = next((one for seat, one in seats.items() if fits(seat, agent)), {})
        shared = {name: value for name, value in self.model.items() if name != _SEATS}
        return None if own is None else {**shared, **own}

    @property
    def streams(self) -> str:
        """What the random numbers of its policies hang on, besides the two seeds: its pair, else its name."""
        return self.pair or self.name

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

    @property
    def policies(self) -> tuple[str, ...]:
        """The full names of all policies that may play, each once."""
        return tuple(dict.fromkeys(player.policy for _, players in self.seats for player in players))

    def to_json(self) -> dict[str, Any]:
        """The condition as plain data."""
        optional = {"after": plain(self.after), "variant": self.variant, "pair": self.pair, "family": self.family}
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
        return cls(**{**data, "seats": seats, "seeds": tuple(data["seeds"])})


@dataclass(frozen=True, kw_only=True)
class Study:
    """Conditions x seeds.

    Attributes:
        name: the study's name; run folders are named after it.
        description: what it is for.
        source: the paper and the part of it that is played again; empty for none.
        settles: differences between papers and programs between which its conditions, or their settings, choose.
        seed: where all randomness of policies (and the seeds of `episodes: n`) comes from.
        conditions: what is played.
        measures: the metrics that reports put first; empty for all.
        text: the file's content.
        given: what was given in place of the file's players, seeds and rounds, in words; empty without any.
        optional: conditions that are played only with a player who is given for them.
    """

    name: str
    description: str
    seed: int
    conditions: tuple[Condition, ...]
    measures: tuple[str, ...]
    text: str
    given: tuple[str, ...] = ()
    optional: tuple[Condition, ...] = ()
    source: str = ""
    settles: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the results, as plain data."""
        told = ("title", "variant", "preset", "changed", "family")  # what is said of a condition changes nothing played
        conditions = [{k: v for k, v in c.to_json().items() if k not in told} for c in self.conditions]
        return {"seed": self.seed, "conditions": conditions}

    @property
    def digest(self) -> str:
        """A hash of `identity`."""
        return digest_of(self.identity)

    @property
    def models(self) -> tuple[Player, ...]:
        """The players that ask a language model, each once."""
        found = {
            json.dumps([player.to_json(), plain(player.endpoint)], sort_keys=True, default=str): player
            for condition in self.conditions
            for _, players in condition.seats
            for player in players
            if asks_a_model(player.policy)
        }
        return tuple(found.values())


def shipped_studies() -> dict[str, Path]:
    """The studies that come with the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def read_description(path: Path) -> str:
    """What a study file says it is for, without making what it needs."""
    fields = read_yaml_file(path)[1].mapping()
    return fields["description"].text() if "description" in fields else ""


def load_study(name: str, seed: int | None = None) -> Study:
    """Read a study.

    Args:
        name: a shipped study's name, or a file's path.
        seed: replaces the study's seed.

    Raises:
        StudyError: it does not exist or is wrong; the sentence names file, line and field.
    """
    path = Path(name).expanduser()
    shipped = shipped_studies()
    if name in shipped and not path.is_file():
        path = shipped[name]
    elif not path.exists():
        raise StudyError(f"there is no study '{name}' and no such file; {suggestion(name, shipped)}")
    text, spot = read_yaml_file(path)
    return _study(spot, text, seed)


def parse_study(text: str, source: str, seed: int | None = None) -> Study:
    """Read a study from text; as `load_study`, with `source` as the file's name in messages."""
    return _study(read_yaml(text, source), text, seed)


def assign_seats(condition: Condition, agents: Sequence[str], rng: np.random.Generator) -> dict[str, Player]:
    """Who plays which seat.

    The seats of a mix are divided by largest remainders of the shares, then dealt out at random.

    Args:
        condition: the condition.
        agents: the environment's agents, in order.
        rng: deals the seats of mixes.

    Returns:
        A player for each agent; equal players are the same object.
    """
    result: dict[str, Player] = {}
    for pattern, players in condition.seats:
        mine = [agent for agent in agents if agent not in result and fits(pattern, agent)]
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


def check_players(study: Study) -> None:
    """Find out, before anything is written, whether all players can be played here.

    Raises:
        MissingExtra: what one of them needs is not installed.
    """
    for condition in study.conditions:
        for player in (one for _, players in condition.seats for one in players):
            try:
                if learns(player.policy):
                    check_policy(condition.scenario, player.policy, player.options)
            except MissingExtra as error:
                where = f"in the condition '{condition.name}' (--only plays others)"
                raise MissingExtra(f"{error.what}, {where},", error.extra) from error


def fits(pattern: str, agent: str) -> bool:
    """Whether a pattern of a study's `policies` means an agent."""
    return pattern == EVERYONE or fnmatch.fnmatchcase(agent, pattern)


def _study(spot: Spot, text: str, seed: int | None) -> Study:
    fields = spot.mapping(_STUDY_FIELDS, required=("name", "conditions"))
    given = fields["seed"].integer(0, MAX_SEED) if "seed" in fields else 0
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise StudyError(f"seed={seed}: must be between 0 and {MAX_SEED}")
    study_seed = given if seed is None else seed
    conditions: list[Condition] = []
    names: dict[str, int] = {}
    entries = [both for entry in fields["conditions"].items() for both in _variants(entry)]
    for item, variant in [both for entry in entries for both in _swept(*entry)]:
        condition = _condition(item, study_seed, variant)
        # File names: some file systems do not tell cases apart.
        key = condition.name.lower()
        if key in names:
            item.mapping()["name"].fail(f"'{condition.name}' is already the condition on line {names[key]}")
        names[key] = item.line
        _check_pair(condition, conditions, item)
        conditions.append(condition)
    measures = fields["measures"].items() if "measures" in fields else []
    _check_measures(measures, conditions)
    return Study(
        name=fields["name"].label(),
        description=fields["description"].text() if "description" in fields else "",
        seed=study_seed,
        conditions=tuple(one for one in conditions if not one.awaits),
        measures=tuple(one.text() for one in measures),
        text=text,
        optional=tuple(one for one in conditions if one.awaits),
        source=fields["source"].text() if "source" in fields else "",
        settles=tuple(one.text() for one in fields["settles"].items()) if "settles" in fields else (),
    )


def _check_measures(spots: Sequence[Spot], conditions: Sequence[Condition]) -> None:
    """Refuse measures that no scenario defines, unless learning or what follows an episode may bring them."""
    about = [one.spec.measured for one in conditions]
    players = [policy for one in conditions for policy in one.policies]
    after = [load(one.spec.after) for one in conditions if one.after is not None]
    known = {*EVERY_EPISODE, *(name for kind in after for name in getattr(kind, "about", ()))}
    open_ended = any(map(learns, players)) or not all(hasattr(kind, "about") for kind in after)
    for spot in spots:
        name = spot.text()
        if not (open_ended or name in known or any(one.define(name) for one in about)):
            known.update(own for one in about for own in one.about)
            spot.fail(f"nothing is called '{name}'; {suggestion(name, sorted(known))}")


def _check_pair(condition: Condition, before: Sequence[Condition], spot: Spot) -> None:
    """Arms of one comparison play one scenario with the same seeds, and are in one family of tests."""
    if condition.family and not condition.pair:
        spot.mapping()["family"].fail(f"'{condition.family}' needs a 'pair': only comparisons are tested")
    first = next((one for one in before if one.pair and one.pair == condition.pair), condition)
    for what in ("scenario", "seeds", "family"):
        if getattr(first, what) != getattr(condition, what):
            spot.mapping()["pair"].fail(f"'{condition.pair}' is the pair of '{first.name}' too, which has other {what}")


def _variants(spot: Spot) -> list[tuple[Spot, str]]:
    """The conditions that an entry of the file stands for, each with its variant's title."""
    fields = spot.mapping(_CONDITION_FIELDS, required=("name",))
    if "variants" not in fields:
        return [(spot, "")]
    found = []
    name = fields["name"].label()
    title = fields["title"].text() if "title" in fields else name
    for item in fields.pop("variants").items():
        own = item.mapping(_VARIANT_FIELDS, required=("name",))
        variant = own["title"].text() if "title" in own else own["name"].label()
        merged: dict[str, Spot] = {}
        for key in {"settings", "after", "model"} & fields.keys() & own.keys():
            merged[key] = replace(own[key], value={**fields[key].mapping(), **own[key].mapping()})
        merged["name"] = replace(own["name"], value=f"{name}-{own['name'].label()}")
        merged["title"] = replace(own["name"], value=f"{title}, {variant}")
        if "pair" in fields and "pair" not in own:
            merged["pair"] = replace(fields["pair"], value=f"{fields['pair'].label()}-{own['name'].label()}")
        found.append((replace(spot, value={**fields, **own, **merged}), variant))
    return found


def _swept(spot: Spot, variant: str) -> list[tuple[Spot, str]]:
    """The conditions of an entry's `grid`: one for each combination of the listed values of settings."""
    fields = spot.mapping(_VARIANT_FIELDS, required=("name",))
    if "grid" not in fields:
        return [(spot, variant)]
    axes = {key: item.items() for key, item in fields.pop("grid").mapping().items()}
    settings = fields["settings"].mapping() if "settings" in fields else {}
    for key, item in settings.items():
        if key in axes:
            item.fail("stands in the grid too; leave it out here")
    count = math.prod(map(len, axes.values()))
    if count > MAX_SWEPT:
        spot.fail(f"its grid makes {count:,} conditions; {MAX_SWEPT:,} are the most")
    name = fields["name"].label()
    title = fields["title"].text() if "title" in fields else name
    found = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        plainly = {key: json.dumps(one.plain()).strip('"') for key, one in chosen.items()}
        label = "-".join(f"{key}-{re.sub('[^A-Za-z0-9_]+', '_', value)}" for key, value in plainly.items())
        told = ", ".join(f"{key} {value}" for key, value in plainly.items())
        merged = {
            "name": replace(fields["name"], value=f"{name}-{label}"),
            "title": replace(fields["name"], value=f"{title}, {told}"),
            "settings": replace(fields.get("settings", spot), value={**settings, **chosen}),
        }
        found.append((replace(spot, value={**fields, **merged}), ", ".join(filter(None, (variant, told)))))
    return found


def _condition(spot: Spot, study_seed: int, variant: str) -> Condition:
    fields = spot.mapping(_PLAIN_FIELDS, required=("name", "scenario", "policies"))
    name = fields["name"].label()
    scenario_name = fields["scenario"].text()
    if scenario_name not in scenarios():
        fields["scenario"].fail(f"there is no scenario '{scenario_name}'; {suggestion(scenario_name, scenarios())}")
    scenario = find_scenario(scenario_name)
    preset = fields["preset"].text() if "preset" in fields else None
    changed = {key: item.plain() for key, item in fields["settings"].mapping().items()} if "settings" in fields else {}
    try:
        env = scenario.environment(preset=preset, **changed)
    except SettingsError as error:
        places = fields["settings"].mapping() if "settings" in fields else {}
        _settings_spot(spot, fields, places, error.field).fail(f"{error.value!r}: {error.why}")
    except LlmCoopError as error:
        fields.get("settings", spot).fail(str(error))
    seats = _seats(fields["policies"], scenario_name, env.possible_agents)
    after = {key: item.plain() for key, item in fields["after"].mapping().items()} if "after" in fields else None
    condition = Condition(
        name=name,
        title=fields["title"].text() if "title" in fields else name,
        scenario=scenario_name,
        settings=env.settings.to_json(),
        changed=changed,
        preset=preset,
        seats=seats,
        seeds=_seeds(spot, fields, study_seed),
        after=after,
        variant=variant,
        pair=fields["pair"].label() if "pair" in fields else "",
        family=fields["family"].label() if "family" in fields else "",
        awaits=next((one.policy for _, players in seats for one in players if one.policy in _GIVEN), ""),
        model=_model(fields["model"], scenario_name, env.possible_agents) if "model" in fields else {},
    )
    try:
        condition.afterwards()
    except SettingsError as error:
        place = fields["after"].mapping().get(error.field, fields["after"])
        place.fail(f"{error}" if place is fields["after"] else f"{error.value!r}: {error.why}")
    return condition


def _settings_spot(spot: Spot, fields: Mapping[str, Spot], places: Mapping[str, Spot], field: str) -> Spot:
    """Where to point for a setting that is not possible: its own line, or the nearest that exists."""
    if field == "preset":
        return fields.get("preset", spot)
    if field in places:
        return places[field]
    above = fields.get("settings", fields.get("preset", spot))
    return replace(above, field=f"{above.field}.{field}")


def _seeds(spot: Spot, fields: Mapping[str, Spot], study_seed: int) -> tuple[int, ...]:
    if ("seeds" in fields) == ("episodes" in fields):
        spot.fail("needs either 'seeds' (a list) or 'episodes' (how many), and not both")
    if "seeds" in fields:
        seeds = [(item, item.integer(0, MAX_SEED)) for item in fields["seeds"].items()]
        seen: set[int] = set()
        for item, seed in seeds:
            if seed in seen:
                item.fail(f"{seed} is listed twice; the same episode would count twice")
            seen.add(seed)
        return tuple(seed for _, seed in seeds)
    count = fields["episodes"].integer(1, MAX_EPISODES)
    return tuple(derived_seeds(study_seed, count))


def derived_seeds(study_seed: int, count: int) -> Iterator[int]:
    """Seeds made from the study's, the same for every condition, so that conditions can be compared pair by pair."""
    import numpy as np

    seen: set[int] = set()
    stream = np.random.default_rng(np.random.SeedSequence([study_seed, 0x5EED]))
    while len(seen) < count:
        seed = int(stream.integers(2**31))
        if seed not in seen:
            seen.add(seed)
            yield seed


def _model(spot: Spot, scenario: str, agents: Sequence[str]) -> dict[str, Any]:
    """The options of models that are given for the seats, once it is certain that such a model can be made."""
    shared = spot.mapping()
    seats = shared.pop(_SEATS).mapping() if _SEATS in shared else {}
    for pattern, item in seats.items():
        _check_seat(pattern, item, agents)
    own = [item.mapping() for item in seats.values() if item.value is not None]
    for options in (shared, *({**shared, **one} for one in own)):
        try:
            check_policy(scenario, f"{LLM}:any", {name: item.plain() for name, item in options.items()})
        except SettingsError as error:
            options.get(error.field, spot).fail(f"{error.value!r}: {error.why}")
    plainly: dict[str, Any] = spot.plain()
    return plainly


def _check_seat(pattern: str, item: Spot, agents: Sequence[str]) -> None:
    if pattern != EVERYONE and not any(fits(pattern, agent) for agent in agents):
        span = f"seats are {agents[0]} to {agents[-1]}, patterns such as '{agents[0].rsplit('_', 1)[0]}_*', and 'all'"
        item.fail(f"'{pattern}' is not a seat; {span}")


def _seats(spot: Spot, scenario: str, agents: Sequence[str]) -> tuple[tuple[str, tuple[Player, ...]], ...]:
    if not isinstance(spot.value, dict) or set(spot.value) <= {"name", "options", "mix"}:
        return ((EVERYONE, _players(spot, scenario)),)
    known = set(agents)
    exact: list[tuple[str, tuple[Player, ...]]] = []
    patterns: list[tuple[str, tuple[Player, ...]]] = []
    rest: list[tuple[str, tuple[Player, ...]]] = []
    for pattern, item in spot.mapping().items():
        _check_seat(pattern, item, agents)
        kind = rest if pattern == EVERYONE else exact if pattern in known else patterns
        kind.append((pattern, _players(item, scenario)))
    seats = (*exact, *patterns, *rest)
    empty = next((a for a in agents if not any(fits(pattern, a) for pattern, _ in seats)), None)
    if empty is not None:
        spot.fail(f"nobody plays {empty}; add a line for it, or for 'all'")
    return seats


def _players(spot: Spot, scenario: str) -> tuple[Player, ...]:
    if isinstance(spot.value, dict) and "mix" in spot.value:
        parts = spot.mapping(("mix",))["mix"].items()
        return tuple(_player(part, scenario, mixed=True) for part in parts)
    if spot.value in _GIVEN:
        return (Player(policy=spot.value, options={}),)
    return (_player(spot, scenario, mixed=False),)


def _player(spot: Spot, scenario: str, *, mixed: bool) -> Player:
    if isinstance(spot.value, dict):
        fields = spot.mapping(("name", "options", "share") if mixed else ("name", "options"), required=("name",))
    else:
        fields = {"name": spot}
    place = fields["name"]
    try:
        policy = full_name(scenario, place.text())
    except SettingsError as error:
        place.fail(f"{error.value!r}: {error.why}")
    options = fields["options"].mapping() if "options" in fields else {}
    share = fields["share"].number(0) if "share" in fields else 1.0
    given = {key: item.plain() for key, item in options.items()}
    try:
        return make_player(scenario, policy, given, share)
    except MissingExtra:  # told by `check_players`: the rest of the study can be played without
        return Player(policy=policy, options=given, share=share)
    except SettingsError as error:
        where = options.get(error.field, fields.get("options", place))
        where.fail(f"{error.value!r}: {error.why}")
    except LlmCoopError as error:
        place.fail(str(error))

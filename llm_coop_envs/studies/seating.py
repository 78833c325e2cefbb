"""Players given beside a study, in place of those in its file."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from llm_coop_envs.core.policy import Seating
from llm_coop_envs.errors import LlmCoopError, SettingsError, StudyError
from llm_coop_envs.policies.kinds import parse
from llm_coop_envs.studies.crowd import crowd_players
from llm_coop_envs.studies.players import Learned, Learns, asks_a_model, full_name, label, make_policy
from llm_coop_envs.studies.study import (
    EVERYONE,
    GIVEN,
    GIVEN_MODEL,
    GIVEN_MODELS,
    Condition,
    Player,
    Study,
    fits,
    make_player,
)
from llm_coop_envs.util.yaml_source import read_yaml, read_yaml_file

_PLAYER = re.compile(r"(?P<name>\S+)(?:\s+(?:@(?P<file>.+)|(?P<options>\{.*\})))?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Given:
    """A player as it was given.

    Attributes:
        name: the policy's name.
        options: its options.
    """

    name: str
    options: Mapping[str, Any]

    @property
    def asks_a_model(self) -> bool:
        """Whether it is a language model."""
        return asks_a_model(self.name)

    @property
    def entry(self) -> dict[str, Any]:
        """The player as study files have it."""
        return {"name": self.name, "options": dict(self.options)}

    def __str__(self) -> str:
        """The player as it can be given again."""
        return f"{self.name} {json.dumps(self.options, ensure_ascii=False)}" if self.options else self.name


def read_player(text: str) -> Given:
    """Read `NAME`, `NAME {option: value, ...}` or `NAME @options.yaml`.

    Raises:
        StudyError: it is none of these, or the options are no mapping.
    """
    found = _PLAYER.fullmatch(text.strip())
    if found is None:
        raise StudyError(f"'{text}': must be a policy's name, with options as in 'grim_trigger {{tolerance: 0.1}}'")
    options: dict[str, Any] = {}
    if found["options"]:
        try:
            options = {key: spot.plain() for key, spot in read_yaml(found["options"], f"'{text}'").mapping().items()}
        except StudyError as error:  # there is no file, and no line in it
            raise StudyError(re.sub(r", line \d+| \(first on line \d+\)", "", str(error))) from error
    elif found["file"]:
        _, spot = read_yaml_file(Path(found["file"]).expanduser())
        options = {key: one.plain() for key, one in spot.mapping().items()}
    return Given(name=found["name"], options=options)


def read_seat(text: str) -> tuple[str, Given]:
    """Read `SEAT=PLAYER`.

    Raises:
        StudyError: it is none.
    """
    seat, equals, player = text.partition("=")
    if not equals or not seat.strip() or not player.strip():
        raise StudyError(f"--seat '{text}': must be SEAT=POLICY, such as firm_0=grim_trigger or firm_*=llm:MODEL")
    return seat.strip(), read_player(player)


def with_players(study: Study, everyone: Given | None, seats: Sequence[tuple[str, Given]] = ()) -> Study:
    """The study with other players.

    Args:
        study: the study.
        everyone: plays all seats of all conditions, or of those that wait for such a player where the study has some;
            `None` leaves the file's players.
        seats: seats or patterns, and who plays there in the conditions that have them.

    Raises:
        LlmCoopError: a policy cannot play a scenario, or no condition has such a seat.
    """
    given = [] if everyone is None else [f"--policy {everyone}"]
    given += [f"--seat {pattern}={one}" for pattern, one in seats]
    if everyone is not None and _for_one(study):
        study, everyone = replace(study, conditions=(*study.conditions, *_joined(study, everyone))), None
    conditions = []
    used: set[str] = set()
    for condition in study.conditions:
        agents = condition.spec.environment(**condition.settings).possible_agents
        mine = [(pattern, one) for pattern, one in seats if any(fits(pattern, agent) for agent in agents)]
        used.update(pattern for pattern, _ in mine)
        # As in a file: seats named exactly go before patterns, and 'all' comes last.
        mine.sort(key=lambda one: (one[0] not in agents, one[0] == EVERYONE))
        rows = [row for pattern, one in mine for row in _rows(condition, one, pattern, pattern, agents)]
        below = condition.seats
        if everyone is not None:
            below = (*_rows(condition, everyone, EVERYONE, "--policy", agents), *below)
            condition = _without_followers(condition, everyone)
        conditions.append(_checked(replace(condition, seats=_needed((*rows, *below), agents))))
    for pattern, _ in seats:
        if pattern not in used:
            raise StudyError(f"--seat {pattern}: no condition of '{study.name}' has such a seat")
    waiting = tuple(one for one in study.optional if one.awaits in GIVEN_MODELS)
    return replace(study, conditions=tuple(conditions), given=(*study.given, *given), optional=waiting)


def with_each(study: Study, players: Sequence[Given], seats: Sequence[tuple[str, Given]] = ()) -> Study:
    """The study with each of several players: as `with_players`, with every condition once for each of them.

    Where two models meet in a condition, it is played once for each two that are given, unless one of its seats is
    somebody else's; what it is compared with is what the first of the two plays alone.

    Raises:
        LlmCoopError: a policy cannot play a scenario, no condition has such a seat, or a player is given twice.
    """
    if len(players) < 2:
        return with_players(study, next(iter(players), None), seats)
    played = [with_players(study, one, seats) for one in players]
    kept = study.conditions if _for_one(study) else ()
    conditions = {one.name: one for one in kept}
    models: list[tuple[Given, str, str]] = []
    for one, with_one in zip(players, played, strict=True):
        title = _title(full_name(with_one.conditions[-1].scenario, one.name))
        label = re.sub("[^A-Za-z0-9]+", "_", title).strip("_")
        if one.asks_a_model:
            models.append((one, title, label))
        for condition in with_one.conditions[len(kept) :]:
            name = f"{condition.name}-{label}"
            if name in conditions:
                raise StudyError(f"--policy {one}: is given twice, or its name is another's; give each player once")
            pair = condition.pair and f"{condition.pair}-{label}"
            conditions[name] = replace(condition, name=name, title=f"{condition.title}, {title}", pair=pair)
    waiting = tuple(one for one in study.optional if one.awaits in GIVEN_MODELS)
    met = {
        one.name: one
        for condition in waiting
        if not any(fits(pattern, seat) for pattern, _ in seats for seat, _ in condition.seats)
        for first, second in itertools.combinations(models, 2)
        for one in [_meeting(condition, first, second)]
    }
    conditions |= met
    given = tuple(dict.fromkeys(text for one in played for text in one.given))
    return replace(study, conditions=tuple(conditions.values()), given=given, optional=() if met else waiting)


def _for_one(study: Study) -> list[Condition]:
    """The conditions that wait for one player; where there are some, no other is given it."""
    return [one for one in study.optional if one.awaits not in GIVEN_MODELS]


def _meeting(condition: Condition, *models: tuple[Given, str, str]) -> Condition:
    """The condition with two models, each with its title and label."""
    given = {name: one for name, (one, _, _) in zip(GIVEN_MODELS, models, strict=True)}
    seats = tuple(
        (
            seat,
            tuple(
                _player(condition, given[one.policy], "--policy", condition.model_options(seat) or {})
                if one.policy in given
                else one
                for one in players
            ),
        )
        for seat, players in condition.seats
    )
    titles, labels = [title for _, title, _ in models], [label for _, _, label in models]
    return replace(
        condition,
        name="-".join((condition.name, *labels)),
        title=f"{condition.title}, {' and '.join(titles)}",
        seats=seats,
        pair=condition.pair and f"{condition.pair}-{labels[0]}",
        awaits="",
    )


def _rows(
    condition: Condition, given: Given, pattern: str, where: str, agents: Sequence[str]
) -> list[tuple[str, tuple[Player, ...]]]:
    """Who plays the seats of a pattern: a model with what the condition says of models there, unless a seat is kept."""
    if not given.asks_a_model:
        return [(pattern, (_player(condition, given, where),))]
    told = {agent: condition.model_options(agent) for agent in agents if fits(pattern, agent)}
    first = next(iter(told.values()))
    if all(one == first for one in told.values()):
        told = {pattern: first}
    return [(seat, _models(condition, given, where, one)) for seat, one in told.items() if one is not None]


def _models(condition: Condition, given: Given, where: str, told: Mapping[str, Any]) -> tuple[Player, ...]:
    """A model with what the condition says of models; where people sit, one for each kind of them."""
    if condition.crowd is None:
        return (_player(condition, given, where, told),)

    def make(name: str, options: Mapping[str, Any]) -> Player:
        return _player(condition, replace(given, name=name), where, {**told, **options})

    return crowd_players(condition.crowd, {None: (given.name, {})}, make)


def _without_followers(condition: Condition, given: Given) -> Condition:
    """Rules that follow the file's rules do not follow a model, if the condition says what makes its arm for models."""
    if not (given.asks_a_model and condition.model):
        return condition
    return replace(condition, changes=tuple(one for one in condition.changes if parse(one.policy)[0]))


def _checked(condition: Condition) -> Condition:
    """A condition, in which the changes of policies fit the players that were given.

    Raises:
        StudyError: they do not.
    """
    try:
        _ = condition.successors
    except LlmCoopError as error:
        raise StudyError(f"condition '{condition.name}': what changes does not fit who plays: {error}") from error
    return condition


def _joined(study: Study, everyone: Given) -> list[Condition]:
    """The conditions that wait for such a player, with it; those that it cannot play are left out.

    Raises:
        LlmCoopError: it can play none of them.
    """
    waiting = [one for one in study.optional if one.awaits == (GIVEN_MODEL if everyone.asks_a_model else GIVEN)]
    found: list[Condition] = []
    refused: LlmCoopError | None = None
    for condition in waiting:
        player = _player(condition, everyone, "--policy")
        title = condition.title.replace("{policy}", _title(player.policy))
        try:
            if not everyone.asks_a_model:
                begin_with(condition, player)
        except LlmCoopError as error:
            refused = error
        else:
            seats = tuple((seat, _taken(condition, seat, players, everyone)) for seat, players in condition.seats)
            found.append(replace(condition, title=title, seats=seats, awaits=""))
    if not found:
        raise refused or StudyError(f"--policy {everyone}: '{study.name}' has no place for such a player")
    return found


def _taken(condition: Condition, seat: str, players: tuple[Player, ...], given: Given) -> tuple[Player, ...]:
    player = _player(condition, given, "--policy", condition.model_options(seat) or {})
    return tuple(player if one.policy in (GIVEN, GIVEN_MODEL) else one for one in players)


def _title(policy: str) -> str:
    """What a given policy is called in reports."""
    _, colon, argument = policy.partition(":")
    if asks_a_model(policy):
        return argument
    return f"{label(policy)} {argument}" if colon else policy.rpartition("/")[2]


def begin_with(condition: Condition, player: Player) -> None:
    """Let a policy begin an episode: what was learned may belong to other settings.

    Raises:
        LlmCoopError: it cannot play it.
    """
    env = condition.spec.environment(**condition.settings)
    policy = make_policy(condition.scenario, player.policy, player.options)
    if isinstance(policy, Learned):
        policy.check_learned(env.settings)
    if not isinstance(policy, Learns):
        seats = Seating(dict.fromkeys(env.possible_agents, policy), env.possible_agents)
        seats.begin(condition.spec.env_name, env.settings, env.possible_agents, np.random.SeedSequence(0))


def _needed(
    seats: Sequence[tuple[str, tuple[Player, ...]]], agents: Sequence[str]
) -> tuple[tuple[str, tuple[Player, ...]], ...]:
    """Seats without those that nobody is left for."""
    left, kept = set(agents), []
    for pattern, players in seats:
        mine = {agent for agent in left if fits(pattern, agent)}
        if mine:
            kept.append((pattern, players))
        left -= mine
    return tuple(kept)


def _player(condition: Condition, given: Given, where: str, told: Mapping[str, Any] = MappingProxyType({})) -> Player:
    options = {**given.options, **told} if given.asks_a_model else given.options
    try:
        return make_player(condition.scenario, full_name(condition.scenario, given.name), options)
    except SettingsError as error:
        where = where if where.startswith("--") else f"--seat {where}"
        raise StudyError(f"{where}: condition '{condition.name}': {error}") from error
    except LlmCoopError as error:
        raise StudyError(f"{where}: condition '{condition.name}': {error}") from error

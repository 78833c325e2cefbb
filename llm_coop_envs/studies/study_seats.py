"""Read the players of a study file: `policies`, the options of `model`, and the `changes` of policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from llm_coop_envs.errors import LlmCoopError, MissingExtra, SettingsError
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.studies.conditions import SEATS, WAITS_FOR, Player, PolicyChange, make_player, seat_matches
from llm_coop_envs.studies.players import asks_a_model, check_policy, full_name, normalise_policy
from llm_coop_envs.treatments.changes import EVERYONE, Change, check_patterns
from llm_coop_envs.util.yaml_source import YamlNode

Seats: TypeAlias = tuple[tuple[str, tuple[Player, ...]], ...]
"""(pattern, players) in the order in which they apply, as in `Condition.seats`."""
_CHANGE_FIELDS = ("from_round", "until_round", "players", "settings", "policy", "model")


def read_seats(node: YamlNode | None, scenario: str, agents: Sequence[str], people: tuple[Player, ...] = ()) -> Seats:
    """Read `policies`.

    Seats named exactly come first, then patterns in the file's order, then `all`.

    Args:
        node: the field's value; `None` if the population plays all seats.
        scenario: the scenario's name.
        agents: the environment's agents.
        people: the players of the condition's population, who take the seats that the field leaves free.

    Raises:
        StudyError: a seat or policy is unknown, or nobody plays an agent.
    """
    if node is None:
        return ((EVERYONE, people),)
    if people and (not isinstance(node.value, dict) or EVERYONE in node.value or "mix" in node.value):
        node.fail("fills the seats of the population, whose 'play' names policies; keep one")
    if not isinstance(node.value, dict) or "name" in node.value or "mix" in node.value:
        return ((EVERYONE, _read_players(node, scenario)),)
    rows = []
    for pattern, players_node in node.mapping().items():
        _check_seat("policies", pattern, players_node, agents)
        rows.append((pattern, _read_players(players_node, scenario)))
    # Seats named exactly before patterns, `all` last; the sort keeps the file's order among equals.
    agent_names = set(agents)
    rows.sort(key=lambda row: (row[0] == EVERYONE, row[0] not in agent_names))
    if people:
        rows.append((EVERYONE, people))
    empty = next((agent for agent in agents if not any(seat_matches(pattern, agent) for pattern, _ in rows)), None)
    if empty is not None:
        node.fail(f"nobody plays {empty}; add a line for it, or for 'all'")
    return tuple(rows)


def _read_players(node: YamlNode, scenario: str) -> tuple[Player, ...]:
    if isinstance(node.value, dict) and "mix" in node.value:
        parts = node.mapping(("mix",))["mix"].items()
        return tuple(_read_player(part, scenario, mixed=True) for part in parts)
    if isinstance(node.value, str) and node.value in WAITS_FOR:
        return (Player(policy=node.value, options={}),)
    return (_read_player(node, scenario, mixed=False),)


def _read_player(node: YamlNode, scenario: str, *, mixed: bool) -> Player:
    if isinstance(node.value, list):
        node.fail("must be a policy, or a mapping from seats to policies such as '{SEAT: NAME, all: NAME}', not a list")
    if isinstance(node.value, dict):
        known = ("name", "options", "share") if mixed else ("name", "options")
        stray = next((key for key in node.value if key not in known), None)
        if stray is not None and "name" in node.value and "options" not in node.value:
            node.value[stray].fail(f"is not known here; a policy's own options stand under 'options: {{{stray}: ...}}'")
        fields = node.mapping(known, required=("name",))
    else:
        fields = {"name": node}
    name_node = fields["name"]
    try:
        policy = full_name(scenario, name_node.text())
    except SettingsError as error:
        name_node.fail_setting(error)
    options = fields["options"].mapping() if "options" in fields else {}
    share = fields["share"].number(0) if "share" in fields else 1.0
    option_values = {name: option.plain() for name, option in options.items()}
    try:
        return make_player(scenario, policy, option_values, share)
    except MissingExtra:  # `check_players` raises it: other conditions of the study can be played without the extra
        return Player(policy=policy, options=option_values, share=share)
    except SettingsError as error:
        options.get(error.field, fields.get("options", name_node)).fail_setting(error)
    except LlmCoopError as error:
        name_node.fail(str(error))


def read_model_options(node: YamlNode, scenario: str, agents: Sequence[str]) -> dict[str, Any]:
    """Read `model`: options of the language models that are given for the seats, and under `seats` those of some.

    Raises:
        StudyError: a seat is unknown, or no model can be made with these options.
    """
    shared = node.mapping()
    seats = shared.pop(SEATS).mapping() if SEATS in shared else {}
    for pattern, seat_node in seats.items():
        _check_seat("model", pattern, seat_node, agents)
    own = [seat_node.mapping() for seat_node in seats.values() if seat_node.value is not None]
    for options in (shared, *({**shared, **seat_options} for seat_options in own)):
        try:
            check_policy(scenario, f"{LLM}:any", {name: option.plain() for name, option in options.items()})
        except SettingsError as error:
            options.get(error.field, node).fail_setting(error)
    return node.plain_mapping()


def _check_seat(field: str, pattern: str, node: YamlNode, agents: Sequence[str]) -> None:
    try:
        check_patterns(field, (pattern,), agents)
    except SettingsError as error:
        node.fail(f"'{pattern}' {error.why}")


def check_change(node: YamlNode) -> YamlNode:
    """Return an entry of `changes` once it is clear that it says in which rounds it holds, and what changes.

    Raises:
        StudyError: it does not.
    """
    fields = node.mapping(_CHANGE_FIELDS)
    if not fields.keys() & {"from_round", "until_round"}:
        node.fail("'from_round' is missing: the first round in which it holds (or 'until_round', the last)")
    if not fields.keys() & {"settings", "policy", "model"}:
        node.fail("needs 'settings', 'policy' or 'model': what is otherwise in these rounds")
    if {"policy", "model"} <= fields.keys():
        fields["model"].fail("stands beside 'policy'; write two entries")
    return node


def without_policy(change: YamlNode) -> dict[str, Any]:
    """An entry of `changes` as the environment's setting of that name has it: without a policy or model."""
    return {name: value for name, value in change.plain().items() if name not in ("policy", "model")}


def read_policy_change(node: YamlNode, scenario: str, seats: Seats, agents: Sequence[str]) -> PolicyChange:
    """Read an entry of `changes` with a `policy` or a `model`.

    Raises:
        StudyError: there is no such policy, player or option.
    """
    fields = node.mapping()
    try:
        when = Change(**{name: fields[name].plain() for name in fields if name not in ("policy", "model", "settings")})
        check_patterns("players", when.players, agents)
    except SettingsError as error:
        node.find(error.field).fail_setting(error)
    if "model" in fields:
        if SEATS in fields["model"].value:
            fields["model"].find(SEATS).fail("is said by 'players' here")
        return PolicyChange(when=when, options=read_model_options(fields["model"], scenario, agents), for_models=True)
    policy_node = fields["policy"]
    own = policy_node.mapping(("name", "options")) if isinstance(policy_node.value, dict) else {"name": policy_node}
    options = own["options"].plain_mapping() if "options" in own else {}
    affected = [player for pattern, players in seats if _affects(pattern, when, agents) for player in players]
    if not own:
        policy_node.fail("needs a 'name', or the 'options' that change")
    try:
        policy = full_name(scenario, own["name"].text()) if "name" in own else ""
        change = _settle_change(PolicyChange(when=when, policy=policy, options=options), affected)
        for player in affected:
            if player.policy not in WAITS_FOR:
                change.successor_of(scenario, player)
    except SettingsError as error:
        is_name = error.field == "policy"
        faulty = own.get("name", policy_node) if is_name else node.find(f"policy.options.{error.field}")
        faulty.fail_setting(error)
    except LlmCoopError as error:
        policy_node.fail(str(error))
    return change


def _settle_change(change: PolicyChange, affected: Sequence[Player]) -> PolicyChange:
    """The change with its policy's one spelling, and apart from its options where a model is reached.

    Raises:
        SettingsError: name and options contradict each other.
    """
    if change.policy:
        policy, options, endpoint = normalise_policy(change.policy, change.options)
        return replace(change, policy=policy, options=options, endpoint=endpoint)
    if any(asks_a_model(player.policy) for player in affected):
        # Only options change: any name will do for the model, unless they name another one.
        named = {"model": change.options["model"]} if "model" in change.options else {}
        _, options, endpoint = normalise_policy(LLM, {"model": "as before", **change.options})
        return replace(change, options={**named, **options}, endpoint=endpoint)
    return change


def _affects(pattern: str, when: Change, agents: Sequence[str]) -> bool:
    return any(seat_matches(pattern, agent) and when.means(agent) for agent in agents)

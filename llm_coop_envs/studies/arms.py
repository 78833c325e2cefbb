"""Arms of a branched run: each continues a condition's episodes from one round on, with something changed in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.study_file import check_change, policy_change
from llm_coop_envs.util.yaml_source import Spot

AS_IT_WAS = "as_it_was"
"""The arm in which nothing is changed; it is added where the file has none."""
_FILE_FIELDS = ("name", "description", "arms")
_ARM_FIELDS = ("name", "title", "changes", "until_round", "players", "settings", "policy", "model")


@dataclass(frozen=True, kw_only=True)
class ArmsFile:
    """A file of arms.

    Attributes:
        name: the name of the branched study; empty if the file gives none.
        description: what it is for; likewise.
        arms: names, titles and changes of the arms; the first one changes nothing.
    """

    name: str
    description: str
    arms: tuple[tuple[str, str, tuple[Spot, ...]], ...]

    def of(self, condition: Condition, seeds: Sequence[int], at: int) -> list[Condition]:
        """The conditions that continue one from a round on.

        Raises:
            StudyError: an arm cannot be played there.
        """
        return [_arm(condition, tuple(seeds), at, *one) for one in self.arms]


def read_arms(spot: Spot, at: int) -> ArmsFile:
    """Read a file of arms, whose changes hold from a round on where they do not name a later one.

    Raises:
        StudyError: it is wrong.
    """
    fields = spot.mapping(_FILE_FIELDS, required=("arms",))
    arms: list[tuple[str, str, tuple[Spot, ...]]] = []
    plain: list[Any] = []
    for item in fields["arms"].items():
        own = item.mapping(_ARM_FIELDS, required=("name",))
        name = own["name"].label()
        if name.lower() in (known.lower() for known, _, _ in arms):
            own["name"].fail(f"'{name}' is already an arm")
        alone = {key: value for key, value in own.items() if key not in ("name", "title", "changes")}
        if alone and "changes" in own:
            own["changes"].fail(f"stands beside '{next(iter(alone))}'; write all changes in the list")
        entries = own["changes"].items() if "changes" in own else [replace(item, value=alone)] if alone else []
        changes = tuple(_from_round(entry, at) for entry in entries)
        if [entry.plain() for entry in changes] in plain:
            twin = arms[plain.index([entry.plain() for entry in changes])][0]
            item.fail(f"arm '{name}' changes the same as arm '{twin}'; there is nothing to compare")
        plain.append([entry.plain() for entry in changes])
        arms.append((name, own["title"].text() if "title" in own else name, changes))
    if [] not in plain:
        arms.insert(0, (AS_IT_WAS, "as it was", ()))
    arms.sort(key=lambda one: bool(one[2]))
    return ArmsFile(
        name=fields["name"].label() if "name" in fields else "",
        description=fields["description"].text() if "description" in fields else "",
        arms=tuple(arms),
    )


def _from_round(spot: Spot, at: int) -> Spot:
    fields = spot.mapping()
    if "from_round" not in fields:
        return check_change(replace(spot, value={"from_round": replace(spot, value=at), **fields}))
    fields["from_round"].integer(at, 2**31)
    return check_change(spot)


def _arm(
    condition: Condition, seeds: tuple[int, ...], at: int, name: str, title: str, changes: tuple[Spot, ...]
) -> Condition:
    before = list(condition.settings.get("changes", ()))
    of_settings = [item for item in changes if "settings" in item.value]
    more = [{key: one for key, one in item.plain().items() if key not in ("policy", "model")} for item in of_settings]
    changed = {"changes": [*before, *more]} if more else {}
    try:
        env = condition.spec.environment(**{**condition.settings, **changed})
    except SettingsError as error:
        number, _, rest = error.field.removeprefix("changes[").partition("].")
        if not rest or not changes:
            raise
        where = of_settings[int(number) - len(before)].at(rest)
        where.fail(f"{error.value!r}: {error.why} (condition '{condition.name}')")
    policies = [
        policy_change(item, condition.scenario, condition.seats, env.possible_agents)
        for item in changes
        if item.value.keys() & {"policy", "model"}
    ]
    return replace(
        condition,
        name=f"{condition.name}-{name}",
        title=f"{condition.title}, {title}",
        variant=title,
        settings=env.settings.to_json(),
        changed={**condition.changed, **changed},
        seeds=seeds,
        pair=condition.name,
        changes=(*condition.changes, *policies),
        branch={"condition": condition.name, "at": at, "streams": condition.streams},
    )

"""Arms of a branched run: each continues a condition's episodes from one round on, with something changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.study_seats import check_change, read_policy_change, without_policy
from llm_coop_envs.util.yaml_source import YamlNode, text_of

AS_IT_WAS = "as_it_was"
"""The name of the arm without changes, which is added where the file has none."""
_FILE_FIELDS = ("name", "description", "arms")
_ARM_FIELDS = ("name", "title", "changes", "until_round", "players", "settings", "policy", "model")


@dataclass(frozen=True, kw_only=True)
class BranchArm:
    """An arm of a file.

    Attributes:
        name: unique in the file.
        title: its name in reports.
        changes: entries of `changes` that have been checked; empty for an arm in which nothing is changed.
    """

    name: str
    title: str
    changes: tuple[YamlNode, ...] = ()

    def continue_condition(self, condition: Condition, seeds: Sequence[int], at: int) -> Condition:
        """The condition that continues one from a round on.

        Args:
            condition: the condition whose episodes are continued.
            seeds: those of the episodes.
            at: the round.

        Raises:
            StudyError: the arm cannot be played there.
        """
        earlier = list(condition.settings.get("changes", ()))
        setting_changes = [change for change in self.changes if "settings" in change.value]
        changed = {"changes": [*earlier, *map(without_policy, setting_changes)]} if setting_changes else {}
        try:
            env = condition.spec.environment(**{**condition.settings, **changed})
        except SettingsError as error:
            # "changes[3].settings.talk": the number counts the condition's own changes, too.
            number, _, path = error.field.removeprefix("changes[").partition("].")
            if not path or not self.changes:
                raise
            faulty = setting_changes[int(number) - len(earlier)].find(path)
            faulty.fail(f"{error.value!r}: {error.why} (condition '{condition.name}')")
        policy_changes = [
            read_policy_change(change, condition.scenario, condition.seats, env.possible_agents)
            for change in self.changes
            if change.value.keys() & {"policy", "model"}
        ]
        return replace(
            condition,
            name=f"{condition.name}-{self.name}",
            title=f"{condition.title}, {self.title}",
            variant=self.title,
            settings=env.settings.to_json(),
            changed={**condition.changed, **changed},
            seeds=tuple(seeds),
            pair=condition.name,
            when="",
            changes=(*condition.changes, *policy_changes),
            branch={"condition": condition.name, "at": at, "streams": condition.streams},
        )


@dataclass(frozen=True, kw_only=True)
class ArmsFile:
    """A file of arms.

    Attributes:
        name: the name of the branched study; empty if the file gives none.
        description: the purpose of the study; likewise.
        arms: the arms; the first one changes nothing.
    """

    name: str
    description: str
    arms: tuple[BranchArm, ...]


def read_arms(node: YamlNode, at: int) -> ArmsFile:
    """Read a file of arms.

    Args:
        node: the file's root.
        at: the round from which the arms differ; changes that name no round hold from there on.

    Raises:
        StudyError: the file is wrong.
    """
    fields = node.mapping(_FILE_FIELDS, required=("arms",))
    arms: list[BranchArm] = []
    plain_changes: list[list[Any]] = []
    for entry in fields["arms"].items():
        name_node = entry.mapping(_ARM_FIELDS, required=("name",))["name"]
        if name_node.label().lower() in (other.name.lower() for other in arms):
            name_node.fail(f"'{name_node.label()}' is already an arm")
        arm = _read_arm(entry, at)
        plain = [change.plain() for change in arm.changes]
        if plain in plain_changes:
            twin = arms[plain_changes.index(plain)].name
            entry.fail(f"arm '{arm.name}' changes the same as arm '{twin}'; there is nothing to compare")
        plain_changes.append(plain)
        arms.append(arm)
    if [] not in plain_changes:
        arms.insert(0, BranchArm(name=AS_IT_WAS, title="as it was"))
    arms.sort(key=lambda arm: bool(arm.changes))
    return ArmsFile(
        name=fields["name"].label() if "name" in fields else "",
        description=text_of(fields, "description"),
        arms=tuple(arms),
    )


def _read_arm(node: YamlNode, at: int) -> BranchArm:
    fields = node.mapping()
    name = fields["name"].label()
    # An arm's only change may be written without a list, beside its name.
    only_change = {key: value for key, value in fields.items() if key not in ("name", "title", "changes")}
    if only_change and "changes" in fields:
        fields["changes"].fail(f"stands beside '{next(iter(only_change))}'; write all changes in the list")
    changes = fields["changes"].items() if "changes" in fields else []
    if only_change:
        changes = [replace(node, value=only_change)]
    return BranchArm(
        name=name, changes=tuple(_start_at(change, at) for change in changes), title=text_of(fields, "title", name)
    )


def _start_at(change: YamlNode, at: int) -> YamlNode:
    """The change with a `from_round`, which is not before the round at which episodes are continued."""
    fields = change.mapping()
    if "from_round" not in fields:
        return check_change(replace(change, value={"from_round": replace(change, value=at), **fields}))
    fields["from_round"].integer(at, 2**31)
    return check_change(change)

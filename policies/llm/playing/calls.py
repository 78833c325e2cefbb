"""The kinds of questions that a model is asked, and where the scenarios' own stand.

Every call shows some of what a player may know, and no more. Its templates get the names listed here and no others, so
that no wording can show what was not meant to be seen.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.util.references import load

#: Names that every template of a call gets besides its slots: the form of the answer, for about how many words there is
#: room (`None`: no limit is known), and the persona's words.
SHARED = frozenset({"answer_as", "answer_words", "persona"})

#: What asks in a scenario that brings no workflow of its own.
GENERIC = "llm_coop_envs.policies.llm.playing.workflow:GenericWorkflow"


def names(text: str) -> frozenset[str]:
    """The words of a text: the names that a template may use."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Call:
    """One kind of question to a model.

    Attributes:
        name: what is asked, as in `RequestKey.call`; also the template's name.
        key: the key of words where an object is asked for; the question's name stands for it in choices.
        slots: the names its template may use: fields of the scenario's slots, and private memory.
        shrinks: lists that give way when the prompt would be too long, first to last, and which end is kept:
            `"newest"` (the end) or `"first"` (the beginning).
        beside: the texts that stand before a choice in an object, by their keys.
    """

    name: str
    key: str
    slots: frozenset[str]
    shrinks: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ("reason",)

    @property
    def template(self) -> str:
        """The file name of its template."""
        return f"{self.name}.jinja"

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All names its template may use."""
        return self.slots | SHARED | {f"{name}_left_out" for name, _ in self.shrinks}

    @functools.cached_property
    def nothing_left_out(self) -> Mapping[str, int]:
        """How many items of each list are left out at first: none."""
        return {f"{name}_left_out": 0 for name, _ in self.shrinks}

    def values(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What its template is given: of all that a player knows, what the call may show."""
        ordered, take = self._taken
        try:
            return dict(zip(ordered, take(facts), strict=True))
        except KeyError:
            return {name: facts[name] for name in ordered if name in facts}

    @functools.cached_property
    def _taken(self) -> tuple[tuple[str, ...], operator.itemgetter[Any]]:
        ordered = tuple(sorted(self.names))
        return ordered, operator.itemgetter(*ordered)


class Asked(Protocol):
    """What a class of workflows says of itself; see `workflow.Workflow`."""

    calls: tuple[Call, ...]
    settings_type: type[Settings]
    presets: Mapping[str, Mapping[str, Any]]
    from_text: bool


def workflow_class(scenario: Scenario) -> Any:
    """A scenario's class of workflows."""
    return load(scenario.workflow or GENERIC)


def workflow_classes() -> dict[str, Asked]:
    """The workflows of all scenarios that there are, by the scenario's name."""
    return {name: workflow_class(scenario) for name, scenario in scenarios().items()}

"""Calls: the kinds of questions that a model is asked.

A call lists the names that its templates may use, and its templates get no others. So no wording can show what a
player must not see.
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

#: Names that every call's template gets besides its slots: the form of the answer, about how many words it may have
#: (`None`: no limit is known), and the persona's text.
SHARED = frozenset({"answer_as", "answer_words", "persona"})

#: The workflow of scenarios that bring none of their own.
GENERIC = "llm_coop_envs.policies.llm.playing.workflow:GenericWorkflow"


def names(text: str) -> frozenset[str]:
    """Split a text into the names that a template may use."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Call:
    """One kind of question to a model.

    Attributes:
        name: the call's name, as in `RequestKey.call`; also its template's name.
        key: the key of a text where an object is asked for; choices have their question's name as key.
        slots: the names its template may use: fields of the scenario's slots, and private memory.
        shrinks: lists that are shortened when the prompt would be too long, first to last, and which end is kept:
            `"newest"` (the end) or `"first"` (the beginning).
        beside: the keys of texts that precede a choice in an object.
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
        """All names that its template may use."""
        return self.slots | SHARED | {f"{name}_left_out" for name, _ in self.shrinks}

    @functools.cached_property
    def nothing_left_out(self) -> Mapping[str, int]:
        """The counts of left-out items for a prompt from which nothing is left out."""
        return {f"{name}_left_out": 0 for name, _ in self.shrinks}

    def values(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Select from all that a player knows what the call may show."""
        ordered, select = self._selection
        try:
            return dict(zip(ordered, select(facts), strict=True))
        except KeyError:
            return {name: facts[name] for name in ordered if name in facts}

    @functools.cached_property
    def _selection(self) -> tuple[tuple[str, ...], operator.itemgetter[Any]]:
        ordered = tuple(sorted(self.names))
        return ordered, operator.itemgetter(*ordered)


class WorkflowClass(Protocol):
    """The class attributes of a workflow; see `workflow.Workflow`."""

    calls: tuple[Call, ...]
    settings_type: type[Settings]
    presets: Mapping[str, Mapping[str, Any]]
    from_text: bool


def workflow_class(scenario: Scenario) -> Any:
    """Load a scenario's workflow class."""
    return load(scenario.workflow or GENERIC)


def workflow_classes() -> dict[str, WorkflowClass]:
    """Load the workflow classes of all scenarios, by the scenario's name."""
    return {name: workflow_class(scenario) for name, scenario in scenarios().items()}

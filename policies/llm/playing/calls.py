"""What a model is asked in each scenario: the calls, and the slots each may show.

The published protocol (Wu et al. 2024, "Shall We Team Up", and the authors' code) gives every call some of what a
player may know, and no more: planning does not see this round's talk, nobody sees a rival's sales, an evacuee who feels
does not yet know how full the exits are. A pack's templates get these names and no others, so that no wording can show
what was not published.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Names that every template of a call gets besides its slots: the form of the answer, and the persona's words.
SHARED = frozenset({"answer_as", "persona"})


@dataclass(frozen=True)
class Call:
    """One kind of question to a model.

    Attributes:
        scenario: the scenario's name without its version.
        name: what is asked, as in `RequestKey.call`; also the template's name.
        key: the key of the answer where an object is asked for.
        slots: the names its template may use: fields of the scenario's slots, and private memory.
        shrinks: lists that give way when the prompt would be too long, first to last, and which end is kept.
    """

    scenario: str
    name: str
    key: str
    slots: frozenset[str]
    shrinks: tuple[tuple[str, str], ...] = ()

    @property
    def template(self) -> str:
        """The path of its template in a pack."""
        return f"{self.scenario}/{self.name}.jinja"

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All names its template may use."""
        return self.slots | SHARED | {f"{name}_left_out" for name, _ in self.shrinks}

    @functools.cached_property
    def taken(self) -> tuple[tuple[str, ...], operator.itemgetter[Any]]:
        """All names in a fixed order, and what takes their values from all that is known."""
        names = tuple(sorted(self.names))
        return names, operator.itemgetter(*names)

    @functools.cached_property
    def nothing_left_out(self) -> Mapping[str, int]:
        """How many items of each list are left out at first: none."""
        return {f"{name}_left_out": 0 for name, _ in self.shrinks}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KBC_RULES = _names(
    "me players low high integer ratio offset winner_rule tolerance reward_rule unit currency groups group"
    " repeated round"
    " past turns together"
)
_BERTRAND_SCENE = _names("me rivals cost round history bins bin_size")
_EVACUATION_SCENE = _names("rows cols rounds exit_names")

_CALLS = (
    # Number contest: section "Keynesian beauty contest" of Wu et al. 2024; planning and choosing are one call.
    Call(
        "kbc",
        "talk",
        "message",
        _KBC_RULES | _names("turn heard summary message_length"),
        (("heard", "newest"), ("past", "newest")),
    ),
    Call(
        "kbc",
        "choose",
        "number",
        _KBC_RULES | _names("heard summary reasons number_first"),
        (("heard", "newest"), ("reasons", "newest"), ("past", "newest")),
    ),
    # Price competition. The statistics (`bins`) come in the rounds in which the environment shows them.
    Call(
        "bertrand",
        "talk",
        "message",
        _BERTRAND_SCENE | _names("plan said exchange exchanges message_length"),
        (("said", "newest"), ("bins", "newest"), ("history", "newest")),
    ),
    Call(
        "bertrand",
        "plan",
        "plan",
        _BERTRAND_SCENE | _names("plans"),
        (("plans", "newest"), ("bins", "newest"), ("history", "newest")),
    ),
    Call(
        "bertrand",
        "price",
        "price",
        _BERTRAND_SCENE | _names("plan said exchanges floor cap choices"),
        (("said", "newest"), ("bins", "newest"), ("history", "newest")),
    ),
    # Evacuation: appendix of Wu et al. 2024.
    Call(
        "evacuation",
        "talk",
        "message",
        _EVACUATION_SCENE | _names("exits heard feeling message_length"),
        (("heard", "first"),),
    ),
    Call("evacuation", "panic", "feeling", _EVACUATION_SCENE | _names("nearest_distance around around_kind")),
    Call("evacuation", "evaluate", "evaluation", _EVACUATION_SCENE | _names("feeling exits")),
    Call(
        "evacuation",
        "exit",
        "exit",
        _EVACUATION_SCENE | _names("feeling evaluation heard may_talk past_exits target"),
        (("heard", "first"), ("past_exits", "newest")),
    ),
    Call(
        "evacuation", "move", "move", _names("rows cols rounds row col previous target_cell direction options together")
    ),
)

#: All calls by scenario and name.
CALLS: dict[tuple[str, str], Call] = {(call.scenario, call.name): call for call in _CALLS}

#: What the templates that belong to no scenario may use.
COMMON_TEMPLATES: dict[str, frozenset[str]] = {
    # Asks what an answer that could not be read was meant to say.
    "repair.jinja": _names("kind answer low high whole allowed options answer_as key"),
    # Added to the question when it is asked again.
    "again.jinja": _names("why kind value low high whole allowed options"),
    # Asks for a shorter account of what was said.
    "summary.jinja": _names("me heard summary words"),
}

SCENARIOS = tuple(dict.fromkeys(call.scenario for call in _CALLS))


def calls_of(scenario: str) -> tuple[Call, ...]:
    """The calls of a scenario, in the order in which a round makes them."""
    return tuple(call for call in _CALLS if call.scenario == scenario)

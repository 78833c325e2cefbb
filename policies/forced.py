"""A forced choice: whoever is asked for it gives the same answer, and leaves everything else to another policy.

In studies it is called `forced`: `{name: forced, options: {choice: 40}}` names 40, or asks the price 40;
`{name: forced, options: {choice: left, phase: exit}}` makes for the left exit, and walks as the other policy would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.registry import find_scenario, scenario_of
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import ILLEGAL, Number, Options
from llm_coop_envs.policies.base import Action, Policy
from llm_coop_envs.policies.scripted import make as make_scripted
from llm_coop_envs.util.checks import suggestion

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

LABEL = "scripted"
_OPTIONS = ("choice", "phase", "message", "otherwise")


class Forced(Policy):
    """Gives one answer wherever it is asked for; one that is not legal is flagged, as everybody's.

    Args:
        choice: a number (of listed ones the nearest is taken), or an option's name.
        phase: the phase in which it is forced; empty for every one but talk.
        message: what is said in talk.
        otherwise: the scripted policy that answers in other phases; by default the one that fills the scenario's empty
            seats.
    """

    slots_only = True
    waits = False

    def __init__(self, choice: float | str, phase: str = "", message: str = "", otherwise: str = "") -> None:
        if isinstance(choice, bool) or not isinstance(choice, int | float | str):
            raise SettingsError("choice", choice, "must be a number, or an option's name")
        for name, value in (("phase", phase), ("message", message), ("otherwise", otherwise)):
            if not isinstance(value, str):
                raise SettingsError(name, value, "must be a text")
        self.choice, self.phase, self.message, self.otherwise = choice, phase, message, otherwise

    def begin(self, episode: Episode) -> None:
        """Start an episode."""
        super().begin(episode)
        if not self.phase:
            return
        scenario = scenario_of(episode.scenario)
        self._else = make_scripted(f"{scenario.name}/{self.otherwise or scenario.opponent}")
        self._else.begin(episode)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """The forced choice, or what the other policy does."""
        rest = [request for request in requests if not self._forces(request.info["slots"].phase)]
        others = iter(await self._else.act(rest) if rest else ())
        actions: list[Action] = []
        for request in requests:
            slots = request.info["slots"]
            if slots.phase == TALK:
                actions.append({"message": self.message})
            else:
                actions.append({"choice": self._choice(slots.question)} if self._forces(slots.phase) else next(others))
        return actions

    def _forces(self, phase: str) -> bool:
        return phase == TALK or self.phase in ("", phase)

    def _choice(self, question: Any) -> float | int:
        """What `step` takes for the choice."""
        wanted = self.choice
        if isinstance(question, Options):
            option = question.find(str(wanted))
            return ILLEGAL if option is None else option.choice
        if not isinstance(question, Number) or isinstance(wanted, str):
            return ILLEGAL
        if question.listed:
            return min(question.listed, key=lambda one: abs(one[1] - wanted))[0]
        return question.choice(wanted)


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> None:
    """Find out whether the policy can be made.

    Raises:
        SettingsError: an option is unknown or impossible, or there is no choice among them.
    """
    made = make(scenario, argument, options)
    phases = find_scenario(scenario).env_class.act_phases
    if made.phase and made.phase not in phases:
        raise SettingsError("phase", made.phase, f"is no phase of {scenario}; {suggestion(made.phase, phases)}")
    if made.otherwise:
        make_scripted(f"{scenario}/{made.otherwise}")


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: Chat | None = None) -> Forced:
    """Make the policy.

    Raises:
        SettingsError: an option is unknown or impossible, or there is no choice among them.
    """
    for name, value in options.items():
        if name not in _OPTIONS:
            raise SettingsError(name, value, f"is no option of a forced choice; {suggestion(name, _OPTIONS)}")
    if argument or "choice" not in options:
        raise SettingsError("policy", "forced", "needs its choice as an option: {name: forced, options: {choice: 40}}")
    return Forced(**options)

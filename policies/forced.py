"""A forced choice: a policy that always gives the same answer and leaves other phases to a scripted policy.

In studies it is called `forced`. `{name: forced, options: {choice: 40}}` names the number 40, or asks the price 40.
`{name: forced, options: {choice: left, phase: exit}}` chooses the left exit and walks as the scripted policy would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.registry import find_scenario, scenario_of
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import ILLEGAL, Number, Options
from llm_coop_envs.policies.scripted import make as make_scripted
from llm_coop_envs.util.checks import suggestion

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

LABEL = "scripted"
_OPTIONS = ("choice", "phase", "message", "otherwise")


class Forced(Policy):
    """Gives one answer in one phase or in all phases. An illegal answer is flagged, as any player's.

    Args:
        choice: a number, or an option's name. If the legal numbers are listed, the nearest one is chosen. Else the move
            as in events: `None` to pass, a list of options, a mapping of parts or of per cents.
        phase: the phase in which the choice is forced; empty for all phases but talk.
        message: the message in talk.
        otherwise: the scripted policy that answers in other phases; by default the scenario's for its first seat.
    """

    slots_only = True
    waits = False

    def __init__(self, choice: Any, phase: str = "", message: str = "", otherwise: str = "") -> None:
        if isinstance(choice, bool) or not isinstance(choice, int | float | str | list | dict | None):
            raise SettingsError("choice", choice, "must be a number, an option's name, or a list or mapping of these")
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
        self._else = make_scripted(f"{scenario.name}/{self.otherwise or scenario.opponent_of(episode.seats[0])}")
        self._else.begin(episode)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer with the forced choice, or with the other policy's action."""
        unforced = [request for request in requests if not self._forces(request.info["slots"].phase)]
        others = iter(await self._else.act(unforced) if unforced else ())
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

    def _choice(self, question: Any) -> Any:
        """The forced choice as `step` takes it; `ILLEGAL` if the question does not have it."""
        forced = self.choice
        if isinstance(question, Options):
            option = question.find(str(forced))
            return ILLEGAL if option is None else option.choice
        if not isinstance(question, Number) or question.passing:
            return forced  # the environment reads it itself
        if not isinstance(forced, int | float):
            return ILLEGAL
        if question.listed:
            return min(question.listed, key=lambda entry: abs(entry[1] - forced))[0]
        return question.choice(forced)


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> None:
    """Check that the policy can be made.

    Raises:
        SettingsError: an option is unknown or impossible, or there is no choice among them.
    """
    policy = make(scenario, argument, options)
    phases = find_scenario(scenario).env_class.act_phases
    if policy.phase and policy.phase not in phases:
        raise SettingsError("phase", policy.phase, f"is no phase of {scenario}; {suggestion(policy.phase, phases)}")
    if policy.otherwise:
        make_scripted(f"{scenario}/{policy.otherwise}")


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

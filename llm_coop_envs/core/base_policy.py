"""Base classes of policies, which decide for many players at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.mechanisms.settings import MECHANISM_PHASES
from llm_coop_envs.treatments.regulator import REPORT, SEAT

Action = dict[str, Any]


class Policy(ABC):
    """Decides for one or more seats.

    One object may play many seats; it keys anything it remembers of a player by the agent's name.

    Attributes:
        slots_only: whether it decides from the info's `slots`, `round` and `step` alone. If all policies of an episode
            do, no observations are built, which are most of an episode's cost.
        waits: whether `act` may wait for something. If no policy of an episode does, `play` and `SingleAgentView` need
            no event loop.
    """

    slots_only: bool = False
    waits: bool = True

    def begin(self, episode: Episode) -> None:
        """Start a new episode and forget the last one.

        Args:
            episode: the scenario, its settings, the seats to play, and the policy's own generator.
        """
        self.episode = episode

    def continue_from(self, earlier: Policy) -> None:
        """Share the memory of a policy that takes turns with this one in the episode; called after `begin`.

        By default nothing is shared.
        """
        return None

    @abstractmethod
    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer the requests of a step.

        Args:
            requests: (agent, observation, info) of the players on turn.

        Returns:
            One action per request, in the same order: `{"choice": ...}` in act phases, `{"message": ...}` in talk
            phases; both keys may be present in either. A message may come with its speaker's own `"paraphrase"`, for
            environments with `delivery_by: speaker`.
        """


class ScriptedPolicy(Policy):
    """A rule that answers each request separately, without waiting."""

    waits = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Let a subclass with its own `act` wait, unless it sets `waits` itself."""
        super().__init_subclass__(**keywords)
        if "act" in vars(cls) and "waits" not in vars(cls):
            cls.waits = True

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer requests one by one, in order."""
        return [self.decide(request) for request in requests]

    @abstractmethod
    def decide(self, request: Request) -> Action:
        """Return one player's action."""


def stand_aside(slots: Any) -> Action | None:
    """The answer of a rule that plays the scenario alone, wherever something else is asked; `None` for a choice.

    It is silent in talk, reports nothing to a regulator, and takes no part in what a mechanism asks.
    """
    if slots.phase == TALK:
        return {"message": ""}
    if slots.phase == REPORT:
        return {"choice": 0}
    return {"choice": slots.question.stand_in()} if slots.phase in MECHANISM_PHASES else None


class SlotsPolicy(ScriptedPolicy):
    """A rule for one scenario that decides from a player's slots.

    Attributes:
        plays: the scenario's name, such as `"kbc"`.
        settings_type: the class of the scenario's settings.
        settings: the episode's settings.
    """

    slots_only = True
    plays: ClassVar[str]
    settings_type: ClassVar[type[ScenarioSettings]]
    settings: Any

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: the episode is of another scenario, or a seat is the regulator's.
        """
        super().begin(episode)
        if SEAT in episode.seats:
            raise SettingsError("policy", type(self).__name__, "plays no regulator; give that seat a policy of its own")
        if not isinstance(episode.settings, self.settings_type):
            raise SettingsError("policy", type(self).__name__, f"plays {self.plays}, not {episode.scenario}")
        self.settings = episode.settings

    def decide(self, request: Request) -> Action:
        """Return a message in talk, else a choice."""
        slots = request.info["slots"]
        if slots.phase == TALK:
            return {"message": self.say(slots)}
        return stand_aside(slots) or {"choice": self.choose(slots)}

    def say(self, slots: Any) -> str:
        """The message in talk; empty by default."""
        return ""

    @abstractmethod
    def choose(self, slots: Any) -> Any:
        """The action's choice."""

"""The policy contract: who decides, for many players at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.treatments.regulator import REPORT, SEAT

Action = dict[str, Any]


class Policy(ABC):
    """Decides for the seats it was given.

    One object may play many seats; what it keeps per player it keys by agent name.

    Attributes:
        slots_only: whether it decides from the info's `slots`, `round` and `step` alone. Where that holds for
            everyone at the table, no observations are built, which are most of an episode's cost.
        waits: whether `act` may wait for something. Where it never does for anybody at the table, `play` and
            `SingleAgentView` need no event loop.
    """

    slots_only: bool = False
    waits: bool = True

    def begin(self, episode: Episode) -> None:
        """A new episode starts: forget the last one.

        Args:
            episode: the scenario, its settings, the seats to play, and a generator of the policy's own.
        """
        self.episode = episode

    def continue_from(self, earlier: Policy) -> None:
        """Both play this episode, now one and now the other: share what `earlier` remembers; by default nothing is.

        Called after `begin`.
        """
        return None

    @abstractmethod
    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer requests.

        Args:
            requests: (agent, observation, info) of players on turn.

        Returns:
            One action per request, in the same order: `{"choice": ...}` in act phases, `{"message": ...}` in talk
            phases; both keys may be present in either. A message may come with its speaker's own `"paraphrase"`, for
            environments with `delivery_by: speaker`.
        """


class ScriptedPolicy(Policy):
    """A rule that answers each request by itself, without waiting for anything."""

    waits = False

    def __init_subclass__(cls, **given: Any) -> None:
        """Whoever answers in another way may wait, unless it says that it does not."""
        super().__init_subclass__(**given)
        if "act" in vars(cls) and "waits" not in vars(cls):
            cls.waits = True

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer requests one by one, in order."""
        return [self.decide(request) for request in requests]

    @abstractmethod
    def decide(self, request: Request) -> Action:
        """One player's action."""


class SlotsPolicy(ScriptedPolicy):
    """A rule for one scenario that decides from what a player may know: words in talk, else a choice.

    Attributes:
        plays: the scenario's name, such as `"kbc"`.
        settings_type: its settings' class.
        settings: the episode's settings.
    """

    slots_only = True
    plays: ClassVar[str]
    settings_type: ClassVar[type[ScenarioSettings]]
    settings: Any

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: it is of another scenario, or the seat is a regulator's.
        """
        super().begin(episode)
        if SEAT in episode.seats:
            raise SettingsError("policy", type(self).__name__, "plays no regulator; give that seat a policy of its own")
        if not isinstance(episode.settings, self.settings_type):
            raise SettingsError("policy", type(self).__name__, f"plays {self.plays}, not {episode.scenario}")
        self.settings = episode.settings

    def decide(self, request: Request) -> Action:
        """A message when talking, else a choice."""
        slots = request.info["slots"]
        if slots.phase == REPORT:  # whether to report to a regulator: these rules do not
            return {"choice": 0}
        return {"message": self.say(slots)} if slots.phase == TALK else {"choice": self.choose(slots)}

    def say(self, slots: Any) -> str:
        """What to say; nothing unless a policy says something."""
        return ""

    @abstractmethod
    def choose(self, slots: Any) -> Any:
        """The action's choice."""

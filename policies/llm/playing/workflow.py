"""The base of the scenarios' workflows: which calls ask a language model for a decision, and in which order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.interface.slots import Slots
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.personas import Persona
from llm_coop_envs.policies.llm.playing.prompter import Prompter
from llm_coop_envs.policies.llm.playing.turn import Turn

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class NoSettings(Settings):
    """A workflow without settings of its own."""


class Workflow(ABC, Generic[S]):
    """The calls of one scenario; a scenario's descriptor names its subclass.

    Args:
        settings: the workflow's settings.
        episode: the episode that begins.
        personas: the personas of the policy's seats.

    Attributes:
        calls: the calls, in the order in which a round makes them; the template of each is in `prompts/PACK` of the
            scenario's room.
        settings_type: the class of its settings; its fields are options of the policy, documented by its docstring.
        presets: the papers' values for this scenario, by the preset's name: `"parameters"` for the model, and settings
            of `settings_type`.
        from_text: whether its prompts use the environment's own text (`turn.text`), which costs time to render.
    """

    calls: ClassVar[tuple[Call, ...]]
    settings_type: ClassVar[type[Settings]] = NoSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    from_text: ClassVar[bool] = False

    def __init__(self, settings: S, episode: Episode, personas: Mapping[str, Persona | None]) -> None:
        self.settings = settings
        self.episode = episode
        self.personas = personas

    @abstractmethod
    async def play(self, prompter: Prompter, turn: Turn, slots: Any) -> Action:
        """Decide for a player.

        Args:
            prompter: asks the model.
            turn: the player's turn, with its memory.
            slots: what the player may know.
        """


class GenericWorkflow(Workflow[NoSettings]):
    """For scenarios without a workflow: one call to talk and one to act, with the environment's own text.

    That text holds all that a player may know, messages and the question included. The prompt adds the persona and the
    form of the answer.
    """

    calls = (
        Call("talk", "message", names("text message_length")),
        Call("act", "", names("text kind key low high integer allowed options passing fewest most parts pattern")),
    )
    from_text = True

    async def play(self, prompter: Prompter, turn: Turn, slots: Slots) -> Action:
        """Ask for a message in a talk phase, else for a choice."""
        talk, act = self.calls
        if slots.phase == TALK:
            return await prompter.message(turn, talk, prompter.facts(turn, talk, {**vars(slots), "text": turn.text}))
        assert slots.question is not None, "whoever is on turn in an act phase is asked something"
        action, _ = await prompter.choose(turn, act, prompter.facts(turn, act, {"text": turn.text}), slots.question)
        return action

"""What a language model is asked in a scenario, and in which order: the base of the scenarios' `workflow.py`."""

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
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.interface.slots import Slots
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.personas import Persona
from llm_coop_envs.policies.llm.playing.prompter import Prompter, Turn

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class NoSettings(Settings):
    """A workflow without settings of its own."""


class Workflow(ABC, Generic[S]):
    """What is asked in one scenario; a scenario's descriptor names its subclass.

    Args:
        settings: the workflow's settings.
        episode: the episode that begins.
        personas: who sits where, for all seats of the policy.

    Attributes:
        calls: what is asked, and what each question may show, in the order in which a round asks; a template of each
            call's name stands in `prompts/PACK` of the scenario's room.
        settings_type: the class of its settings; its fields are options of the policy, documented by its docstring.
        presets: what papers say of this scenario, by the preset's name: `"parameters"` for the model, and settings of
            `settings_type`.
        from_text: whether it asks with the environment's own text (`turn.text`), which costs time to make.
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
        """A player's turn.

        Args:
            prompter: asks the model.
            turn: whose turn it is, with what the player remembers.
            slots: what the player may know.
        """


class GenericWorkflow(Workflow[NoSettings]):
    """For scenarios without a workflow: what to say, and what to do, asked with the environment's own text.

    That text says all that a player may know, what was said included, and the question; the prompt adds the persona
    and the form of the answer.
    """

    calls = (
        Call("talk", "message", names("text message_length")),
        Call("act", "", names("text kind key low high integer allowed options")),
    )
    from_text = True

    async def play(self, prompter: Prompter, turn: Turn, slots: Slots) -> Action:
        """A player's turn."""
        talk, act = self.calls
        if slots.phase == TALK:
            return await prompter.message(turn, talk, prompter.facts(turn, talk, {**vars(slots), "text": turn.text}))
        assert isinstance(slots.question, Number | Options), "whoever is on turn in an act phase is asked something"
        action, _ = await prompter.choose(turn, act, prompter.facts(turn, act, {"text": turn.text}), slots.question)
        return action

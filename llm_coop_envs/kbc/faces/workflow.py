"""The number contest with a language model: one call to speak, one to decide (Wu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Number
from llm_coop_envs.kbc.slots import KBCSlots
from llm_coop_envs.policies.llm.parsing.objects import find_value
from llm_coop_envs.policies.llm.parsing.tokens import remove_template_tokens
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.prompter import Prompter
from llm_coop_envs.policies.llm.playing.turn import Turn
from llm_coop_envs.policies.llm.playing.workflow import Workflow

_RULES = names(
    "me players low high integer ratio offset winner_rule tolerance reward_rule unit currency groups group repeated"
    " round past informed memory turns together heard summary audience hearers announces announcers"
    " statistic opponents"
)
_SHRINKS = (("heard", "newest"), ("reasons", "newest"), ("past", "newest"))
# Authors' code of Wu et al. 2024, "Shall We Team Up" (arXiv version 3).
_TEAM_UP = {"temperature": 0.7, "top_p": 1.0, "max_tokens": 128}


@dataclass(frozen=True, kw_only=True)
class KBCWorkflowSettings(Settings):
    """How models play the number contest.

    Attributes:
        number_first: ask for the number on the first line and the reason on the second (arXiv version 1 of Wu et al.
            2024) instead of the other way round (version 3).
        separate_plan: ask for a plan first and for the number in a second call that shows it (the paper's text, version
            3, has two prompts); else one call asks for both (its program). No reason is asked for beside the number
            then, so `number_first` must be off.
        number_only: ask for the number and no reason, where answers are plain (Pan et al. 2024, the first instruction).
        extraction: let a second call read the number out of every answer (Pan et al. 2024: two calls a decision). What
            it says counts if the answer names it.
        own_reasons: how many of its own earlier reasons a player is shown. 0 in Wu et al. 2024; in Pan et al. 2024
            players keep what they thought before.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"own_reasons": (0, inf)}

    number_first: bool = False
    separate_plan: bool = False
    number_only: bool = False
    extraction: bool = False
    own_reasons: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        if self.number_first and self.separate_plan:
            raise SettingsError("number_first", True, "has no effect with separate_plan, which asks for no reason")
        if self.number_first and self.number_only:
            raise SettingsError("number_first", True, "has no effect with number_only, which asks for no reason")


class KBCWorkflow(Workflow[KBCWorkflowSettings]):
    """Section "Keynesian beauty contest" of Wu et al. 2024: planning and choosing are one call, or two."""

    calls = (
        Call("talk", "message", _RULES | names("turn message_length"), (("heard", "newest"), ("past", "newest"))),
        Call("plan", "plan", _RULES | names("reasons"), _SHRINKS),
        Call("choose", "", _RULES | names("reasons number_first number_only separate_plan plan"), _SHRINKS),
    )
    settings_type = KBCWorkflowSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "team_up": {"parameters": _TEAM_UP},
        # The text of the paper; in it also Claude 3 Sonnet.
        "team_up_text": {"parameters": {**_TEAM_UP, "max_tokens": 256}, "separate_plan": True},
        "team_up_claude": {"parameters": {"temperature": 1.0, "max_tokens": 256}},
        # "Shall We Talk" (arXiv version 1).
        "shall_we_talk": {"parameters": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 256}, "number_first": True},
        # Pan et al. 2024.
        "large_scale": {"parameters": {"temperature": 1.0, "max_tokens": 1024}, "own_reasons": 100},
    }

    async def play(self, prompter: Prompter, turn: Turn, slots: KBCSlots) -> Action:
        """A player's turn."""
        talk, plan, choose = self.calls
        if slots.phase == TALK:
            return await prompter.message(
                turn, talk, prompter.facts(turn, talk, vars(slots), slots.persona, summary=None)
            )
        own, planned = self.settings.own_reasons, ""
        facts = prompter.facts(
            turn,
            choose,
            {**vars(slots), **vars(self.settings)},
            slots.persona,
            summary=None,
            reasons=turn.memory.latest("choose", own),
            plan=None,
        )
        if self.settings.separate_plan:
            planned = await prompter.words(turn, plan, facts)
            facts["plan"] = Note(turn.round, planned) if planned else None
        assert isinstance(slots.question, Number), "whoever decides is asked for a number"
        action, answer = await prompter.choose(turn, choose, facts, slots.question, extract=self.settings.extraction)
        reason = (planned or reason_of(answer)) if own else ""
        if reason:
            turn.memory.write("choose", Note(turn.round, reason))
        return action


def reason_of(text: str) -> str:
    """The reason in an answer: that of its JSON object, else all lines of more than three words.

    Of the lines "33" and "I expect the others to say 50." the second is the reason.
    """
    reason = find_value(text, ("reason", "reasoning", "explanation"))
    if isinstance(reason, str):
        return remove_template_tokens(reason)[0].strip()
    lines = [line.strip() for line in remove_template_tokens(text)[0].split("\n") if line.strip()]
    return " ".join(line for line in lines if len(line.split()) > 3)

"""The questions to a language model in an evacuation (Wu et al. 2024): talk, feeling, evaluation, exit, moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.slots import EvacuationSlots
from llm_coop_envs.interface.question import Options
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.prompter import Prompter
from llm_coop_envs.policies.llm.playing.turn import Turn
from llm_coop_envs.policies.llm.playing.workflow import Workflow

_ROOM = names("rows cols rounds exit_names summarised strong confident helpful")
_SEEN = _ROOM | names("informed exits counts_self counts_desks feeling")
# Authors' code of Wu et al. 2024: the same for all calls; neither paper nor code sets anything phase by phase.
_TEAM_UP = {"parameters": {"temperature": 0.0, "top_p": 1.0, "max_tokens": 512}}


@dataclass(frozen=True, kw_only=True)
class EvacuationWorkflowSettings(Settings):
    """How models leave the room.

    Attributes:
        panic: ask evacuees how they feel before they choose an exit (published).
        evaluate: ask them to weigh up the exits before (published).
        feeling_in_talk: ask for the feeling before the talk and show it there (the text); in the authors' code it
            comes after.
        summarised: put the scenario into two sentences (one of the tests of robustness).
    """

    panic: bool = True
    evaluate: bool = True
    feeling_in_talk: bool = False
    summarised: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        if self.feeling_in_talk and not self.panic:
            raise SettingsError("feeling_in_talk", True, "needs panic=True, which asks for the feeling")


class EvacuationWorkflow(Workflow[EvacuationWorkflowSettings]):
    """Appendix of Wu et al. 2024; an evacuee who feels does not yet know how full the exits are."""

    calls = (
        Call(
            "talk",
            "message",
            _SEEN | names("heard message_length"),
            (("heard", "first"),),
        ),
        Call("panic", "feeling", _ROOM | names("informed moved nearest_distance around around_kind counts_self")),
        Call("evaluate", "evaluation", _SEEN),
        Call(
            "exit",
            "",
            _ROOM | names("feeling evaluation heard may_talk past_exits memory target"),
            (("heard", "first"), ("past_exits", "newest")),
        ),
        Call(
            "move",
            "",
            names("rows cols rounds row col previous memory target_cell direction options together diagonals"),
        ),
    )
    settings_type = EvacuationWorkflowSettings
    presets = dict.fromkeys(("team_up", "team_up_text", "team_up_claude", "shall_we_talk"), _TEAM_UP)

    async def play(self, prompter: Prompter, turn: Turn, slots: EvacuationSlots) -> Action:
        """Ask the questions of one turn."""
        talk, panic, evaluate, exit_, move = self.calls
        settings = self.settings
        if slots.phase == TALK:
            if settings.feeling_in_talk:
                await self._note(prompter, turn, slots, panic)
            return await prompter.message(turn, talk, self._facts(prompter, turn, slots, talk))
        assert isinstance(slots.question, Options), "whoever decides is given options"
        if slots.asked == "move":
            action, _ = await prompter.choose(turn, move, prompter.facts(turn, move, vars(slots)), slots.question)
            return action
        if settings.panic:
            await self._note(prompter, turn, slots, panic)
        if settings.evaluate:
            await self._note(prompter, turn, slots, evaluate)
        facts = self._facts(prompter, turn, slots, exit_)
        action, _ = await prompter.choose(turn, exit_, facts, slots.question)
        return action

    async def _note(self, prompter: Prompter, turn: Turn, slots: EvacuationSlots, call: Call) -> None:
        """Ask for a note that the player keeps for this round, unless it has one already."""
        if turn.memory.last(call.name, slots.round) is not None:
            return
        text = await prompter.words(turn, call, self._facts(prompter, turn, slots, call))
        if text:
            turn.memory.write(call.name, Note(slots.round, text), 1)

    def _facts(self, prompter: Prompter, turn: Turn, slots: EvacuationSlots, call: Call) -> dict[str, Any]:
        memory = turn.memory
        feeling, evaluation = (memory.last(name, slots.round) for name in ("panic", "evaluate"))
        notes = {"feeling": feeling, "evaluation": evaluation, "summarised": self.settings.summarised}
        return prompter.facts(turn, call, {**vars(slots), **notes})

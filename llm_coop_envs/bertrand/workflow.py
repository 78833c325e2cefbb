"""Price competition with a language model: talk, a plan every so many rounds, and a price (Wu et al. 2024)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.question import Number
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.policies.base import Action
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.prompter import Prompter, Turn
from llm_coop_envs.policies.llm.playing.workflow import Workflow

_FIRM = names("me rivals cost whole_profits round history bins bin_size")
# Authors' code of Wu et al. 2024.
_TEAM_UP = {"parameters": {"temperature": 0.7, "top_p": 1.0, "max_tokens": 100}}


@dataclass(frozen=True, kw_only=True)
class BertrandWorkflowSettings(Settings):
    """How models set prices.

    Attributes:
        plan_memory: how many own plans the planning call shows (20, authors' code).
        talk_plan_order: `"talk_first"`: firms plan after talking, without seeing the talk of that round (authors'
            code); `"plan_first"`: they plan before, and talk with the new plan (the text's figure).
        statistics_in_talk: show averages in talk too when the environment gives them (authors' code); the text names
            only planning and pricing.
        repeat_planning_prompt: put the whole planning question before the price question in planning rounds (the
            authors' code does so by mistake).
        first_firms_persona: plan with the first firm's persona, whoever plans, where firms talk (likewise a mistake).
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"plan_memory": (0, inf)}
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"talk_plan_order": ("talk_first", "plan_first")}

    plan_memory: int = 20
    talk_plan_order: str = "talk_first"
    statistics_in_talk: bool = True
    repeat_planning_prompt: bool = False
    first_firms_persona: bool = False


class BertrandWorkflow(Workflow[BertrandWorkflowSettings]):
    """The published protocol: planning does not see this round's talk, and nobody sees a rival's sales.

    The statistics (`bins`) come in the rounds in which the environment shows them.
    """

    calls = (
        Call(
            "talk",
            "message",
            _FIRM | names("prior plan said exchange exchanges message_length"),
            (("said", "newest"), ("bins", "newest"), ("history", "newest")),
        ),
        Call("plan", "plan", _FIRM | names("plans"), (("plans", "newest"), ("bins", "newest"), ("history", "newest"))),
        Call(
            "price",
            "",
            _FIRM | names("prior plan said exchanges floor cap choices fixed_price"),
            (("said", "newest"), ("bins", "newest"), ("history", "newest")),
        ),
    )
    settings_type = BertrandWorkflowSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "team_up": _TEAM_UP,
        "team_up_text": {"parameters": {**_TEAM_UP["parameters"], "max_tokens": 128}},
        "team_up_claude": _TEAM_UP,
        "shall_we_talk": _TEAM_UP,
    }

    async def play(self, prompter: Prompter, turn: Turn, slots: BertrandSlots) -> Action:
        """A firm's turn."""
        settings = self.settings
        talk, _, price = self.calls
        if slots.phase == TALK:
            if settings.talk_plan_order == "plan_first":
                await self._plan(prompter, turn, slots)
            shown = {**self._private(turn), "bins": slots.bins if settings.statistics_in_talk else ()}
            return await prompter.message(turn, talk, prompter.facts(turn, talk, {**vars(slots), **shown}))
        planned = await self._plan(prompter, turn, slots)
        facts = prompter.facts(turn, price, vars(slots), **self._private(turn))
        before = planned + "\n\n" if planned and settings.repeat_planning_prompt else ""
        assert isinstance(slots.question, Number), "whoever decides is asked for a price"
        action, _ = await prompter.choose(turn, price, facts, slots.question, before=before)
        return action

    async def _plan(self, prompter: Prompter, turn: Turn, slots: BertrandSlots) -> str:
        """Make a new plan if this is a round for it and none was asked for yet; return the planning question."""
        memory, plan = turn.memory, self.calls[1]
        if not slots.may_replan or memory.last_asked.get("plan") == slots.round:
            return ""
        memory.last_asked["plan"] = slots.round
        planner = turn
        if self.settings.first_firms_persona and slots.exchanges:
            first = self.personas.get(self.episode.agents[0], turn.persona)
            planner = Turn(turn.episode, turn.agent, turn.step, turn.round, first, memory)
        facts = prompter.facts(planner, plan, vars(slots), **self._private(turn))
        text = await prompter.words(planner, plan, facts)
        question = ""
        if self.settings.repeat_planning_prompt:
            question = prompter.prompts.templates.render(plan.template, plan.values(facts))
        if text:
            # No question shows more than the window, so that a run of any length stays small.
            memory.write("plan", Note(slots.round, text), self.settings.plan_memory)
        return question

    def _private(self, turn: Turn) -> dict[str, Any]:
        memory = turn.memory
        return {"plan": memory.last("plan"), "plans": memory.latest("plan", self.settings.plan_memory)}

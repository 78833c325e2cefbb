"""Price competition with a language model: talk, a plan every so many rounds, and a price (Wu et al. 2024).

Or plans and insights written with every price (Fish, Gonczarowski and Shorrer 2024), or tools (EconEvals 2025).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Number, Option, Options
from llm_coop_envs.policies.llm.parsing.cleaning import clean_words
from llm_coop_envs.policies.llm.parsing.objects import find_value
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.prompter import Prompter
from llm_coop_envs.policies.llm.playing.turn import Turn
from llm_coop_envs.policies.llm.playing.workflow import Workflow

_FIRM = names(
    "me rivals seen cost whole_profits round history bins bin_size in_turn rematched rival_costs demand_rule last_round"
)
_PRICE = _FIRM | names("prior said exchanges floor cap choices fixed_price")
_SHRINKS = (("said", "newest"), ("bins", "newest"), ("history", "newest"))
_DATA, _READ, _WRITE, _DONE = range(4)
_TOOLS = Options(
    name="tool",
    options=(
        Option(choice=_DATA, letter="a", name="look up the last rounds"),
        Option(choice=_READ, letter="b", name="look up what was written down"),
        Option(choice=_WRITE, letter="c", name="write something down"),
        Option(choice=_DONE, letter="d", name="set the price now"),
    ),
)
_FILES = ("plans", "insights")
_PARTS = ("observations", *_FILES, "price")
#: The length of a file in characters, beyond which it is cut so that prompts stay inside a model's context.
LONGEST_FILE = 4000
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
        own_files: ask for plans and insights with every price, in one question, and show them in the next round and
            never again (Fish et al. 2024); there are no other plans then.
        tools: how often a firm may look something up or write something down before it names its price (40 in
            EconEvals 2025); it is shown no round and no plan that it has not looked up then. 0: there are no tools.
        rounds_shown: how many of the rounds that the environment shows a firm is shown. 0: all of them.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "plan_memory": (0, inf),
        "tools": (0, 1000),
        "rounds_shown": (0, inf),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"talk_plan_order": ("talk_first", "plan_first")}

    plan_memory: int = 20
    talk_plan_order: str = "talk_first"
    statistics_in_talk: bool = True
    repeat_planning_prompt: bool = False
    first_firms_persona: bool = False
    own_files: bool = False
    tools: int = 0
    rounds_shown: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        if self.own_files and self.tools:
            raise SettingsError("tools", self.tools, "is another way to keep notes than own_files; choose one")


class BertrandWorkflow(Workflow[BertrandWorkflowSettings]):
    """The published protocol: planning does not see this round's talk, and nobody sees a rival's sales.

    The statistics (`bins`) come in the rounds in which the environment shows them.
    """

    calls = (
        Call(
            "talk",
            "message",
            _FIRM | names("prior plan said exchange exchanges message_length"),
            _SHRINKS,
        ),
        Call("plan", "plan", _FIRM | names("plans"), (("plans", "newest"), ("bins", "newest"), ("history", "newest"))),
        Call("price", "", _PRICE | names("plan"), _SHRINKS),
        Call("period", "", _PRICE | names("own_plans own_insights"), _SHRINKS, ("observations", *_FILES)),
        Call("tool", "", _FIRM | names("prior plan said exchanges options left"), _SHRINKS),
        Call("note", "note", _FIRM | names("prior plan"), _SHRINKS[1:]),
    )
    settings_type = BertrandWorkflowSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "team_up": _TEAM_UP,
        "team_up_text": {"parameters": {**_TEAM_UP["parameters"], "max_tokens": 128}},
        "team_up_claude": _TEAM_UP,
        "shall_we_talk": _TEAM_UP,
        # Fish, Gonczarowski and Shorrer 2024, arXiv 2404.00806.
        "fish": {"parameters": {"temperature": 1.0}, "own_files": True},
        # EconEvals, arXiv 2503.18825.
        "econ_evals": {"parameters": {"temperature": 1.0}, "tools": 40},
    }

    async def play(self, prompter: Prompter, turn: Turn, slots: BertrandSlots) -> Action:
        """A firm's turn."""
        settings = self.settings
        talk, _, price, period, _, _ = self.calls
        if settings.rounds_shown:
            slots = replace(slots, history=slots.history[-settings.rounds_shown :])
        if slots.phase == TALK:
            if settings.talk_plan_order == "plan_first":
                await self._plan(prompter, turn, slots)
            known_facts = {**self._private(turn), "bins": slots.bins if settings.statistics_in_talk else ()}
            return await prompter.message(turn, talk, prompter.facts(turn, talk, {**vars(slots), **known_facts}))
        assert isinstance(slots.question, Number), "whoever decides is asked for a price"
        if settings.own_files:
            files = {f"own_{name}": turn.memory.last(name) for name in _FILES}
            facts = prompter.facts(turn, period, {**vars(slots), **files})
            action, answer = await prompter.choose(turn, period, facts, slots.question)
            for name, text in parse_files(answer, {name: prompter.prompts.word(name) for name in _PARTS}).items():
                turn.memory.write(name, Note(turn.round, text), 1)
            return action
        planned = await self._plan(prompter, turn, slots)
        known_facts = await self._use_tools(prompter, turn, slots) if settings.tools else self._private(turn)
        facts = prompter.facts(turn, price, {**vars(slots), **known_facts})
        planning_question = planned + "\n\n" if planned and settings.repeat_planning_prompt else ""
        action, _ = await prompter.choose(turn, price, facts, slots.question, preamble=planning_question)
        return action

    async def _use_tools(self, prompter: Prompter, turn: Turn, slots: BertrandSlots) -> dict[str, Any]:
        """Let a firm use its tools until it wants to name its price. Returns the facts it has looked up by then."""
        *_, tool, note = self.calls
        known_facts: dict[str, Any] = {"history": (), "bins": (), "plan": None}
        for uses_left in range(self.settings.tools, 0, -1):
            facts = prompter.facts(turn, tool, {**vars(slots), **known_facts}, left=uses_left)
            action, _ = await prompter.choose(turn, tool, facts, _TOOLS)
            used = action.get("choice", _DONE)
            if used == _DATA:
                known_facts |= {"history": slots.history, "bins": slots.bins}
            elif used == _READ:
                known_facts["plan"] = turn.memory.last(note.name)
            elif used == _WRITE:
                text = await prompter.words(turn, note, prompter.facts(turn, note, {**vars(slots), **known_facts}))
                if text:
                    turn.memory.write(note.name, Note(turn.round, text[:LONGEST_FILE]), 1)
            else:
                break
        return known_facts

    async def _plan(self, prompter: Prompter, turn: Turn, slots: BertrandSlots) -> str:
        """Ask for a new plan in a planning round, once. Returns the planning question, if it is to be repeated."""
        memory, plan, settings = turn.memory, self.calls[1], self.settings
        planned = settings.own_files or settings.tools or memory.last_asked.get("plan") == slots.round
        if planned or not slots.may_replan:
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


def parse_files(answer: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Read the contents of the files `plans` and `insights` from an answer; files that it does not hold are left out.

    Args:
        answer: a JSON object with these keys, or parts that begin with their labels.
        labels: the parts' names in the answer's language; their English names are understood too.
    """
    text = clean_words(answer)[0]
    names = {spelled.casefold(): name for name, label in labels.items() for spelled in (name, label)}
    spelled = "|".join(re.escape(label) for label in sorted(names, key=len, reverse=True))
    # A label at the beginning of a line, with or without Markdown: "Plans: ...", "**Insights:** ...", "- plans: ...".
    pieces = re.split(rf"^[\s#>*_-]*({spelled})[*_ ]*:[*_ ]*", text, flags=re.MULTILINE | re.IGNORECASE)
    parts = {names[label.casefold()]: part.strip() for label, part in zip(pieces[1::2], pieces[2::2], strict=True)}
    by_file = {name: find_value(text, (name,)) or parts.get(name) for name in _FILES}
    return {name: value[:LONGEST_FILE] for name, value in by_file.items() if isinstance(value, str) and value}

"""The text view, whose observations and actions are strings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from pettingzoo.utils import BaseParallelWrapper

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import ActionError, SettingsError
from llm_coop_envs.interface.actions import ILLEGAL_CHOICE, MISSING_ACTION
from llm_coop_envs.interface.messages import MESSAGE_CLEANED, MESSAGE_CUT
from llm_coop_envs.interface.moves import longest_line
from llm_coop_envs.interface.question import Number, Options, Question, Words
from llm_coop_envs.interface.spaces import UnicodeText

FLAGS = (MISSING_ACTION, ILLEGAL_CHOICE, MESSAGE_CUT, MESSAGE_CLEANED)
_LONGEST_NUMBER = 32


class TextView(BaseParallelWrapper[str, Any, Any]):
    """Text in, text out.

    The observation is the `text` of the environment's observation: the situation and the question. The action is a
    string: in a talk phase the message, in an act phase only the number, or the line that a person would type for a
    move of another kind (`interface.moves`). A string that is not exactly one number is an illegal choice: the
    scenario's fallback is played, and flagged in the info. (To read a number from a model's answer is the task of an
    LLM policy, not of this view.)

    The info holds plain numbers under the same names in every step, so that other libraries can keep it in arrays:
    `round`, `step`, `turn` (1 if this player is on turn), and flags that are 1 if they apply to the player's last
    action: `missing_action`, `illegal_choice`, `message_cut`, `message_cleaned`.

    Args:
        env: the environment itself, not a wrapped one.

    Raises:
        SettingsError: `env` is not one of this package's environments.
    """

    def __init__(self, env: ScenarioEnv) -> None:
        if not isinstance(env, ScenarioEnv):
            raise SettingsError(
                "env", type(env).__name__, "TextView goes directly around parallel_env(); put other wrappers around it"
            )
        super().__init__(env)
        self._game = env
        self._action_spaces: dict[str, UnicodeText] = {}
        self._questions: dict[str, Question | None] = {}

    def __repr__(self) -> str:
        """The view and its environment."""
        return f"TextView of {self._game!r}"

    def observation_space(self, agent: str) -> UnicodeText:
        """A text; always the same object."""
        return cast("UnicodeText", self._game.observation_space(agent)["text"])

    def action_space(self, agent: str) -> UnicodeText:
        """Any text up to the length of a message or a number; always the same object."""
        if agent not in self._action_spaces:
            self._game.action_space(agent)
            settings = self._game.settings
            longest = max(_LONGEST_NUMBER, settings.message_length if settings.ever_talks else 0)
            asked = [question for by_role in self._game.questions.values() for question in by_role.values()]
            longest = max(longest, *map(longest_line, asked), 0)
            self._action_spaces[agent] = UnicodeText(longest)
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Start a new episode; see the environment's `reset`."""
        observations, infos = self._game.reset(seed=seed, options=options)
        self._remember(infos)
        return _texts(observations), _numbers(infos)

    def _remember(self, infos: Mapping[str, Mapping[str, Any]]) -> None:
        self._questions = {name: info["slots"].question for name, info in infos.items()}

    def step(
        self, actions: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step; `actions` holds a string for every player on turn."""
        if not isinstance(actions, Mapping):
            raise ActionError(f"actions must be a dict from agent name to text, not {type(actions).__name__}")
        dicts = {name: _action(self._questions.get(name), text) for name, text in actions.items()}
        observations, rewards, terminations, truncations, infos = self._game.step(dicts)
        self._remember(infos)
        return _texts(observations), rewards, terminations, truncations, _numbers(infos)


def _action(question: Question | None, text: object) -> dict[str, object]:
    """The environment's action for a text that answers a question."""
    if isinstance(question, Words):
        return {"message": text}
    if isinstance(question, Options):
        option = question.find(text) if isinstance(text, str) else None
        return {"choice": None if option is None else option.choice}
    if not isinstance(question, Number) or question.passing:
        return {"choice": text}  # the environment reads a typed line itself
    number = read_number(text)
    return {"choice": None if number is None else question.choice(number)}


def read_number(text: object) -> float | int | None:
    """The number that a text consists of, apart from white space around it; `None` if it is not a number."""
    if not isinstance(text, str):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def _texts(observations: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: observation["text"] for name, observation in observations.items()}


def _numbers(infos: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    return {
        name: {"round": info["round"], "step": info["step"], "turn": int(info["slots"].on_turn)}
        | {flag: int(flag in info["flags"]) for flag in FLAGS}
        for name, info in infos.items()
    }

"""The base of every environment: `ObservedEnv`, with what PettingZoo asks for on top.

`step` translates dictionaries to arrays, lets `advance` play them, and returns what each seat then sees.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from gymnasium import logger, spaces
from gymnasium.utils import EzPickle
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.observed_env import Observation, ObservedEnv
from llm_coop_envs.core.rendering import GRAPHICAL, check_pygame, make_renderer
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.core.snapshot import restore, snapshot
from llm_coop_envs.core.submissions import SubmissionReader, Submissions
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.spaces import UnicodeText
from llm_coop_envs.treatments.regulator import SEAT
from llm_coop_envs.util.showing import call_text

# The longest texts, in characters: what the sentences of a wording come to, one number or name in a list, and one
# message beside its words, of which each may be escaped (`\u0000`).
_SENTENCES, _ITEM, _SPOKEN, _ESCAPED = 20_000, 40, 40, 6

Action = dict[str, Any]


class ScenarioEnv(ObservedEnv, ParallelEnv[str, Any, Any], EzPickle):
    """A scenario as a PettingZoo parallel environment.

    Args:
        preset: a named set of settings, see the settings' `presets`.
        render_mode: `"human"` for a window that shows every step, `"rgb_array"` for pictures as arrays, `"ansi"` for a
            text picture, or `None`. The first two need the extra `render`, and record the episode's events.
        max_cycles: truncate after exactly this many steps; `None` leaves the end to the scenario.
        record: keep `events` of the running episode.
        **fields_given: settings by name; they win over the preset's.

    Raises:
        SettingsError: a setting is unknown, impossible, or contradicts another.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 10,
        "is_parallelizable": True,
    }
    settings_type: ClassVar[type[ScenarioSettings]]
    role: ClassVar[str]
    act_phases: ClassVar[tuple[str, ...]] = ("act",)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Complete what a scenario's `metadata` leave out."""
        super().__init_subclass__(**keywords)
        cls.metadata = {**ScenarioEnv.metadata, **cls.metadata}

    def __init__(
        self,
        *,
        preset: str | None = None,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        record: bool = False,
        **fields_given: Any,
    ) -> None:
        options: dict[str, Any] = {"render_mode": render_mode, "max_cycles": max_cycles, "record": record}
        EzPickle.__init__(self, preset=preset, **options, **fields_given)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            modes = ", ".join(self.metadata["render_modes"])
            raise SettingsError("render_mode", render_mode, f"must be None or one of {modes}")
        if max_cycles is not None and (type(max_cycles) is not int or max_cycles < 1):
            raise SettingsError("max_cycles", max_cycles, "must be None or a whole number, 1 or more")
        graphical = render_mode in GRAPHICAL
        if graphical:
            check_pygame(str(render_mode))
        self.render_mode = render_mode
        settings = self.settings_type.build(preset, **fields_given)
        self.phases = (TALK, *self.act_phases) if settings.ever_talks else tuple(self.act_phases)
        self.settings = settings
        self._load_words()
        self._prepare(self.metadata["name"], settings, self.role, max_cycles=max_cycles, record=record or graphical)
        self._watched = render_mode == "human"
        self._renderer: Any = None
        self._observation_spaces: dict[str, spaces.Dict] = {}
        self._action_spaces: dict[str, spaces.Dict] = {}
        self._state_space: spaces.Box | None = None
        self._load_treatments()

    # Spaces.

    def observation_space(self, agent: str) -> spaces.Dict:
        """The observation space of `agent`; always the same object."""
        space = self._observation_spaces.get(agent)
        if space is None:
            self._player(agent)
            shape = (len(self.feature_names),)
            low, high = (np.broadcast_to(bound, shape).astype(np.float32) for bound in self._feature_bounds)
            if agent in self._seat.names:
                low, high = self.regulator_bounds()
            parts: dict[str, spaces.Space[Any]] = {
                "observation": spaces.Box(low, high, dtype=np.float32),
                "phase": spaces.Discrete(len(self.phases)),
                "turn": spaces.Discrete(2),
            }
            if self.settings.ever_talks:
                text = UnicodeText(self.settings.message_length)
                message = spaces.Dict({"speaker": spaces.Discrete(self.n_players), "text": text})
                parts["messages"] = spaces.Sequence(message)
            messages, items = self._longest_text()
            messages += len(self._seat.names)  # the one that a regulator rules on
            longest = _SENTENCES + items * _ITEM
            if self.settings.ever_talks:
                longest += messages * (_ESCAPED * self.settings.message_length + _SPOKEN)
            parts["text"] = UnicodeText(longest)
            space = self._observation_spaces[agent] = spaces.Dict(parts)
        return space

    def action_space(self, agent: str) -> spaces.Dict:
        """The action space of `agent`; always the same object."""
        space = self._action_spaces.get(agent)
        if space is None:
            index = self._player(agent)
            parts: dict[str, spaces.Space[Any]] = {}
            if self.regulator is not None and agent == SEAT:
                parts["choice"] = spaces.Discrete(self.regulator.choices)
            else:
                parts["choice"] = self.choice_space_of(self.role_of(index))
                if self.settings.ever_talks:
                    text = UnicodeText(self.settings.message_length)
                    letter = {"text": text, "to": spaces.MultiBinary(self.n_players)}
                    count = self.settings.private_messages
                    parts["message"] = spaces.Tuple([spaces.Dict(letter) for _ in range(count)]) if count else text
            space = self._action_spaces[agent] = spaces.Dict(parts)
        return space

    @property
    def state_space(self) -> spaces.Box:
        """The space of `state()`: phase (one-hot), turn and presence of each player, then the scenario's part."""
        if self._state_space is None:
            flags = len(self.phases) + 2 * len(self.possible_agents)
            low, high = self._state_bounds
            ends = np.concatenate([np.zeros(flags), low]), np.concatenate([np.ones(flags), high])
            self._state_space = spaces.Box(*ends, dtype=np.float64)
        return self._state_space

    # PettingZoo's calls.

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start a new episode.

        Args:
            seed: seeds the generator, as `numpy.random.default_rng(seed)`; `None` continues the running one.
            options: passed to the scenario, which ignores what it does not know.

        Returns:
            Observations and infos of all players.
        """
        self.begin(seed, options)
        return self._views(np.arange(len(self.possible_agents)))

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: an action for every player on turn; those of others are ignored and may be left out. What is
                missing or illegal is replaced by the scenario's fallback and flagged in the info, never raised.

        Returns:
            Observations, rewards, terminations, truncations and infos of all players who were present before.

        Raises:
            ResetNeeded: before the first `reset`.
            ActionError: `actions` is no mapping, or names somebody who does not exist.
        """
        if not self._started:
            raise ResetNeeded("step() was called before reset(); call reset() first")
        if not self.agents:
            return {}, {}, {}, {}, {}
        present = self.live
        self.submit(actions)
        observations, infos = self._views(present)
        return observations, *self.outcomes(present), infos

    def submit(self, actions: Mapping[str, Any]) -> None:
        """Play one step without building observations; `look` shows afterwards what somebody sees.

        For players of many seats: only those on turn need their texts. Otherwise as `step`, but after the end of an
        episode it raises `ResetNeeded`.
        """
        submissions = self.read(actions)
        self.advance(submissions.choices, submissions.messages, submissions.missing, submissions.paraphrases)

    def outcomes(self, present: Indices) -> tuple[dict[str, float], dict[str, bool], dict[str, bool]]:
        """Rewards, terminations and truncations of the last step, of those `present` before it, by agent name."""
        decided = self.over and not self._truncated
        if self._all_alive:
            names = self.possible_agents
            return (
                dict(zip(names, self.rewards.tolist(), strict=True)),
                dict.fromkeys(names, decided),
                dict.fromkeys(names, self._truncated),
            )
        names = [self.possible_agents[i] for i in present.tolist()]
        rewards = self.rewards[present].tolist()
        playing = self.alive[present].tolist()
        return (
            dict(zip(names, rewards, strict=True)),
            {name: decided or not still for name, still in zip(names, playing, strict=True)},
            {name: self._truncated and still for name, still in zip(names, playing, strict=True)},
        )

    def state(self) -> NDArray[np.float64]:
        """The global state as one vector, see `state_space`."""
        phases = np.zeros(len(self.phases))
        phases[self.phases.index(self.phase)] = 1.0
        return np.concatenate([phases, self.turn, self.alive, self._state_vector()], dtype=np.float64)

    def scene(self) -> Any:
        """The present situation as plain data, for pictures: an `llm_coop_envs.render.scenes.base.Scene`.

        What it knows of earlier rounds is complete if the episode was recorded, else what the players remember.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._started:
            raise ResetNeeded("scene() was called before reset(); call reset() first")
        return self._drawing().scene()

    def render(self) -> NDArray[np.uint8] | str | None:
        """The situation, as `render_mode` says: an (height, width, 3) array, text, or shown in the window (`None`).

        With `render_mode="human"` every `reset` and `step` shows itself; there is no need to call this.

        Raises:
            ResetNeeded: before the first `reset`.
            WindowError: there is no display for a window.
        """
        if self.render_mode is None:
            logger.warn("render() was called on an environment made without render_mode; nothing is drawn")
            return None
        if not self._started:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        if self.render_mode == "rgb_array":
            frame: NDArray[np.uint8] = self._drawing().frame()
            return frame
        if self.render_mode == "human":
            self._show()
            return None
        return self._in_words()

    def _in_words(self) -> str:
        doing = "over" if self.over else self.phase
        return f"{self.metadata['name']}, round {self.round}, step {self.cycles}: {doing}\n{self._picture()}"

    def __repr__(self) -> str:
        """How it was made, and how far its episode is."""
        given = {
            name: value
            for name, value in getattr(self, "_ezpickle_kwargs", {}).items()
            if value or name not in ("preset", "render_mode", "max_cycles", "record")
        }
        made = call_text(self.metadata["name"], given)
        if not getattr(self, "_started", False):
            return f"{made}\nnot begun: reset() begins an episode"
        doing = "over" if self.over else f"{self.phase}, {int(self.alive.sum())} of {self.n_players} play"
        return f"{made}\nround {self.round}, step {self.cycles}: {doing}"

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows: the situation as a picture, once the episode has begun, where pygame is installed."""
        if not self._started or find_spec("pygame") is None:
            return None
        picture: bytes = self._drawing().png()
        return picture

    def _repr_html_(self) -> str | None:
        """What a notebook shows where there is no picture: the situation in words, escaped."""
        if self._started and find_spec("pygame") is not None:
            return None
        return f"<pre>{escape(self._in_words() if self._started else repr(self))}</pre>"

    def close(self) -> None:
        """Close the window, if there is one. May be called any number of times."""
        if self._renderer is not None:
            self._renderer.close()

    def _show(self) -> None:
        self._drawing().show()

    def _drawing(self) -> Any:
        if self._renderer is None:
            self._renderer = make_renderer(self, self.metadata["render_fps"])
        return self._renderer

    # Snapshots and copies.

    def __getstate__(self) -> dict[str, Any]:
        """How the environment was made and where it stands: a copy or an unpickled one continues, with the same draws.

        A window is not copied; the copy opens its own when it shows something.
        """
        state: dict[str, Any] = super().__getstate__()
        spaces_made = {"_observation_spaces": self._observation_spaces, "_action_spaces": self._action_spaces}
        return {**state, "spaces": spaces_made, "events": self.events, "at": snapshot(self) if self._started else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Continue where `__getstate__` was called."""
        super().__setstate__(state)
        for name, cached_spaces in state["spaces"].items():
            setattr(self, name, cached_spaces)
        if state["at"] is not None:
            restore(self, state["at"])
        self.events = state["events"]

    def get_state(self) -> dict[str, Any]:
        """Everything but the recorded events, generators included, as JSON-serialisable data.

        Raises:
            SnapshotError: before the first `reset`.
        """
        return snapshot(self)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue exactly where `get_state` gave `state`, in this or another process; JSON may lie between.

        Raises:
            SnapshotError: the state belongs to another scenario, version or settings, or is damaged.
        """
        restore(self, state)

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.possible_agents)}

    def _player(self, agent: str) -> int:
        if agent not in self._index:
            names = self.possible_agents
            raise ActionError(f"there is no agent {agent!r}; agents are {names[0]} to {names[-1]}")
        return self._index[agent]

    def read(self, actions: Mapping[str, Any]) -> Submissions:
        """Actions, as `step` takes them, as `advance` does; places are the players' indices.

        Raises:
            ActionError: `actions` is no mapping, or names somebody who does not exist.
        """
        if not isinstance(actions, Mapping):
            raise ActionError(f"actions must be a dict from agent name to action, not {type(actions).__name__}")
        if not actions.keys() <= self._index.keys():
            for name in actions:
                self._player(name)
        reading, names = SubmissionReader(self, Submissions(self.blank_choices())), self.possible_agents
        for i in self._who.tolist():
            reading.take(i, names[i], actions.get(names[i]))
        return reading.submissions

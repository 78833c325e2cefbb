"""Trained networks in any seats: policies named `sb3:NAME`, `sb3:FOLDER` or `sb3:FILE` in studies.

Options: `play`, `"sample"` (draw from the network's chances) or `"best"`; by default as the training was set.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.baselines.deep.choices import Choices
from llm_coop_envs.baselines.deep.network import Network
from llm_coop_envs.baselines.deep.settings import BEST, SAMPLE
from llm_coop_envs.baselines.deep.shipped import find_network
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.scripted import NearestExit
from llm_coop_envs.policies.base import Action, Policy

LABEL = "trained network"

_PHASE = "phase_"
_TURN = "turn"


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> None:
    """Find out, before anything starts, whether a trained policy can play.

    Raises:
        SettingsError: no such policy, another scenario, or an option that there is not.
        RunError: the file is no trained policy.
    """
    make(scenario, argument, options)


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: object = None) -> Policy:
    """The policy that plays a network.

    Args:
        scenario: the scenario's name; must be the network's.
        argument: a shipped policy's name, a training folder or a file.
        options: `play`.
        chat: not used.

    Raises:
        SettingsError: no such policy, another scenario, or an option that there is not.
        RunError: the file is no trained policy.
    """
    for name, value in options.items():
        if name != "play":
            raise SettingsError(name, value, "is no option of a trained policy; its only one is play")
    network = find_network(argument)
    if network.scenario != scenario:
        raise SettingsError("policy", f"sb3:{argument}", f"was trained on {network.scenario}, not on {scenario}")
    return NetworkPolicy(network, play=options.get("play"))


class NetworkPolicy(Policy):
    """Plays a network; it is silent in talk, does not listen and learns nothing.

    Where a network only chooses exits and people walk by themselves (`control="move"`), it walks like the scripted
    policies.

    Args:
        network: what decides, for all seats alike.
        play: `"sample"` or `"best"`; `None` as the training was set.

    Raises:
        SettingsError: `play` is neither.
    """

    def __init__(self, network: Network, *, play: str | None = None) -> None:
        wanted = network.about.get("play", BEST) if play is None else play
        if wanted not in (SAMPLE, BEST):
            raise SettingsError("play", wanted, f"must be {SAMPLE} or {BEST}")
        self.network = network
        self.play = wanted
        self._walker = NearestExit()

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: the network sees or chooses other things than there are in these settings.
        """
        super().begin(episode)
        env = _environment(self.network.scenario, episode.settings)
        self._choices = Choices(env, self.network.n_choices)
        self._phases = env.phases
        self._seat = {name: k for k, name in enumerate(episode.agents)}
        self._walks = self.network.scenario == "evacuation" and self.network.n_choices < self._choices.n
        known = {name: k for k, name in enumerate(env.feature_names)}
        trained = [name for name in self.network.features if name != _TURN and not name.startswith(_PHASE)]
        if trained != list(known):
            odd = sorted({*trained} ^ {*known}) or trained
            raise SettingsError(
                "policy", "sb3", f"it was trained with other settings, which change what it sees ({odd[0]})"
            )
        exits = sum(name.startswith("heading_") for name in known)
        if self.network.n_choices != (exits if self._walks else self._choices.n):
            counts = f"it has {self.network.n_choices} choices, here are {self._choices.n}"
            raise SettingsError("policy", "sb3", f"it was trained with other settings: {counts}")

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer all requests at once."""
        actions: list[Action] = [{"message": ""} for _ in requests]
        decided: list[int] = []
        for k, request in enumerate(requests):
            phase = self._phases[request.observation["phase"]]
            if self._walks and phase == "move":
                actions[k] = self._walker.decide(request)
            elif phase != TALK:
                decided.append(k)
        if decided:
            asked = [requests[k] for k in decided]
            for k, output in zip(decided, self._decide(asked), strict=True):
                actions[k] = {"choice": self._choices.value(self._seat[requests[k].agent], output)}
        return actions

    def _decide(self, requests: Sequence[Request]) -> list[int]:
        network = self.network
        seen = np.zeros((len(requests), len(network.features)), dtype=np.float32)
        legal = np.ones((len(requests), network.n_choices), dtype=np.bool_)
        for row, request in enumerate(requests):
            features = request.observation["observation"]
            seen[row, : len(features)] = features
            phase = _PHASE + self._phases[request.observation["phase"]]
            seen[row, len(features) :] = [name in (_TURN, phase) for name in network.features[len(features) :]]
            mask = request.info["action_mask"]["choice"]
            if mask is not None:
                legal[row] = mask[: network.n_choices]
        if self.play == SAMPLE:
            return [int(choice) for choice in network.sample(seen, legal, self.episode.rng)]
        return [int(choice) for choice in network.best(seen, legal)]


def _environment(scenario: str, settings: ScenarioSettings) -> ScenarioEnv:
    """An environment of the episode's settings, to be asked for its columns and choices."""
    module = importlib.import_module(f"llm_coop_envs.{scenario}_v0")
    made: ScenarioEnv = module.parallel_env(**settings.to_json())
    return made

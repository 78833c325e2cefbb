"""A stand-in scenario for tests of the base: guess a number, with talk, departures and several levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from llm_coop_envs.core.channels import everyone, within
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.scenario import Measures, Scenario
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.policies import ScriptedPolicy
from llm_coop_envs.util.checks import check_bool, check_int


@dataclass(frozen=True, kw_only=True)
class ToySettings(ScenarioSettings):
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"tiny": {"players": 2, "rounds": 3}}

    players: int = 3
    rounds: int = 6
    talks: int = 1
    continuous: bool = False
    departures: bool = False
    levels: bool = False
    near: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_int(self, "players", 2)
        check_int(self, "rounds", 1)
        check_int(self, "talks", 1)
        check_bool(self, "continuous")


@dataclass(frozen=True, kw_only=True)
class ToySlots(Slots):
    round: int
    last: float
    heard: tuple[Heard, ...]


class ToyEnv(ScenarioEnv):
    metadata: ClassVar[dict[str, Any]] = {
        "name": "toy_v0",
        "render_modes": ["ansi", "rgb_array", "human"],
        "render_fps": 1,
        "is_parallelizable": True,
    }
    settings_type = ToySettings
    slots_type = ToySlots
    role = "player"
    home = Path(__file__).parent / "toy"

    def _setup(self):
        self.n_players = self.settings.players
        self.feature_names = ("round", "last")
        self._feature_bounds = (np.zeros(2), np.array([1000.0, 10.0]))
        self._state_bounds = (np.zeros(self.n_players), np.full(self.n_players, 10.0))

    def _choice_space(self):
        if self.settings.continuous:
            return spaces.Box(0.0, 10.0, (1,), np.float64)
        return spaces.Discrete(5)

    def _begin(self, options):
        self.last = np.zeros(self.n_players)
        self.told = False

    def _next_stage(self):
        if self.phase == "act" and self.round > 0 and not self.told:
            if self.settings.departures and self.round == 2:
                self.leave(np.array([1]))
            if self.record:
                self.emit("round", choices=self.last.tolist())
        if self.settings.talk and not self.told:
            if self.round >= self.settings.rounds:
                return Over("rounds played")
            self.told = True
            self.conversation.forget()
            living = np.flatnonzero(self._alive)
            orders = [self.np_random.permutation(living).tolist() for _ in range(self.settings.talks)]
            if self.settings.near:
                spots = self.np_random.integers(0, 6, (self.n_players, 2))
                return self._talk_stage(orders, within(spots, 2.0, living.tolist(), living.tolist()))
            return self._talk_stage(orders, everyone())
        self.told = False
        if self.round >= self.settings.rounds:
            return Over("rounds played")
        self.round += 1
        if self._alive.all() and not self.settings.levels:
            return Stage("act", [self._everyone])
        living = np.flatnonzero(self._alive).tolist()
        return Stage("act", [living] if not self.settings.levels else [[i] for i in living])

    def _legal(self):
        legal = np.ones((self.n_players, 5), dtype=np.int8)
        legal[:, 4] = 0
        return legal

    def _fallback(self, who):
        return np.full(len(who), 3)

    def _clean(self, who, values):
        bad = ~((values >= 0) & (values <= 10))
        return np.where(bad, 5.0, values), bad

    def _apply(self, phase, who, choices):
        self.last[who] = choices
        self._rewards[who] += choices + self.np_random.random(len(who))

    def _features(self):
        return np.column_stack([np.full(self.n_players, self.round + 1), self.last]).astype(np.float32)

    def _slots(self, index, common):
        return ToySlots(round=self.round, last=float(self.last[index]), heard=self._heard(index), **common)

    def _state_vector(self):
        return self.last

    def _snapshot(self):
        return {"last": self.last.tolist(), "told": self.told}

    def _restore(self, data):
        self.last = np.array(data["last"])
        self.told = data["told"]

    def _picture(self):
        return " ".join(f"{x:g}" for x in self.last)


class Constant(ScriptedPolicy):
    def decide(self, request):
        return {"choice": 2, "message": "I take two."}


def _rounds(events):
    return [{"round": e["round"], "mean": float(np.mean(e["choices"]))} for e in events if e["type"] == "round"]


#: A scenario with nothing but an environment, measures and a policy: all else is the rooms' own.
TOY = Scenario(
    name="toy",
    title="Guessing game",
    env=ToyEnv,
    measures=Measures(
        episode=lambda events: {"rounds": len(_rounds(events))},
        rounds=_rounds,
        about={"rounds": "Rounds that were played."},
        headline=("rounds",),
    ),
    scripted={"constant": Constant},
    opponent="constant",
)

"""A stand-in scenario whose phases each ask for another kind of move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.core.channels import everyone
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.scenario import Measures, Scenario
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.moves import Parts, Several, Shares
from llm_coop_envs.interface.question import Number, Option, Options, Words
from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.policies import ScriptedPolicy

NAMES = ("stay", "go", "wait")
OPTIONS = tuple(Option(choice=k, name=name, letter="abc"[k]) for k, name in enumerate(NAMES))
ANSWER = Options(name="answer", options=tuple(Option(choice=k, name=n) for k, n in enumerate(("accept", "counter"))))
MOVES = {
    "bid": Number(name="bid", low=0, high=100, passing=True),
    "quotes": Parts(name="quotes", parts=tuple(Number(name=f"to_{k}", low=1, high=9, integer=True) for k in range(2))),
    "offer": Parts(
        name="offer",
        parts=(ANSWER, Number(name="price", low=0, high=10), Words(name="remark", longest=40)),
        when=(("price", "counter"), ("remark", "counter")),
    ),
    "approve": Several(name="approved", options=OPTIONS),
    "rank": Several(name="ranking", options=OPTIONS, ranked=True, fewest=3),
    "mix": Shares(name="shares", options=OPTIONS),
    "write": Words(name="slogan", longest=30),
    "pick": Options(name="pick", options=OPTIONS),
    "count": Number(name="count", low=2, high=5, integer=True, counted=True),
}
#: A legal move of each phase, as events hold it.
LEGAL: dict[str, Any] = {
    "bid": 12.5,
    "quotes": {"to_0": 3, "to_1": 9},
    "offer": {"answer": 1, "price": 2.5, "remark": "too low"},
    "approve": [0, 2],
    "rank": [2, 0, 1],
    "mix": {"stay": 0, "go": 100, "wait": 0},
    "write": "all for one",
    "pick": 1,
    "count": 3,
}


@dataclass(frozen=True, kw_only=True)
class MoversSettings(ScenarioSettings):
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"players": (2, 9), "rounds": (1, 99)}

    changeable: ClassVar[Mapping[str, bool]] = {"present": True}
    fewest: ClassVar[int] = 1

    players: int = 3
    rounds: int = 2
    phases: str = " ".join(MOVES)


@dataclass(frozen=True, kw_only=True)
class MoversSlots(Slots):
    round: int
    heard: tuple[Heard, ...]


class MoversEnv(ScenarioEnv):
    metadata: ClassVar[dict[str, Any]] = {**ScenarioEnv.metadata, "name": "movers_v0"}
    settings_type = MoversSettings
    slots_type = MoversSlots
    role = "mover"
    home = Path(__file__).parent / "movers"
    act_phases = tuple(MOVES)
    kept = ("moves", "at")

    def _setup(self):
        self.n_players = self.settings.players
        self.feature_names = ("round",)
        self._feature_bounds = (0.0, 1.0)
        self.order = self.settings.phases.split()
        self.phases = tuple(phase for phase in self.phases if phase == "talk" or phase in self.order)

    def _moves(self):
        return {phase: MOVES[phase] for phase in self.order}

    def _begin(self, options):
        self.moves: list[Any] = []
        self.at = -1

    def _next_stage(self):
        self.at += 1
        steps = ["talk"] * self.settings.talk + self.order
        number, step = divmod(self.at, len(steps))
        if number == self.settings.rounds:
            return Over("all rounds played")
        self.round = number + 1
        self.depart()
        if steps[step] == "talk":
            self.conversation.forget()
            return self._talk_stage([np.flatnonzero(self._alive).tolist()], everyone())
        return Stage(steps[step], [np.flatnonzero(self._alive)])

    def _missing(self, who):
        question = MOVES[self.phase]
        return [{part.name: 1 for part in question.parts} for _ in who] if self.phase == "quotes" else 0.0

    def _apply(self, phase, who, choices):
        self.moves = [*self.moves, [phase, choices.tolist()]]

    def _features(self):
        return np.full((self.n_players, 1), self.round / self.settings.rounds, dtype=np.float32)

    def _slots(self, index, common):
        return MoversSlots(round=self.round, heard=self._heard(index), **common)


class Same(ScriptedPolicy):
    def decide(self, request):
        phase = request.info["slots"].phase
        return {"message": "hello"} if phase == "talk" else {"choice": LEGAL[phase]}


MOVERS = Scenario(
    name="movers",
    title="All kinds of moves",
    env=MoversEnv,
    measures=Measures(
        episode=lambda events: {"moves": sum(event["type"] == "choice" for event in events)},
        rounds=lambda events: [],
        about={"moves": "How many moves were made."},
        headline=("moves",),
    ),
    scripted={"same": Same},
    opponent="same",
)

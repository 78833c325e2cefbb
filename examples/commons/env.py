"""The environment: month by month all take from the pool, see who took what, talk, and note what they have learned."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from commons.rules import ration, share_out, threshold
from llm_coop_envs.core.channels import everyone, grouped
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.question import Number, Question, Words
from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.mechanisms.stage_game import StageGame

HARVEST, REFLECT = "harvest", "reflect"
CONSEQUENCE, NUMBER = "consequence", "number"
_POOLS = ("pool", "left", "grown")
_CAP = re.compile(r"cap (\d+)")


@dataclass(frozen=True, kw_only=True)
class CommonsSettings(ScenarioSettings):
    """Settings of the commons; the defaults are GovSim's. The wordings `en-a`, `pasture` and `pollution` are its skins.

    A regulator may order `"cap 10"`: nobody can take more in that month. With `group_size` there are as many pools as
    groups, and those who are matched take from one of them; with `matching: random` from another one each month.

    Attributes:
        villagers: how many there are, newcomers included.
        capacity: the units in a full pool, with which the game begins.
        collapse: with fewer units left after a harvest nothing grows again, and the game is over.
        months: how many months there are at most.
        rationing: how scarce units are shared: `"units"`, one by one in random order, or `"proportional"`.
        exchanges: how often everybody speaks after a harvest.
        reflection: whether everybody writes a note to itself at the end of a month.
        note_length: the longest note, in characters.
        notes: how many of its last notes each is shown.
        shown: how many of the last months each is shown.
        told: what all are told of the pool: `"nothing"` beyond the rules; `"consequence"`, what follows if everybody
            takes more than the pool can bear; or `"number"`, how many units each that is, and nothing else.
        newcomer_goal: what those who join later are told of themselves; empty for nothing.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "villagers": (1, 100),
        "capacity": (2, 10_000),
        "collapse": (1, 10_000),
        "months": (1, 1000),
        "exchanges": (1, 20),
        "note_length": (1, 10_000),
        "notes": (0, 100),
        "shown": (0, 1000),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "rationing": ("units", "proportional"),
        "told": ("nothing", CONSEQUENCE, NUMBER),
    }
    small: ClassVar[Mapping[str, int]] = {"months": 2}
    changeable: ClassVar[Mapping[str, bool]] = {"present": True}
    newcomers = True
    has_groups: ClassVar[bool] = True
    again: ClassVar[Mapping[str, str]] = {"rounds": "months", "remembered": "shown"}
    fewest = 1
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "govsim": {},
        "small": {"villagers": 3, "capacity": 18, "collapse": 2},
        "newcomer": {
            "months": 15,
            "changes": [{"until_round": 2, "players": "villager_4", "settings": {"present": False}}],
        },
    }

    villagers: int = 5
    capacity: int = 100
    collapse: int = 5
    months: int = 12
    rationing: str = "units"
    exchanges: int = 1
    reflection: bool = True
    note_length: int = 500
    notes: int = 3
    shown: int = 1000
    told: str = "nothing"
    newcomer_goal: str = "All that matters to you is how much you take yourself."

    def __post_init__(self) -> None:
        """Require that whoever shares a pool stays."""
        super().__post_init__()
        if self.group_size and "present" in {name for change in self.changes for name in change.settings}:
            raise SettingsError("group_size", self.group_size, "does not go with players who join or leave")

    @property
    def together(self) -> int:
        """How many take from one pool."""
        return self.group_size or self.villagers

    def check_order(self, order: str) -> None:
        """Know caps besides silence."""
        if not _CAP.fullmatch(order):
            super().check_order(order)

    def stage_game(self) -> StageGame:
        """A month with a full pool: the units one gets, and an equal share of the pool of next month.

        Cooperative is what the pool can bear, competitive all there is. A contract costs each unit above an amount.
        """
        amounts = range(self.capacity + 1)
        return StageGame(
            players=self.together,
            actions=tuple(map(str, amounts)),
            cooperative=threshold(self.capacity, self.together),
            competitive=self.capacity,
            worth=self._worth,
            amounts=tuple(map(float, amounts)),
        )

    def _worth(self, wanted: Sequence[int]) -> list[float]:
        total = sum(wanted)
        left = max(0, self.capacity - total)
        later = grown(left, self) / self.together
        return [units * min(1.0, self.capacity / total if total else 1.0) + later for units in wanted]


def grown(left: int, rules: CommonsSettings) -> int:
    """The pool of next month; nothing once it has collapsed."""
    return min(2 * left, rules.capacity) if left >= rules.collapse else 0


@dataclass(frozen=True, kw_only=True)
class CommonsSlots(Slots):
    """What one villager may know.

    Attributes:
        rules: the settings; everybody knows them.
        month: the month, from 1.
        pool: the units there are now in the pool from which this villager takes.
        others: who takes from the same pool in this month.
        players: how many take from it, this villager among them.
        most: the most that can be taken in this month, by whatever a regulator has ordered.
        bearable: how many units each can take so that the pool is as large again; 0 if it is not told.
        taken: what those at its pool of the last month got then, (name, units); empty before the first.
        history: (month, pool before, own units) of the months so far.
        notes: (month, own note) of the last months.
        joined: who has joined in this month.
        newcomer: whether this villager has joined after the first month.
        heard: what was said after the last harvest, own words included.
    """

    rules: CommonsSettings
    month: int
    pool: int
    others: tuple[str, ...]
    players: int
    most: int
    bearable: int
    taken: tuple[tuple[str, int], ...]
    history: tuple[tuple[int, int, int], ...]
    notes: tuple[tuple[int, str], ...]
    joined: tuple[str, ...]
    newcomer: bool
    heard: tuple[Heard, ...]

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """The pool before each month so far."""
        return {"pool": [(month, pool) for month, pool, _ in self.history]}


class CommonsEnv(ScenarioEnv):
    """All take from one pool at the same time, and what is left doubles, up to what the pool can hold.

    Phases: `harvest`, in which all say how many units to take, `talk`, and `reflect`, in which each writes a note that
    it alone will read.

    Choice: whole units from 0 to `capacity`, or words. A missing one counts as 0, or as no note.

    Reward: the units that were taken.

    Events: `round`: `pool` before the harvest, `wanted` and `taken` (`None` for who is not there), `left`, and `grown`;
    with several pools the first and the last two are lists, and `game` says which pool each takes from.
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "commons_v0", "render_fps": 2}
    settings_type = CommonsSettings
    slots_type = CommonsSlots
    role = "villager"
    act_phases = (HARVEST, REFLECT)
    ruled_phases = (HARVEST,)
    home = Path(__file__).parent
    kept = ("pools", "history", "written")
    cap: float = math.inf

    def _setup(self) -> None:
        self.n_players = self.settings.villagers
        self.feature_names = ("pool", "month", "own_last")
        self._feature_bounds = (0.0, 1.0)

    def _moves(self) -> Mapping[str, Question]:
        moves: dict[str, Question] = {
            HARVEST: Number(name="units", low=0, high=self.settings.capacity, integer=True, counted=True)
        }
        if self.settings.reflection:
            moves[REFLECT] = Words(name="note", longest=self.settings.note_length)
        return moves

    def _question(self, index: int) -> Question:
        question = super()._question(index)
        return replace(question, high=self._most) if isinstance(question, Number) else question

    def _legal(self) -> NDArray[np.int8] | None:
        if self.phase != HARVEST or math.isinf(self.cap):
            return None
        legal = np.arange(self.settings.capacity + 1) <= self._most
        return np.tile(legal.astype(np.int8), (self.n_players, 1))

    @property
    def _most(self) -> int:
        return int(min(self.cap, self.settings.capacity))

    def _ordered(self, order: str) -> None:
        match = _CAP.fullmatch(order)
        self.cap = float(match[1]) if match else math.inf

    def _begin(self, options: Mapping[str, Any]) -> None:
        self.pools = [self.settings.capacity] * len(self.groups)
        self.history: list[list[Any]] = []
        self.written: list[list[Any]] = []

    def _next_stage(self) -> Stage | Over:
        rules, here = self.settings, self.present_in(self.round)
        if len(self.history) == self.round > 0:
            if max(self.history[-1][3]) < rules.collapse:
                return Over("the pool collapsed" if len(self.pools) == 1 else "all pools collapsed")
            if self.phase == HARVEST and rules.talk:
                self.conversation.forget()
                drawn = self.nature("order")
                audience = grouped(self.groups) if rules.group_size else everyone()
                return self._talk_stage([drawn.permutation(here).tolist() for _ in range(rules.exchanges)], audience)
            if self.phase != REFLECT and rules.reflection:
                return Stage(REFLECT, [here])
        if self.round == rules.months:
            return Over("all months over", truncated=True)
        self.round += 1
        self.depart()
        return Stage(HARVEST, [self.present_in(self.round)])

    def _apply(self, phase: str, who: NDArray[np.intp], choices: NDArray[Any]) -> None:
        if phase == REFLECT:
            notes = zip(who.tolist(), choices.tolist(), strict=True)
            self.written = [*self.written, *([self.round, i, note] for i, note in notes if note)]
            return
        wanted = dict(zip(who.tolist(), map(int, choices), strict=True))
        catches, remaining, pools = dict[int, int](), list[int](), self.pools
        for number, (pool, group) in enumerate(zip(pools, self.groups, strict=True)):
            present = [i for i in sorted(group) if i in wanted]
            got = self._share([wanted[i] for i in present], pool, number)
            catches |= dict(zip(present, got, strict=True))
            remaining.append(pool - sum(got))
        self.pools = [grown(units, self.settings) for units in remaining]
        self._rewards[who] += [catches[i] for i in who.tolist()]
        numbers = {i: number for number, group in enumerate(self.groups) for i in group}
        game = [numbers[i] for i in range(self.n_players)]
        self.history = [*self.history, [self.round, pools, self._by_villager(catches), remaining, game]]
        if self.record:
            facts: dict[str, Any] = {
                **{"pool": pools, "wanted": self._by_villager(wanted), "taken": self._by_villager(catches)},
                **{"left": remaining, "grown": self.pools},
            }
            facts |= {"game": game} if self.settings.group_size else {name: facts[name][0] for name in _POOLS}
            self.emit("round", **facts)

    def _share(self, wanted: Sequence[int], pool: int, number: int) -> list[int]:
        """What those at a pool get of what they want."""
        if self.settings.rationing == "proportional":
            return share_out(wanted, pool)
        return ration(wanted, pool, self.nature(f"units {number}" if number else "units"))

    def _by_villager(self, units: Mapping[int, int]) -> list[int | None]:
        return [units.get(i) for i in range(self.n_players)]

    def _pool_of(self, index: int) -> int:
        return next(pool for pool, group in zip(self.pools, self.groups, strict=True) if index in group)

    def _features(self) -> NDArray[np.float32]:
        rules, ones = self.settings, np.ones(self.n_players)
        last = self.history[-1][2] if self.history else [0] * self.n_players
        own = np.array([units or 0 for units in last]) / rules.capacity
        pools = np.array([self._pool_of(i) for i in range(self.n_players)])
        return np.column_stack([pools / rules.capacity, ones * self.round / rules.months, own]).astype(np.float32)

    def _picture(self) -> str:
        last = [f"{name} {units}" for name, units in self._taken()]
        pools = ", ".join(map(str, self.pools))
        return f"month {self.round}: {pools} units{'; taken: ' if last else ''}{', '.join(last)}"

    def _taken(self, index: int | None = None) -> list[tuple[str, int]]:
        """What everybody got in the last month, or those at a villager's pool of that month."""
        if not self.history:
            return []
        *_, last, _, game = self.history[-1]
        gains = zip(self.possible_agents, last, game, strict=False)
        return [(name, units) for name, units, k in gains if units is not None and (index is None or k == game[index])]

    def _slots(self, index: int, common: dict[str, Any]) -> CommonsSlots:
        rules, present, pool = self.settings, set(self.present_in(self.round).tolist()), self._pool_of(index)
        earlier = set(self.present_in(self.round - 1).tolist()) if self.round > 1 else present
        own = [[month, note] for month, i, note in self.written if i == index]
        others = [self.possible_agents[i] for i in self.group_of(index) if i in present and i != index]
        months = [(month, pools[game[index]], got[index]) for month, pools, got, _, game in self.history]
        past = [entry for entry in months if entry[2] is not None]
        return CommonsSlots(
            rules=rules,
            month=self.round,
            pool=pool,
            others=tuple(others),
            players=len(others) + 1,
            most=self._most,
            bearable=threshold(pool, len(others) + 1) if rules.told != "nothing" else 0,
            taken=tuple(self._taken(index)),
            history=tuple(past[len(past) - min(rules.shown, len(past)) :]),
            notes=tuple((month, note) for month, note in own[len(own) - min(rules.notes, len(own)) :]),
            joined=tuple(self.possible_agents[i] for i in sorted(present - earlier)),
            newcomer=index not in set(self.present_in(1).tolist()),
            heard=self._heard(index, own=True),
            **common,
        )

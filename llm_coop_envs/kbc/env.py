"""The number contest as an environment."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from fractions import Fraction
from itertools import count, repeat
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.channels import Audience, everyone, grouped, neighbours
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import OWN
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.hooks import Event, Over, Stage
from llm_coop_envs.interface.question import Number
from llm_coop_envs.kbc.rules import Settled, settle
from llm_coop_envs.kbc.settings import KBCSettings, tidy
from llm_coop_envs.kbc.slots import KBCSlots, OwnRound, PastRound
from llm_coop_envs.treatments.changes import fits_any
from llm_coop_envs.treatments.presence import STAYS

# Winning numbers are announced with 2 decimals in the program of Pan et al. 2024.
DECIMALS = 2

FEATURES = ("progress", "deciding", "ratio", "offset", "own_weight", "announced", "last_target", "own_last")
GROUP_FEATURES = ("own_group_last", "lowest_group_last", "highest_group_last")


class KBCEnv(ScenarioEnv):
    """Everyone names a number; the nearest to a target made from the mean of all numbers wins.

    Sources: Wu et al. 2024 ("Shall We Team Up", EMNLP Findings; first version "Shall We Talk") and Pan et al. 2024
    ("Very Large-Scale Multi-Agent Simulation in AgentScope"); every setting names its own in `KBCSettings`.

    Phases: `talk` (one turn at a time; everyone hears everyone; a repeated or nested session forgets nothing) and
    `act`, in which all name their numbers at once. `round` in the info is k in a nested session (from 0), else it
    counts from 1.

    Choice: Discrete, the number minus `low`, for integer choices (`settings.to_choice` and `to_number` translate); a
    Box of shape (1,) for real ones. A missing, unreadable or illegal integer counts as `low`, as an answer without
    digits does in the program of Wu et al.; a missing or NaN real number counts as `low`, one outside the range as
    the nearest bound. All of them are flagged.

    Reward: what the reward rule pays in each decision, in currency (`unit` per unit); 0 in talk steps.

    Features (float32): facts of the text, and the progress of the episode, which `round` in the info tells too. Scaled
    means (number - low) / (high - low). What is announced is as the player sees it, but no further off than it can be.
        `progress` decisions made / decisions of the episode; `deciding` 1 in act steps; `ratio`; `offset` / (high -
        low); `own_weight` the share of the player's own number in the mean that counts (1 / players, or 1 / (groups x
        members)); `announced` 1 once the player knows of a winning number; `last_target` the last one, scaled, 0
        before; `own_last` the player's own last number, scaled, in repeated sessions, 0 before and otherwise. In
        group play also `own_group_last`, `lowest_group_last`, `highest_group_last`: the last announced numbers of
        groups, scaled, 0 before.

    State: after the parts that all scenarios share, `progress`, then everyone's last number, scaled, 0 before
    the first decision.

    Events: `round` for each decision: `choices` (numbers, in the players' order), `mean` (of the choices, or of the
    groups' numbers), `target`, `winners` (indices), `prize` (of each), `group_numbers` and `winning_groups` (or
    `None`).

    Arguments: those of `core.env.ScenarioEnv`, with the fields and presets of `KBCSettings`.
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "kbc_v0"}
    settings_type = KBCSettings
    slots_type = KBCSlots
    role = "player"
    home = Path(__file__).parent
    kept = ("_made", "_talked", "_numbers", "_own", "_targets", "_group_numbers")
    settings: KBCSettings

    def _setup(self) -> None:
        settings = self.settings
        self.n_players = settings.players
        self._span = float(settings.high - settings.low)
        self._groups = np.zeros(0, dtype=np.int64)
        self.feature_names = FEATURES
        if settings.groups is not None:
            sizes = np.asarray(settings.groups, dtype=np.int64)
            self._groups = np.repeat(np.arange(len(sizes)), sizes)
            self.feature_names = FEATURES + GROUP_FEATURES
            self._check_groups_stay()
        first = len(FEATURES)
        self._base = np.zeros((self.n_players, len(self.feature_names)), dtype=np.float32)
        self._base[:, 2] = float(settings.ratio)
        self._base[:, 3] = float(settings.offset) / self._span
        ends = [float(settings.ratio * Fraction(end) + settings.offset) for end in (settings.low, settings.high)]
        # Rounding to the announced decimals may step over an end.
        spare = 10.0**-DECIMALS / self._span
        low = np.zeros(len(self.feature_names))
        high = np.ones(len(self.feature_names))
        low[2:4] = high[2:4] = self._base[0, 2:4]
        low[6], high[6] = min(0.0, self._scaled(ends[0]) - spare), max(0.0, self._scaled(ends[1]) + spare)
        low[first:], high[first:] = -spare, 1 + spare
        self._feature_bounds = (low, high)
        self._state_bounds = (np.zeros(1 + self.n_players), np.ones(1 + self.n_players))
        bounds: dict[str, Any] = {"low": tidy(settings.low), "high": tidy(settings.high), "integer": settings.integer}
        self._number = settings.asked
        # The slots that stay the same for everyone throughout.
        self._fixed_slots: dict[str, Any] = {
            **bounds,
            **{name: getattr(settings, name) for name in ("winner_rule", "reward_rule", "currency")},
            "ratio": str(settings.ratio),
            "offset": str(settings.offset),
            "tolerance": tidy(float(settings.tolerance)),
            "unit": tidy(settings.unit),
            "repeated": settings.session == "repeated",
            "together": settings.talk_mode == "simultaneous",
            "audience": settings.audience,
            "hearers": 0,
            "announces": False,
            "announcers": 0,
        }
        self._gather(np.arange(self.n_players))

    def _check_groups_stay(self) -> None:
        """Require that somebody of each group stays.

        Raises:
            SettingsError: a group would have no members.
        """
        if self._without is None:
            return
        for group in range(len(self.settings.groups or ())):
            last = int(self._without[self._groups == group].max())
            if last < STAYS:
                why = f"leaves nobody of group {group + 1} from round {last} on; one of each group must stay"
                raise SettingsError("changes", "present", why)

    def _gather(self, there: Indices) -> None:
        """Let these players take part from now on."""
        self._there = there
        weights: Any = 1 / len(there)
        sizes = np.bincount(self._groups[there]) if len(self._groups) else self._groups
        if len(sizes):
            weights = 1 / (len(sizes) * sizes[self._groups])
        self._base[:, 4] = weights
        self._fixed_slots |= {"players": len(there), "groups": tuple(sizes.tolist())}
        for cached in ("_hearing", "_announcers"):
            with contextlib.suppress(AttributeError):  # nobody asked for it yet
                delattr(self, cached)

    def _let_go(self) -> None:
        """Go on without those who are no longer present."""
        gone = self.depart()
        if len(gone):
            self._gather(self.present_in(self.round))
            if self.record:
                self.emit("left", agents=[self.possible_agents[i] for i in gone.tolist()])

    def _choice_space(self) -> spaces.Discrete[Any] | spaces.Box:
        settings = self.settings
        if settings.integer:
            return spaces.Discrete(int(settings.high - settings.low) + 1)
        return spaces.Box(float(settings.low), float(settings.high), (1,), np.float64)

    def _longest_text(self) -> tuple[int, int]:
        settings = self.settings
        turns = sum(map(settings.turns_before, range(settings.decisions)))
        return turns * settings.players, max(settings.reach("history")) * (3 + len(settings.groups or ()))

    def _begin(self, options: Mapping[str, Any]) -> None:
        self._made = 0
        self.round = self.settings.first_round
        if self._without is not None:
            self._gather(self._everyone)
        self._talked = False
        self._numbers: NDArray[Any] | None = None
        self._own: list[NDArray[Any]] = []
        self._own_columns: list[tuple[float, ...]] | None = None
        self._won_columns: list[tuple[float, ...]] = []
        self._targets: tuple[float, ...] = ()
        self._group_numbers: tuple[tuple[float, ...], ...] = ()

    def _next_stage(self) -> Stage | Over:
        if self._made == self.settings.decisions:
            return Over("all decisions made")
        self.round = self.settings.first_round + self._made
        self._let_go()
        turns = self.settings.turns_before(self._made)
        if turns and not self._talked:
            self._talked = True
            return self._talk_stage([self._order() for _ in range(turns)], self._hearing)
        self._talked = False
        return Stage("act", [self._everyone if self._without is None else self._there])

    @functools.cached_property
    def _hearing(self) -> Audience:
        """Who hears whom, in every talk."""
        settings = self.settings
        if settings.audience == "everyone":
            return everyone()
        if settings.audience == "neighbours":
            return neighbours(self._there.tolist(), settings.hearers, self._announcers)
        groups = self._groups[self._there]
        return grouped((self._there[groups == k].tolist() for k in range(len(settings.groups or ()))), self._announcers)

    @functools.cached_property
    def _announcers(self) -> frozenset[int]:
        patterns, names = self.settings.announcers, self.possible_agents
        return frozenset(i for i in self._there.tolist() if fits_any(names[i], patterns))

    def _order(self) -> list[int]:
        if self.settings.order == "fixed":
            fixed: list[int] = self._there.tolist()
            return fixed
        order: list[int] = self.np_random.permutation(self.n_players).tolist()
        return order if len(self._there) == self.n_players else [i for i in order if self._alive[i]]

    def _apply(self, phase: str, who: Indices, choices: NDArray[Any]) -> None:
        settings = self.settings
        numbers = choices.astype(np.int64) + int(settings.low) if settings.integer else choices.copy()
        if len(who) < self.n_players:
            named, numbers = numbers, np.full(self.n_players, settings.low, dtype=numbers.dtype)
            numbers[who] = named
        settled = self._settle(numbers, self.round)
        self._rewards += settled.rewards
        self._numbers = numbers
        self._made += 1
        if settings.session == "repeated":
            last = max(settings.reach("history"))
            self._own_columns = None
            self._own = [*self._own, numbers][-last:]
            self._targets = (*self._targets, tidy(round(settled.target, DECIMALS)))[-last:]
            if settled.group_numbers is not None:
                announced = tuple(tidy(x) for x in np.round(settled.group_numbers, DECIMALS).tolist())
                self._group_numbers = (*self._group_numbers, announced)[-last:]
        if self.record:
            self.emit("round", **self._round_data(numbers, settled, self.round))
        if self._targets and settings.listeners:
            for i in np.flatnonzero(~self.blind).tolist() if self._noisy else [None]:
                number = self._targets[-1] if i is None else self._seen(i, self._made, self._last_announced())[0]
                self.happened("winning_number", number=number, concerned=None if i is None else [i])

    def _settle(self, numbers: NDArray[Any], round_: int) -> Settled:
        """Settle a round among those who took part in it."""
        return settle(numbers, self.settings, None if self._without is None else self.present_in(round_))

    def _round_data(self, numbers: NDArray[Any], settled: Settled, round_: int) -> dict[str, Any]:
        groups, winning = settled.group_numbers, settled.winning_groups
        return {
            "choices": self._by_player(numbers, round_),
            "mean": settled.mean,
            "target": settled.target,
            "winners": np.flatnonzero(settled.winners).tolist(),
            "prize": settled.prize,
            "group_numbers": None if groups is None else groups.tolist(),
            "winning_groups": None if winning is None else np.flatnonzero(winning).tolist(),
        }

    def _by_player(self, numbers: NDArray[Any], round_: int) -> list[Any]:
        """A round's numbers as JSON data: nothing for players who had left."""
        told: list[Any] = numbers.tolist()
        if self._without is not None:
            for i in np.flatnonzero(self._without <= round_).tolist():
                told[i] = None
        return told

    def recap(self) -> list[Event]:
        """The last decision; earlier ones are not kept."""
        if self._numbers is None:
            return []
        made = self.settings.first_round + self._made - 1
        data = self._round_data(self._numbers, self._settle(self._numbers, made), made)
        return [{"type": "round", "step": self.cycles, "round": made, **data}]

    # What players know.

    def _question(self, index: int) -> Number:
        return self._number

    def _features(self) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self._base.copy()
        rows[:, 0] = self._made / self.settings.decisions
        if self.phase != TALK:
            rows[:, 1] = 1.0
        if not self._targets:
            return rows
        first, last = len(FEATURES), self._last_announced()
        told = np.array([self._seen(i, self._made, last) for i in range(self.n_players)] if self._noisy else [last])
        scaled = np.broadcast_to(self._scaled(told), (self.n_players, len(last)))
        rows[:, 5], rows[:, 6] = 1.0, scaled[:, 0]
        if self._group_numbers:
            groups = scaled[:, 1:]
            rows[:, first] = groups[self._everyone, self._groups]
            rows[:, first + 1], rows[:, first + 2] = groups.min(axis=1), groups.max(axis=1)
        if self._noisy:
            rows = np.clip(rows, *self._feature_bounds, dtype=np.float32)
        rows[:, 7] = self._scaled(self._own[-1])
        if self._hides:
            rows[self.blind, 5:7] = rows[self.blind, first:] = 0.0
        if self._forgets:
            rows[self.forgetful, 5:] = 0.0
        return rows

    def _last_announced(self) -> tuple[float, ...]:
        """The last target, and in group play the groups' numbers."""
        return (self._targets[-1], *(self._group_numbers[-1] if self._group_numbers else ()))

    def _slots(self, index: int, common: dict[str, Any]) -> KBCSlots:
        settings = self.settings
        repeated = settings.session == "repeated"
        talking = self.phase == TALK
        turns = 0 if self.over else settings.turns_before(self._made)
        # A frozen dataclass's constructor sets its fields one by one, which is most of the time of this method.
        slots = object.__new__(KBCSlots)
        vars(slots).update(
            common,
            **self._fixed_slots,
            over=self.over,
            persona=self._persona(index, talking),
            group=int(self._groups[index]) + 1 if settings.groups is not None else 0,
            round=self.round if repeated else 0,
            past=self._past(index),
            turns=turns,
            turn=turns - len(self._orders) if talking and not self.over else 0,
            heard=self._heard(index, own=True),
        )
        if settings.audience != "everyone":
            hearers = min(settings.hearers, len(self._there) - 1) if settings.audience == "neighbours" else 0
            announces = index in self._announcers
            vars(slots).update(hearers=hearers, announces=announces, announcers=len(self._announcers))
        return slots

    def _past(self, index: int) -> tuple[PastRound | OwnRound, ...]:
        if not self._own:
            return ()
        now, first = self.settings_of(index), self._made - len(self._targets) + 1
        if self._own_columns is None:
            self._own_columns = _columns(self._own)
            if self._hides:
                self._won_columns = _columns([self._settle(one, k).rewards for k, one in enumerate(self._own, first)])
        own, rounds = self._own_columns[index], count(first)
        past: tuple[PastRound | OwnRound, ...]
        if now.information == OWN:
            past = tuple(map(OwnRound, rounds, own, self._won_columns[index]))
        elif self._noisy:
            announced = zip(self._targets, *zip(*self._group_numbers, strict=True), strict=True)
            seen = [self._seen(index, number, one) for number, one in zip(rounds, announced, strict=False)]
            past = tuple(PastRound(first + k, one[0], own[k], one[1:]) for k, one in enumerate(seen))
        else:
            past = tuple(map(PastRound, rounds, self._targets, own, self._group_numbers or repeat(())))
        most = now.history if now.memory is None else min(now.history, now.memory)
        return past[max(0, len(past) - most) :]

    def _seen(self, index: int, number: int, announced: tuple[float, ...]) -> tuple[float, ...]:
        """What was announced of a round, as a player sees it."""
        error = self.error(index, number, number, len(announced))
        if error is None:
            return announced
        off = (error * self._span).tolist()
        return tuple(tidy(round(one + by, DECIMALS)) for one, by in zip(announced, off, strict=True))

    def _persona(self, index: int, talking: bool) -> str:
        settings = self.settings
        hidden = not settings.personas or self.round < settings.persona_from
        if hidden or (talking and not settings.persona_in_talk):
            return ""
        return settings.personas[index if len(settings.personas) > 1 else 0]

    # For everyone else.

    def _scaled(self, numbers: Any) -> Any:
        return (numbers - self.settings.low) / self._span

    def _state_vector(self) -> NDArray[np.float64]:
        state = np.zeros(1 + self.n_players)
        state[0] = self._made / self.settings.decisions
        if self._numbers is not None:
            state[1:] = self._scaled(self._numbers)
            state[1:][~self._alive] = 0.0
        return state

    def _restore(self, data: Mapping[str, Any]) -> None:
        super()._restore(data)
        self._own_columns = None
        if self._without is not None:
            self._gather(self.present_in(self.round))

    def _picture(self) -> str:
        if self._numbers is None:
            return f"{self.n_players} players, no number named yet"
        made = self.settings.first_round + self._made - 1
        last, settled = self._by_player(self._numbers, made), self._settle(self._numbers, made)
        named = ["gone" if number is None else f"{number:g}" for number in last[:40]]
        shown = " ".join(named) + (" ..." if len(last) > 40 else "")
        won = f"{int(settled.winners.sum())} of {len(self.present_in(made))} won"
        return f"last numbers: {shown}\nmean {settled.mean:.2f}, target {settled.target:.2f}, {won}"


def _columns(rounds: list[NDArray[Any]]) -> list[tuple[float, ...]]:
    """Each player's numbers in these rounds."""
    return list(zip(*(map(tidy, one.tolist()) for one in rounds), strict=True))

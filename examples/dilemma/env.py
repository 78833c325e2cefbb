"""The environment: all choose at once, see what the others chose, and may meet again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dilemma.games import MATRIX, PUBLIC_GOODS, TRAVELLERS, Payoffs, claim_payoffs, matrix_payoffs, mean, public_payoffs
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.channels import everyone, grouped
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.moves import Shares
from llm_coop_envs.interface.question import Option, Options, Question
from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.mechanisms.stage_game import StageGame

Cells = tuple[tuple[tuple[float, float], ...], ...]


@dataclass(frozen=True, kw_only=True)
class DilemmaSettings(ScenarioSettings):
    """Settings of the dilemmas; the payoffs of the presets are those of CoopEval (arXiv 2604.15267).

    The first action is the cooperative one, the last the competitive one.

    Attributes:
        game: `"matrix"`, two players and a payoff for both in each cell; `"public_goods"`; or `"travellers"`.
        players: how many play; with `group_size`, how many there are in all games side by side.
        payoffs: of a matrix game, the (first player's, second player's) payoffs by row and column.
        actions: what the actions of a matrix game or of public goods are called.
        multiplier: of public goods, what a contribution of 1 is worth to all together.
        claims: of the traveller's dilemma, the (lowest, highest) claim; every whole number between them is one.
        bonus: of the traveller's dilemma, what the lowest claim earns more and the others less.
        stated: whether players state a probability for each action, from which it is drawn, or name an action.
        rounds: after how many rounds the record ends.
        continuation: the chance of another round that players are told of; `None` tells them how many rounds there are.
        shown: how many of the last rounds are shown.
    """

    again: ClassVar[Mapping[str, str]] = {"rounds": "rounds", "continuation": "continuation", "remembered": "shown"}
    has_groups: ClassVar[bool] = True
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "players": (2, 100),
        "multiplier": (0, 1000),
        "bonus": (0, 1e6),
        "rounds": (1, 10_000),
        "shown": (0, 100),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"game": (MATRIX, PUBLIC_GOODS, TRAVELLERS)}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "prisoners_dilemma": {},
        "stag_hunt": {"payoffs": [[[5, 5], [0, 3]], [[3, 0], [3, 3]]]},
        "trust": {"payoffs": [[[10, 10], [0, 20]], [[6, 2], [4, 4]]]},
        "matching_pennies": {"payoffs": [[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]]},
        "public_goods": {"game": PUBLIC_GOODS, "players": 3},
        "travellers": {"game": TRAVELLERS},
    }

    game: str = MATRIX
    players: int = 2
    payoffs: Cells = (((2.0, 2.0), (0.0, 3.0)), ((3.0, 0.0), (1.0, 1.0)))
    actions: tuple[str, ...] = ("A", "B")
    multiplier: float = 1.5
    claims: tuple[int, int] = (2, 5)
    bonus: float = 2.0
    stated: bool = False
    rounds: int = 1
    continuation: float | None = None
    shown: int = 3
    talk: bool = False

    def __post_init__(self) -> None:
        """Check what makes a game; lists become tuples."""
        super().__post_init__()
        if self.continuation is not None and not (_is_number(self.continuation) and 0 <= self.continuation <= 1):
            raise SettingsError("continuation", self.continuation, "must be a chance from 0 to 1, or None")
        names: Any = self.actions
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name.strip() for name in names):
            raise SettingsError("actions", names, "must be a list of names")
        if len({name.lower() for name in names}) < len(names) or len(names) < 2:
            raise SettingsError("actions", names, "must be two names or more, no two alike")
        object.__setattr__(self, "actions", tuple(names))
        if self.game == MATRIX:
            self._read_matrix()
        elif self.game == PUBLIC_GOODS and len(names) != 2:
            raise SettingsError("actions", names, "must be two in public goods: to contribute, and not to")
        ends: Any = self.claims
        if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(type(end) is int for end in ends):
            raise SettingsError("claims", ends, "must be two whole numbers, the lowest claim and the highest")
        if not 1 <= ends[1] - ends[0] <= 100:
            raise SettingsError("claims", ends, "the highest must be 1 to 100 above the lowest")
        object.__setattr__(self, "claims", tuple(ends))

    def _read_matrix(self) -> None:
        cells: Any = self.payoffs
        size = len(self.actions)
        if self.together != 2:
            reason = "a matrix game has 2; set group_size: 2 for pairs, or take game: public_goods"
            raise SettingsError("group_size" if self.group_size else "players", self.together, reason)
        try:
            table = tuple(tuple((cell[0], cell[1]) for cell in row if len(cell) == 2) for row in cells)
        except (TypeError, IndexError, KeyError):
            table = ()
        if len(table) != size or any(len(row) != size for row in table):
            reason = f"must have {size} rows of {size} pairs of payoffs, as many as there are actions"
            raise SettingsError("payoffs", cells, reason)
        if not all(_is_number(value) for row in table for cell in row for value in cell):
            raise SettingsError("payoffs", cells, "must be numbers from -1,000,000 to 1,000,000")
        floats = tuple(tuple((float(first), float(second)) for first, second in row) for row in table)
        object.__setattr__(self, "payoffs", floats)

    @property
    def together(self) -> int:
        """How many play a game with each other."""
        return self.group_size or self.players

    def stage_game(self) -> StageGame:
        """A round: the first action cooperates, the last one competes."""
        return StageGame(
            players=self.together, actions=self.names, cooperative=0, competitive=self.competitive, worth=self.pay
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What the actions are called, the cooperative one first."""
        if self.game == TRAVELLERS:
            return tuple(str(claim) for claim in range(self.claims[1], self.claims[0] - 1, -1))
        return self.actions

    @property
    def competitive(self) -> int:
        """The competitive action, the last one."""
        return len(self.names) - 1

    def pay(self, chosen: Sequence[int]) -> Payoffs:
        """What everybody gets when these actions are chosen."""
        if self.game == MATRIX:
            return matrix_payoffs(self.payoffs, chosen)
        if self.game == PUBLIC_GOODS:
            return public_payoffs(self.multiplier, chosen)
        return claim_payoffs([float(self.claims[1] - action) for action in chosen], self.bonus)

    def replies(self, player: int, others: Sequence[int]) -> Payoffs:
        """What a player gets for each of its actions when the others choose theirs, in the order of players."""
        return tuple(
            self.pay([*others[:player], action, *others[player:]])[player] for action in range(len(self.names))
        )

    @property
    def ends(self) -> tuple[float, float]:
        """The mean payoff when all compete, and when all cooperate."""
        return mean(self.pay([self.competitive] * self.together)), mean(self.pay([0] * self.together))

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest payoff of all."""
        if self.game == MATRIX:
            values = [value for row in self.payoffs for cell in row for value in cell]
        elif self.game == PUBLIC_GOODS:
            each = self.multiplier / self.together
            contributors = range(self.together + 1)
            values = [k * each for k in contributors if k] + [k * each + 1 for k in contributors if k < self.together]
        else:
            low, high = self.claims
            values = [low - self.bonus, max(high, high - 1 + self.bonus)]
        return min(values), max(values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e6


@dataclass(frozen=True, kw_only=True)
class DilemmaSlots(Slots):
    """What one player may know: the rules, which player it is, and the last rounds.

    Attributes:
        rules: the settings; everybody knows them.
        index: its place in the game, from 0.
        others: those with whom it plays now.
        round: the round, from 1.
        history: (round, (name, action) of those in its game, own payoff) of the last rounds.
        heard: what this player has heard and said in this round.
    """

    rules: DilemmaSettings
    index: int
    others: tuple[str, ...]
    round: int
    history: tuple[tuple[int, tuple[tuple[str, int], ...], float], ...]
    heard: tuple[Heard, ...]


class DilemmaEnv(ScenarioEnv):
    """All choose an action at the same time, and are paid for what all have chosen, in one round or several.

    Choice: an action, or with `stated` a probability for each, from which the action is drawn.

    Reward: the payoff of the round.

    Events: `round`: `actions` (by number) and `payoffs`; in groups also the number of the `game` that each one plays.
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "dilemma_v0", "render_fps": 2}
    settings_type = DilemmaSettings
    slots_type = DilemmaSlots
    role = "player"
    home = Path(__file__).parent
    kept = ("history",)

    def _setup(self) -> None:
        self.n_players = self.settings.players
        self.feature_names = ("round", "own_action", "others_cooperating")
        self._feature_bounds = (-1.0, 1.0)

    def _moves(self) -> Mapping[str, Question]:
        options = tuple(Option(choice=k, name=name) for k, name in enumerate(self.settings.names))
        return {"act": Shares(options=options) if self.settings.stated else Options(name="action", options=options)}

    def _begin(self, options: Mapping[str, Any]) -> None:
        self.history: list[list[Any]] = []

    def _next_stage(self) -> Stage | Over:
        if self.phase == TALK and self.round > len(self.history):
            return Stage("act", [self._everyone])
        if self.round == self.settings.rounds:
            return Over("all rounds played", truncated=True)
        self.round += 1
        self.conversation.forget()
        if self.settings.talks_in(self.round):
            audience = grouped(self.groups) if self.settings.group_size else everyone()
            return self._talk_stage([self.nature("order").permutation(self.n_players).tolist()], audience)
        return Stage("act", [self._everyone])

    def _fallback(self, who: NDArray[np.intp]) -> NDArray[np.int64]:
        """The competitive action: no answer is no cooperation."""
        return np.full(len(who), self.settings.competitive)

    def _stand_in(self, index: int) -> dict[str, int]:
        names = self.settings.names
        return {name: 100 * (name == names[-1]) for name in names}

    def _apply(self, phase: str, who: NDArray[np.intp], choices: NDArray[Any]) -> None:
        actions = [int(choice) for choice in choices]
        payoffs = [0.0] * self.n_players
        for group in self.groups:
            for i, payoff in zip(group, self.settings.pay([actions[i] for i in group]), strict=True):
                payoffs[i] = payoff
        self._rewards += payoffs
        self.history = [*self.history, [self.round, actions, payoffs, [list(group) for group in self.groups]]]
        if self.record:
            game = {i: k for k, group in enumerate(self.groups) for i in group}
            grouped = {"game": [game[i] for i in range(self.n_players)]} if self.settings.group_size else {}
            self.emit("round", actions=actions, payoffs=payoffs, **grouped)

    def _features(self) -> NDArray[np.float32]:
        shared = np.full(self.n_players, self.round / self.settings.rounds)
        if not self.history:
            return np.column_stack([shared, *[np.full(self.n_players, -1.0)] * 2]).astype(np.float32)
        actions = np.array(self.history[-1][1])
        others = np.zeros(self.n_players)
        for group in self.history[-1][3]:
            cooperating = actions[group] == 0
            others[group] = (cooperating.sum() - cooperating) / (len(group) - 1)
        return np.column_stack([shared, actions / self.settings.competitive, others]).astype(np.float32)

    def _slots(self, index: int, common: dict[str, Any]) -> DilemmaSlots:
        known = self.history[-self.settings.shown :] if self.settings.shown else []
        names, group = self.possible_agents, self.group_of(index)
        games = [(number, next(g for g in groups if index in g), a, pay) for number, a, pay, groups in known]
        return DilemmaSlots(
            rules=self.settings,
            index=group.index(index),
            others=tuple(names[i] for i in group if i != index),
            round=self.round,
            history=tuple((n, tuple((names[i], a[i]) for i in g), pay[index]) for n, g, a, pay in games),
            heard=self._heard(index, own=True),
            **common,
        )

"""What is learned, and how: settings of the tabular learners, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.core.settings import ScenarioSettings, check_int, check_number, suggestion
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.kbc.settings import KBCSettings

GIB = 2**30
#: The largest table that is made.
MAX_BYTES = 2 * GIB
MAX_EPISODES = 10_000_000

_OWNED = "is set by the learner; leave it out of changes"


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What all tabular learners share. Rates fall linearly from the first to the last episode.

    Attributes:
        preset: the environment's preset.
        changes: settings of the environment that differ from the preset's.
        episodes: how many episodes are played for learning.
        step_size: how far a value moves towards its new estimate in the first episode.
        step_size_end: likewise in the last one.
        discount: the worth of the next decision's value.
        curve_every: episodes between two points of the learning curve; also between two checkpoints.
        curve_seeds: episodes played without exploration for each point of the curve.
    """

    scenario: ClassVar[str]
    environment_type: ClassVar[type[ScenarioSettings]]

    preset: str
    changes: dict[str, Any] = field(default_factory=dict)
    episodes: int
    step_size: float = 0.1
    step_size_end: float
    discount: float
    curve_every: int
    curve_seeds: int

    def __post_init__(self) -> None:
        """Check the shared fields."""
        check_int(self, "episodes", 1, MAX_EPISODES)
        check_number(self, "step_size", 0.0, 1.0, above=True)
        check_number(self, "step_size_end", 0.0, 1.0)
        check_number(self, "discount", 0.0, 1.0)
        check_int(self, "curve_every", 1, MAX_EPISODES)
        check_int(self, "curve_seeds", 1, 10_000)
        if not isinstance(self.changes, Mapping):
            raise SettingsError("changes", self.changes, "must hold settings of the environment and their values")
        for name in self.owned():
            if name in self.changes:
                raise SettingsError(name, self.changes[name], _OWNED)
        object.__setattr__(self, "changes", dict(self.changes))

    def owned(self) -> dict[str, Any]:
        """Settings of the environment that the learner itself decides."""
        return {}

    def given(self) -> dict[str, Any]:
        """The arguments of the environment."""
        return {"preset": self.preset, **self.changes, **self.owned()}

    def falling(self, first: str, last: str, episode: int) -> float:
        """The value of a rate in an episode."""
        left = 1.0 - episode / self.episodes
        start, end = getattr(self, first), getattr(self, last)
        return float(end + (start - end) * left)

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data that `from_json` accepts."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Settings from plain data.

        Raises:
            SettingsError: an unknown field or an impossible value.
        """
        known = [one.name for one in fields(cls)]
        for name, value in data.items():
            if name not in known:
                raise SettingsError(name, value, f"is no setting of {cls.__name__}; {suggestion(name, known)}")
        return cls(**data)


@dataclass(frozen=True, kw_only=True)
class KBCLearning(Learning):
    """Independent learners of the number contest: a table of its own for every player.

    The contest is played as a repeated session without talk, so that the winning number is announced after each round.

    Attributes:
        rounds: rounds of an episode.
        bins: equal parts of the range in which the last winning number is told apart.
        numbers: with real choices, how many equally spaced numbers a player chooses from; whole numbers are all used.
        explore: share of choices that are not the best known ones, in the first episode.
        explore_end: likewise in the last one.
        wide: share of these that are drawn from all numbers, in the first episode; the others lie near the best known
            number.
        wide_end: likewise in the last one.
        near: how many numbers away from the best known one "near" reaches.
    """

    scenario: ClassVar[str] = "kbc"
    environment_type: ClassVar[type[ScenarioSettings]] = KBCSettings

    preset: str = "two_thirds"
    episodes: int = 3000
    step_size_end: float = 0.1
    # A single player hardly moves the next winning number, so what follows a choice says little about it.
    discount: float = 0.0
    curve_every: int = 100
    curve_seeds: int = 1
    rounds: int = 10
    bins: int = 10
    numbers: int = 201
    explore: float = 0.5
    explore_end: float = 0.0
    wide: float = 0.5
    wide_end: float = 0.0
    near: int = 5

    def __post_init__(self) -> None:
        """Check every field, and that the table can be held."""
        super().__post_init__()
        check_int(self, "rounds", 1, 100_000)
        check_int(self, "bins", 1, 10_000)
        check_int(self, "numbers", 2, 100_000)
        check_int(self, "near", 1, 100_000)
        for name in ("explore", "explore_end", "wide", "wide_end"):
            check_number(self, name, 0.0, 1.0)
        contest = self.contest
        points = int(contest.high - contest.low) + 1 if contest.integer else self.numbers
        size = contest.players * (self.bins + 1) * points * 8
        if size > MAX_BYTES:
            raise SettingsError(
                "bins",
                self.bins,
                f"{contest.players} players x {self.bins + 1} states x {points} numbers make a table of "
                f"{size / GIB:,.3g} GiB, more than {MAX_BYTES // GIB}; take fewer bins, numbers or players",
            )

    def owned(self) -> dict[str, Any]:
        """A repeated session without talk."""
        return {"session": "repeated", "talk": False, "rounds": self.rounds}

    @property
    def contest(self) -> KBCSettings:
        """The environment's settings."""
        return KBCSettings.build(**self.given())


@dataclass(frozen=True, kw_only=True)
class EvacuationLearning(Learning):
    """Learners of the evacuation: everybody adds to and decides from the same table.

    Attributes:
        explore_exit: share of choices of an exit that are random, in the first episode.
        explore_exit_end: likewise in the last one.
        explore_move: share of moves that are random, in the first episode.
        explore_move_end: likewise in the last one.
    """

    scenario: ClassVar[str] = "evacuation"
    environment_type: ClassVar[type[ScenarioSettings]] = EvacuationSettings

    preset: str = "no_talk"
    episodes: int = 600
    step_size_end: float = 0.005
    discount: float = 1.0
    curve_every: int = 30
    curve_seeds: int = 10
    explore_exit: float = 0.2
    explore_exit_end: float = 0.02
    explore_move: float = 0.1
    explore_move_end: float = 0.0

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        for name in ("explore_exit", "explore_exit_end", "explore_move", "explore_move_end"):
            check_number(self, name, 0.0, 1.0)
        # An impossible room is refused here, before anything starts.
        EvacuationSettings.build(**self.given())


LEARNINGS: Mapping[str, type[Learning]] = {one.scenario: one for one in (KBCLearning, EvacuationLearning)}


def check_seed(seed: object) -> int:
    """A usable seed.

    Raises:
        SettingsError: it is none.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SettingsError("seed", seed, "must be a whole number, 0 or more")
    return seed

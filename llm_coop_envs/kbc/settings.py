"""Settings of the number contest, and the published contests as presets."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.settings import PERCEPTION, ScenarioSettings, added
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Number
from llm_coop_envs.treatments.changes import check_patterns
from llm_coop_envs.util.checks import check_int, check_number, suggestion

MAX_PLAYERS = 1_000_000
MAX_NUMBER = 10**9
MAX_RATIO = 1000
MAX_CHOICES = 100_000
MAX_ROUNDS = 100_000
MAX_TURNS = 1000

WINNER_RULES = ("nearest", "first_value", "tolerance")
REWARD_RULES = ("exclusive", "independent", "amplified")
SESSIONS = ("nested", "single", "repeated")
STATISTICS = ("mean", "median", "max")
OPPONENTS = ("random", "novices", "experts", "alike")

# "2", "-2/3" or "0.51", with 18 digits at most and no exponents: "1e999999999" would keep `Fraction` busy for hours.
_MAX_TERM = 10**18
_FRACTION = re.compile(r"[+-]?\d{1,18}(/\d{1,18}|\.\d{1,18})?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class KBCSettings(ScenarioSettings):
    """Settings of the number contest: everyone names a number, the nearest to a target made from the mean wins.

    The target is `ratio` x mean (or another `statistic`) of all numbers + `offset`, everyone's own number included.
    Fractions may be given as `Fraction`, as text (`"2/3"`, `"0.51"`), as a pair `[2, 3]`, or as a number; a float
    is read as the decimal it is printed as, so `0.51` is exactly 51/100.

    The defaults are the protocol of Wu et al. 2024 ("Shall We Team Up", EMNLP Findings) as their released program
    plays it, without any instruction to work together or not to.

    Listeners may listen to `winning_number`, the target that a repeated session announces. Whoever is no longer
    `present` names no number: mean, target and winners are those of the others. Two have to stay, and one of each
    group.

    With `information="own"` a repeated session announces nothing: a player is told its own numbers and what they won.
    (Neither paper has such an arm. In the nested and single sessions of Wu et al. 2024 nobody is told anything, so that
    it changes nothing there.) `observation_noise` is a share of the range, of everything announced. `memory` counts
    rounds that are shown, and those in which what was said is still heard.

    Attributes:
        players: how many play, 2 to 1,000,000. 24 in Wu et al. 2024.
        low: the smallest number that may be named. 0 in all sources.
        high: the largest. 100 in all sources. With integer choices both bounds are integers and at most 100,000 apart.
        ratio: the factor of the mean, above 0 and at most 1000. 2/3 in Wu et al. 2024.
        offset: what is added to it. 0 in Wu et al. 2024.
        statistic: what the target is made from: `"mean"` (all sources), `"median"` or `"max"`. With an even count the
            median is the mean of the middle two.
        choices: `"integer"` (Wu et al. 2024) or `"real"` (Pan et al. 2024, "Very Large-Scale Multi-Agent
            Simulation in AgentScope").
        winner_rule: who wins.
            `"nearest"`: everyone at the smallest distance from the target, on both sides (Wu et al. 2024).
            `"first_value"`: only the number of the first such player in the players' order; whoever is equally near
            on the other side loses (the first program, of the arXiv version 1 "Shall We Talk").
            `"tolerance"`: everyone within `tolerance` of the target, possibly nobody (Pan et al. 2024).
        tolerance: the largest winning distance under `winner_rule="tolerance"`, at least 0. 0.5 in Pan et al. 2024.
        reward_rule: what a winner gets when there are M winners, in units (Wu et al. 2024, arXiv versions 1 and 3);
            a single winner gets 1. `"exclusive"`: 0. `"independent"`: 1 each. `"amplified"`: M each.
            In group play M counts groups, and each member of a winning group gets what a winner gets.
        unit: the size of one unit of reward, above 0. 100 in the program of version 3 (credits in its paper's
            prompt, dollars in the program; 1 dollar in the paper's text), 1 mark in version 1.
        currency: the unit's name as players read it after the number, e.g. `"dollars"`; may be empty.
        session: how an episode goes.
            `"nested"`: decide at k = 0 without talk, then for k = 1..`exchanges` talk (everyone once) and
            decide again. No number, winner or reward is ever shown (Wu et al. 2024, version 3). With `talk=False` the
            `exchanges` + 1 decisions are made without talk.
            `"single"`: `talk_turns` turns of talk, then one decision (version 1).
            `"repeated"`: `rounds` decisions; before each `talk_turns` turns of talk; after each the target, and in
            group play every group's number, is announced with 2 decimals; players are shown their own
            earlier numbers too (Pan et al. 2024).
        exchanges: K of a nested session, at least 1 with talk. 3 in Wu et al. 2024.
        talk_turns: how often everyone speaks before a decision of a single or repeated session; unused in nested
            sessions. 2 in version 1; Pan et al. 2024 have no talk (`talk=False`).
        rounds: decisions of a repeated session. 5 in Pan et al. 2024, figure 7.
        history: how many of the latest rounds a repeated session shows. In
            Pan et al. 2024 players keep the whole history of their 5 rounds, which 20 holds too.
        order: the order of speaking: `"shuffled"` for each talk (program of version 3) or `"fixed"` (program of
            version 1, whose paper says random).
            Decisions are simultaneous: they leave no trace that a later player could see.
        groups: for group play (Pan et al. 2024, figure 12) the number of groups, or their sizes. A number makes groups
            as equal as possible, larger ones first. Members have consecutive indices. A group's number is the mean of
            its members' numbers; target and winners are made from the groups' numbers.
        audience: who hears a player: `"everyone"` (all sources), its `"group"`, or its `"neighbours"`, the next
            `hearers` on a ring in the players' order.
        hearers: how many neighbours hear a player.
        announcers: players whom everybody hears, by names or patterns such as `"player_1*"`.
        opponents: who the other players are said to be: nothing (all sources), a name, or a text of your own.
            `"random"`: programs that name any number by chance; `"novices"`: people who
            have never taken part in such a contest; `"experts"`: people who know such contests very well; `"alike"`:
            players just like oneself. It may be true or not.
        personas: texts that tell players who they are: none, one for everyone, or one for each player. Both programs
            attach such fragments (instructions in version 3, characters in version 1).
        persona_from: the first round (k in a nested session) with the persona. In the released
            program of version 3 the question at k = 0 never carries one, which is 1 here.
        persona_in_talk: whether the persona is shown when talking too, or only when deciding. Of version 3's
            instructions one changes both questions, the other the decision alone.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "players": (2, MAX_PLAYERS),
        "exchanges": (0, MAX_TURNS),
        "talk_turns": (0, MAX_TURNS),
        "rounds": (1, MAX_ROUNDS),
        "history": (1, MAX_ROUNDS),
        "persona_from": (0, MAX_ROUNDS),
        "hearers": (1, MAX_PLAYERS),
    }
    sections: ClassVar[Mapping[str, str]] = {
        "players": "The contest",
        "winner_rule": "Winning",
        "session": "The session",
        "groups": "Groups, and who hears whom",
        "personas": "Personas",
    }
    forms: ClassVar[Mapping[str, str]] = {
        "groups": "int | Sequence[int] | None",
        "announcers": "str | Sequence[str]",
    }
    happenings: ClassVar[Mapping[str, str]] = {"winning_number": "the target, 2 decimals"}
    small: ClassVar[Mapping[str, int]] = {"players": 6, "exchanges": 1, "talk_turns": 1}
    changeable: ClassVar[Mapping[str, bool]] = {
        "history": True,
        "talk_turns": False,
        **dict.fromkeys(PERCEPTION, True),
        "opponents": True,
        "present": True,
    }
    fewest: ClassVar[int] = 2
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "choices": ("integer", "real"),
        "statistic": STATISTICS,
        "winner_rule": WINNER_RULES,
        "reward_rule": REWARD_RULES,
        "session": SESSIONS,
        "order": ("shuffled", "fixed"),
        "audience": ("everyone", "group", "neighbours"),
    }

    players: int = 24
    low: float = 0
    high: float = 100
    ratio: Fraction = Fraction(2, 3)
    offset: Fraction = Fraction(0)
    choices: str = "integer"
    winner_rule: str = "nearest"
    tolerance: Fraction = Fraction(1, 2)
    reward_rule: str = "independent"
    unit: float = 100
    currency: str = "dollars"
    session: str = "nested"
    exchanges: int = 3
    talk_turns: int = 2
    rounds: int = 5
    history: int = 20
    order: str = "shuffled"
    groups: tuple[int, ...] | None = None
    personas: tuple[str, ...] = ()
    persona_from: int = 0
    persona_in_talk: bool = True
    audience: str = added("everyone")
    hearers: int = added(24)
    announcers: tuple[str, ...] = added(())
    statistic: str = added("mean")
    opponents: str = added("")

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # Wu et al. 2024, arXiv version 3 (EMNLP Findings): the defaults.
        "two_thirds": {},
        # "Shall We Talk" (arXiv version 1) as its program plays it.
        "shall_we_talk": {
            "session": "single",
            "talk_turns": 2,
            "order": "fixed",
            "winner_rule": "first_value",
            "reward_rule": "amplified",
            "unit": 1,
            "currency": "mark",
        },
        # Targets of Pan et al. 2024, figures 13 and 14, on the default protocol.
        "half": {"ratio": Fraction(1, 2)},
        "near_half": {"ratio": Fraction(51, 100)},
        "half_plus_five": {"ratio": Fraction(1, 2), "offset": Fraction(5)},
        # Pan et al. 2024: the multi-round game; 1000 players as in figure 15, 5 rounds as in figure 7. The paper
        # states no reward: 1 point for everyone within the tolerance.
        "large_scale": {
            "players": 1000,
            "choices": "real",
            "winner_rule": "tolerance",
            "tolerance": Fraction(1, 2),
            "unit": 1,
            "currency": "point",
            "session": "repeated",
            "rounds": 5,
            "talk": False,
        },
    }

    def __post_init__(self) -> None:
        """Check every field, and the fields against each other."""
        super().__post_init__()
        self._check_range()
        for name in ("ratio", "offset", "tolerance"):
            object.__setattr__(self, name, read_fraction(name, getattr(self, name)))
        if not 0 < self.ratio <= MAX_RATIO:
            raise SettingsError("ratio", str(self.ratio), f"must be above 0 and at most {MAX_RATIO}")
        if abs(self.offset) > MAX_NUMBER:
            raise SettingsError("offset", str(self.offset), f"must be between -{MAX_NUMBER} and {MAX_NUMBER}")
        if self.tolerance < 0:
            raise SettingsError("tolerance", str(self.tolerance), "must be at least 0")
        check_number(self, "unit", 0, MAX_NUMBER, above=True)
        if not isinstance(self.currency, str) or len(self.currency.splitlines()) > 1:
            raise SettingsError("currency", self.currency, "must be a text of one line, e.g. 'dollars'")
        self._check_opponents()
        turns = "exchanges" if self.session == "nested" else "talk_turns"
        if self.talk and getattr(self, turns) == 0:
            raise SettingsError(turns, 0, "leaves no time to talk; give 1 or more, or set talk=False")
        self._read_groups()
        self._read_personas()
        self._read_announcers()

    def reduced(self) -> dict[str, Any]:
        """The reduced settings of every scenario, with no more groups and personas than players are left."""
        reduced = super().reduced()
        players = reduced.get("players", self.players)
        if self.groups is not None:
            reduced["groups"] = min(len(self.groups), players)
        if len(self.personas) > 1:
            reduced["personas"] = self.personas[:players]
        return reduced

    @property
    def integer(self) -> bool:
        """Whether only integers may be named."""
        return self.choices == "integer"

    @property
    def decisions(self) -> int:
        """How many decisions an episode has."""
        return {"nested": self.exchanges + 1, "single": 1, "repeated": self.rounds}[self.session]

    @property
    def first_round(self) -> int:
        """The number of the first decision: k = 0 in a nested session, else 1."""
        return 0 if self.session == "nested" else 1

    def turns_before(self, decision: int) -> int:
        """How many times everyone speaks before a decision; decisions count from 0 in every session."""
        now = self.in_round(self.first_round + decision)
        if not now.talk:
            return 0
        return min(decision, 1) if self.session == "nested" else now.talk_turns

    def to_number(self, choice: float) -> float:
        """The number that a choice of the environment's action stands for.

        Integer choices count from the bottom of the range: choice 0 is `low`. Real choices are the numbers themselves.
        """
        return self.low + choice if self.integer else choice

    @property
    def number_question(self) -> Number:
        """The question to every player."""
        return Number(low=tidy(self.low), high=tidy(self.high), integer=self.integer, counted=self.integer)

    def to_choice(self, number: float) -> int | NDArray[np.float64]:
        """The action's `choice` for a number, moved into the range; integers are rounded halves up (32.5 to 33)."""
        inside = min(max(number, self.low), self.high)
        if self.integer:
            return math.floor(inside + 0.5) - int(self.low)
        return np.array([inside], dtype=np.float64)

    def _check_range(self) -> None:
        check = check_int if self.integer else check_number
        for name in ("low", "high"):
            check(self, name, -MAX_NUMBER, MAX_NUMBER)
        if self.high <= self.low:
            raise SettingsError("high", self.high, f"must be above low={self.low!r}")
        if self.integer and self.high - self.low >= MAX_CHOICES:
            reason = f"must be less than {MAX_CHOICES} above low={self.low!r}; set choices='real' for a wider range"
            raise SettingsError("high", self.high, reason)

    def _read_groups(self) -> None:
        """Replace a number of groups by their sizes: 3 groups of 8 players have the sizes 3, 3, 2."""
        groups: Any = self.groups
        if groups is None:
            return
        if type(groups) is int:
            if not 2 <= groups <= self.players:
                raise SettingsError("groups", groups, f"must be between 2 and players={self.players}")
            size, larger = divmod(self.players, groups)
            sizes = (size + 1,) * larger + (size,) * (groups - larger)
        elif isinstance(groups, Sequence) and not isinstance(groups, str):
            sizes = tuple(groups)
            if any(type(size) is not int or size < 1 for size in sizes):
                raise SettingsError("groups", groups, "must hold the sizes of the groups, whole numbers from 1")
            if len(sizes) < 2:
                raise SettingsError("groups", groups, "must name at least 2 groups, or be None")
            if sum(sizes) != self.players:
                raise SettingsError("groups", groups, f"must add up to players={self.players}, not {sum(sizes)}")
        else:
            raise SettingsError("groups", groups, "must be None, a number of groups, or a list of their sizes")
        object.__setattr__(self, "groups", sizes)

    def _read_announcers(self) -> None:
        if self.audience == "group" and self.groups is None:
            raise SettingsError("audience", self.audience, "needs groups; say how many there are (groups)")
        announcers: Any = (self.announcers,) if isinstance(self.announcers, str) else self.announcers
        if not isinstance(announcers, list | tuple) or not all(isinstance(name, str) and name for name in announcers):
            raise SettingsError(
                "announcers", announcers, "must be a list of players' names, or patterns such as 'player_1*'"
            )
        if announcers and self.audience == "everyone":
            raise SettingsError("announcers", list(announcers), "everybody is heard by everyone; set audience first")
        if announcers:
            check_patterns("announcers", announcers, [f"player_{i}" for i in range(self.players)])
        object.__setattr__(self, "announcers", tuple(announcers))

    def _check_opponents(self) -> None:
        opponents: Any = self.opponents
        if not isinstance(opponents, str):
            raise SettingsError("opponents", opponents, f"must be a text, or one of {', '.join(OPPONENTS)}")
        if opponents and opponents not in OPPONENTS and len(opponents.split()) < 2:
            reason = f"is no text of several words, and no name that is known here; {suggestion(opponents, OPPONENTS)}"
            raise SettingsError("opponents", opponents, reason)

    def _read_personas(self) -> None:
        personas: Any = self.personas
        if isinstance(personas, str) or not isinstance(personas, Sequence):
            raise SettingsError("personas", personas, "must be a list of texts")
        if any(not isinstance(text, str) or not text.strip() for text in personas):
            raise SettingsError("personas", personas, "must hold texts that are not empty")
        if len(personas) not in (0, 1, self.players):
            reason = f"must hold no text, one for everyone, or one for each of players={self.players}"
            raise SettingsError("personas", personas, reason)
        object.__setattr__(self, "personas", tuple(personas))


def read_fraction(field: str, value: object) -> Fraction:
    """Read the exact fraction that a setting holds.

    Args:
        field: the setting's name, for the error.
        value: a `Fraction`, an int, a finite float (read as the decimal it is printed as), a text such as `"2/3"` or
            `"0.51"`, or a pair of integers.

    Raises:
        SettingsError: `value` is none of these, or divides by zero.
    """
    fraction: Fraction | None = None
    try:
        if isinstance(value, Fraction | int) and not isinstance(value, bool):
            fraction = Fraction(value)
        elif isinstance(value, float) and math.isfinite(value):
            fraction = Fraction(repr(float(value)))
        elif isinstance(value, str) and _FRACTION.fullmatch(value.strip()):
            fraction = Fraction(value.strip())
        elif isinstance(value, list | tuple) and [type(part) for part in value] == [int, int]:
            fraction = Fraction(*value)
    except ZeroDivisionError:
        pass
    if fraction is None or max(abs(fraction.numerator), fraction.denominator) > _MAX_TERM:
        raise SettingsError(field, value, "must be an exact fraction such as '2/3', [2, 3] or 0.51")
    return fraction


def tidy(value: float) -> float:
    """An integral float as an int, so that texts say 100 and not 100.0."""
    return int(value) if value == int(value) else value

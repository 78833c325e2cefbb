"""What everything else needs to know of a scenario, in one descriptor that stands in the scenario's own room.

A reference is an object, or `"module:attribute"` as a string, which is imported when it is first needed; so knowing a
scenario imports nothing of it. Rooms that use a reference say what it must be: the class `Workflow` of language models,
the class `Section` of reports, and so on. Where a scenario brings none, they have a generic one.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from llm_coop_envs.core.records import Delivery, deliveries, forced_players, of_type
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.interface.wording import wording_names
from llm_coop_envs.statistics.intervals import Range
from llm_coop_envs.util.references import load

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

Event = dict[str, Any]
Row = dict[str, Any]
T = TypeVar("T")
#: A range that hangs on the settings, as plain data: of 100 people no more than 100 can leave.
SettingsRange = Callable[[Mapping[str, Any]], Range]


#: The unit of shares, and what a difference of points in time is called.
PER_CENT, LATER = "%", "later"


@dataclass(frozen=True, kw_only=True)
class MeasureWords:
    """How a sentence speaks of a measure.

    With `noun="the round in which people leave"`, `clause="people leave"`, `unit="rounds"` and `higher="later"` a
    difference of 2 is told as "People leave 2 rounds later with talk than without talk."

    Attributes:
        noun: what it is, as a phrase that fits behind "no difference in".
        clause: how a sentence on a difference begins; by default the noun and "is".
        unit: what its differences are counted in, in the plural; `"%"` for shares of 1, which are told in per cent.
        higher: what a positive difference is called.
        lower: what a negative one is called.
    """

    noun: str
    clause: str = ""
    unit: str = ""
    higher: str = "higher"
    lower: str = "lower"

    @property
    def beginning(self) -> str:
        """How a sentence on a difference begins."""
        return self.clause or f"{self.noun} is"

    @property
    def brief(self) -> str:
        """The noun without what it explains in brackets, for lists, axes and menus."""
        return re.sub(r"^'([^']*)'$", r"\1", re.sub(r" *\([^)]*\)", "", self.noun))

    def direction(self, difference: float) -> str:
        """What a difference is called."""
        return self.higher if difference > 0 else self.lower


SettingsWords = Callable[[Mapping[str, Any]], MeasureWords]


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What is measured of a scenario's episodes, from their recorded events.

    Attributes:
        episode: one flat row of JSON scalars for an episode.
        rounds: flat rows, one per round.
        about: what each measure of `episode` means, in a sentence with its unit and range, by name; names may be
            patterns such as `"escaped_*"`, the first that fits counts.
        ranges: what each number of `episode` and `rounds` can be, by name or pattern likewise: a `Range`, or a function
            of an episode's settings that returns one. Intervals and bands end there.
        headline: the measures that reports and comparisons put first.
        words: how sentences speak of the measures of `episode`, by name or pattern, whose `*` a noun may repeat, or a
            function of an episode's settings that says so; others go by their own names.
        heard: what was heard, from an episode's events; by default every message is heard by all of its hearers in
            the round in which it is delivered.
        asked: what each player is asked, by name, told the `start` event: what its choices mean, and what it may
            announce in talk; `None` if that cannot be said.
        unflagged: an episode's events without the choices that were flagged, such that `episode` and `rounds` measure
            the rest; `None` if nothing is left. Its docstring says in its first line what is left out. By default an
            episode with a flagged choice is left out.
        forced: what `episode` makes of choices that a study's changes force, in a sentence, if it tells them apart by
            `core.records.forced_players`. By default it is not shown rounds that have such choices.
        nature: the fields of events that nature drew, by type of event, besides `nature` events; `{}` if it draws
            nothing else but the order of talk, `None` if the events do not tell. Arms of a comparison are said to have
            the same random numbers only where these agree.
    """

    episode: Callable[[Sequence[Event]], Row]
    rounds: Callable[[Sequence[Event]], list[Row]]
    about: Mapping[str, str]
    headline: tuple[str, ...]
    words: Mapping[str, MeasureWords | SettingsWords] = field(default_factory=dict)
    ranges: Mapping[str, Range | SettingsRange] = field(default_factory=dict)
    unflagged: Callable[[Sequence[Event]], list[Event] | None] | None = None
    asked: Callable[[Mapping[str, Any]], Mapping[str, Number | Options]] | None = None
    forced: str = ""
    nature: Mapping[str, Sequence[str]] | None = None
    heard: Callable[[Sequence[Event]], Sequence[Delivery]] = deliveries

    def of_episode(self, events: Sequence[Event]) -> Row:
        """The row of an episode, without the choices that a study's changes force; empty if no other is left."""
        if self.forced or not (forced := forced_players(events)):
            return self.episode(events)
        own = [event for event in events if event["type"] not in ("choice", "round") or event["round"] not in forced]
        return self.episode(own) if of_type(own, "choice") else {}

    @property
    def forced_note(self) -> str:
        """What becomes of choices that a study's changes force, in a sentence."""
        return self.forced or "Rounds in which a choice is forced are left out of the measures."

    def without_flagged(self, events: Sequence[Event]) -> list[Event] | None:
        """An episode's events without its flagged choices, of which it has some; `None` if nothing is left."""
        return None if self.unflagged is None else self.unflagged(events)

    @property
    def left_out(self) -> str:
        """What is left out where choices were flagged, in a sentence."""
        return (getattr(self.unflagged, "__doc__", "") or "Episodes with a flagged choice are left out.").split("\n")[0]

    def define(self, name: str) -> str:
        """What a measure means; empty if `about` does not say."""
        return _first_match(self.about, name) or ""

    def words_for(self, name: str, settings: Mapping[str, Any] | None = None) -> MeasureWords:
        """How sentences speak of a measure, in a game with these settings if they are named.

        By default `catch_total` is called "'catch total'", and yes/no a share.
        """
        pattern = next((own for own in self.words if fnmatch.fnmatchcase(name, own)), "")
        if not pattern:
            plain_name = name.replace("_", " ")
            if getattr(_first_match(self.ranges, name), "exact", False):
                return MeasureWords(noun=f"the share of episodes with '{plain_name}'", unit=PER_CENT)
            return MeasureWords(noun=f"'{plain_name}'")
        declared = self.words[pattern]
        words = declared(settings or {}) if callable(declared) else declared
        return replace(words, noun=words.noun.replace("*", name.removeprefix(pattern.partition("*")[0])))

    def range_of(self, name: str, settings: Mapping[str, Any]) -> Range | None:
        """What a measure can be in a game with these settings; `None` if `ranges` does not say."""
        return resolve_range(_first_match(self.ranges, name), settings)


def resolve_range(declared: Range | SettingsRange | None, settings: Mapping[str, Any]) -> Range | None:
    """The range of a measure whose declaration may be a function of the settings."""
    return declared(settings) if callable(declared) else declared


def _first_match(by_pattern: Mapping[str, T], name: str) -> T | None:
    return next((value for pattern, value in by_pattern.items() if fnmatch.fnmatchcase(name, pattern)), None)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario.

    Attributes:
        name: its name in studies and file names, such as `"kbc"`.
        title: its name in reports.
        env: the environment's class, a `ScenarioEnv`.
        measures: what is measured, a `Measures`.
        batch: copies of it that are stepped together, a `wrappers.batch.BatchEnv` class; by default they are played
            one by one.
        scripted: its scripted policies, a mapping from name to factory.
        opponent: who of them fills the seats that nobody else takes; of unlike roles a mapping from roles to names.
        workflow: what a language model is asked, a `policies.llm.playing.workflow.Workflow`; by default the
            environment's own text.
        scene: how events become scenes, a `render.scenes.tracking.Tracker` class; by default a table of players.
        picture: how its scenes are drawn, a `render.screen.draw.Picture`; by default as a table.
        page: how its scenes go to a page, a `render.scenes.on_page.PageFace`; by default as a table.
        report: its section of reports with its own figures, a `reports.section.ScenarioSection` class; by
            default a section of its measures.
        figures: figures of folders that hold something else than a study's run, such as a learner's sessions, a
            `reports.figures.FolderKind`; by default there are none.
        learning: what learners see and how they are set, a `baselines.learning.Learning`; by default whatever fits
            the choice space.
        after: what is measured by playing on from an episode's end where a study asks for it, a class as
            `policies.branching.Afterwards`; its fields are the options that the study gives.
        rewards: what a learner may be rewarded with besides what the environment pays: a mapping from names to
            functions of the settings and a `round` event, such as the consumer surplus of a market.
        synthetic_worlds: scripted players of known intent and detectors of collusion, a
            `measures.synthetic_worlds.SyntheticWorlds`; by default none.
        scorecard: the questions and tasks that the scorecard has for it, a
            `benchmarks.scorecard.tasks.ScorecardTasks`; by default none.
        importers: who reads what other programs recorded of this game, by the name of the format, such as `"coopeval"`:
            a `runs.imported.Importer`.
        film: whether films and replays show one picture per `"step"` or per `"round"`.
        options: more references by name, for rooms that come from outside.
    """

    name: str
    title: str
    env: type[ScenarioEnv] | str
    measures: Measures | str
    scripted: Mapping[str, Callable[..., Any]] | str
    opponent: str | Mapping[str, str]
    batch: Any = None
    workflow: Any = None
    scene: Any = None
    picture: Any = None
    page: Any = None
    report: Any = None
    figures: Any = None
    learning: Any = None
    after: Any = None
    rewards: Mapping[str, Callable[[Any, Event], float]] | str = field(default_factory=dict)
    synthetic_worlds: Any = None
    scorecard: Any = None
    importers: Mapping[str, Any] = field(default_factory=dict)
    film: str = "step"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def env_class(self) -> type[ScenarioEnv]:
        """The environment's class."""
        env_class: type[ScenarioEnv] = load(self.env)
        return env_class

    @property
    def env_name(self) -> str:
        """The environment's name with its version, such as `"kbc_v0"`."""
        return str(self.env_class.metadata["name"])

    @property
    def settings_type(self) -> type[ScenarioSettings]:
        """The class of its settings."""
        return self.env_class.settings_type

    @property
    def policies(self) -> Mapping[str, Callable[..., Any]]:
        """Its scripted policies by name."""
        factories: Mapping[str, Callable[..., Any]] = load(self.scripted)
        return factories

    @property
    def measured(self) -> Measures:
        """What is measured."""
        measures: Measures = load(self.measures)
        return measures

    @property
    def wordings(self) -> list[str]:
        """The names of its shipped wordings."""
        return wording_names(self.env_class.home)

    @property
    def published(self) -> Mapping[str, Any]:
        """Published numbers with their sources, from `published.json` in the scenario's room; empty without one."""
        return _read_published(self.env_class.home / "published.json")

    def opponent_of(self, agent: str) -> str:
        """The scripted policy that fills a seat which nobody else takes."""
        if isinstance(self.opponent, str):
            return self.opponent
        return self.opponent.get(agent.rpartition("_")[0]) or next(iter(self.opponent.values()))

    def environment(self, *, record: bool = False, **settings: Any) -> ScenarioEnv:
        """Make the parallel environment.

        Args:
            record: keep events.
            **settings: `preset` and settings by name.

        Raises:
            SettingsError: as the environment does.
        """
        make: Callable[..., ScenarioEnv] = self.env_class
        return make(record=record, **settings)

    def episode_metrics(self, events: Sequence[Event]) -> Row:
        """What is measured of one episode, as one flat row."""
        return self.measured.of_episode(events)

    def round_rows(self, events: Sequence[Event]) -> list[Row]:
        """What is measured of each round, as flat rows."""
        return self.measured.rounds(events)


@functools.cache
def _read_published(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    published: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return published

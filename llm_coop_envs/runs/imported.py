"""Runs of other people: what another program recorded of a game becomes a run folder as any other.

A scenario names who reads a format (`Scenario.importers`). The importer says who sat where and what they did, step by
step. The moves are played through our own environment, so that events, measures and payoffs follow from our rules, and
what the records say was paid is compared with them. `verify` does both again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.mechanisms.settings import NONE, read_mechanism
from llm_coop_envs.policies.branching import submitted_steps
from llm_coop_envs.policies.kinds import RECORDED
from llm_coop_envs.runs.episode import PlayedEpisode
from llm_coop_envs.runs.folder import MAX_NAME, Run, make_run
from llm_coop_envs.runs.tables import write_tables
from llm_coop_envs.storage.manifest import is_file_name
from llm_coop_envs.storage.parquet import need_arrow
from llm_coop_envs.studies.conditions import Condition, Player
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.foreign import ForeignFolder, commit_of
from llm_coop_envs.util.opening import DAMAGED
from llm_coop_envs.util.references import load

_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """What all did in one step.

    Attributes:
        actions: what each agent submitted, as `env.step` takes it.
        paid: what the records say each player got, in the order of agents; `None` if they do not say.
        besides: the part of it that comes from outside the game's own rules, such as a contract's payments.
    """

    actions: Mapping[str, Any]
    paid: Sequence[float] | None = None
    besides: Sequence[float] | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedEpisode:
    """An episode that somebody else played.

    Attributes:
        condition: the name of its condition.
        seed: its number there; episodes of a `pair` that have the same one are compared with each other.
        players: who sat in each seat, as the records name them.
        steps: what they did.
        origin: where it stands in the folder.
        cluster: what it shares with other episodes, so that they count as one; empty for nothing.
        options: the options of `env.reset`, for scenarios that have some.
    """

    condition: str
    seed: int
    players: Mapping[str, str]
    steps: Sequence[RecordedStep]
    origin: str
    cluster: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecordedArm:
    """One arm of what somebody else played.

    Attributes:
        name: as the name of a condition.
        title: its name in reports.
        settings: the settings that differ from the scenario's.
        pair: a name shared with the arms that it is compared with; empty for none.
        when: how a sentence speaks of it, such as "with a mediator"; empty to name its title.
        mechanism: the kind of mechanism that its players met with. What the settings do not have of it was not played
            by our rules: what came of it is in the moves, and in what was paid besides.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    pair: str = ""
    when: str = ""
    mechanism: str = NONE

    def __post_init__(self) -> None:
        """Require a mechanism that there is."""
        read_mechanism(self.mechanism)


@dataclass(frozen=True, kw_only=True)
class Records:
    """All that an importer found in a folder.

    Attributes:
        by: who played it and where they published it, as a sentence names them.
        arms: the arms, in the order in which reports show them.
        episodes: their episodes.
        notes: sentences on what the folder lacks.
    """

    by: str
    arms: Sequence[RecordedArm]
    episodes: Iterable[RecordedEpisode]
    notes: Sequence[str] = ()


#: Reads a folder. It raises what `ForeignFolder.refuse` makes of a file of another form or version.
Importer = Callable[[ForeignFolder], Records]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A run that was imported.

    Attributes:
        run: the run.
        notes: sentences on what the folder lacks.
        plays: of each condition, how many steps the records say the pay of; in how many our rules alone pay the same;
            and in how many they do with what came from outside the game.
    """

    run: Run
    notes: Sequence[str]
    plays: Mapping[str, Sequence[int]]


def find_importer(form: str) -> tuple[str, Importer]:
    """The name of the scenario that reads a format, and its importer.

    Raises:
        RunError: no installed scenario reads it.
    """
    forms = {name: scenario for scenario in scenarios().values() for name in scenario.importers}
    if form not in forms:
        raise RunError(
            f"no installed scenario reads '{form}'; {suggestion(form, forms)}; examples/ of the repository has "
            "packages that bring importers (pip install ./examples/NAME)"
        )
    return forms[form].name, load(forms[form].importers[form])


def import_records(form: str, source: Path, folder: Path, *, commit: str = "", command: str = "") -> Imported:
    """Make a run folder of what another program recorded.

    Args:
        form: the name of the format.
        source: the folder of the records; it is only read.
        folder: a new or empty folder, or one in which the same import was begun.
        commit: the commit of the records; by default that of the Git repository in which they lie.
        command: how this was started, for the record.

    Raises:
        RunError: the records are of another form or version, or the folder cannot be used.
    """
    need_arrow()
    scenario, importer = find_importer(form)
    foreign = ForeignFolder(source, form)
    try:
        records = importer(foreign)
        episodes = list(records.episodes)
    except DAMAGED as error:
        raise foreign.refuse(".", f"holds what cannot be read ({type(error).__name__}: {str(error)[:200]})") from error
    for name in {arm.name for arm in records.arms}:
        if not is_file_name(name) or "/" in name or len(name) > MAX_NAME:
            raise foreign.refuse(".", f"has an arm that cannot be called {name[:80]!r}")
    if not episodes:
        raise foreign.refuse(".", "holds no episode")
    for episode in episodes:
        pay = (number for step in episode.steps for number in (*(step.paid or ()), *(step.besides or ())))
        if not all(map(math.isfinite, pay)):
            raise foreign.refuse(episode.origin, "has a payment that is no finite number")
    commit = commit or commit_of(source) or "unknown"
    mark = {"format": form, "by": records.by, "of": source.resolve().name, "commit": commit, "files": foreign.files}
    study = _study(f"{form}_{source.resolve().name}", scenario, records, episodes, mark)
    run = make_run(study, folder, imported={**mark, "plays": {}})
    conditions = {condition.name: condition for condition in run.conditions}
    plays, kinds = {name: [0, 0, 0] for name in conditions}, {arm.name: arm.mechanism for arm in records.arms}
    files: dict[str, str] = {}
    with run.lock(), run.session(command=command, workers=1):
        for episode in episodes:
            played = _play(conditions[episode.condition], episode, foreign, kinds[episode.condition])
            files |= run.write_events(episode.condition, episode.seed, played[0])
            plays[episode.condition] = [a + b for a, b in zip(plays[episode.condition], played[1], strict=True)]
        files = {**run.manifest["files"], **files}
        run.change(finished=len(episodes), imported={**mark, "plays": plays}, files=files)
        try:
            tables = write_tables(run)
        except ArithmeticError as error:
            raise foreign.refuse(".", f"holds numbers that cannot be counted with ({error})") from error
        run.change(files={**files, **run.fingerprints(*tables)})
    return Imported(run=run, notes=records.notes, plays=plays)


def _study(
    name: str, scenario: str, records: Records, episodes: Sequence[RecordedEpisode], mark: Mapping[str, Any]
) -> Study:
    """The study that the records are, whose players nobody can ask again."""
    conditions = []
    for arm in records.arms:
        own = [episode for episode in episodes if episode.condition == arm.name]
        players = sorted({who for episode in own for who in episode.players.values()})
        condition = Condition(
            name=arm.name,
            title=arm.title,
            scenario=scenario,
            settings={},
            changed=dict(arm.settings),
            preset=None,
            seats=(("all", tuple(Player(policy=player_name(who), options={}) for who in players)),),
            seeds=tuple(sorted(episode.seed for episode in own)),
            pair=arm.pair,
            when=arm.when,
            cluster={episode.seed: episode.cluster for episode in own if episode.cluster},
        )
        settings = condition.spec.settings_type.build(**arm.settings).to_json()
        conditions.append(Condition(**{**vars(condition), "settings": settings}))
    description = (
        f"Recorded by others, imported and not played here: {records.by}. Read from {mark['of']}, commit "
        f"{mark['commit']}."
    )
    text = yaml.safe_dump({"name": name, "description": description}, sort_keys=False, allow_unicode=True)
    return Study(
        name=name,
        description=description,
        seed=0,
        conditions=tuple(conditions),
        measures=(),
        text=f"# imported\n{text}",
    )


def player_name(who: str) -> str:
    """The full name of a policy for somebody whom records name.

    Raises:
        RunError: the name is too long, or cannot be printed.
    """
    if not who.isprintable() or not 0 < len(who) <= _LONGEST_NAME:
        raise RunError(f"the records name a player {who[:80]!r}; names have 1 to {_LONGEST_NAME} printable characters")
    return f"{RECORDED}:{who}"


def _play(
    condition: Condition, episode: RecordedEpisode, foreign: ForeignFolder, mechanism: str
) -> tuple[PlayedEpisode, tuple[int, int, int]]:
    """An episode's events by our rules, and how many of its payments these explain."""
    try:
        events, rewards = play_moves(condition, episode.seed, [step.actions for step in episode.steps], episode.options)
    except (LlmCoopError, *DAMAGED) as error:
        raise foreign.refuse(episode.origin, f"cannot be played by our rules ({error})") from error
    changed = next((event for event in events if event.get("flags")), None)
    if changed:
        reason = f"{changed['agent']} in round {changed['round']}: {', '.join(changed['flags'])}"
        raise foreign.refuse(episode.origin, f"has a move that our rules do not take as it is ({reason})")
    agents = events[0]["agents"]
    if set(agents) != set(episode.players):
        raise foreign.refuse(episode.origin, f"has {len(episode.players)} players, not {len(agents)}")
    recorded: dict[str, Any] = {
        "origin": episode.origin,
        "mechanism": mechanism,
        "paid": [None if step.paid is None else list(step.paid) for step in episode.steps],
        **({"options": dict(episode.options)} if episode.options else {}),
        "besides": [None if step.besides is None else list(step.besides) for step in episode.steps],
    }
    played = PlayedEpisode(
        policies={agent: player_name(episode.players[agent]) for agent in agents},
        events=events,
        returns={agent: math.fsum(step[i] for step in rewards) for i, agent in enumerate(agents)},
        recorded=recorded,
    )
    counts = count_payments(recorded, rewards)
    recorded["differ"] = counts[0] - counts[2]
    return played, counts


def play_moves(
    condition: Condition, seed: int, steps: Sequence[Mapping[str, Any]], options: Mapping[str, Any] | None = None
) -> tuple[list[Event], list[list[float]]]:
    """Play moves by our rules.

    Returns:
        The events, and everybody's reward in each step.

    Raises:
        LlmCoopError: the game is over before the moves are, or the other way round, or a move is none.
    """
    env = condition.spec.environment(record=True, **condition.settings)
    env.begin(seed=seed, options=options)
    rewards: list[list[float]] = []
    for actions in steps:
        if env.over:
            raise RunError(f"there are {len(steps)} steps, and the game is over after {len(rewards)}")
        env.submit(actions)
        rewards.append(env.rewards.tolist())
    if not env.over:
        raise RunError(f"there are {len(steps)} steps, and the game is not over then")
    return env.events, rewards


def count_payments(recorded: Mapping[str, Any], rewards: Sequence[Sequence[float]]) -> tuple[int, int, int]:
    """Compare what records say was paid with our rules.

    Returns:
        How many steps the records say the pay of; how many our rules pay alike; how many with what came from outside.
    """
    known = same = explained = 0
    for paid, besides, ours in zip(recorded["paid"], recorded["besides"], rewards, strict=True):
        if paid is None:
            continue
        known += 1
        same += _alike(paid, ours)
        explained += _alike(paid, ours if besides is None else [a + b for a, b in zip(ours, besides, strict=True)])
    return known, same, explained


def _alike(first: Sequence[float], second: Sequence[float]) -> bool:
    return len(first) == len(second) and all(map(lambda a, b: math.isclose(a, b, abs_tol=1e-9), first, second))


def check_moves(condition: Condition, seed: int, header: Mapping[str, Any], events: Sequence[Event]) -> PlayedEpisode:
    """Play the moves of an imported episode again.

    Raises:
        RunError: they cannot be, somebody sat there whom the condition does not name, or more or fewer payments differ
            from our rules than when it was imported.
    """
    played, rewards = play_moves(condition, seed, submitted_steps(events), header["recorded"].get("options"))
    strangers = set(header["policies"].values()) - set(condition.policies)
    if strangers:
        raise RunError(f"{min(strangers)} is no player of the condition")
    known, _, explained = count_payments(header["recorded"], rewards)
    if known - explained != header["recorded"]["differ"]:
        raise RunError(f"in {known - explained} of {known} plays the records say other payments than our rules make")
    return PlayedEpisode(policies=header["policies"], events=played, recorded=header["recorded"])

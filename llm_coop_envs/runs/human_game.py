"""Play a game with people in it, recorded as a run of one episode."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import LlmCoopError, PlayerLeft, RunError, SettingsError, StudyError
from llm_coop_envs.policies import Policy, play_async
from llm_coop_envs.runs.episode import PlayedEpisode, episode_randomness
from llm_coop_envs.runs.folder import Run, make_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.tables import write_tables
from llm_coop_envs.storage.folder import COMPLETE, INTERRUPTED
from llm_coop_envs.storage.parquet import need_arrow
from llm_coop_envs.studies.conditions import Condition, Player, make_player
from llm_coop_envs.studies.dealing import assign_seats
from llm_coop_envs.studies.players import RecordingPolicy, full_name, make_policy
from llm_coop_envs.studies.seating import read_player
from llm_coop_envs.studies.study import Study, parse_study
from llm_coop_envs.studies.study_file import MAX_SEED
from llm_coop_envs.util.interrupts import on_interrupt

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

HUMAN = "human"
CONDITION = "played"


@dataclass(frozen=True, kw_only=True)
class HumanGame:
    """A planned game: a study of one condition and one seed, and the seats of people."""

    study: Study
    seats: tuple[str, ...]

    @property
    def condition(self) -> Condition:
        """The game's only condition."""
        return self.study.conditions[0]

    @property
    def seed(self) -> int:
        """The environment's seed."""
        return self.condition.seeds[0]


@dataclass(frozen=True, kw_only=True)
class GameResult:
    """The outcome of a game.

    Attributes:
        run: the run folder.
        is_recorded: whether a round was settled, so that the game was recorded.
        reason: the reason for its end.
        person_left: whether a person left before the end.
        rewards: each person's sum of rewards.
        failure: the error that broke the game off, if one did.
    """

    run: Run
    is_recorded: bool
    reason: str
    person_left: bool
    rewards: dict[str, float]
    failure: Exception | None = None


def plan_game(
    scenario: str,
    *,
    seats: int | Sequence[str] = 1,
    others: str | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> HumanGame:
    """Make a study of a game.

    Args:
        scenario: the scenario's name.
        seats: the number of people, who take the first seats; or the names of their seats.
        others: the player of all other seats, as `llm-coop run --policy` takes it; by default a scripted policy.
        preset: the preset's name, if any.
        settings: settings of the scenario.
        seed: the seed of the environment and of the study.

    Raises:
        LlmCoopError: an argument is impossible; the sentence says which.
    """
    if not 0 <= seed <= MAX_SEED:
        raise SettingsError("seed", seed, f"must be between 0 and {MAX_SEED}")
    descriptor = find_scenario(scenario)
    agents = descriptor.environment(preset=preset, **dict(settings or {})).possible_agents
    if isinstance(seats, int):
        if not 1 <= seats <= len(agents):
            raise SettingsError("seats", seats, f"must be between 1 and {len(agents)}, the number of players")
        mine = list(agents[:seats])
    else:
        mine = list(dict.fromkeys(seats))
        unknown = [name for name in mine if name not in agents]
        if unknown or not mine:
            reason = f"is not a seat; seats are {agents[0]} to {agents[-1]}"
            raise SettingsError("seat", unknown[0] if unknown else "", reason)
    policies: dict[str, Any] = dict.fromkeys(mine, HUMAN)
    if len(mine) < len(agents):
        free = [name for name in agents if name not in mine]
        usual = {f"{name.rpartition('_')[0]}_*": descriptor.opponent_of(name) for name in free}
        for seat, text in ({"all": others} if others or len(set(usual.values())) == 1 else usual).items():
            opponent = read_player(text or descriptor.opponent_of(free[0]))
            try:
                make_player(scenario, full_name(scenario, opponent.name), opponent.options)
            except LlmCoopError as error:
                raise StudyError(f"--others {opponent}: {error}") from error
            policies[seat] = (
                {"name": opponent.name, "options": dict(opponent.options)} if opponent.options else opponent.name
            )
    condition: dict[str, Any] = {"name": CONDITION, "title": f"{scenario} with people", "scenario": scenario}
    condition |= {} if preset is None else {"preset": preset}
    condition |= {"settings": dict(settings)} if settings else {}
    condition |= {"policies": policies, "seeds": [seed]}
    study: dict[str, Any] = {"name": f"play_{scenario}", "description": "A game with people in it.", "seed": seed}
    text = yaml.safe_dump({**study, "conditions": [condition]}, sort_keys=False, allow_unicode=True)
    return HumanGame(study=parse_study(text, "the game"), seats=tuple(mine))


async def play_game(
    game: HumanGame,
    folder: Path,
    human: Policy,
    *,
    on_step: Callable[[ScenarioEnv], None] | None = None,
    command: str = "",
    notify: Callable[[str], None] = lambda _: None,
) -> GameResult:
    """Play a game and record it as a run folder, which reports, figures and films read like any other.

    If a person leaves, or drawing or a policy fails, the rounds until then are recorded as an episode that was cut. A
    game without a single settled round is not recorded.

    Args:
        game: the game.
        folder: a new or empty folder, or one in which this game was begun and not recorded.
        human: decides for the people's seats.
        on_step: called after the start and after every step.
        command: how the game was started, for the record.
        notify: called with notes on the models that play.

    Raises:
        LlmCoopError: the folder cannot be used or written, or a policy failed.
    """
    need_arrow()
    access = ModelAccess()
    endpoints = access.endpoints(game.study)
    if endpoints:
        access.check(endpoints)
    run = make_run(game.study, folder)
    # The event loop's own handler would only note Ctrl-C; this one breaks off the wait for a line in the terminal.
    with run.lock(), on_interrupt(signal.default_int_handler):
        if run.finished():
            raise RunError(f"{folder}: holds this game already; choose another folder with -o, or another --seed")
        number = run.begin(command=command, workers=1)
        status = INTERRUPTED
        written: list[Path] = []
        try:
            async with access.open(folder, endpoints, notify) if endpoints else contextlib.nullcontext() as chat:
                result = await _play(game, run, human, on_step, chat)
            if result.is_recorded:
                written += [*write_tables(run), run.events_path(game.condition.name, game.seed)]
                status = COMPLETE
        finally:
            written += access.journal(folder) if endpoints else []
            run.end(number, status, files=run.fingerprints(*written), finished=len(run.finished()))
    if result.failure is not None:
        cause = str(result.failure) or type(result.failure).__name__
        outcome = (
            "what was played is kept there"
            if result.is_recorded
            else "no round was settled, so there is nothing to keep"
        )
        raise RunError(f"{folder}: the game broke off ({cause}); {outcome}") from result.failure
    return result


async def _play(
    game: HumanGame, run: Run, human: Policy, on_step: Callable[[ScenarioEnv], None] | None, chat: Chat | None
) -> GameResult:
    condition = game.condition
    env = condition.spec.environment(record=True, **condition.settings)
    seating, deciding = episode_randomness(game.study.seed, condition.streams, game.seed).spawn(2)
    players = assign_seats(condition, env.possible_agents, np.random.default_rng(seating))
    policy_of = {
        id(player): human
        if player.policy == HUMAN
        else make_policy(condition.scenario, player.policy, player.options, chat)
        for player in {id(player): player for player in players.values()}.values()
    }
    totals = np.zeros(len(env.possible_agents))

    def count(played: ScenarioEnv) -> None:
        totals.__iadd__(played.rewards)
        if on_step is not None:
            on_step(played)

    leave_reason = ""
    failure: Exception | None = None
    try:
        await play_async(
            env,
            {agent: policy_of[id(player)] for agent, player in players.items()},
            seed=game.seed,
            policy_seed=deciding,
            on_step=count,
            name=f"{condition.name}/{game.seed}",
        )
    except PlayerLeft as gone:
        leave_reason = str(gone)
    except (KeyboardInterrupt, asyncio.CancelledError):
        # Ctrl-C while everybody thinks ends the event loop, which then cancels what runs in it.
        leave_reason = "Ctrl-C was pressed"
    except Exception as error:
        if not env.events:  # nothing was played
            raise
        leave_reason, failure = f"the game broke off: {error}", error
    events = list(env.events)
    if leave_reason:
        when = {"step": events[-1]["step"], "round": events[-1]["round"]}
        reason = leave_reason if failure else f"left: {leave_reason}"
        events.append({"type": "end", **when, "reason": reason, "truncated": True})
    has_rounds = any(event["type"] == "round" for event in events)
    if has_rounds:
        run.write_events(condition.name, game.seed, _as_episode(players, policy_of, events))
    return GameResult(
        run=run,
        is_recorded=has_rounds,
        reason=events[-1]["reason"],
        person_left=bool(leave_reason),
        rewards={agent: float(totals[env.possible_agents.index(agent)]) for agent in game.seats},
        failure=failure,
    )


def _as_episode(players: Mapping[str, Player], policy_of: Mapping[int, Policy], events: list[Event]) -> PlayedEpisode:
    """The episode of a game, from the player of each seat and the policy of each player."""
    names = {id(player): player.policy for player in players.values()}
    answers = [
        {"policy": names[key], **policy.record()}
        for key, policy in policy_of.items()
        if isinstance(policy, RecordingPolicy)
    ]
    policies = {agent: player.policy for agent, player in players.items()}
    return PlayedEpisode(policies=policies, events=events, answers=answers)
